"""An update that is not finite: what is named, and that nothing of it stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.messages import UserError
from clearhead.models.choices import Fused, Visible
from clearhead.training import fit as fitting
from clearhead.training.batches import Batch
from clearhead.training.fit import Loss, Update, fit
from clearhead.training.losses import training_loss
from clearhead.training.nonfinite import FirstNotFinite
from clearhead.training.recompute import recompute
from tests.training.toy import points, squared
from tests.training.toy_updates import KINDS, Kind, equal, weights_of

KIND = KINDS["next token"]
RARE = 10
"""An id that some rows have."""


def updates_of(
    model: nn.Module,
    batches: Any = KIND.batches,
    loss: Loss[Any] = KIND.loss,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    steps: int = 1,
    **more: Any,
) -> Iterator[Update]:
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1.0)
    return fit(model, batches, loss, optimizer=optimizer, schedule=lambda _: 1e-2, steps=steps, **more)


def said(model: nn.Module, batches: Any = KIND.batches, loss: Loss[Any] = KIND.loss, **more: Any) -> str:
    """The message of the first update."""
    before = weights_of(model)
    with pytest.raises(UserError) as caught:
        next(updates_of(model, batches, loss, **more))
    for name, tensor in weights_of(model).items():
        assert torch.equal(tensor.nan_to_num(), before[name].nan_to_num()), name
    return str(caught.value)


def decoder(kernel: Any = None) -> nn.Module:
    config = replace(KIND.config, kernel=kernel or Visible(), tied=False)
    return KIND._replace(config=config).model(dtype=torch.float32)


@pytest.mark.parametrize("kernel", [Visible(), Fused()], ids=["visible", "fused"])
@pytest.mark.parametrize("again", [False, True], ids=["", "recomputed"])
def test_the_first_tensor_is_named_with_both_kernels(kernel: Any, again: bool) -> None:
    """Queries of 1e25 and keys of 1e25 are finite; their products are not."""
    model = decoder(kernel)
    with torch.no_grad():
        model.blocks[1].attention.qkv.weight[:24] *= 1e25
    if again:
        recompute(model)
    message = said(model)
    assert "blocks.1.attention.scores is not finite" in message
    assert "step 1 (learning rate 0.01)" in message
    assert "\n" not in message


def spoil(model: nn.Module) -> None:
    """Let one token have a vector that is not finite."""

    def spoilt(_module: nn.Module, ids: tuple[Tensor], vectors: Tensor) -> Tensor:
        return vectors.masked_fill((ids[0] == RARE)[..., None], torch.inf)

    model.embedding.register_forward_hook(spoilt)


@pytest.mark.parametrize("micro_batch", [None, 1, 3])
@pytest.mark.parametrize("at_once", [None, 5])
def test_the_rows_are_named_and_their_first_ids(micro_batch: int | None, at_once: int | None) -> None:
    model, batch = decoder(), KIND.batches(0)
    rows = [number for number, row in enumerate(batch.inputs) if RARE in row]
    assert rows == [0, 1, 2, 3, 5]
    spoil(model)
    message = said(model, loss=training_loss(KIND.loss, at_once=at_once), micro_batch=micro_batch)
    shown = {None: "0-3, 5", 3: "0-2", 1: "0"}[micro_batch]
    ids = " ".join(map(str, batch.inputs[0][:8].tolist()))
    assert (
        f"embedding is not finite, the first that is not, in rows {shown} of its batch (row 0 begins {ids})" in message
    )


def test_rows_behind_the_first_part_are_counted_from_the_batch() -> None:
    batch = KIND.batches(0)
    ids = batch.inputs.masked_fill(batch.inputs == RARE, 0)
    ids[5, 2] = RARE
    model = decoder()
    spoil(model)
    message = said(model, lambda _: Batch(ids, batch.targets), micro_batch=2)
    assert f"in rows 5 of its batch (row 5 begins {' '.join(map(str, ids[5][:8].tolist()))})" in message


def test_a_weight_is_named_before_all() -> None:
    model = decoder()
    with torch.no_grad():
        model.blocks[1].feedforward.up.weight[3, 4] = torch.nan
    assert "the weight blocks.1.feedforward.up.weight is not finite" in said(model)


def rooted(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """A loss that is finite where its gradient is not: √0, and 0 · ∞ behind it."""
    total, count = KIND.loss(model, batch)
    return total + (model.norm.weight * 0).sqrt().sum(), count


def test_a_gradient_is_named_where_it_is_met_first_on_the_way_back() -> None:
    assert "the gradient of norm.weight is not finite" in said(decoder(), loss=rooted)


def test_a_loss_is_named_that_makes_it_by_itself() -> None:
    def divided(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        total, count = KIND.loss(model, batch)
        return total / 0, count

    assert "the loss is not finite" in said(decoder(), loss=divided)


def test_a_norm_is_named_that_overflows_alone() -> None:
    def steep(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        total, count = KIND.loss(model, batch)
        return total * 1e30, count

    assert "the norm of all gradients is not finite" in said(decoder(), loss=steep)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_is_looked_into(kind: str) -> None:
    model = KINDS[kind].model()
    for name, parameter in model.named_parameters():
        if name.endswith("blocks.1.feedforward.down.weight"):
            nn.init.constant_(parameter, 1e308)
    prefix = "encoder." if kind == "pairs" else ""
    assert f"{prefix}blocks.1.feedforward.output is not finite" in said(model, KINDS[kind].batches, KINDS[kind].loss)


def test_a_model_without_names_of_its_own_is_named_by_its_modules() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 3))).double()
    nn.init.constant_(model[1][1].weight, 1e308)
    message = said(model, points, squared)
    assert "1.1 is not finite" in message
    assert "(row " in message


class Own:
    """A batch of somebody's own."""

    def to(self, _device: torch.device) -> Own:
        return self


