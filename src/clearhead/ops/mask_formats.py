"""The mask conventions of others, each by name, from and to a bool matrix where True = may look.

Conventions differ in what True means and in shape; a mask of the wrong one has a legal shape and the opposite effect.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.ops.masks import EVERYTHING, Allowed, Mask


def to_sdpa(mask: Mask) -> Tensor:
    """For `torch.nn.functional.scaled_dot_product_attention(attn_mask=)`: bool, True = may look, as here."""
    return mask.matrix()


def from_sdpa(attn_mask: Tensor) -> Mask:
    """From `attn_mask` of scaled_dot_product_attention: bool (True = may look) or additive floats."""
    return Allowed(attn_mask) if attn_mask.dtype == torch.bool else from_additive(attn_mask)


def to_multihead(mask: Mask, queries: int | None = None, keys: int | None = None) -> Tensor:
    """For `torch.nn.MultiheadAttention(attn_mask=)` of one mask for all: bool (T,S), True = must NOT look.

    Args:
        mask: the same for every row and head.
        queries: T, needed for a mask that does not tell it, such as `EVERYTHING`.
        keys: S, likewise.

    Raises:
        ValueError: if rows of the batch differ; repeat such a mask per head yourself, (B·H,T,S).
    """
    matrix = mask.matrix()
    while matrix.dim() > 2:
        if matrix.shape[0] != 1:
            raise ValueError(f"rows differ, shape {tuple(matrix.shape)}; attn_mask of one mask for all is (T,S)")
        matrix = matrix[0]
    return ~matrix.expand(queries or -1, keys or -1)


def from_multihead(
    attn_mask: Tensor | None = None, key_padding_mask: Tensor | None = None, heads: int | None = None
) -> Mask:
    """From the masks of nn.MultiheadAttention: bool, True = must NOT look; floats are additive.

    Args:
        attn_mask: (T,S), or (B·H,T,S) with `heads` given.
        key_padding_mask: (B,S).
        heads: H, to tell rows from heads in a mask of three axes.

    Raises:
        ValueError: if a mask of three axes comes without `heads`.
    """
    mask: Mask = EVERYTHING
    if attn_mask is not None and attn_mask.dim() == 3:
        if heads is None:
            raise ValueError(
                f"an attn_mask of shape {tuple(attn_mask.shape)} folds rows and heads together; give heads"
            )
        attn_mask = attn_mask.reshape(-1, heads, *attn_mask.shape[1:])
    if attn_mask is not None:
        mask = mask & (Allowed(~attn_mask) if attn_mask.dtype == torch.bool else from_additive(attn_mask))
    if key_padding_mask is not None:
        keys = key_padding_mask[:, None, None, :]
        mask = mask & (Allowed(~keys) if keys.dtype == torch.bool else from_additive(keys))
    return mask


def to_key_padding(real: Tensor) -> Tensor:
    """For nn.MultiheadAttention's `key_padding_mask` from real tokens (B,S): bool, True = padding."""
    return ~real


def to_additive(mask: Mask, dtype: torch.dtype = torch.float32) -> Tensor:
    """As numbers to add to the scores: 0 where a query may look, -∞ where it must not."""
    matrix = mask.matrix()
    return torch.zeros(matrix.shape, dtype=dtype, device=matrix.device).masked_fill(~matrix, -torch.inf)


def from_additive(scores: Tensor) -> Mask:
    """From numbers that are added to scores; -∞ and the type's lowest number hide a key, 0 shows it.

    Raises:
        ValueError: if another number occurs: that is a bias, not a mask.
    """
    hidden = scores <= torch.finfo(scores.dtype).min
    if not bool((hidden | (scores == 0)).all()):
        raise ValueError("an additive mask holds 0 and -inf (or the type's lowest number) alone; pass a bias as `bias`")
    return Allowed(~hidden)
