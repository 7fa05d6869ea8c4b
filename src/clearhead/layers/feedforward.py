"""The feed-forward part: each position's vector is worked on by itself."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from clearhead.ops.tap import NO_TAP, Tap

Activate = Callable[[Tensor], Tensor]


class FeedForward(nn.Module):
    """FFN(x) = W₂ φ(W₁ x + b₁) + b₂, the same for every position; no position sees another.

    Args:
        width: D.
        hidden: F, the width in between, usually 4·D.
        activation: φ; without it the two matrices would collapse into one.
        bias: whether both layers have a bias.
        dropout: probability, in training, of dropping a feature of the output.

    Names for a tap: `up` (before φ), `hidden` (after φ), `output`.

    Source: Vaswani et al. 2017 §3.3; chapter 19 §19.3.
    """

    def __init__(
        self, width: int, hidden: int, activation: Activate, *, bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.activation = activation
        self.up = nn.Linear(width, hidden, bias=bias)
        self.down = nn.Linear(hidden, width, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """(..., D) -> (..., D)."""
        hidden = tap("hidden", self.activation(tap("up", self.up(x))))
        return tap("output", self.dropout(self.down(hidden)))


class GatedFeedForward(nn.Module):
    """GLU(x) = W₂ (φ(W_g x) ⊙ W₁ x): one half of the hidden features opens or closes the other. SwiGLU, GEGLU.

    Args:
        width: D.
        hidden: F of each half; 8/3·D has as many parameters as a plain part of 4·D.
        activation: φ of the gate.
        bias: whether all three layers have a bias.
        dropout: probability, in training, of dropping a feature of the output.

    Names for a tap: `gate` (before φ), `up`, `hidden` (their product), `output`.

    Source: Shazeer 2020 (arXiv:2002.05202).
    """

    def __init__(
        self, width: int, hidden: int, activation: Activate, *, bias: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.activation = activation
        self.gate = nn.Linear(width, hidden, bias=bias)
        self.up = nn.Linear(width, hidden, bias=bias)
        self.down = nn.Linear(hidden, width, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """(..., D) -> (..., D)."""
        hidden = tap("hidden", self.activation(tap("gate", self.gate(x))) * tap("up", self.up(x)))
        return tap("output", self.dropout(self.down(hidden)))
