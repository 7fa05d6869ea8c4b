"""Training as a generator: one update of the weights an event."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

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


def fit(
    model: nn.Module,
    batches: Callable[[int], Sample],
    loss: Loss[Sample],
    *,
    optimizer: torch.optim.Optimizer,
    schedule: Callable[[int], float],
    steps: int,
    first: int = 0,
    clip: float | None = 1.0,
    autocast: torch.dtype | None = None,
) -> Iterator[Update]:
    """Update the weights from step `first` to `steps`, handing out an `Update` after each.

    The caller's code runs between two updates: print, evaluate, save, or stop by leaving the loop. `fit` knows
    nothing of text; a batch is whatever `loss` understands.

    Args:
        model: trained in place; set to training mode before each update.
        batches: step -> batch, a pure function, so that a resumed run sees what it would have seen.
        loss: (model, batch) -> (sum, count); the gradient is that of sum / count.
        optimizer: over the model's parameters.
        schedule: step -> learning rate.
        steps: how many updates the whole training has.
        first: how many of them are already done.
        clip: the gradient's norm is scaled down to this if larger; None leaves it.
        autocast: run the forward in this 16-bit type where that is safe, the weights staying as they are.
    """
    device = next(model.parameters()).device
    for step in range(first, steps):
        began = time.perf_counter()
        batch = batches(step).to(device)
        if not model.training:
            model.train()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=autocast, enabled=autocast is not None):
            total, count = loss(model, batch)
        mean = total / count
        mean.backward()  # type: ignore[no-untyped-call]
        norm = _clipped(model, clip)
        lr = schedule(step)
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        yield Update(step + 1, mean.item(), lr, norm, int(count.item()), time.perf_counter() - began)


def _clipped(model: nn.Module, clip: float | None) -> float:
    """Scale the gradients down to the norm `clip` if it is larger, and return the norm they had."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    if clip is not None and norm.item() > clip:
        torch.nn.utils.clip_grads_with_norm_(model.parameters(), clip, norm)
    return norm.item()


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
