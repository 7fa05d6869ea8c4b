"""An update in parts is the update of the whole batch, whatever the counts of its parts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from clearhead.messages import UserError
from clearhead.ops.loss import IGNORED
from clearhead.training import fit as fitting
from clearhead.training.batches import Batch
from clearhead.training.fit import Loss, Update, fit
from clearhead.training.parts import cut
from clearhead.training.schedules import warmup_cosine
from clearhead.training.stepper import Stepper
from tests.oracles.compare import assert_within
from tests.training.toy import points
from tests.training.toy_updates import DECODER, KINDS, ROWS, Kind, drawn, equal, weights_of

SCHEDULE = partial(warmup_cosine, lr=0.3, steps=4, warmup=2, final=0.1)


def trained(
    kind: Kind, micro_batch: int | None, *, clip: float | None = None, dtype: torch.dtype = torch.float64
) -> tuple[list[Update], dict[str, Tensor]]:
    """Three updates of plain descent with momentum, in which an update is its gradient."""
    model = kind.model(dtype=dtype)
    updates = fit(
        model,
        kind.batches,
        kind.loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=9.0, momentum=0.5),
        schedule=SCHEDULE,
        steps=3,
        clip=clip,
        micro_batch=micro_batch,
    )
    return list(updates), weights_of(model)


def check_parts(kind: Kind, micro_batch: int, clip: float | None = None) -> None:
    """Losses, norms, rates, counts and weights are those of whole batches."""
    whole, expected = trained(kind, None, clip=clip)
    parts, found = trained(kind, micro_batch, clip=clip)
    for one, other in zip(parts, whole, strict=True):
        assert (one.step, one.lr, one.terms) == (other.step, other.lr, other.terms)
        assert one.loss == pytest.approx(other.loss, rel=1e-12)
        assert one.grad_norm == pytest.approx(other.grad_norm, rel=1e-12)
        assert clip is None or one.grad_norm > clip
    for name, tensor in expected.items():
        assert_within(found[name], tensor, 1e-12)


@pytest.mark.parametrize("clip", [None, 0.2], ids=["free", "clipped"])
@pytest.mark.parametrize("micro_batch", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_the_whole(kind: str, micro_batch: int, clip: float | None) -> None:
    check_parts(KINDS[kind], micro_batch, clip)


@pytest.mark.parametrize("kind", ["packed", "masked", "pairs", "conversations"])
def test_the_setting_is_worth_testing(kind: str) -> None:
    """The parts of a batch have different counts, and the last has fewer rows."""
    counts = [(part.targets != IGNORED).sum().item() for part in cut(KINDS[kind].batches(0), 3)]
    assert len(counts) == 3
    assert len(set(counts)) > 1
    assert ROWS % 3


def mean_of_means(
    model: nn.Module, parts: list[Any], loss: Loss[Any], stepper: Stepper, _numbers: object
) -> tuple[float, int, float]:
    """The planted fault: every part weighs the same."""
    means, terms = [], 0
    for part in parts:
        total, count = loss(model, part)
        stepper.backward(total / count / len(parts))
        means.append((total / count).item())
        terms += int(count)
    return sum(means) / len(means), terms, 1.0


right = fitting._clipped


def uncorrected(stepper: Stepper, _correction: float, clip: float | None) -> float:
    """The planted fault: the guess is taken for the truth."""
    return right(stepper, 1.0, clip)


class EachClipped(Stepper):
    """The planted fault: every part's gradient is clipped by itself."""

    def backward(self, loss: Tensor) -> None:
        super().backward(loss)
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.2)


@pytest.mark.parametrize(
    ("name", "faulty"), [("_backward", mean_of_means), ("_clipped", uncorrected), ("Stepper", EachClipped)]
)
def test_wrong_accumulation_is_caught(
    name: str, faulty: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, name, faulty)
    with pytest.raises(AssertionError):
        check_parts(KINDS["packed"], 3, 0.2)


