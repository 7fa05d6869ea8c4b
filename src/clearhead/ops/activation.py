"""The non-linearities of the feed-forward part, written out."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def relu(x: Tensor) -> Tensor:
    """max(x, 0). Source: chapter 19 §19.3."""
    return x.clamp(min=0)


def gelu(x: Tensor) -> Tensor:
    """GELU: x Φ(x) = x · ½ (1 + erf(x/√2)). Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415)."""
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def gelu_tanh(x: Tensor) -> Tensor:
    """GPT-2's approximation of GELU: ½ x (1 + tanh(√(2/π) (x + 0.044715 x³))), up to 5e-4 from GELU.

    Source: the same paper, section 2. The two are not interchangeable in trained weights.
    """
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x.pow(3))))


def relu_squared(x: Tensor) -> Tensor:
    """max(x, 0)². Source: So et al. 2021 (arXiv:2109.08668)."""
    return relu(x).square()


def silu(x: Tensor) -> Tensor:
    """SiLU, or swish: x σ(x), σ(x) = 1 / (1 + exp(-x)). SwiGLU gates with it. Source: Hendrycks and Gimpel 2016."""
    return x * torch.sigmoid(x)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": relu,
    "relu_squared": relu_squared,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
}
"""The definitions by name."""
