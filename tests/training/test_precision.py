"""Numbers of 16 bits: masters that keep what rounding loses, and a loss scale that keeps what is too small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from clearhead.messages import UserError
from clearhead.training.fit import Update, fit
from clearhead.training.precision import PRECISIONS, precision_of, stepper_of
from clearhead.training.settings import DTYPES
from clearhead.training.stepper import Stepper
from tests.oracles.compare import assert_within
from tests.training.toy_updates import KINDS, equal, weights_of

KIND = KINDS["next token"]


def adam(named: Mapping[str, Tensor]) -> list[torch.optim.Optimizer]:
    return [torch.optim.AdamW(named.values(), lr=1.0)]


def descent(named: Mapping[str, Tensor]) -> list[torch.optim.Optimizer]:
    return [torch.optim.SGD(named.values(), lr=1.0)]


def updates_of(
    model: nn.Module, stepper: Stepper, name: str, *, steps: int = 4, first: int = 0, lr: float = 1e-2, **more: object
) -> Iterator[Update]:
    """A training in the precision of this name."""
    return fit(
        model,
        KIND.batches,
        KIND.loss,
        **{
            "optimizer": stepper,
            "schedule": lambda _: lr,
            "steps": steps,
            "first": first,
            "autocast": PRECISIONS[name].autocast,
            **more,
        },
    )


def begun(name: str, *, dropout: float = 0.0) -> tuple[nn.Module, Stepper]:
    model = KIND.model(dropout=dropout, dtype=torch.float32)
    return model, stepper_of(model, precision_of(name), adam)


@pytest.mark.parametrize("name", PRECISIONS)
def test_every_precision_learns_about_the_same(name: str) -> None:
    model, stepper = begun(name)
    exact, plain = begun("float32")
    losses = [update.loss for update in updates_of(model, stepper, name, steps=6)]
    expected = [update.loss for update in updates_of(exact, plain, "float32", steps=6)]
    assert losses == pytest.approx(expected, rel=0.02)
    assert (losses == expected) == (name == "float32")
    kept = torch.bfloat16 if name == "bfloat16-weights" else torch.float32
    assert {parameter.dtype for parameter in model.parameters()} == {kept}
    assert {tensor.dtype for tensor in stepper.named.values()} == {torch.float32}


def test_there_is_no_other() -> None:
    with pytest.raises(UserError, match="float32, bfloat16, bfloat16-weights, float16"):
        precision_of("float8")


def test_weights_are_their_masters_rounded_and_masters_begin_unrounded() -> None:
    before = weights_of(KIND.model(dtype=torch.float32))
    model, stepper = begun("bfloat16-weights")
    assert equal({name: tensor.detach() for name, tensor in stepper.masters.items()}, before)
    for _ in updates_of(model, stepper, "bfloat16-weights"):
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, stepper.masters[name].bfloat16()), name
            assert parameter.grad is None


def moved(stepper: Stepper, model: nn.Module, updates: int) -> float:
    """How far the embedding went in many small steps."""
    before = model.embedding.weight.detach().clone()
    list(updates_of(model, stepper, "float32", steps=updates, lr=1e-5))
    return (model.embedding.weight.detach() - before).abs().max().item()


def test_small_steps_add_up_in_masters_and_are_lost_without() -> None:
    """AdamW's steps are 1e-5; from 0.1 on the next number in bfloat16 is 5e-4 away, and what is less than half of that is lost."""
    model, stepper = begun("bfloat16-weights")
    large = model.embedding.weight.abs() > 0.1
    kept = model.embedding.weight.detach().clone()
    moved(stepper, model, 60)
    assert not torch.equal(model.embedding.weight[large], kept[large])
    rounded = KIND.model(dtype=torch.bfloat16)
    large = rounded.embedding.weight.abs() > 0.1
    kept = rounded.embedding.weight.detach().clone()
    assert moved(Stepper(rounded, *adam(dict(rounded.named_parameters()))), rounded, 60) > 0
    assert torch.equal(rounded.embedding.weight[large], kept[large])


def gradients(micro_batch: int) -> dict[str, Tensor]:
    """Those of one update of bfloat16 weights, in parts."""
    model = KIND.model(dtype=torch.float32)
    stepper = stepper_of(model, precision_of("bfloat16-weights"), descent)
    next(updates_of(model, stepper, "bfloat16-weights", clip=None, lr=0.0, micro_batch=micro_batch))
    return {name: master.grad for name, master in stepper.masters.items() if master.grad is not None}


def test_gradients_of_parts_are_summed_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part's is rounded once. The planted fault, a sum in bfloat16, has 16 bits in the end."""
    summed = gradients(1)
    assert any(not torch.equal(tensor, tensor.bfloat16().float()) for tensor in summed.values())

    def narrow(stepper: Stepper, loss: Tensor) -> None:
        loss.backward()
        for name, parameter in stepper.model.named_parameters():
            stepper.masters[name].grad = None if parameter.grad is None else parameter.grad.float()

    monkeypatch.setattr(Stepper, "backward", narrow)
    # Seven rows guess seven times the first count, which is right here: nothing is corrected afterwards.
    assert all(torch.equal(tensor, tensor.bfloat16().float()) for tensor in gradients(1).values())