def test_a_schedule_of_parts_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the learning rate moves on with every part."""
    forwards: list[Batch] = []
    kind = KINDS["packed"]

    def counted(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        forwards.append(batch)
        return kind.loss(model, batch)

    def rate(_step: int) -> float:
        since = len(forwards)
        forwards.clear()
        return 0.01 * since

    monkeypatch.setattr(sys.modules[__name__], "SCHEDULE", rate)
    check_parts(kind._replace(loss=counted), ROWS)
    with pytest.raises(AssertionError):
        check_parts(kind._replace(loss=counted), 3)


@pytest.mark.parametrize("micro_batch", [ROWS, 100])
def test_one_part_is_the_whole_batch_bit_for_bit(micro_batch: int) -> None:
    kind = KINDS["packed"]
    whole, expected = trained(kind, None, clip=0.2, dtype=torch.float32)
    part, found = trained(kind, micro_batch, clip=0.2, dtype=torch.float32)
    assert equal(found, expected)
    assert [(one.loss, one.grad_norm) for one in part] == [(one.loss, one.grad_norm) for one in whole]


def test_an_update_is_what_everybody_writes_bit_for_bit() -> None:
    """zero_grad, backward of the mean, clip_grad_norm_, step: in float32 with AdamW."""
    kind = KINDS["packed"]
    model, by_hand = kind.model(dtype=torch.float32), kind.model(dtype=torch.float32)
    ours, theirs = (torch.optim.AdamW(each.parameters(), lr=0.01) for each in (model, by_hand))
    list(fit(model, kind.batches, kind.loss, optimizer=ours, schedule=lambda _: 0.01, steps=3, clip=0.2))
    for step in range(3):
        total, count = kind.loss(by_hand, kind.batches(step))
        theirs.zero_grad()
        (total / count).backward()
        nn.utils.clip_grad_norm_(by_hand.parameters(), 0.2)
        theirs.step()
    assert equal(weights_of(model), weights_of(by_hand))


@pytest.mark.parametrize("empty", [[0], [4], [0, 2, 3], [0, 1, 2, 3, 5, 6]])
def test_parts_without_a_target_are_fine(empty: list[int]) -> None:
    kind = KINDS["next token"]

    def batches(step: int) -> Batch:
        batch = kind.batches(step)
        batch.targets[empty] = IGNORED
        return batch

    check_parts(kind._replace(batches=batches), 1)


@pytest.mark.parametrize("micro_batch", [None, 2])
def test_an_update_without_a_target_is_refused(micro_batch: int | None) -> None:
    ids = torch.from_numpy(drawn(50)[0]).reshape(5, 10)
    kind = Kind(DECODER, lambda _: Batch(ids, torch.full_like(ids, IGNORED)), KINDS["next token"].loss)
    with pytest.raises(UserError, match="step 1: its batch holds nothing to learn"):
        trained(kind, micro_batch)


def test_every_row_is_in_one_part_in_order_with_its_padding() -> None:
    batch = KINDS["pairs"].batches(0)
    parts = cut(batch, 3)
    assert [len(part.source) for part in parts] == [3, 3, 1]
    assert {type(part) for part in parts} == {type(batch)}
    for place, tensor in enumerate(batch):
        assert torch.equal(torch.cat([part[place] for part in parts]), tensor)
    assert cut(batch, ROWS) == [batch]


class Sized(NamedTuple):
    """Not what can be cut: one of its fields is a number."""

    ids: Tensor
    size: int


class Opaque:
    """A batch of somebody's own."""


@pytest.mark.parametrize(
    "batch",
    [Opaque(), (torch.ones(4), torch.ones(4)), Sized(torch.ones(4), 4), points(0, 4)._replace(y=torch.ones(5))],
    ids=["opaque", "a plain tuple", "a number", "two sizes"],
)
def test_what_cannot_be_cut_is_refused(batch: object) -> None:
    with pytest.raises(UserError, match=f"micro_batch needs .* {type(batch).__name__} is none"):
        cut(batch, 2)
    with pytest.raises(UserError, match="micro_batch = 0"):
        cut(points(0, 4), 0)
