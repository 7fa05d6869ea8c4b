"""From a user's conversations to token ids for training and validation."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from clearhead.generation.chat import ChatTemplate, Role, Turn
from clearhead.messages import UserError, say
from clearhead.models.config import ModelConfig
from clearhead.text import Pair, Tokenizer, split_pairs
from clearhead.text.messages_file import Conversation, read_conversations
from clearhead.text.streams import Progress, nothing
from clearhead.training.batches import Batch
from clearhead.training.conversations import Answered, Conversed, all_conversations, answered, answers_right
from clearhead.training.data_choice import NOTHING_SAID, DataChoice
from clearhead.training.losses import next_token
from clearhead.training.objective import Objective
from clearhead.training.order import ALL, Share
from clearhead.training.pair_data import Place
from clearhead.training.tasks import EVALUATION_TOKENS

EVALUATION_CONVERSATIONS = 256
"""How many conversations go through the model together in an evaluation, unless they are long."""

ROLES = "system user assistant\n"
"""What the first system's turn after the training may need to be written, though no conversation has one."""


Made = TypeVar("Made")


class Example(NamedTuple):
    """A question that is not trained on."""

    source: str
    """The question, the first of its conversation that is answered."""
    target: str
    """Its answer."""
    prompt: list[int]
    """The ids that the model continues with an answer."""


@dataclass(frozen=True)
class ConversationTexts:
    """Conversations as read."""

    conversations: Sequence[Conversation]
    source: dict[str, Any]
    """What a run records of them: the files, and a hash."""
    notes: tuple[str, ...]

    def written(self, template: str) -> list[str]:
        """What a new tokenizer is made of: each conversation as the template (its source) writes it, without marks; and the roles.

        Raises:
            UserError: if the template cannot write one down; the message names its file and line.
        """
        plain = ChatTemplate(template)
        return [ROLES, *(placed(each, lambda turns: plain.text(turns, answer=False)) for each in self.conversations)]


@dataclass(frozen=True)
class ConversationData:
    """Conversations ready to train on."""

    texts: ConversationTexts
    tokenizer: Tokenizer
    template: str
    """How they are written down; belongs into the run, as its chat_template.jinja."""
    train: list[Answered]
    validation: list[Answered]
    """A tenth of the conversations; none that is trained on begins with the question of one of them."""
    places: list[Place]
    """Where each was read: those to train on, then those to validate on."""
    example: Example
    """The first question of the validation, to show what the model makes of it."""

    @property
    def source(self) -> dict[str, Any]:
        """What a run records of the conversations, and a hash of the template."""
        return self.texts.source | {"template_sha256": hashlib.sha256(self.template.encode()).hexdigest()}

    @property
    def notes(self) -> tuple[str, ...]:
        """Encodings recognised, how many are on each side, and other things that the user should know."""
        ended = all(each.ids[-1] == self.tokenizer.end for each in self.train + self.validation)
        parts = say("training.parts", train=f"{len(self.train):,}", validation=f"{len(self.validation):,}")
        return (*self.texts.notes, parts, *([] if ended else [say("training.conversation_no_end")]))

    @property
    def tokens(self) -> int:
        """How many tokens of answers there are to train on, their end marks among them."""
        return sum(each.terms for each in self.train)

    @property
    def longest(self) -> int:
        """How many positions the longest conversation needs."""
        return max(each.positions for each in self.train + self.validation)

    @property
    def uniform(self) -> float:
        """The loss of guessing, ln V (nats per token)."""
        return math.log(self.tokenizer.size)

    def must_fit(self, context: int) -> None:
        """Raise a UserError that names the longest conversation, its file and line, if it is longer than the context."""
        if self.longest > context:
            lengths = [each.positions for each in self.train + self.validation]
            path, line = self.places[lengths.index(self.longest)]
            raise UserError(
                say("training.conversation_too_long", path=path, line=line, longest=self.longest, context=context)
            )

    def tokens_a_step(self, config: ModelConfig, batch: int) -> float:
        """The mean count of a conversation's answers, so many times."""
        return batch * self.tokens / len(self.train)

    def objective(self, config: ModelConfig, *, batch: int, seed: int, share: Share = ALL) -> Objective[Batch]:
        """The next token of the answers; judged by the share of answers that are wholly right, too.

        Args:
            config: of the model; its context holds every conversation.
            batch: how many conversations an update takes.
            seed: of their order.
            share: the part of each update that this process computes.
        """
        return Objective(
            Conversed(self.train, batch, seed, share),
            lambda: all_conversations(self.validation, EVALUATION_CONVERSATIONS, tokens=EVALUATION_TOKENS),
            next_token,
            {"answers_right": answers_right},
            sizes_vary=True,
        )


