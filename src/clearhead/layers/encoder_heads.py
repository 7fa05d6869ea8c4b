"""What is made of an encoder's features: logits of masked tokens, or one vector a row."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from clearhead.layers.feedforward import Activate
from clearhead.ops.pooling import unit_length
from clearhead.ops.tap import NO_TAP, Tap

Pool = Callable[[Tensor, Tensor], Tensor]
"""From features (B,T,D) and which tokens are real (B,T) to (B,D): `ops.pool_first`, `pool_mean`, `pool_max`."""


class MaskedTokenHead(nn.Module):
    """logits = W_V N(φ(W x + b)) + b_V: BERT's head, which guesses the token at every position.

    Args:
        width: D.
        activation: φ.
        norm: N.
        output: from D features to V logits; its weight may be the token embedding's.

    Names for a tap: `transformed` (after N), `logits`.

    Source: Devlin et al. 2019 §3.1 (arXiv:1810.04805) and its reference code.
    """

    def __init__(self, width: int, activation: Activate, norm: nn.Module, output: nn.Linear) -> None:
        super().__init__()
        self.transform, self.activation, self.norm = nn.Linear(width, width), activation, norm
        self.output = output

    def forward(self, x: Tensor, real: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """(B,T,D) -> (B,T,V); what stands at padding has logits too, that mean nothing."""
        transformed = tap("transformed", self.norm(self.activation(self.transform(x))))
        return tap("logits", self.output(transformed))


class PoolingHead(nn.Module):
    """One vector a row: pooled = pool(x), or tanh(W pooled + b); perhaps divided by its length.

    Args:
        pool: from the features of the real tokens to one vector.
        dense: W and b; none if None.
        unit: whether the vector is divided by its length; one of length 0 stays as it is.

    Names for a tap: `pooled`, `output`.

    Source: Devlin et al. 2019 for the dense layer; Reimers and Gurevych 2019 (arXiv:1908.10084) for the mean.
    """

    def __init__(self, pool: Pool, dense: nn.Linear | None = None, *, unit: bool = False) -> None:
        super().__init__()
        self.pool = pool
        self.after = nn.Identity() if dense is None else nn.Sequential(dense, nn.Tanh())
        self.length: Callable[[Tensor], Tensor] = unit_length if unit else nn.Identity()

    def forward(self, x: Tensor, real: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """(B,T,D), (B,T) -> (B,D)."""
        return tap("output", self.length(self.after(tap("pooled", self.pool(x, real)))))


class FeaturesHead(nn.Module):
    """The features as they are."""

    def forward(self, x: Tensor, real: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """`x` itself."""
        return x
