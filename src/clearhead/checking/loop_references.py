"""The gradient of an update as it should be, and as known mistakes make it: the one that gives the loop's numbers names it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.checking.loop_subject import Rows
from clearhead.checking.loop_watch import Moved
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch

EXACT = 1e-10
"""How far gradients may be apart in float64, beside the largest."""
ISLAND = 16 * 2.0**-24
"""The same where a loop computes something, such as the loss, in float32: legal, and said."""

Gradients = dict[str, Tensor]

Form = Literal["right", "mean_of_means", "sum_of_means", "last", "positions", "sums", "divided_twice"]

FORMS: dict[Form, str] = {
    "right": "train.accumulation",
    "mean_of_means": "loss.mean-of-means",
    "sum_of_means": "train.accumulation",
    "last": "train.accumulation",
    "positions": "loss.pads-counted",
    "sums": "train.accumulation",
    "divided_twice": "train.accumulation",
}
"""How the parts of an update are put together -> the fault that it is; the right one first."""


@dataclass(frozen=True)
class Parts:
    """What the forwards of an update give: the gradient of each one's summed loss, and how much there was in each."""

    gradients: list[Gradients]
    counts: list[int]
    """Real targets."""
    positions: list[int]
    """All targets, those of the padding too."""

    def weights(self, form: Form) -> list[list[float]]:
        """The factors of the parts in each way of making this mistake."""
        # A part without any real target has no gradient either, whatever it is divided by.
        counts, number = [max(count, 1) for count in self.counts], len(self.counts)
        total, ends = sum(self.counts), [0.0] * (number - 1)
        ways: dict[Form, list[list[float]]] = {
            "right": [[1 / total] * number],
            "mean_of_means": [[1 / (number * count) for count in counts]],
            "sum_of_means": [[1 / count for count in counts]],
            "last": [[*ends, 1 / divisor] for divisor in (counts[-1], number * counts[-1], total)],
            "positions": [[1 / sum(self.positions)] * number],
            "sums": [[1.0] * number],
            "divided_twice": [[1 / (number * total)] * number, [1 / (number**2 * count) for count in counts]],
        }
        return ways[form]

    def put_together(self, form: Form) -> list[list[Gradients]]:
        """For each way of making this mistake: what each part adds to the gradient."""
        return [
            [
                {name: tensor * weight for name, tensor in part.items()}
                for part, weight in zip(self.gradients, weights, strict=True)
            ]
            for weights in self.weights(form)
        ]


def parts_of(model: nn.Module, moved: Moved, rows: Rows) -> Parts | None:
    """The parts of an update, from a copy of the model with the parameters that it had; None if unknown rows were read.

    Args:
        model: without dropout.
        moved: the update.
        rows: the task's.
    """
    twin = copy.deepcopy(model)
    twin.load_state_dict(moved.before, strict=False)
    read = [forward.rows for forward in moved.forwards]
    batches = [rows.batch(places) for places in read if places]
    if len(batches) != len(read) or not batches:
        return None
    counts = [int((batch.targets != IGNORED).sum()) for batch in batches]
    return Parts([summed(twin, batch) for batch in batches], counts, [batch.targets.numel() for batch in batches])


def summed(model: nn.Module, batch: Batch) -> Gradients:
    """The gradient of the sum of the losses of a micro-batch, of every parameter that is trained."""
    logits, targets = model(batch.inputs).flatten(0, -2), batch.targets.flatten()
    loss = F.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="sum")
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    gradients = torch.autograd.grad(loss, list(trained.values()), materialize_grads=True, allow_unused=True)
    return dict(zip(trained, gradients, strict=True))


def right_gradient(model: nn.Module, batches: Sequence[Batch]) -> Gradients:
    """(sum of all losses of these micro-batches) / (number of all their real targets), differentiated."""
    count = sum(int((batch.targets != IGNORED).sum()) for batch in batches)
    return times(added([summed(model, batch) for batch in batches]), 1 / count)


def added(parts: Sequence[Gradients]) -> Gradients:
    """The sum, of the parameters that all of them have."""
    return reduce(_plus, parts)


def _plus(one: Gradients, other: Gradients) -> Gradients:
    return {name: tensor + other[name] for name, tensor in one.items() if name in other}


def times(gradients: Gradients, factor: float) -> Gradients:
    """All of them, multiplied."""
    return {name: tensor * factor for name, tensor in gradients.items()}


def norm_of(gradients: Gradients) -> float:
    """The Euclidean norm of all of them together."""
    return math.sqrt(sum(tensor.double().square().sum().item() for tensor in gradients.values()))


def clipped(gradients: Gradients, largest: float, *, guard: float = 0.0) -> Gradients:
    """Scaled down to the norm `largest` if theirs is larger.

    Args:
        gradients: of all parameters.
        largest: the norm that they may have.
        guard: added to the norm before dividing; PyTorch's `clip_grad_norm_` adds 1e-6.
    """
    norm = norm_of(gradients) + guard
    return gradients if norm <= largest else times(gradients, largest / norm)


GUARDS = (1e-6, 0.0)
"""What is added to the norm: by PyTorch's function, and by the formula."""


def distance(found: Gradients, wanted: Gradients) -> float:
    """The largest difference, beside the largest value wanted, of the parameters that both have."""
    both = found.keys() & wanted.keys()
    largest = max((wanted[name].abs().max().item() for name in both), default=0.0)
    apart = [(found[name] - wanted[name]).abs().max().item() for name in both]
    return max(apart) / largest if largest and not any(map(math.isnan, apart)) else math.inf


class Match(NamedTuple):
    """A reference that gives the numbers that were seen."""

    name: str
    form: Form
    apart: float


def nearest(
    found: Gradients, parts: Parts, make: Callable[[Sequence[Gradients]], dict[str, Gradients]], forms: Sequence[Form]
) -> Match | None:
    """The first reference within rounding of `found`; None if there is none.

    Args:
        found: the gradients of an update.
        parts: of that update.
        make: what each part adds -> references by name, the right one first.
        forms: the ways of putting parts together that are tried, in order.
    """
    for allowed in (EXACT, ISLAND):
        for form in forms:
            for contributions in parts.put_together(form):
                for name, reference in make(contributions).items():
                    apart = distance(found, reference)
                    if apart <= allowed:
                        return Match(name, form, apart)
    return None
