"""Splitting a width into heads, merging heads back, and sharing key/value heads among query heads."""

from __future__ import annotations

from torch import Tensor


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B,T,H·d) -> (B,H,T,d): group the last axis into heads, then move the head axis before the positions.

    Both steps are needed: a reshape straight to (B,H,T,d) has the right shape and mixes positions with heads.

    Source: chapter 19 §19.2; transformer-notes §21.3.
    """
    return x.reshape(*x.shape[:-1], heads, -1).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """(B,H,T,d) -> (B,T,H·d), the inverse of `split_heads`: move the positions back, then join the last two axes.

    Source: chapter 19 §19.2.
    """
    return x.transpose(-3, -2).flatten(-2)


def repeat_heads(x: Tensor, heads: int) -> Tensor:
    """(B,K,S,d) -> (B,H,S,d): each key/value head is repeated H/K times in a row, 0,0,1,1 and not 0,1,0,1.

    So query head h reads key/value head h // (H/K). With K = H this is the input itself.

    Source: Ainslie et al. 2023 (arXiv:2305.13245).
    """
    return x if x.shape[-3] == heads else x.repeat_interleave(heads // x.shape[-3], dim=-3)
