"""Scores of conversations: every token of every answer, after all that stands before it, whatever the batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.generation.chat import CHAT_TEMPLATE, ChatTemplate, Turn
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.text import CharacterTokenizer, MarkedTokenizer
from clearhead.text.messages_file import Conversation, Message
from clearhead.training import conversation_data, scoring_conversations
from clearhead.training.scoring import losses_of
from clearhead.training.scoring_conversations import score_conversations

TOKENIZER = MarkedTokenizer(CharacterTokenizer.of("usersystemassistant\nabc"))
EXACT = {"rel": 1e-12, "abs": 0.0}


def conversation(line: int, *said: str) -> Conversation:
    """A user and an assistant in turn."""
    roles = ("user", "assistant")
    return Conversation(Path("some.jsonl"), line, tuple(Message(roles[n % 2], text) for n, text in enumerate(said)))


CONVERSATIONS = [
    conversation(1, "ab", "ca"),
    conversation(3, "a", "b", "cc", "abcab"),
    conversation(4, "abcabc", "c", "b", "a", "ignored"),
]


def talking(**choices: object) -> Loaded:
    """A small decoder that has learnt nothing, and knows how conversations are written."""
    config = DecoderConfig(layers=2, heads=2, width=8, context=70, vocab=TOKENIZER.size, dropout=0.3)
    config = replace(config, **choices)
    return Loaded(build(config, seed=0).double(), TOKENIZER, config, Path("nowhere"), CHAT_TEMPLATE)


def one_by_one(loaded: Loaded) -> list[list[tuple[float, bool]]]:
    """For every answer: -ln p of each of its tokens and whether it is the best one, by a forward of its own."""
    template, answers = ChatTemplate.of(CHAT_TEMPLATE, TOKENIZER), []
    for each in CONVERSATIONS:
        for place, turn in enumerate(each.turns):
            if turn.role == "assistant":
                before = [Turn(role, content) for role, content in each.turns[:place]]
                ids, found = template.ids(before, TOKENIZER), []
                for wanted in [*TOKENIZER.encode(turn.content), TOKENIZER.end]:
                    with torch.no_grad():
                        logits = loaded.model.eval()(torch.tensor([ids]))[0, -1]
                    found.append((-logits.log_softmax(-1)[wanted].item(), int(logits.argmax()) == wanted))
                    ids = [*ids, wanted]
                answers.append(found)
    return answers


@pytest.mark.parametrize("batch", [1, 2, None])
def test_each_token_of_an_answer_once_whatever_the_batch(batch: int | None) -> None:
    loaded = talking()
    answers = one_by_one(loaded)
    losses = [loss for answer in answers for loss, _ in answer]
    told: list[tuple[int, int]] = []
    found = score_conversations(loaded, CONVERSATIONS, batch=batch, progress=lambda *each: told.append(each))
    assert (found.tokens, found.answers, found.conversations) == (len(losses), 5, 3)
    assert found.loss == pytest.approx(sum(losses) / len(losses), **EXACT)
    assert found.right == sum(all(right for _, right in answer) for answer in answers)
    assert found.answers_right == found.right / 5
    assert told[-1] == (found.tokens, found.tokens)


def test_so_many_go_together_as_in_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(scoring_conversations, "EVALUATION_CONVERSATIONS", 1)
    score_conversations(talking(), CONVERSATIONS, progress=lambda *each: told.append(each))
    assert len(told) == len(CONVERSATIONS) > 1
    assert scoring_conversations.placed is conversation_data.placed


def test_right_answers_are_counted() -> None:
    """A model that always writes the end mark is right where nothing but the end was to be written."""
    loaded = talking(tied=False, head_bias=True)
    with torch.no_grad():
        loaded.model.head.bias[TOKENIZER.end] = 1e6
    said = [conversation(1, "a", ""), conversation(2, "b", "c", "a", "")]
    found = score_conversations(loaded, said)
    assert (found.right, found.answers) == (2, 3)


def test_what_is_given_is_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: questions, headers and padding count."""

    def fault(logits: Tensor, targets: Tensor) -> Tensor:
        return losses_of(logits, targets.clamp_min(0))

    loaded = talking()
    losses = [loss for answer in one_by_one(loaded) for loss, _ in answer]
    monkeypatch.setattr(scoring_conversations, "losses_of", fault)
    found = score_conversations(loaded, CONVERSATIONS)
    assert found.tokens != len(losses)
    assert abs(found.loss - sum(losses) / len(losses)) > 1e-6


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(UserError, match="this model has none"):
        score_conversations(replace(talking(), chat_template=None), CONVERSATIONS)
    with pytest.raises(
        UserError, match=r"the conversation in line 3 of some.jsonl needs \d+ positions, and the model has 40"
    ):
        score_conversations(talking(context=40), CONVERSATIONS)
    with pytest.raises(UserError, match="no conversation"):
        score_conversations(talking(), [])
    with pytest.raises(UserError, match="batch = 0"):
        score_conversations(talking(), CONVERSATIONS, batch=0)
    with pytest.raises(UserError, match=r"line 7 of some\.jsonl: "):
        score_conversations(replace(talking(), chat_template="{{ messages[9].content }}"), [conversation(7, "a", "b")])
