"""Pairs as batches: marks, padding, order; their loss, and what counts as a right answer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.training.fit import evaluate
from clearhead.training.losses import exact_match, target_token
from clearhead.training.pairs import Drawn, IdPair, Marks, PairBatch, Shuffled, all_pairs, batch_of

MARKS = Marks(begin=11, end=12)
CONFIG = EncoderDecoderConfig(vocab=13, layers=1, heads=2, width=8, context=9)


def pair(source: list[int], target: list[int]) -> IdPair:
    return IdPair(np.array(source, dtype=np.int64), np.array(target, dtype=np.int64))


PAIRS = [pair([n % 7] * (1 + n % 3), [n % 5, (2 * n) % 11][: 1 + n % 2]) for n in range(10)]


def test_a_batch_by_hand() -> None:
    batch = batch_of([pair([1, 2, 3], [4]), pair([5], [6, 7])], MARKS)
    assert batch.source.tolist() == [[1, 2, 3, 12], [5, 12, 0, 0]]
    assert batch.source_real.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.inputs.tolist() == [[11, 4, 0], [11, 6, 7]]
    assert batch.targets.tolist() == [[4, 12, IGNORED], [6, 7, 12]]
    assert batch.to(torch.device("meta")).source_real.device.type == "meta"


def test_an_empty_side_still_has_its_marks() -> None:
    batch = batch_of([pair([], [])], MARKS)
    assert (batch.source.tolist(), batch.inputs.tolist(), batch.targets.tolist()) == ([[12]], [[11]], [[12]])


def numbers(batch: PairBatch) -> list[tuple[int, ...]]:
    """Each row's source and target, without padding."""
    rows = zip(batch.source, batch.source_real, batch.targets, strict=True)
    return [(*source[real].tolist(), *target[target != IGNORED].tolist()) for source, real, target in rows]


def test_an_epoch_is_every_pair_once_in_an_order_of_its_own() -> None:
    shuffled, every = Shuffled(PAIRS, MARKS, 4, seed=3), sorted(numbers(batch_of(PAIRS, MARKS)))
    # Two epochs are five batches; the third lies in both.
    seen = [row for step in range(5) for row in numbers(shuffled(step))]
    assert sorted(seen[:10]) == sorted(seen[10:]) == every
    assert seen[:10] != seen[10:]
    assert numbers(Shuffled(PAIRS, MARKS, 4, seed=4)(0)) != numbers(shuffled(0))


def test_a_step_depends_on_the_seed_and_the_step_alone() -> None:
    asked, fresh = Shuffled(PAIRS, MARKS, 3, seed=0), Shuffled(PAIRS, MARKS, 3, seed=0)
    for step in (7, 0, 3):
        asked(step)
    assert numbers(asked(5)) == numbers(fresh(5))


def reverse(generator: np.random.Generator) -> IdPair:
    ids = generator.integers(11, size=4)
    return IdPair(ids, ids[::-1].copy())


def test_drawn_pairs_depend_on_the_seed_and_the_step_alone() -> None:
    before = torch.get_rng_state()
    drawn = Drawn(reverse, MARKS, batch=5, seed=1)
    first, other = drawn(4), drawn(5)
    assert torch.equal(first.source, Drawn(reverse, MARKS, batch=5, seed=1)(4).source)
    assert not torch.equal(first.source, other.source)
    assert torch.equal(first.source[:, :-1].flip(1), first.targets[:, :-1])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("batch", [1, 3, 10, 99])
def test_all_pairs_are_all_of_them_in_order(batch: int) -> None:
    rows = [row for each in all_pairs(PAIRS, MARKS, batch) for row in numbers(each)]
    assert rows == [row for one in PAIRS for row in numbers(batch_of([one], MARKS))]


# With their marks: 3, 3, 9, 2, 2, 2, 5, 5, 7.
LENGTHS = [(2, 1), (1, 2), (8, 1), (1, 1), (1, 0), (0, 1), (4, 2), (1, 4), (1, 6)]


