"""Training as a generator: one update of the weights an event."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from clearhead.messages import UserError, say
from clearhead.training.nonfinite import explain, random_state
from clearhead.training.parts import cut
from clearhead.training.stepper import Stepper

Sample = TypeVar("Sample", bound="Movable")

Loss = Callable[[nn.Module, Sample], tuple[Tensor, Tensor]]
"""From a model and a batch to (sum of the losses, how many terms it has)."""


class Movable(Protocol):
    """A batch: anything that knows how to go to a device."""

    def to(self: Sample, device: torch.device) -> Sample:
        """The same batch on `device`."""
        ...


@dataclass(frozen=True)
class Update:
    """One update of the weights."""

    step: int
    """How many updates the weights have had, this one included."""
    loss: float
    """Mean loss of its batch, before the update (nats for a language model)."""
    lr: float
    """The learning rate it used."""
    grad_norm: float
    """Euclidean norm of the gradient of all parameters, before clipping."""
    terms: int
    """How many loss terms (tokens) the batch had."""
    seconds: float
    """Wall time of the update, from asking for the batch to the new weights."""
    skipped: bool = False
    """Whether the weights stayed as they were, because the loss or a gradient was not finite."""


def fit(
    model: nn.Module,
    batches: Callable[[int], Sample],
    loss: Loss[Sample],
    *,
    optimizer: torch.optim.Optimizer | Stepper,
    schedule: Callable[[int], float],
    steps: int,
    first: int = 0,
    clip: float | None = 1.0,
    autocast: torch.dtype | None = None,
    micro_batch: int | None = None,
    skip_nonfinite: bool = False,
) -> Iterator[Update]:
    """Update the weights from step `first` to `steps`, handing out an `Update` after each.

    The caller's code runs between two updates: print, evaluate, save, or stop by leaving the loop. `fit` knows
    nothing of text; a batch is whatever `loss` understands.

    An update whose loss or gradient is not finite is not applied: weights, the optimiser's means and the random numbers are as if
    there had been none. (What a forward itself changes, such as the running means of a batch norm, is not taken back.)

    Args:
        model: trained in place; set to training mode before each update.
        batches: step -> batch, a pure function, so that a resumed run sees what it would have seen.
        loss: (model, batch) -> (sum, count); the gradient is that of sum / count.
        optimizer: over the model's parameters; or a stepper, where more than one optimiser moves the weights.
        schedule: step -> learning rate.
        steps: how many updates the whole training has.
        first: how many of them are already done.
        clip: the gradient's norm is scaled down to this if larger; None leaves it.
        autocast: run the forward in this 16-bit type where that is safe, the weights staying as they are.
        micro_batch: at most so many rows go through the model at once; the gradient stays that of (sum of all sums) / (sum of all
            counts), whatever the counts of the parts. All rows at once if None.
        skip_nonfinite: go on after an update that is not finite, marked as `skipped`.

    Raises:
        UserError: if a batch has no term, or cannot be cut into parts; unless `skip_nonfinite`, at an update that is not finite,
            naming its first tensor that is not, and the rows. A loss scale that was too large is no error: the update is skipped.
    """
    device = next(model.parameters()).device
    stepper = optimizer if isinstance(optimizer, Stepper) else Stepper(model, optimizer)
    for step in range(first, steps):
        began = time.perf_counter()
        batch = batches(step).to(device)
        parts = [batch] if micro_batch is None else cut(batch, micro_batch)
        if not model.training:
            model.train()
        restore = random_state(device)
        stepper.clear()
        mean, terms, correction = _backward(
            model, parts, loss, stepper, torch.autocast(device.type, dtype=autocast, enabled=autocast is not None)
        )
        if not terms:
            restore()
            raise UserError(say("updates.no_terms", step=step + 1))
        norm = _clipped(stepper, correction, clip)
        lr = schedule(step)
        finite = isfinite(mean) and isfinite(norm)
        if finite:
            stepper.step(lr)
        else:
            overflow = isfinite(mean) and stepper.overflowed
            stepper.leave_out(overflow=overflow)
            if not (overflow or skip_nonfinite):
                name, place = explain(model, parts, loss, moved=stepper.named, autocast=autocast, restore=restore)
                restore()
                raise UserError(say("updates.not_finite", step=step + 1, lr=f"{lr:.2g}", name=name, place=place))
            restore()
        yield Update(step + 1, mean, lr, norm, terms, time.perf_counter() - began, skipped=not finite)


def _backward(
    model: nn.Module, parts: Sequence[Sample], loss: Loss[Sample], stepper: Stepper, numbers: torch.autocast
) -> tuple[float, int, float]:
    """Forward and backward of every part.

    The count of all parts is known after the last forward only, and each part's graph is to be freed before the next. So
    their sums are divided by a guess, the count of the first times the number of parts, which keeps the gradients of about the size
    that they will have; (guess / count of all) corrects them at the end.

    Returns:
        (mean loss, how many terms, what the gradients are still to be multiplied with).
    """
    if len(parts) == 1:
        with numbers:
            total, count = loss(model, parts[0])
        mean = total / count
        stepper.backward(mean)
        return mean.item(), int(count.item()), 1.0
    totals: list[Tensor] = []
    counts: list[Tensor] = []
    guess = 0
    for part in parts:
        with numbers:
            total, count = loss(model, part)
        totals.append(total.detach())
        counts.append(count)
        guess = guess or int(count.item()) * len(parts)
        # Without a term before it a part has no gradient, and nothing to guess from.
        if guess:
            stepper.backward(total / guess)
    terms = sum(int(count.item()) for count in counts)
    if not terms:
        return nan, 0, 1.0
    return sum(total.item() for total in totals) / terms, terms, guess / terms


def _clipped(stepper: Stepper, correction: float, clip: float | None) -> float:
    """Correct the gradients, scale them down to the norm `clip` if it is larger, and return the norm they had."""
    gradients = stepper.gradients()
    if correction != 1.0:
        for gradient in gradients:
            gradient.mul_(correction)
    norm = torch.nn.utils.get_total_norm(gradients)
    found = norm.item()
    if clip is not None and clip < found < inf:
        torch.nn.utils.clip_grads_with_norm_(stepper.named.values(), clip, norm)
    return found


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside, no gradients; afterwards every module is in the mode it was found in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def evaluate(
    model: nn.Module, batches: Iterable[Sample], loss: Loss[Sample], *, autocast: torch.dtype | None = None
) -> float:
    """Mean loss over all batches, Σ sums / Σ counts, with dropout off; the modes of the model's parts are restored.

    Raises:
        ZeroDivisionError: if there is no term to average.
    """
    device = next(model.parameters()).device
    total, count = 0.0, 0
    with evaluating(model), torch.autocast(device.type, dtype=autocast, enabled=autocast is not None):
        for batch in batches:
            batch_sum, batch_count = loss(model, batch.to(device))
            total, count = total + batch_sum.item(), count + int(batch_count.item())
    return total / count