def test_tied_weights_have_one_master() -> None:
    model = KIND.model(dtype=torch.float32)
    assert model.head.weight is model.embedding.weight
    stepper = stepper_of(model, precision_of("bfloat16-weights"), descent)
    list(updates_of(model, stepper, "bfloat16-weights", steps=1))
    assert model.head.weight is model.embedding.weight
    assert [name for name in stepper.named if "head" in name] == []


@pytest.mark.parametrize("name", PRECISIONS)
def test_a_stop_changes_no_bit(name: str) -> None:
    """Weights, means, masters, scale and random numbers are carried into a new model."""
    whole, stepper = begun(name, dropout=0.2)
    torch.manual_seed(4)
    list(updates_of(whole, stepper, name, micro_batch=3))
    model, mover = begun(name, dropout=0.2)
    torch.manual_seed(4)
    list(updates_of(model, mover, name, steps=2, micro_batch=3))
    state = torch.get_rng_state(), mover.extra_state(), mover.optimizers[0].state_dict()
    fresh, resumed = begun(name, dropout=0.2)
    fresh.load_state_dict(model.state_dict())
    resumed.load_extra(state[1])
    resumed.optimizers[0].load_state_dict(state[2])
    torch.set_rng_state(state[0])
    list(updates_of(fresh, resumed, name, first=2, micro_batch=3))
    assert equal(weights_of(fresh), weights_of(whole))
    assert equal(resumed.extra_state(), stepper.extra_state())


def scaled(scale: float) -> tuple[nn.Module, Stepper]:
    """Descent with a loss scale of its own."""
    model = KIND.model(dtype=torch.float32)
    return model, Stepper(model, *descent(dict(model.named_parameters())), scaler=torch.amp.GradScaler("cpu", scale))


def scaled_update(scale: float, **more: object) -> tuple[Update, dict[str, Tensor]]:
    model, stepper = scaled(scale)
    update = next(updates_of(model, stepper, "float16", lr=0.1, clip=0.05, **more))
    return update, weights_of(model)


@pytest.mark.parametrize("micro_batch", [None, 3])
def test_the_scale_is_taken_off_before_the_clip(micro_batch: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Powers of two change no digit, so the update hardly knows of them. The planted fault: clipped with the scale on."""
    update = partial(scaled_update, micro_batch=micro_batch)
    small, large = update(2.0**4), update(2.0**8)
    assert large[0].grad_norm == pytest.approx(small[0].grad_norm, rel=1e-3)
    assert small[0].grad_norm > 0.05
    for name, tensor in small[1].items():
        assert_within(large[1][name], tensor, 1e-5)
    monkeypatch.setattr(Stepper, "gradients", lambda stepper: [each.grad for each in stepper.named.values()])
    monkeypatch.setattr(torch.amp.GradScaler, "step", lambda _scaler, optimizer: optimizer.step())
    monkeypatch.setattr(torch.amp.GradScaler, "update", lambda _scaler: None)
    assert update(2.0**8)[0].grad_norm > 10 * small[0].grad_norm


def test_an_overflow_of_the_scale_is_skipped_and_counted() -> None:
    model, stepper = scaled(2.0**26)
    before = weights_of(model)
    updates = []
    for update in updates_of(model, stepper, "float16", steps=20, lr=0.1):
        updates.append(update)
        if update.skipped:
            assert equal(weights_of(model), before)
    skipped = [update.skipped for update in updates]
    count = sum(skipped)
    assert 2 < count < 18
    assert skipped == [True] * count + [False] * (20 - count)
    assert stepper.extra_state()["loss_scale"].item() == 2.0 ** (26 - count)
    assert updates[-1].loss < updates[0].loss


def test_what_is_not_the_scales_doing_is_not_excused() -> None:
    """At a scale of 1 an overflow is the gradient's own, and a loss that is not finite never is the scale's."""
    model, stepper = scaled(1.0)
    model.norm.weight.register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(UserError, match=r"the gradient of norm\.weight is not finite"):
        next(updates_of(model, stepper, "float16"))
    model, stepper = scaled(2.0**4)
    nn.init.constant_(model.norm.weight, 1e30)
    with pytest.raises(UserError, match="is not finite"):
        next(updates_of(model, stepper, "float16"))
    update = next(updates_of(model, stepper, "float16", skip_nonfinite=True))
    assert update.skipped
    assert stepper.extra_state()["loss_scale"].item() == 2.0**4


def test_the_settings_name_every_precision() -> None:
    assert tuple(PRECISIONS) == DTYPES