def test_a_batch_that_has_no_rows_is_named_by_its_kind() -> None:
    def loss(model: nn.Module, _batch: Own) -> tuple[Tensor, Tensor]:
        return squared(model, points(0))[0] / 0, torch.tensor(1)

    assert "the loss is not finite, the first that is not, in its batch, a Own;" in said(
        nn.Linear(5, 3).double(), lambda _: Own(), loss
    )


def test_nothing_of_the_look_stays() -> None:
    model = decoder()
    nn.init.constant_(model.blocks[0].feedforward.down.weight, 1e38)
    attributes = set(vars(model))
    said(model)
    assert set(vars(model)) == attributes
    assert model.training


def test_it_is_said_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    model = decoder()
    nn.init.constant_(model.blocks[0].feedforward.down.weight, 1e38)
    assert "第 1 步（学习率 0.01）：最先不是有限数的是 blocks.0.feedforward.output，位于批次的第 0-6 行" in said(model)


def test_a_tap_that_sees_the_last_is_found() -> None:
    """The planted fault: what is not finite is remembered anew each time it passes."""
    first = FirstNotFinite()
    for name in ("fine", "first", "second"):
        first.within("blocks")(name, torch.tensor([1.0, 1.0 if name == "fine" else torch.inf]))
    assert first.name == "blocks.first"


def poisoned(kind: Kind, at: int) -> Loss[Any]:
    """The kind's loss, whose batch of one step makes everything NaN."""
    bad = kind.batches(at).inputs

    def loss(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        total, count = kind.loss(model, batch)
        return total * (torch.nan if torch.equal(batch.inputs, bad) else 1.0), count

    return loss


State = tuple[dict[str, Tensor], Tensor, list[Tensor]]


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    means = [each for state in optimizer.state.values() for each in state.values()]
    return weights_of(model), torch.get_rng_state(), [each.clone() for each in means]


def same(first: State, second: State) -> bool:
    return (
        equal(first[0], second[0])
        and torch.equal(first[1], second[1])
        and all(torch.equal(a, b) for a, b in zip(first[2], second[2], strict=True))
    )


def with_the_bad_one_left_out() -> State:
    """Steps 0, 1 and 3 of a training with dropout."""
    model = KIND.model(dropout=0.3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    torch.manual_seed(7)
    list(updates_of(model, optimizer=optimizer, steps=2))
    list(updates_of(model, optimizer=optimizer, steps=4, first=3))
    return state_of(model, optimizer)


def skipping() -> tuple[list[Update], State]:
    """Steps 0 to 3, the third of them not finite."""
    model = KIND.model(dropout=0.3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    torch.manual_seed(7)
    loss = poisoned(KIND, 2)
    updates = list(updates_of(model, loss=loss, optimizer=optimizer, steps=4, skip_nonfinite=True))
    return updates, state_of(model, optimizer)


def test_a_skipped_update_is_as_if_it_had_not_been() -> None:
    updates, state = skipping()
    assert [update.skipped for update in updates] == [False, False, True, False]
    assert [update.step for update in updates] == [1, 2, 3, 4]
    assert same(state, with_the_bad_one_left_out())


@pytest.mark.parametrize("fault", ["random numbers", "weights"])
def test_what_stays_of_a_skipped_update_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "weights":
        monkeypatch.setattr(fitting, "isfinite", lambda _: True)
    else:
        monkeypatch.setattr(fitting, "random_state", lambda _: lambda: None)
    assert not same(skipping()[1], with_the_bad_one_left_out())


def test_a_stop_leaves_the_training_before_that_step() -> None:
    model = KIND.model(dropout=0.3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    updates = updates_of(model, loss=poisoned(KIND, 2), optimizer=optimizer, steps=4)
    states = [state_of(model, optimizer) for _ in islice(updates, 2)]
    with pytest.raises(UserError, match=r"step 3 .*the loss is not finite"):
        next(updates)
    assert same(state_of(model, optimizer), states[-1])
