"""In which numbers a training computes: the one choice, and the stepper that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.messages import UserError, say
from clearhead.training.stepper import Stepper


@dataclass(frozen=True)
class Precision:
    """In which numbers a training computes and keeps its weights.

    Args:
        autocast: the forward runs in this type where that is safe, the weights staying as they are; not at all if None.
        weights: the weights themselves are of this type, and follow masters in float32; as they are if None.
        scaled: whether the loss is scaled up, for a type whose small numbers vanish.
    """

    autocast: torch.dtype | None = None
    weights: torch.dtype | None = None
    scaled: bool = False


PRECISIONS = {
    "float32": Precision(),
    "bfloat16": Precision(autocast=torch.bfloat16),
    "bfloat16-weights": Precision(weights=torch.bfloat16),
    "float16": Precision(autocast=torch.float16, scaled=True),
}
"""By the name that a user gives."""


def precision_of(name: str) -> Precision:
    """The precision of this name.

    Raises:
        UserError: if there is none.
    """
    if name not in PRECISIONS:
        raise UserError(say("models.no_dtype", name=name, known=", ".join(PRECISIONS)))
    return PRECISIONS[name]


def stepper_of(
    model: nn.Module,
    precision: Precision,
    optimizers: Callable[[Mapping[str, Tensor]], Sequence[torch.optim.Optimizer]],
) -> Stepper:
    """What moves this model's weights in this precision. Weights of another type are converted here, in place.

    The parameters stay the same objects, shared ones stay shared. Masters are copied before the weights are rounded, so that a
    training begins with what was given; what is frozen has no master and is rounded too.

    Args:
        model: on the device where it will be trained.
        precision: chosen by `precision_of`.
        optimizers: from what is to be moved, by the name of the parameter, to the optimisers that move it.
    """
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    masters: dict[str, Tensor] = {}
    if precision.weights is not None:
        wide = {name: each.detach().to(torch.float32, copy=True) for name, each in trained.items()}
        masters = {name: nn.Parameter(each) for name, each in wide.items()}
        model.to(precision.weights)
    device = next(model.parameters()).device
    scaler = torch.amp.GradScaler(device.type) if precision.scaled else None
    return Stepper(model, *optimizers(masters or trained), masters=masters, scaler=scaler)
