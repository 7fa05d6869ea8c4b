"""One change of a model that leaves its weights usable, and the model changed so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.layers.look import Look
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config import StackConfig

Change = Callable[[nn.Module], None]
"""What is done to a built model, in place."""


@dataclass(frozen=True)
class Variation:
    """One change.

    Args:
        id: what kind of difference it makes: "activation.variant", "norm.eps-value"; as in the dictionary of faults where that has it.
        config: the configuration after the change; as before where no field says what is changed.
        text_a: what the model did before: "the activation is GELU".
        text_b: what it does after.
        change: done to the built model where no field says it; None if the configuration says it all.
    """

    id: str
    config: StackConfig
    text_a: str
    text_b: str
    change: Change | None = None


def changed(config: StackConfig, id: str, texts: tuple[str, str], fields: dict[str, Any]) -> list[Variation]:
    """The change of some fields; none where the configuration cannot be so, or is so.

    Args:
        config: before.
        id: of the change.
        texts: what is said of before and after.
        fields: their new values.
    """
    with suppress(UserError):
        after = replace(config, **fields)
        return [] if after == config else [Variation(id, after, *texts)]
    return []


def made(variation: Variation, weights: Mapping[str, Tensor]) -> nn.Module:
    """The changed model, in evaluation mode, with these very tensors as its weights: nothing is copied.

    What the change leaves without a part is left out; a norm or a bias that it adds does nothing: gain 1, shift 0, a sink of 0.

    Args:
        variation: the change.
        weights: those of the model before it, by name, as `own_tensors` gives them.
    """
    model = with_weights(build(variation.config, device="meta"), weights)
    if variation.change is not None:
        variation.change(model)
    return model.eval()


def with_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    """A model that was built without memory, with these tensors; what they lack is neutral."""
    first = {id(tensor): name for name, tensor in model.named_parameters()}
    like = next(iter(weights.values()))
    state = {}
    for name, empty in model.state_dict(keep_vars=True).items():
        own = first.get(id(empty), name)
        state[name] = weights[own] if own in weights else _neutral(own, tuple(empty.shape), like, model)
    model.load_state_dict(state, strict=True, assign=True)
    return model.requires_grad_(False)


def _neutral(name: str, shape: tuple[int, ...], like: Tensor, model: nn.Module) -> Tensor:
    """Weights of a part that has none yet, with which it does nothing, as far as that can be."""
    part, _, last = name.rpartition(".")
    gain = last == "weight" and not type(model.get_submodule(part)).__name__.startswith("Offset")
    return torch.full(shape, float(gain), dtype=like.dtype, device=like.device)


def stacks(model: nn.Module) -> list[nn.Module]:
    """The stacks of blocks: encoder and decoder, or the model itself."""
    return [part for part in (model, *model.children()) if isinstance(getattr(part, "blocks", None), nn.ModuleList)]


def looks_in(stack: nn.Module) -> tuple[Look, ...]:
    """How the blocks of a stack look, one a block."""
    looks = stack.looks
    assert isinstance(looks, tuple)
    return looks


def set_looks(stack: nn.Module, looks: Iterable[Look]) -> None:
    """Let the blocks of a stack look so."""
    stack.__dict__["looks"] = tuple(looks)
