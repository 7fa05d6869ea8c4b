"""Parts of a fused projection without gradient: found in either layout, left alone where it is meant or only a few rows are silent."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.checking.check import check
from clearhead.checking.common.unused_parts import _is_fused, _silent


class Fused(nn.Module):
    """Queries, keys and values of one layer."""

    def __init__(self, dim: int = 24, num_heads: int = 3) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(*self.passed(q, k, v)).transpose(1, 2).flatten(2))

    def passed(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return q, k, v


class Cut(Fused):
    def passed(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return q.detach(), k, v


class Meant(Fused):
    """The queries are detached: only keys and values learn."""

    def passed(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return q.detach(), k, v


def unused_of(code: type[nn.Module]) -> list[str]:
    return [fault.evidence for fault in check(code, kind="attention").faults if fault.id == "parameter.unused"]


def test_a_detached_part_of_a_fused_projection_is_found() -> None:
    found = unused_of(Cut)
    assert len(found) == 1
    assert "0..23" in found[0]
    assert "72" in found[0]


def test_right_and_meant_ones_are_left_alone() -> None:
    assert not unused_of(Fused)
    assert not unused_of(Meant)


def test_only_whole_parts_count() -> None:
    slopes = torch.ones(24, 8)
    assert _silent(slopes) is None
    assert _silent(torch.zeros(24, 8)) is None
    few, apart, later = slopes.clone(), slopes.clone(), slopes.clone()
    few[3:5] = 0
    apart[::2] = 0
    later[5:13] = 0
    assert [_silent(each) for each in (few, apart, later)] == [None, None, None]
    slopes[8:16] = 0
    assert _silent(slopes) == (8, 16)
    assert _silent(slopes.T) == (8, 16)


def test_names_of_fused_projections() -> None:
    assert all(
        _is_fused(name)
        for name in ("qkv.weight", "attn.c_attn.weight", "to_kv.weight", "Wqkv.weight", "in_proj_weight")
    )
    assert not any(_is_fused(name) for name in ("q.weight", "head.weight", "fc1.weight", "pos"))
