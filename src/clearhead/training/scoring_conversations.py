"""How well a decoder answers in conversations: loss for each token of the answers, and answers wholly right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clearhead.formats.load import Loaded
from clearhead.generation.chat import ChatTemplate
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.text.messages_file import Conversation
from clearhead.training.conversation_data import EVALUATION_CONVERSATIONS, placed
from clearhead.training.conversations import Answered, all_conversations, answered, answers_right
from clearhead.training.fit import evaluating
from clearhead.training.scoring import (
    LOGITS_AT_ONCE,
    TOKENS_AT_ONCE,
    Progress,
    checked,
    losses_of,
    perplexity,
    sum_of,
    unseen,
)


@dataclass(frozen=True)
class ConversationScore:
    """How well a decoder answers."""

    loss: float
    """Mean of -ln p over the tokens of the answers, their end marks among them (nats per token)."""
    tokens: int
    """How many they are."""
    right: int
    """How many answers greedy decoding gets wholly right, what was answered before as it stands in the conversation."""
    answers: int
    """How many there are."""
    conversations: int
    """In how many conversations."""

    @property
    def perplexity(self) -> float:
        """exp(loss); infinite where no float is so large."""
        return perplexity(self.loss)

    @property
    def answers_right(self) -> float:
        """right / answers."""
        return self.right / self.answers


def score_conversations(
    loaded: Loaded,
    conversations: Sequence[Conversation],
    *,
    batch: int | None = None,
    progress: Progress = unseen,
) -> ConversationScore:
    """Score every answer once, written down by the model's own template: all that stands before it is read.

    Args:
        loaded: what `load` gave; a decoder with a chat template.
        conversations: what `read_conversations` gives; at least one.
        batch: conversations that go through the model together; bounded by their tokens and logits if None.
        progress: is told the tokens done and all of them, after each batch.

    Raises:
        UserError: if the model has no chat template, a conversation is longer than its context or cannot be written
            down (the message names file and line), or `batch` is below 1.
    """
    model, tokenizer = loaded.model, loaded.tokenizer
    if not isinstance(model, Decoder) or loaded.chat_template is None:
        raise UserError(say("scoring.no_template"))
    if not conversations:
        raise UserError(say("scoring.no_conversations"))
    most = EVALUATION_CONVERSATIONS if batch is None else checked("batch", batch)
    template = ChatTemplate.of(loaded.chat_template, tokenizer)
    read = [_answered(each, template, loaded) for each in conversations]
    device, tokens = next(model.parameters()).device, sum(each.terms for each in read)
    total, done, right, answers = 0.0, 0, 0, 0
    with evaluating(model):
        for some in all_conversations(read, most, tokens=min(TOKENS_AT_ONCE, LOGITS_AT_ONCE // tokenizer.size)):
            window = some.to(device)
            losses = losses_of(model(window.inputs), window.targets)
            total, done = total + sum_of(losses), done + len(losses)
            good, asked = answers_right(model, window)
            right, answers = right + int(good), answers + int(asked)
            progress(done, tokens)
    return ConversationScore(total / done, done, right, answers, len(read))


def _answered(conversation: Conversation, template: ChatTemplate, loaded: Loaded) -> Answered:
    """The ids of a conversation; if it cannot be scored, the reason with its file and line."""
    made = placed(conversation, lambda turns: answered(turns, template, loaded.tokenizer))
    if made.positions > loaded.config.context:
        where = say("scoring.line", path=conversation.path, line=conversation.line)
        raise UserError(
            say("scoring.conversation_too_long", place=where, length=made.positions, context=loaded.config.context)
        )
    return made
