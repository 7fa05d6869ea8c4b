"""Weights of another model, copied by a table that says where each of ours is found there; and PyTorch's own tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn


class From(NamedTuple):
    """The rows of a table from `start` on."""

    name: str
    start: int


Place = str | tuple[str, ...] | From
"""The name of a tensor, or of a module with a weight and perhaps a bias; several of them one under the other; some rows."""

Table = Mapping[str, Place]
"""Name of ours -> where it is found; `{i}` stands for the number of a block, on both sides."""


def spelled(table: Table, blocks: int) -> dict[str, Place]:
    """The table with a line for each block in place of `{i}`."""

    def numbered(place: Place, index: int) -> Place:
        if isinstance(place, From):
            return From(place.name.replace("{i}", str(index)), place.start)
        if isinstance(place, tuple):
            return tuple(name.replace("{i}", str(index)) for name in place)
        return place.replace("{i}", str(index))

    lines: dict[str, Place] = {}
    for name, place in table.items():
        for index in range(blocks if "{i}" in name else 1):
            lines[name.replace("{i}", str(index))] = numbered(place, index)
    return lines


def assembled(
    theirs: Mapping[str, Tensor], lines: Mapping[str, Place], leave: tuple[str, ...] = ()
) -> dict[str, Tensor]:
    """Their tensors, weights or gradients, under our names.

    Raises:
        AssertionError: if a line finds nothing, or a tensor of theirs has no line and is not among those to `leave`.
    """
    made: dict[str, Tensor] = {}
    used: set[str] = set()

    def found(name: str, part: str) -> Tensor:
        used.add(name + part)
        return theirs[name + part]

    for ours, place in lines.items():
        first = place.name if isinstance(place, From) else place if isinstance(place, str) else place[0]
        parts = [part for part in ("", ".weight", ".bias") if first + part in theirs]
        assert parts, f"{first} is not there"
        for part in parts:
            match place:
                case From(name=name, start=start):
                    made[ours + part] = found(name, part)[start:]
                case tuple():
                    made[ours + part] = torch.cat([found(name, part) for name in place])
                case _:
                    made[ours + part] = found(place, part)
    left = {name for name in set(theirs) - used if name not in leave}
    assert not left, f"no line takes {sorted(left)}"
    return made


def copy_weights(ours: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Load the weights into `ours`; every parameter must be given, with its shape (a leading 1 aside)."""
    parameters = dict(ours.named_parameters(remove_duplicate=False))
    assert set(weights) == set(parameters), sorted(set(weights) ^ set(parameters))
    with torch.no_grad():
        for name, parameter in parameters.items():
            given = weights[name]
            given = given[0] if given.dim() > parameter.dim() and len(given) == 1 else given
            assert given.shape == parameter.shape, f"{name}: {tuple(given.shape)} is not {tuple(parameter.shape)}"
            parameter.copy_(given)


def own_weights(model: nn.Module) -> dict[str, Tensor]:
    """Name -> weight of another model, shared ones under each of their names."""
    return {name: weight.detach() for name, weight in model.named_parameters(remove_duplicate=False)}


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """Name -> gradient, 0 where none arrived."""
    every = model.named_parameters(remove_duplicate=False)
    return {name: torch.zeros_like(weight) if weight.grad is None else weight.grad for name, weight in every}


def under(prefix: str, table: Table) -> dict[str, Place]:
    """The table for a stack that is a part of both models, of one name in both."""
    return {f"{prefix}.{name}": f"{prefix}.{place}" for name, place in table.items()}


ENCODER: dict[str, Place] = {
    "blocks.{i}.attention.qkv.weight": "layers.{i}.self_attn.in_proj_weight",
    "blocks.{i}.attention.qkv.bias": "layers.{i}.self_attn.in_proj_bias",
    "blocks.{i}.attention.output": "layers.{i}.self_attn.out_proj",
    "blocks.{i}.attention_norm": "layers.{i}.norm1",
    "blocks.{i}.feedforward.up": "layers.{i}.linear1",
    "blocks.{i}.feedforward.down": "layers.{i}.linear2",
    "blocks.{i}.feedforward_norm": "layers.{i}.norm2",
}
"""`nn.TransformerEncoder`."""

DECODER: dict[str, Place] = {
    **ENCODER,
    "blocks.{i}.cross_attention.qkv.weight": "layers.{i}.multihead_attn.in_proj_weight",
    "blocks.{i}.cross_attention.qkv.bias": "layers.{i}.multihead_attn.in_proj_bias",
    "blocks.{i}.cross_attention.output": "layers.{i}.multihead_attn.out_proj",
    "blocks.{i}.cross_attention_norm": "layers.{i}.norm2",
    "blocks.{i}.feedforward_norm": "layers.{i}.norm3",
}
"""`nn.TransformerDecoder`."""

LAST_NORM: dict[str, Place] = {"norm": "norm"}
"""The norm after the last block, where there is one."""
