"""Normalisation, written out."""

from __future__ import annotations

from torch import Tensor

from clearhead.ops.softmax import at_least_float32


def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Layer normalisation: γ (x - μ) / √(σ² + ε) + β, the statistics taken over the features of one position.

    μ is the mean and σ² the population variance (divided by D, not D - 1) of the last axis; ε stands inside the
    root. The statistics run in the wider of float32 and the type of `x`.

    Args:
        x: (..., D).
        weight: γ (D), ones if None.
        bias: β (D), zeros if None.
        eps: ε > 0.

    Returns:
        (..., D), of the type of `x`.

    Source: Ba et al. 2016 (arXiv:1607.06450); chapter 19 §19.5.
    """
    wide = x.to(at_least_float32(x.dtype))
    centred = wide - wide.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    normed = centred / (variance + eps).sqrt()
    normed = normed if weight is None else normed * weight
    return (normed if bias is None else normed + bias).to(x.dtype)


def rms_norm(x: Tensor, weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """Root-mean-square normalisation: γ x / √(mean(x²) + ε), over the features of one position.

    No mean is taken off. The statistics run in the wider of float32 and the type of `x`. Gemma's convention, where
    the stored weight is w and γ = 1 + w, is the caller's: pass `1 + w`.

    Args:
        x: (..., D).
        weight: γ (D), ones if None.
        eps: ε > 0, inside the root.

    Returns:
        (..., D), of the type of `x`.

    Source: Zhang and Sennrich 2019 (arXiv:1910.07467).
    """
    wide = x.to(at_least_float32(x.dtype))
    normed = wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt()
    return (normed if weight is None else normed * weight).to(x.dtype)
