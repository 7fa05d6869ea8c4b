"""Which linear layers of a model learn at low rank, and back to the plain model."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from clearhead.layers.lora import LowRankLinear
from clearhead.messages import UserError, say
from clearhead.models.low_rank import LowRank


def adapt(model: nn.Module, low_rank: LowRank, *, seed: int | None = None) -> None:
    """Give the linear layers that `low_rank` names a change of low rank, and freeze all else, in place.

    What the model computes is exactly what it computed; trained from now on are the changes alone.

    Args:
        model: one whose every weight is its own.
        low_rank: which layers, and how large their changes are.
        seed: of the matrices A; the same on every device, and the global random state stays as it was. None draws from that.

    Raises:
        UserError: if a pattern matches no linear layer, or a layer that shares its weight with another part, or dropout is
            asked for where a layer has none.
    """
    chosen = targets_of(model, low_rank)
    model.requires_grad_(False)
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        for name, linear in chosen.items():
            changed = LowRankLinear(linear, low_rank.rank, low_rank.scaled_by, dropout=low_rank.dropout)
            model.set_submodule(name, changed.train(linear.training))


def fold(model: nn.Module) -> None:
    """Put every change of low rank into the weight beside it, in place: the plain model, all of it trainable."""
    # From the inside out, where a changed layer was given another change.
    for name, module in reversed([(n, m) for n, m in model.named_modules() if isinstance(m, LowRankLinear)]):
        model.set_submodule(name, module.merged())
    model.requires_grad_(True)


def targets_of(model: nn.Module, low_rank: LowRank) -> dict[str, nn.Linear]:
    """The linear layers that `low_rank` names, by name.

    Raises:
        UserError: as `adapt`.
    """
    layers = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    for pattern in low_rank.patterns:
        if not any(fnmatchcase(name, pattern) for name in layers):
            raise UserError(say("adapting.no_such_layer", pattern=pattern, known=_shortly(layers)))
    chosen = {name: one for name, one in layers.items() if any(fnmatchcase(name, p) for p in low_rank.patterns)}
    names = Counter(id(parameter) for _, parameter in model.named_parameters(remove_duplicate=False))
    for name, linear in chosen.items():
        if names[id(linear.weight)] > 1:
            raise UserError(say("adapting.shared", name=name))
        if low_rank.dropout and name.endswith("cross_attention.qkv"):
            # It reads parts of `weight`, one for what asks and one for what is asked; dropout would be left out without a word.
            raise UserError(say("adapting.dropout", name=name))
    return chosen


def frozen_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter that is not trained, by the name that it has in the plain model."""
    inner = {f"{name}.base." for name, module in model.named_modules() if isinstance(module, LowRankLinear)}
    return {
        _outside(name, inner): parameter.detach()
        for name, parameter in model.named_parameters()
        if not parameter.requires_grad
    }


def _outside(name: str, inner: set[str]) -> str:
    """The name without the step into a `LowRankLinear`."""
    place, _, last = name.rpartition(".")
    return f"{place.removesuffix('.base')}.{last}" if f"{place}." in inner else name


def _shortly(layers: dict[str, nn.Linear]) -> str:
    """The names of layers, those of blocks once."""
    short = dict.fromkeys(".".join("*" if part.isdecimal() else part for part in name.split(".")) for name in layers)
    return " ".join(short)
