"""What moves the weights: several optimisers, master weights, a loss scale, and all of their state."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from clearhead.messages import UserError
from clearhead.training.fit import fit
from clearhead.training.precision import PRECISIONS, stepper_of
from clearhead.training.stepper import Stepper
from tests.training.toy import line, points, squared


def two() -> nn.Sequential:
    """Two layers, in float32."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3))


def backward(model: nn.Module, stepper: Stepper) -> None:
    """An update up to its gradients."""
    stepper.clear()
    stepper.backward(model(torch.arange(10.0).reshape(2, 5) / 10).square().sum())


def test_every_optimiser_moves_its_own_and_learns_its_own_rate() -> None:
    model = two()
    first = torch.optim.SGD(model[0].parameters(), lr=9.0)
    second = torch.optim.SGD([{"params": [model[1].weight], "lr_factor": 0.5}, {"params": [model[1].bias]}], lr=9.0)
    stepper = Stepper(model, first, second)
    before = {name: tensor.detach().clone() for name, tensor in stepper.named.items()}
    backward(model, stepper)
    gradients = [gradient.clone() for gradient in stepper.gradients()]
    stepper.step(0.25)
    for (name, tensor), gradient, factor in zip(stepper.named.items(), gradients, (1, 1, 0.5, 1), strict=True):
        assert torch.equal(tensor, before[name] - 0.25 * factor * gradient), name


def test_named_is_in_the_models_order_and_holds_what_is_moved_alone() -> None:
    model, temperature = two(), nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([temperature, model[1].bias, model[0].weight], lr=1.0)
    stepper = Stepper(model, optimizer)
    assert list(stepper.named) == ["0.weight", "1.bias", "outside.0"]
    assert stepper.named["outside.0"] is temperature
    backward(model, stepper)
    assert [gradient.shape for gradient in stepper.gradients()] == [(4, 5), (3,)]


def test_a_group_that_is_added_later_is_moved_and_clipped() -> None:
    model = two()
    optimizer = torch.optim.SGD(model[1].parameters(), lr=1.0)
    stepper = Stepper(model, optimizer)
    optimizer.add_param_group({"params": list(model[0].parameters())})
    assert list(stepper.named) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_gradients_of_what_nobody_moves_have_no_part_in_the_norm() -> None:
    """They are never cleared, so they would grow from update to update."""
    model = two().double()
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.0)
    updates = fit(model, lambda _: points(0), squared, optimizer=optimizer, schedule=lambda _: 0.0, steps=3)
    assert len({update.grad_norm for update in updates}) == 1


def test_an_optimiser_alone_has_no_state_beside_it() -> None:
    model = line()
    stepper = Stepper(model, torch.optim.SGD(model.parameters(), lr=1.0))
    assert stepper.extra_state() == {}
    stepper.load_extra({})
    assert not stepper.overflowed


def steppers(precision: str) -> tuple[nn.Module, Stepper]:
    """A model in this precision, and what moves it."""
    model = two()
    return model, stepper_of(model, PRECISIONS[precision], lambda named: [torch.optim.AdamW(named.values(), lr=0.01)])


@pytest.mark.parametrize("precision", ["bfloat16-weights", "float16"])
def test_the_extra_state_comes_back_bit_for_bit(precision: str) -> None:
    model, stepper = steppers(precision)
    for _ in range(3):
        stepper.clear()
        stepper.backward(model(torch.ones(2, 5, dtype=next(model.parameters()).dtype)).float().square().sum())
        stepper.gradients()
        stepper.step(0.01)
    if stepper.scaler is not None:
        stepper.scaler.update(2.0**9)
    kept = {name: tensor.clone() for name, tensor in stepper.extra_state().items()}
    other, fresh = steppers(precision)
    named = {name: id(tensor) for name, tensor in fresh.named.items()}
    assert fresh.extra_state().keys() == kept.keys()
    assert any(not torch.equal(tensor, kept[name]) for name, tensor in fresh.extra_state().items())
    fresh.load_extra(kept)
    assert all(torch.equal(tensor, kept[name]) for name, tensor in fresh.extra_state().items())
    assert {name: id(tensor) for name, tensor in fresh.named.items()} == named
    if precision == "bfloat16-weights":
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_the_scale_of_float16_is_saved_with_its_count() -> None:
    _, stepper = steppers("float16")
    assert {name: tensor.item() for name, tensor in stepper.extra_state().items()} == {
        "loss_scale": 2.0**16,
        "loss_scale_good_updates": 0,
    }


def without(state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    return {each: tensor for each, tensor in state.items() if each != name}


def test_another_state_is_refused() -> None:
    _, stepper = steppers("bfloat16-weights")
    state = stepper.extra_state()
    for wrong, named in (
        (without(state, "master.0.bias"), "master.0.bias"),
        (state | {"loss_scale": torch.ones(())}, "loss_scale"),
        (state | {"master.1.bias": torch.ones(4)}, "master.1.bias"),
    ):
        with pytest.raises(UserError, match=f"another dtype or model: {named} does not fit"):
            stepper.load_extra(wrong)
