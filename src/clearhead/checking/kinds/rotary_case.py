"""A rotary turn as matrices: whatever the interface, what it does to each basis vector at each position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.case import Case
from clearhead.checking.target import Target

HEADS = 3
"""H of trial calls; the rows are the basis vectors."""


@dataclass(frozen=True)
class RotaryCase:
    """A rotary turn and how it is called.

    Args:
        case: the target; inputs (q, k) (B,H,T,d), and the turned q.
        width: d.
        turn: (module, q, k, v, start) -> turned (q, k, v), all (B,H,T,d); v is None where there is none, start is the first position.
        layout: how the code has its axes: "BHTd", "BTHd" or "BTd".
        both: whether q and k are turned in one call.
        values: whether v passes through it.
        places: whether positions can be given.
        tables: "" where the code turns by itself; otherwise what it gives: the turn is then made here.
    """

    case: Case
    width: int
    turn: Callable[[Any, Tensor, Tensor, Tensor | None, int | None], tuple[Tensor, Tensor, Tensor | None]]
    layout: str = "BHTd"
    both: bool = False
    values: bool = False
    places: bool = False
    tables: str = ""
    fed: bool = False

    @property
    def target(self) -> Target:
        """The code under check."""
        return self.case.target


@torch.no_grad()
def matrices(
    case: RotaryCase, length: int, start: int | None = None, dtype: torch.dtype | None = None, module: Any = None
) -> tuple[Tensor, Tensor]:
    """R of q and of k, (T,d,d): the turned vector at t is R[t] u. In float64 whatever the type it ran in."""
    kind = dtype or case.case.dtype
    basis = torch.eye(case.width, dtype=kind)[:, None, None].expand(-1, HEADS, length, -1).contiguous()
    q, k, _ = case.turn(module if module is not None else case.case.ready(), basis, basis.clone(), None, start)
    return tuple(x[:, 0].double().permute(1, 2, 0) for x in (q, k))  # type: ignore[return-value]
