"""Conversations as batches: what of them counts, where their targets stand, how many answers are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.generation.chat import CHAT_TEMPLATE, ChatTemplate, Turn, fitted
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.bpe_training import train_bpe
from clearhead.text.specials import encode_special
from clearhead.training import conversations
from clearhead.training.batches import Batch
from clearhead.training.conversations import (
    Answered,
    Conversed,
    all_conversations,
    answered,
    answers_right,
    batch_of,
)
from clearhead.training.losses import next_token
from clearhead.training.order import Share
from tests.generation.joining import JoiningTokenizer

BYTES = MarkedTokenizer(ByteTokenizer())
TEMPLATE = ChatTemplate.of(CHAT_TEMPLATE, BYTES)
TURNS = [
    Turn("system", "Be <b>."),
    Turn("user", "1+1?"),
    Turn("assistant", "2"),
    Turn("user", "\n猫?\n"),
    Turn("assistant", "\nA cat.\n"),
]
HEADED = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
HEADLESS = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}\n{% endfor %}"
ENDLESS = "{% for m in messages %}{{ m.role[0] | upper }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}A: {% endif %}"


def runs(conversation: Answered) -> list[list[int]]:
    """The ids of each answer that is learnt."""
    ids, counted = conversation
    places = np.flatnonzero(counted)
    return [ids[run].tolist() for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)]


@pytest.mark.parametrize(
    ("source", "learnt"),
    [
        (CHAT_TEMPLATE, ["2<end>", "\nA cat.\n<end>"]),
        # The line end behind the mark is the template's: nothing is written after the mark.
        (HEADED, ["2<end>", "\nA cat.\n<end>"]),
        # What is not given must be written, so it is learnt.
        (HEADLESS, ["<assistant>2<end>", "<assistant>\nA cat.\n<end>"]),
        # Without a mark the line end is all that ends an answer.
        (ENDLESS, ["2\n", "\nA cat.\n\n"]),
    ],
)
def test_an_answer_is_learnt_with_its_end_and_without_its_header(source: str, learnt: list[str]) -> None:
    made = answered(TURNS, ChatTemplate.of(source, BYTES), BYTES)
    assert ["".join(BYTES.pieces(run)) for run in runs(made)] == learnt
    assert made.counted[-1]
    assert (len(made.ids), made.terms) == (made.positions + 1, sum(map(len, runs(made))))


JOINING = MarkedTokenizer(JoiningTokenizer())
BPE = MarkedTokenizer(train_bpe(["user\n\nassistant\n\nA cat.\n\n"] * 2, vocab=290))
TOKENIZERS = [BYTES, MarkedTokenizer(CharacterTokenizer.of("12+?<b>")), JOINING, BPE, ByteTokenizer()]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["byte", "character", "joining", "bpe", "no marks"])
@pytest.mark.parametrize("source", [CHAT_TEMPLATE, HEADED, HEADLESS, ENDLESS])
def test_an_answer_is_learnt_after_the_ids_that_it_will_be_asked_with(source: str, tokenizer: Tokenizer) -> None:
    template = ChatTemplate.of(source, tokenizer)
    whole = answered(TURNS, template, tokenizer)
    for asked in (TURNS[:2], TURNS[:4]):
        _, given = fitted(asked, template, tokenizer, 999)
        one = answered([*asked, Turn("assistant", "x")], template, tokenizer)
        assert one.ids[: len(given)].tolist() == whole.ids[: len(given)].tolist() == given
        assert not one.counted[len(given) - 1]
        assert not whole.counted[len(given) - 1]
        assert one.counted[len(given) :].all()
        assert whole.counted[len(given)]


@pytest.mark.parametrize("tokenizer", [JOINING, BPE], ids=["joining", "bpe"])
def test_read_as_a_whole_an_answer_could_not_be_asked_for(tokenizer: Tokenizer) -> None:
    """What the last test guards against: a line end of the header joins one of the answer."""
    template = ChatTemplate.of(CHAT_TEMPLATE, tokenizer)
    _, given = fitted(TURNS[:4], template, tokenizer, 999)
    assert encode_special(tokenizer, template.text(TURNS, answer=False))[: len(given)] != given


def test_what_follows_the_last_answer_is_left_out() -> None:
    made, longer = (answered(turns, TEMPLATE, BYTES) for turns in (TURNS, [*TURNS, Turn("user", "And?")]))
    assert np.array_equal(made.ids, longer.ids)
    assert np.array_equal(made.counted, longer.counted)


@pytest.mark.parametrize("turns", [[], TURNS[:2], [Turn("assistant", "")]])
def test_a_conversation_without_an_answer_is_refused(turns: list[Turn]) -> None:
    with pytest.raises(UserError, match="the assistant says nothing"):
        answered(turns, ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}"), BYTES)


def test_typed_marks_are_not_learnt_as_marks() -> None:
    made = answered([Turn("user", "<end>"), Turn("assistant", "<end>!")], TEMPLATE, BYTES)
    assert [BYTES.decode(run) for run in runs(made)] == ["<end>!"]
    assert (made.ids == BYTES.end).sum() == 2


def conversation(ids: Sequence[int], counted: str) -> Answered:
    return Answered(np.array(ids), np.array([each == "x" for each in counted]))


# Four answers in three rows, of 2, 1, 1 and 3 ids.
FEW = [
    conversation([5, 3, 4, 6, 7, 2], ".xx..x"),
    conversation([1, 9], ".x"),
    conversation([8, 8, 1, 0, 0], "..xxx"),
]


def test_a_batch_by_hand() -> None:
    batch = batch_of(FEW)
    assert batch.inputs.tolist() == [[5, 3, 4, 6, 7], [1, 0, 0, 0, 0], [8, 8, 1, 0, 0]]
    no = IGNORED
    assert batch.targets.tolist() == [[3, 4, no, no, 2], [9, no, no, no, no], [no, 1, 0, 0, no]]
    assert sum(each.terms for each in FEW) == (batch.targets != IGNORED).sum()


class Sure(nn.Module):
    """Is sure of one id at each place: the next of the conversation that it reads, or what `instead` makes of it."""

    def __init__(self, rows: Sequence[Answered], instead: Callable[[Tensor, Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.rows, self.instead = rows, instead

    def forward(self, inputs: Tensor) -> Tensor:
        following = torch.zeros_like(inputs)
        counted = torch.zeros_like(inputs, dtype=torch.bool)
        for row, read in enumerate(inputs.tolist()):
            ids, learnt = next(each for each in self.rows if read[: each.positions] == each.ids[:-1].tolist())
            following[row, : len(ids) - 1] = torch.from_numpy(ids[1:])
            counted[row, : len(ids) - 1] = torch.from_numpy(learnt[1:])
        said = following if self.instead is None else self.instead(following, counted)
        return 1000.0 * F.one_hot(said, BYTES.size)


REAL = [
    answered(turns, TEMPLATE, BYTES) for turns in (TURNS, TURNS[1:3], [Turn("user", "aa"), Turn("assistant", "bb")])
]


def loss_of(model: nn.Module, batch: Batch) -> float:
    total, count = next_token(model, batch)
    assert count == sum(each.terms for each in REAL)
    return total.item()


def test_knowing_the_next_token_is_no_loss_and_knowing_the_present_one_is() -> None:
    """Targets are shifted once: not never, and not twice."""
    batch, knows = batch_of(REAL), Sure(REAL)
    assert loss_of(knows, batch) == 0
    assert answers_right(knows, batch) == (4, 4)
    repeats = Sure(REAL, lambda following, _: torch.cat([torch.zeros_like(following[:, :1]), following[:, :-1]], 1))
    assert loss_of(repeats, batch) > 1000
    for turned in (1, -1):
        assert next_token(knows, Batch(batch.inputs, batch.targets.roll(turned, 1)))[0] > 1000


def test_answers_alone_are_learnt_and_their_ends_too() -> None:
    batch = batch_of(REAL)

    def off_where(wrong: Callable[[Tensor, Tensor], Tensor]) -> Sure:
        """One that is wrong at some places."""
        return Sure(
            REAL, lambda following, counted: torch.where(wrong(following, counted), (following + 1) % 256, following)
        )

    questions = off_where(lambda _, counted: ~counted)
    assert loss_of(questions, batch) == 0
    assert answers_right(questions, batch) == (4, 4)
    ends = off_where(lambda following, counted: counted & (following == BYTES.end))
    assert loss_of(ends, batch) == 4 * 1000
    assert answers_right(ends, batch) == (0, 4)
    # Had all ids been targets, what is wrong about questions would be seen.
    every = batch_of([Answered(ids, np.ones_like(counted)) for ids, counted in REAL])
    assert next_token(questions, every)[0] > 1000


def test_right_answers_are_counted_one_by_one() -> None:
    """Of two answers in one row one may be right."""
    two = next(number for number, each in enumerate(REAL) if len(runs(each)) == 2)
    first = torch.from_numpy(np.flatnonzero(REAL[two].counted))[0] - 1

    def wrong(following: Tensor, _: Tensor) -> Tensor:
        following = following.clone()
        following[two, first] = 0
        return following

    right, count = answers_right(Sure(REAL, wrong), batch_of(REAL))
    assert (right.item(), count.item()) == (3, 4)
    # Neighbours that are each other's end and beginning are two, in different rows.
    full = [conversation([1, 2, 3], "xxx"), conversation([4, 5, 6], "xxx")]
    assert [each.item() for each in answers_right(Sure(full), batch_of(full))] == [2, 2]


@pytest.fixture(scope="module")
def model() -> nn.Module:
    longest = max(each.positions for each in REAL)
    config = DecoderConfig(vocab=BYTES.size, layers=2, heads=2, width=12, context=longest + 3)
    return build(config, seed=1).double().eval()


def test_padding_changes_nothing(model: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> None:
        total, count = next_token(model, conversations.batch_of(REAL))
        alone = [next_token(model, conversations.batch_of([each])) for each in REAL]
        assert count == sum(each for _, each in alone)
        torch.testing.assert_close(total, sum(each for each, _ in alone), rtol=1e-12, atol=1e-12)

    check()
    right = conversations.batch_of

    def padding_counts(rows: Sequence[Answered]) -> Batch:
        batch = right(rows)
        lengths = torch.tensor([each.positions for each in rows])[:, None]
        return Batch(batch.inputs, batch.targets.where(torch.arange(batch.inputs.shape[1]) < lengths, 0))

    def padding_stands_in_front(rows: Sequence[Answered]) -> Batch:
        batch, steps = right(rows), max(each.positions for each in rows)
        rolled = [[row.roll(steps - each.positions) for row, each in zip(part, rows, strict=True)] for part in batch]
        return Batch(*(torch.stack(part) for part in rolled))

    for wrong in (padding_counts, padding_stands_in_front):
        monkeypatch.setattr(conversations, "batch_of", wrong)
        with pytest.raises(AssertionError):
            check()


MANY = [conversation([number, *[5] * (number % 4), 7], f".{'x' * (number % 4)}x") for number in range(10)]


def numbers(batches: Sequence[Batch]) -> list[int]:
    return [number for batch in batches for number in batch.inputs[:, 0].tolist()]


def test_an_epoch_is_every_conversation_once_in_an_order_of_its_own() -> None:
    conversed = Conversed(MANY, 4, seed=3)
    # Two epochs are five batches; the third lies in both.
    seen = numbers([conversed(step) for step in range(5)])
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert seen[:10] != seen[10:]
    assert numbers([Conversed(MANY, 4, seed=4)(0)]) != numbers([conversed(0)])
    assert torch.equal(Conversed(MANY, 4, seed=3)(3).targets, conversed(3).targets)


def test_two_ranks_share_a_step() -> None:
    both = numbers([Conversed(MANY, 5, seed=3)(1)])
    shares = [numbers([Conversed(MANY, 5, seed=3, share=Share(rank, 2))(1)]) for rank in range(2)]
    assert shares == [both[::2], both[1::2]]


@pytest.mark.parametrize(("batch", "tokens", "sizes"), [(4, 99, [4, 4, 2]), (9, 12, [3, 3, 3, 1]), (9, 1, [1] * 10)])
def test_an_evaluation_takes_every_conversation_once_and_never_too_many(
    batch: int, tokens: int, sizes: list[int]
) -> None:
    batches = list(all_conversations(MANY, batch, tokens=tokens))
    assert numbers(batches) == list(range(10))
    assert [len(each.inputs) for each in batches] == sizes
    assert all(each.inputs.numel() <= tokens or len(each.inputs) == 1 for each in batches)
