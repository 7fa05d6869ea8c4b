"""What a user says about the code under check, where guessing could fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded


@dataclass(frozen=True)
class Settings:
    """Every field that is None or empty is found out.

    Args:
        kind: attention, sdpa, block, encoder, lm, seq2seq, norm, rotary, positions, loss or sampler.
        width: D.
        heads: H.
        kv_heads: K.
        vocab: V.
        context: the most positions.
        window: how many keys a query sees, itself included.
        causal: whether a position may not see later ones.
        mask_true: what True in a mask means: that the position is kept, or dropped.
        values: arguments of the constructor by name (`--set key=value`).
        call: how the module is run, `call(module, input)`, in place of what would be found.
        only: ids of the checks to run; all if empty.
        seed: of all random inputs.
        rounding: whether the table of number types is wanted.
        against: the original, a MODEL, whose weights a model or a module of a known family should have.
    """

    kind: str | None = None
    width: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    vocab: int | None = None
    context: int | None = None
    window: int | None = None
    causal: bool | None = None
    mask_true: Literal["keep", "drop"] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    call: Callable[..., Any] | None = None
    only: frozenset[str] = frozenset()
    seed: int = 0
    rounding: bool = False
    against: str | Path | Loaded | None = None
