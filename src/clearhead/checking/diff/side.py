"""One of two that are compared, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Stage:
    """A tensor that came up in a forward; equal to itself alone.

    Args:
        name: "blocks.0.attention.q" (as in the table of traced tensors), "h.0.attn.c_attn", "softmax (att.py:31)".
        value: a copy.
        where: the user's line, "att.py:31"; "" in a model of ours.
        inputs: the tensors that it was made of, as far as they are known.
        made_by: the operation or the kind of module: "softmax", "LayerNorm"; "" in a model of ours.
    """

    name: str
    value: Tensor
    where: str = ""
    inputs: tuple[Tensor, ...] = ()
    made_by: str = ""


@dataclass(frozen=True)
class Given:
    """What both sides are given.

    Args:
        inputs: the positional inputs: ids (B,T), or source and target ids, or vectors (B,T,D).
        text: in words, for the report.
    """

    inputs: tuple[Tensor, ...]
    text: str


class Output(NamedTuple):
    """A tensor that a forward gave beside its result.

    Args:
        value: a copy.
        stages: those up to it.
    """

    value: Tensor
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Walk:
    """One forward of a side.

    Args:
        stages: in the order in which they were made; the last is the result.
        narrowest: the narrowest number type that was used inside.
        further: what else the forward gave, by where it lies: "pooler_output", "[1]".
        last_only: whether the code itself gives what belongs to the last position alone, and was asked for each.
    """

    stages: tuple[Stage, ...]
    narrowest: torch.dtype = torch.float64
    further: Mapping[str, Output] = field(default_factory=dict)
    last_only: bool = False


class Side(Protocol):
    """One of the two."""

    @property
    def name(self) -> str:
        """As the user called it."""
        ...

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """Its tensors by its own names, tied ones once."""
        ...

    @property
    def vocab(self) -> int | None:
        """V; None where it takes no ids."""
        ...

    def run(self, given: Given) -> Walk:
        """A forward, in evaluation mode and float64 (float32 where the code refuses that).

        Raises:
            UserError: if it does not take the inputs.
        """
        ...


@dataclass(frozen=True)
class Tuned:
    """What a comparison may be told; as the flags of `clearhead diff`.

    Args:
        text: a text that both read; random ids if None.
        weights: "own" to leave each its own, "a" to give B those of A; None to decide by whether B came with its own.
        kind: of code: attention, block, lm ...; guessed if None.
        values: arguments of constructors by name.
        seed: of random inputs.
        call: how code is run, `call(module, *inputs)`.
    """

    text: str | None = None
    weights: str | None = None
    kind: str | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    call: Callable[..., Any] | None = None
