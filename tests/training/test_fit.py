"""`fit` against updates computed by hand, on a task that is no text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

import pytest
import torch
from torch import Tensor, nn

from clearhead.training import fit as fitting
from clearhead.training.fit import Update, evaluate, evaluating, fit
from tests.oracles.compare import assert_within
from tests.training.toy import CPU, LINE, Points, line, points, squared


def plain(model: nn.Module, **options: object) -> Iterator[Update]:
    """`fit` with plain gradient descent."""
    return fit(
        model,
        **{
            "batches": points,
            "loss": squared,
            "optimizer": torch.optim.SGD(model.parameters(), lr=9.0),
            "schedule": lambda _: 0.5,
            "steps": 6,
            "clip": None,
            **options,
        },
    )


def gradient(weight: Tensor, batch: Points, terms: int) -> Tensor:
    """d/dW Σ (W x - y)² / terms = 2 (W x - y) xᵀ / terms, written out."""
    return 2 * (batch.x @ weight.T - batch.y).T @ batch.x / terms


def test_it_learns_what_is_no_text() -> None:
    model = line()
    updates = list(plain(model, steps=150))
    assert [update.step for update in updates] == list(range(1, 151))
    assert updates[0].loss > 0.1
    assert updates[-1].loss < 1e-9
    assert_within(model.weight.detach(), LINE, 1e-5)


def test_an_update_is_the_gradient_of_the_sum_divided_by_the_count() -> None:
    model = line()
    before = model.weight.detach().clone()
    update = next(plain(model))
    wanted = gradient(before, points(0), 7 * 3)
    assert update.loss == pytest.approx(float((points(0).x @ before.T - points(0).y).square().mean()), rel=1e-14)
    assert update.terms == 21
    assert update.grad_norm == pytest.approx(float(wanted.norm()), rel=1e-12)
    assert_within(model.weight.detach(), before - 0.5 * wanted, 1e-14)


def test_a_batch_with_fewer_terms_is_divided_by_its_own_count() -> None:
    """Sizes differ from step to step; the mean of a fixed count would not do."""
    model = line()
    sizes = [2, 9, 4]
    updates = []
    for update in plain(model, steps=3, batches=lambda step: points(step, sizes[step])):
        updates.append(update)
        if update.step == 1:
            before = model.weight.detach().clone()
    assert [update.terms for update in updates] == [6, 27, 12]
    assert updates[1].grad_norm == pytest.approx(float(gradient(before, points(1, 9), 27).norm()), rel=1e-12)
    assert updates[1].grad_norm != pytest.approx(float(gradient(before, points(1, 9), 6).norm()), rel=1e-2)


def test_the_gradient_is_clipped_and_its_norm_is_told_from_before() -> None:
    model = line()
    before = model.weight.detach().clone()
    update = next(plain(model, clip=0.25))
    wanted = gradient(before, points(0), 21)
    norm = float(wanted.norm())
    assert norm > 0.5
    assert update.grad_norm == pytest.approx(norm, rel=1e-12)
    # PyTorch adds 1e-6 to the norm that it divides by.
    assert_within(model.weight.detach(), before - 0.5 * wanted * 0.25 / (norm + 1e-6), 1e-14)


def test_a_gradient_within_the_clip_is_left_alone() -> None:
    free, clipped = line(), line()
    next(plain(free))
    next(plain(clipped, clip=1e6))
    assert torch.equal(free.weight, clipped.weight)


def test_gradients_do_not_add_up_over_steps() -> None:
    model = line()
    weights = [model.weight.detach().clone() for _ in plain(model, steps=3)]
    wanted = weights[1] - 0.5 * gradient(weights[1], points(2), 21)
    assert_within(weights[2], wanted, 1e-14)


def rates(schedule: Callable[[int], float], first: int) -> list[float]:
    """The learning rates that the last updates report and that their optimiser used."""
    model = line()
    optimizer = torch.optim.SGD(model.parameters(), lr=9.0)
    reported = []
    for update in plain(model, optimizer=optimizer, schedule=schedule, first=first):
        assert [group["lr"] for group in optimizer.param_groups] == [update.lr]
        reported.append(update.lr)
    return reported


def test_the_learning_rate_is_the_schedule_of_the_step_alone() -> None:
    whole = rates(lambda step: 0.01 * (step + 1), 0)
    assert whole == [0.01 * n for n in range(1, 7)]
    assert rates(lambda step: 0.01 * (step + 1), 4) == whole[4:]


def test_a_schedule_that_counts_its_calls_is_found() -> None:
    def counting() -> Callable[[int], float]:
        calls = iter(range(1, 100))
        return lambda _: 0.01 * next(calls)

    assert rates(counting(), 4) != rates(counting(), 0)[4:]


class Watched(nn.Linear):
    """Remembers the mode of each forward."""

    def __init__(self) -> None:
        super().__init__(5, 3, dtype=torch.float64)
        self.modes: list[bool] = []

    def forward(self, x: Tensor) -> Tensor:
        self.modes.append(self.training)
        return super().forward(x)


def test_updates_run_in_training_mode_whatever_the_caller_does_between_them() -> None:
    model = Watched()
    model.eval()
    for _ in plain(model, steps=3):
        model.eval()
    assert model.modes == [True] * 3


def test_evaluation_runs_in_evaluation_mode_and_restores_each_part() -> None:
    frozen, trained = Watched(), Watched()
    model = nn.ModuleDict({"frozen": frozen.eval(), "trained": trained.train()})

    def loss(parts: nn.Module, batch: Points) -> tuple[Tensor, Tensor]:
        assert not torch.is_grad_enabled()
        return squared(parts["frozen"], batch)[0] + squared(parts["trained"], batch)[0], torch.tensor(42)

    before = [part.training for part in model.modules()]
    evaluate(model, [points(0), points(1)], loss)
    assert frozen.modes == trained.modes == [False, False]
    assert [part.training for part in model.modules()] == before == [True, False, True]


def test_the_modes_come_back_after_a_failure_too() -> None:
    model = nn.Sequential(nn.Linear(5, 3), nn.Dropout(0.5).eval())
    with pytest.raises(RuntimeError, match="stop"), evaluating(model):
        raise RuntimeError("stop")
    assert [part.training for part in model.modules()] == [True, True, False]


def test_the_modes_come_back_when_an_evaluation_is_stopped_in_the_middle() -> None:
    """By Ctrl-C between two batches; and where a generator that evaluates is left, when it is closed."""
    model = nn.Sequential(nn.Linear(5, 3), nn.Dropout(0.5).eval()).double()

    def interrupted() -> Iterator[Points]:
        yield points(0)
        raise KeyboardInterrupt

    def scores() -> Iterator[float]:
        with evaluating(model):
            while True:
                yield squared(model, points(0))[0].item()

    with pytest.raises(KeyboardInterrupt):
        evaluate(model, interrupted(), squared)
    assert [part.training for part in model.modules()] == [True, True, False]
    assert torch.is_grad_enabled()
    left = scores()
    assert next(left) == next(left)
    assert [part.training for part in model.modules()] == [False, False, False]
    left.close()
    assert [part.training for part in model.modules()] == [True, True, False]
    assert torch.is_grad_enabled()


def test_modes_that_stay_after_a_stop_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: they are put back at the end alone."""

    @contextmanager
    def at_the_end_alone(model: nn.Module) -> Iterator[None]:
        model.eval()
        with torch.no_grad():
            yield
        model.train()

    monkeypatch.setitem(globals(), "evaluating", at_the_end_alone)
    monkeypatch.setattr(fitting, "evaluating", at_the_end_alone)
    with pytest.raises(AssertionError):
        test_the_modes_come_back_when_an_evaluation_is_stopped_in_the_middle()