@pytest.mark.parametrize(
    ("scores", "together"),
    [
        (10**9, [4, 4, 1]),
        (81 * 4, [4, 4, 1]),
        (81 * 4 - 1, [3, 4, 2]),
        (81 * 2, [2, 2, 4, 1]),
        (100, [2, 1, 4, 2]),
        (50, [2, 1, 3, 2, 1]),
        (49, [2, 1, 3, 1, 1, 1]),
        (8, [1, 1, 1, 2, 1, 1, 1, 1]),
        (1, [1] * 9),
    ],
)
def test_fewer_long_pairs_go_together(scores: int, together: list[int]) -> None:
    """Rows times the square of the longest stay below a bound, by hand; a pair that is longer goes alone."""
    pairs = [pair([1] * source, [2] * target) for source, target in LENGTHS]
    batches = list(all_pairs(pairs, MARKS, 4, scores=scores))
    assert [len(batch.source) for batch in batches] == together
    assert [row for batch in batches for row in numbers(batch)] == numbers(batch_of(pairs, MARKS))
    for batch in batches:
        rows, longest = len(batch.source), max(batch.source.shape[1], batch.inputs.shape[1])
        assert rows == 1 or rows * longest**2 <= scores


def model() -> nn.Module:
    """Small, in float64, with weights that matter."""
    made = build(CONFIG, seed=2).double().eval()
    torch.manual_seed(0)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    return made


def by_hand(made: nn.Module, one: IdPair) -> tuple[float, int, bool]:
    """Σ -ln p of one pair without any padding, its terms, and whether the best token always is the right one."""
    source = torch.tensor([[*one.source.tolist(), MARKS.end]])
    written, right, total = [MARKS.begin], [*one.target.tolist(), MARKS.end], 0.0
    best = True
    for wanted in right:
        with torch.no_grad():
            chances = made(source, torch.tensor([written]))[0, -1].log_softmax(-1)
        total -= chances[wanted].item()
        best = best and int(chances.argmax()) == wanted
        written.append(wanted)
    return total, len(right), best


@pytest.mark.parametrize("batch", [1, 4, 10])
def test_the_loss_is_that_of_each_pair_alone_whatever_the_batch(batch: int) -> None:
    made = model()
    found = [by_hand(made, one) for one in PAIRS]
    mean = sum(each[0] for each in found) / sum(each[1] for each in found)
    assert evaluate(made, all_pairs(PAIRS, MARKS, batch), target_token) == pytest.approx(mean, abs=1e-12)
    assert evaluate(made, all_pairs(PAIRS, MARKS, batch, scores=20), target_token) == pytest.approx(mean, abs=1e-12)
    share = sum(each[2] for each in found) / len(found)
    assert evaluate(made, all_pairs(PAIRS, MARKS, batch, scores=20), exact_match) == share
    assert evaluate(made, all_pairs(PAIRS, MARKS, batch), exact_match) == share


class Says(nn.Module):
    """A model that is sure of what it is told, whatever it reads."""

    def __init__(self, answers: Tensor) -> None:
        super().__init__()
        self.answers, self.unused = answers, nn.Parameter(torch.zeros(1))

    def forward(self, source: Tensor, inputs: Tensor, *, source_real: Tensor) -> Tensor:
        return 100.0 * nn.functional.one_hot(self.answers.clamp(min=0), 13).double()


def test_the_label_is_the_next_token_once_and_the_end_is_learnt() -> None:
    batch = batch_of(PAIRS, MARKS)
    total, count = target_token(Says(batch.targets), batch)
    assert total.item() == pytest.approx(0, abs=1e-30)
    assert count.item() == sum(len(one.target) + 1 for one in PAIRS)
    assert [n.item() for n in exact_match(Says(batch.targets), batch)] == [10, 10]
    assert target_token(Says(batch.inputs), batch)[0] > 100
    assert exact_match(Says(batch.inputs), batch)[0].item() == 0


def test_a_missed_end_is_no_exact_match_and_padding_is_none() -> None:
    batch = batch_of(PAIRS, MARKS)
    missed = torch.where(batch.targets == MARKS.end, 0, batch.targets)
    assert exact_match(Says(missed), batch)[0].item() == 0
    # Row 0 answers wrongly at one place, the others say anything at padding.
    wrong = batch.targets.where(batch.targets != IGNORED, 5).clone()
    wrong[0, 0] = (wrong[0, 0] + 1) % 11
    assert exact_match(Says(wrong), batch)[0].item() == 9
