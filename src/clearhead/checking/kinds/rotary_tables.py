"""Tables of angles, in the forms in which code gives them, and turning by them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Tables(NamedTuple):
    """cos and sin, (T,n): n = d where each angle stands twice, n = d/2 where it stands once."""

    cos: Tensor
    sin: Tensor


def tables_of(result: Any) -> Tables:
    """cos and sin in what a module or function returned.

    Raises:
        ValueError: if there are none.
    """
    if isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, tuple | list):
        found = [_flat(item) for item in result if isinstance(item, Tensor)]
        if len(found) == 1:
            return tables_of(found[0])
        if len(found) < 2 or found[0].shape != found[1].shape:
            raise ValueError("no two tables of one shape")
        one, other = found[0], found[1]
        return Tables(other, one) if _sines(one, other) else Tables(one, other)
    if not isinstance(result, Tensor):
        raise ValueError(f"gives {type(result).__name__}")
    if result.is_complex():
        flat = _flat(result)
        return Tables(flat.real, flat.imag)
    if result.dim() >= 3 and result.shape[-1] == 2:
        return Tables(_flat(result[..., 0]), _flat(result[..., 1]))
    return _of_one(_flat(result))


def _sines(one: Tensor, other: Tensor) -> bool:
    """Whether the first of two tables has the sines: those of position 0 are 0, and further on those of the slowest pair are small."""
    first, second = one[0].abs(), other[0].abs()
    at_zero = bool((first < 1e-6).all()) or bool((second < 1e-6).all())
    if not at_zero:
        first, second = one[:, -1].abs(), other[:, -1].abs()
    return bool((first < (1e-6 if at_zero else 0.5)).all()) and bool((second > 0.5).all())


def _of_one(table: Tensor) -> Tables:
    """One table: of angles, or of cos beside sin."""
    if bool((table[0].abs() < 1e-9).all()):
        return Tables(table.cos(), table.sin())
    first, second = table.chunk(2, -1)
    if first.shape == second.shape and bool(((first**2 + second**2) - 1).abs().max() < 1e-2):
        return Tables(first, second) if float(first[0].mean()) > float(second[0].mean()) else Tables(second, first)
    raise ValueError(f"gives {tuple(table.shape)}")


def _flat(table: Tensor) -> Tensor:
    """(T,n) of a table with further axes of one, or of equal rows."""
    if table.dim() < 2:
        raise ValueError(f"gives {tuple(table.shape)}")
    kept = [n for n in table.shape[:-1] if n != 1] or [1]
    table = table.reshape(*kept, table.shape[-1])
    while table.dim() > 2:
        table = table[0]
    return table


def applied(tables: Tables, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, None]:
    """q and k (B,H,T,d), turned by the tables in the way for which they are laid out.

    Raises:
        ValueError: if they do not fit.
    """
    length, width = q.shape[2], q.shape[3]
    cos, sin = (each[:length].to(torch.float64) for each in tables)
    n = cos.shape[-1]
    if len(cos) != length or n > width:
        raise ValueError(f"tables of {tuple(cos.shape)} for {length} positions of {width} features")
    halves = n % 2 == 0 and _equal(cos[:, : n // 2], cos[:, n // 2 :]) and _equal(sin[:, : n // 2], sin[:, n // 2 :])
    pairs = n % 2 == 0 and _equal(cos[:, 0::2], cos[:, 1::2]) and _equal(sin[:, 0::2], sin[:, 1::2])
    if not halves and not pairs:
        if 2 * n > width:
            raise ValueError(f"tables of {n} angles for {width} features")
        cos, sin = torch.cat([cos, cos], -1), torch.cat([sin, sin], -1)
    turned = [_turn(x, cos, sin, interleaved=pairs and not halves) for x in (q, k)]
    return turned[0], turned[1], None


def _turn(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> Tensor:
    n = cos.shape[-1]
    part, rest = x[..., :n].double(), x[..., n:]
    if interleaved:
        swapped = torch.stack([-part[..., 1::2], part[..., 0::2]], -1).flatten(-2)
    else:
        a, b = part.chunk(2, -1)
        swapped = torch.cat([-b, a], -1)
    return torch.cat([(part * cos + swapped * sin).to(x.dtype), rest], -1)


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one - other).abs().max() < 1e-6)