def test_evaluation_is_the_sum_of_sums_over_the_sum_of_counts() -> None:
    model = line()
    batches = [points(0, 2), points(1, 9)]
    sums = [squared(model, batch)[0].item() for batch in batches]
    found = evaluate(model, batches, squared)
    assert found == pytest.approx(sum(sums) / 33, rel=1e-14)
    mean_of_means = (sums[0] / 6 + sums[1] / 27) / 2
    assert found != pytest.approx(mean_of_means, rel=1e-2)


def test_evaluation_of_nothing_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        evaluate(line(), [], squared)


def test_autocast_runs_the_forward_in_16_bits_and_keeps_the_weights() -> None:
    model = nn.Linear(5, 3)
    seen = []

    def loss(module: nn.Module, batch: Points) -> tuple[Tensor, Tensor]:
        out = module(batch.x.float())
        seen.append(out.dtype)
        return (out.float() - batch.y.float()).square().sum(), torch.tensor(21)

    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    updates = list(plain(model, loss=loss, optimizer=optimizer, steps=3, autocast=torch.bfloat16))
    evaluate(model, [points(0)], loss, autocast=torch.bfloat16)
    evaluate(model, [points(0)], loss)
    assert seen == [torch.bfloat16] * 4 + [torch.float32]
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert updates[-1].loss < updates[0].loss


def test_leaving_the_loop_leaves_the_model_after_the_update_that_was_handed_out() -> None:
    left, whole = line(), line()
    assert [update.step for update in islice(plain(left), 2)] == [1, 2]
    list(plain(whole, steps=2))
    assert torch.equal(left.weight, whole.weight)


def test_nothing_is_done_when_all_steps_are() -> None:
    model = line()
    before = model.weight.detach().clone()
    assert list(plain(model, first=6)) == []
    assert torch.equal(model.weight, before)


def test_a_batch_goes_to_the_device_of_the_model() -> None:
    went = []

    class Sent(Points):
        def to(self, device: torch.device) -> Points:
            went.append(device)
            return Points.to(self, device)

    next(plain(line(), batches=lambda step: Sent(*points(step))))
    assert went == [CPU]
