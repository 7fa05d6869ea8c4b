"""A small GPT as most people write it, and each mistake of the second trial as a word."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

V, D, H, LONGEST, LAYERS = 43, 24, 4, 80, 2
d = D // H
ORDER = [(5 * n + 3) % D for n in range(D)]
"""An order of the features that no axis explains."""


class Turned(nn.Module):
    """A product whose matrix lies (in, out), as GPT-2 has them."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.2 * torch.randn(width, out))
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class Attention(nn.Module):
    """Causal attention with separate projections."""

    def __init__(self, wrong: frozenset[str]) -> None:
        super().__init__()
        self.wrong = wrong
        kind = Turned if "turned" in wrong else nn.Linear
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))
        self.out = kind(D, D)

    def projected(self, x: Tensor) -> list[Tensor]:
        """q, k and v (B,H,T,d)."""
        wrong, heads = self.wrong, 2 if "heads" in self.wrong else H
        parts = (self.k, self.q, self.v) if "linears" in wrong else (self.q, self.k, self.v)
        q, k, v = (part(x).view(*x.shape[:2], heads, -1).transpose(1, 2) for part in parts)
        return [k, q, v] if "roles" in wrong else [q, k, v]

    def weights(self, scores: Tensor) -> Tensor:
        """Weights of the scores (B,H,T,T)."""
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        if "after" in self.wrong:
            return scores.softmax(-1).tril()
        if "window" in self.wrong:
            hidden = hidden | torch.ones_like(hidden).tril(-60)
        number = -1.0 if "finite" in self.wrong else float("-inf")
        axis = -2 if "axis" in self.wrong else -1
        made = scores.masked_fill(hidden, number).softmax(axis)
        return F.dropout(made, 0.2) if "drop" in self.wrong else made

    def forward(self, x: Tensor) -> Tensor:
        wrong = self.wrong
        q, k, v = self.projected(x)
        scores = q @ k.transpose(-2, -1) * (D**-0.5 if "scale" in wrong else q.shape[-1] ** -0.5)
        if "slopes" in wrong:
            places = torch.arange(x.shape[1])
            slopes = 2.0 ** (-8 * torch.arange(1, H + 1, dtype=x.dtype) / H)
            scores = scores + slopes[:, None, None] * (places - places[:, None])
        mixed = self.weights(scores) @ v
        mixed = mixed if "merge" in wrong else mixed.transpose(1, 2)
        mixed = mixed.reshape(*x.shape[:2], D)
        return self.out(mixed)[..., ORDER] if "features" in wrong else self.out(mixed)


class Layered(nn.Module):
    """The same with PyTorch's own attention."""

    def __init__(self, wrong: frozenset[str]) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(D, H, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.attention(x, x, x, attn_mask=hidden, need_weights=False)[0]


class Block(nn.Module):
    """Pre-norm."""

    def __init__(self, wrong: frozenset[str]) -> None:
        super().__init__()
        self.wrong = wrong
        eps = 1e-3 if "eps" in wrong else 1e-5
        self.attention_norm, self.feedforward_norm = nn.LayerNorm(D, eps), nn.LayerNorm(D, eps)
        self.attention = Layered(wrong) if "layered" in wrong else Attention(wrong)
        self.up, self.down = nn.Linear(D, 3 * D), nn.Linear(3 * D, D)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        bent = F.relu if "relu" in self.wrong else F.gelu
        return x + self.down(bent(self.up(self.feedforward_norm(x))))


class Gpt(nn.Module):
    """The whole.

    Args:
        wrong: words of what is wrong with it.
    """

    def __init__(self, *wrong: str, vocab: int = V, layers: int = LAYERS) -> None:
        super().__init__()
        self.wrong = frozenset(wrong)
        self.words, self.places = nn.Embedding(vocab, D), nn.Embedding(LONGEST, D)
        self.blocks = nn.ModuleList(Block(self.wrong) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, vocab, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        if "unplaced" not in self.wrong:
            x = x + self.places(torch.arange(ids.shape[1]))
        x = x.flip(1) if "reversed" in self.wrong else x
        for block in self.blocks[1:] if "skipped" in self.wrong else self.blocks:
            x = block(x)
        y = self.head(self.norm(x))
        y = y.flip(1) if "reversed" in self.wrong else y
        return y[:, -1:] if "last" in self.wrong else y
