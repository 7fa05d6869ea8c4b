"""Transformer blocks with self-attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class Attn(nn.Module):
    def __init__(self, dim: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.proj(y.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, dim: int, act: nn.Module | None = None) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.act = act or nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    """Norm, branch, add; twice."""

    def __init__(self, dim: int = 24, num_heads: int = 4) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = Attn(dim, num_heads), MLP(dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Block2(Block):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return self.mlp(self.norm2(x))


class Block3(Block):
    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x)
        x = x + self.attn(x)
        return x + self.mlp(self.norm2(x))


class Block4(Block):
    def forward(self, x: Tensor) -> Tensor:
        y = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(y))


class Block5(Block):
    def forward(self, x: Tensor) -> Tensor:
        h = self.attn(self.norm1(x)) + x
        return h + self.mlp(self.norm2(h)) + h


class Block6(Block):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + 0.5 * self.mlp(self.norm2(x))


class Block7(Block):
    """Norms after the sums."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.mlp(x))


class Block8(Block):
    """Norms on either side of each branch."""

    def __init__(self, dim: int = 24, num_heads: int = 4) -> None:
        super().__init__(dim, num_heads)
        self.post1, self.post2 = nn.RMSNorm(dim), nn.RMSNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.post1(self.attn(self.norm1(x)))
        return x + self.post2(self.mlp(self.norm2(x)))


class Block9(Block):
    """Both branches read one normalised input."""

    def __init__(self, dim: int = 24, num_heads: int = 4) -> None:
        super().__init__(dim, num_heads)
        del self.norm2

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm1(x)
        return x + self.attn(h) + self.mlp(h)


class Block10(Block):
    """Norms of the branches' results only."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.norm1(self.attn(x))
        return x + self.norm2(self.mlp(x))


class Block11(Block):
    def __init__(self, dim: int = 24, num_heads: int = 4) -> None:
        super().__init__(dim, num_heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.Dropout(0.1), nn.Linear(4 * dim, dim))


class Block12(Block):
    def __init__(self, dim: int = 24, num_heads: int = 4, activation: str = "gelu") -> None:
        super().__init__(dim, num_heads)
        self.activation = activation
        self.mlp.act = nn.ReLU()


class Block13(Block):
    def __init__(self, dim: int = 24, num_heads: int = 4, norm_first: bool = True) -> None:
        super().__init__(dim, num_heads)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.mlp(x))


class Block14(Block):
    """The feed-forward part as two convolutions."""

    def __init__(self, dim: int = 24, num_heads: int = 4) -> None:
        super().__init__(dim, num_heads)
        self.mlp = nn.Sequential(nn.Conv1d(dim, 4 * dim, 1), nn.GELU(), nn.Conv1d(4 * dim, dim, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x).transpose(1, 2)).transpose(1, 2)


class Block15(Block):
    """The feed-forward part as two convolutions."""

    def __init__(self, dim: int = 24, num_heads: int = 4) -> None:
        super().__init__(dim, num_heads)
        self.mlp = nn.Sequential(nn.Conv1d(dim, 4 * dim, 3, padding=1), nn.GELU(), nn.Conv1d(4 * dim, dim, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x).transpose(1, 2)).transpose(1, 2)


class Block16(nn.Module):
    """RMS norms, a gated feed-forward part, no bias; causal."""

    def __init__(self, hidden_size: int, num_heads: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(hidden_size, eps=eps)
        self.self_attn = Attn(hidden_size, num_heads, causal=True)
        self.post_attention_layernorm = nn.RMSNorm(hidden_size, eps=eps)
        self.gate_proj = nn.Linear(hidden_size, 2 * hidden_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, 2 * hidden_size, bias=False)
        self.down_proj = nn.Linear(2 * hidden_size, hidden_size, bias=False)

    def feed(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))

    def forward(self, hidden_states: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = residual + self.self_attn(self.input_layernorm(hidden_states))
        residual = hidden_states
        return residual + self.feed(self.post_attention_layernorm(hidden_states))


class Block17(Block16):
    def forward(self, hidden_states: Tensor) -> Tensor:
        hidden_states = self.input_layernorm(hidden_states)
        residual = hidden_states
        hidden_states = residual + self.self_attn(hidden_states)
        residual = hidden_states
        return residual + self.feed(self.post_attention_layernorm(hidden_states))


class Block18(Block16):
    def __init__(self, hidden_size: int, num_heads: int) -> None:
        super().__init__(hidden_size, num_heads)
        del self.up_proj

    def feed(self, x: Tensor) -> Tensor:
        return self.down_proj(self.gate_proj(x))


class Scale(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        var, mean = torch.var_mean(x, dim=1, keepdim=True, correction=0)
        return (x - mean) * torch.rsqrt(var + self.eps) * self.weight + self.bias


class Block20(Block):
    def __init__(self, dim: int = 24, num_heads: int = 4) -> None:
        super().__init__(dim, num_heads)
        self.norm1 = Scale(dim)


class Block21(Block):
    """ReLU squared."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp.fc2(F.relu(self.mlp.fc1(self.norm2(x))).square())


class Block22(Block):
    def __init__(self, dim: int = 24, num_heads: int = 4, drop: float = 0.2) -> None:
        super().__init__(dim, num_heads)
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        x = x + F.dropout(self.attn(self.norm1(x)), self.drop)
        return x + F.dropout(self.mlp(self.norm2(x)), self.drop)


def block_with_units() -> nn.Module:
    m = Block(24, 4)
    with torch.no_grad():
        m.mlp.fc1.weight[10:40] = 0.0
        m.mlp.fc1.bias[10:40] = -5.0
        m.mlp.fc2.weight[:, 10:40] = 0.0
    return m


def block_at_start() -> nn.Module:
    m = Block(24, 4)
    for lin in (m.attn.proj, m.mlp.fc2):
        nn.init.zeros_(lin.weight)
        nn.init.zeros_(lin.bias)
    return m


CASES: list[Case] = [
    Case("Block", "block", guess=True),
    Case("Block2", "block", "residual.missing"),
    Case("Block3", "block", "residual.from-norm", guess=True),
    Case("Block4", "block", "residual.stale"),
    Case("Block5", "block", "residual.doubled", also=("residual.scale",)),
    Case("Block6", "block", "residual.scale", guess=True),
    Case("Block7", "block"),
    Case("Block8", "block", guess=True),
    Case("Block9", "block"),
    Case("Block10", "block"),
    Case("Block11", "block", "activation.missing"),
    Case("Block12", "block", "activation.variant"),
    Case("Block13", "block", "norm.placement"),
    Case("Block14", "block", guess=True),
    Case("Block15", "block", "feedforward.mixes-positions"),
    Case("Block16", "block", guess=True),
    Case("Block17", "block", "residual.from-norm"),
    Case("Block18", "block", "activation.missing"),
    Case("Block20", "block", "norm.axis", guess=True),
    Case("Block21", "block"),
    Case("Block22", "block", "dropout.active-in-eval"),
    Case("block_with_units", "block", "weights.dead-units"),
    Case("block_at_start", "block"),
]