def read_conversation_texts(
    files: Sequence[str], choice: DataChoice = NOTHING_SAID, progress: Progress = nothing
) -> ConversationTexts:
    """The conversations of `files`, one file after the other.

    Args:
        files: .jsonl files, and folders of them.
        choice: how they are read.
        progress: told the bytes on disk, each once.

    Raises:
        UserError: if a file cannot be used, with the reason and the line.
    """
    read = read_conversations(files, choice.reading, progress)
    source = (
        {"conversations": [str(Path(file).resolve()) for file in files]} | choice.recorded() | {"sha256": read.sha256}
    )
    return ConversationTexts(read.conversations, source, read.notes)


def prepare_conversations(texts: ConversationTexts, tokenizer: Tokenizer, template: str) -> ConversationData:
    """Keep a tenth for validation and turn every conversation into ids.

    Args:
        texts: the conversations.
        tokenizer: text to ids; its marks begin and end what the template wants them to.
        template: how conversations are written down, in Jinja; `CHAT_TEMPLATE` if the model has none of its own.

    Raises:
        UserError: if there are not two different questions, or the template does not let a conversation's answers be told
            apart; the message names its file and line.
    """
    written = ChatTemplate.of(template, tokenizer)
    parts = _split(texts.conversations)
    train, validation = (
        [placed(each, lambda turns: answered(turns, written, tokenizer)) for each in part] for part in parts
    )
    places = [Place(str(each.path), each.line) for part in parts for each in part]
    example = _example(turns_of(parts[1][0]), written, tokenizer)
    return ConversationData(texts, tokenizer, template, train, validation, places, example)


def _split(conversations: Sequence[Conversation]) -> tuple[list[Conversation], list[Conversation]]:
    """Those to train on and those to validate on, as `split_pairs` tells pairs apart by what is asked."""
    # An answer has no say in it, so a number can stand in its place, and leads back to the conversation.
    pairs = [Pair(_question(each), str(number)) for number, each in enumerate(conversations)]
    if len({pair.source for pair in pairs}) < 2:
        raise UserError(say("training.conversation_one_question", count=len(pairs)))
    train, validation = split_pairs(pairs)
    return [conversations[int(pair.target)] for pair in train], [conversations[int(pair.target)] for pair in validation]


def _question(conversation: Conversation) -> str:
    """What the user says first."""
    return next(turn.content for turn in conversation.turns if turn.role == "user")


def _example(turns: Sequence[Turn], template: ChatTemplate, tokenizer: Tokenizer) -> Example:
    answer = next(number for number, turn in enumerate(turns) if turn.role == "assistant")
    return Example(turns[answer - 1].content, turns[answer].content, template.ids(turns[:answer], tokenizer))


def turns_of(conversation: Conversation) -> list[Turn]:
    """What was said, as a template takes it."""
    # Whoever read them knows that no other role is there.
    return [Turn(cast("Role", role), content) for role, content in conversation.turns]


def placed(conversation: Conversation, use: Callable[[Sequence[Turn]], Made]) -> Made:
    """What `use` makes of a conversation's turns.

    Raises:
        UserError: if it can make nothing, for its reason, with the file and the line.
    """
    try:
        return use(turns_of(conversation))
    except UserError as error:
        raise UserError(
            say("training.conversation_place", path=conversation.path, line=conversation.line, reason=error)
        ) from None
