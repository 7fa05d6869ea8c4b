"""Tables of positions, added to the input."""

import math

import torch
from torch import Tensor, nn

from bench.checking.case import Case


class ShiftedCosine(nn.Module):
    """Sinusoids up to `max_len`."""

    def __init__(self, d_model: int = 16, max_len: int = 64):
        super().__init__()
        position = torch.arange(max_len).float()[:, None]
        column = torch.arange(d_model).float()
        angles = position / torch.pow(torch.tensor(10000.0), 2 * column / d_model)
        angles[:, 0::2], angles[:, 1::2] = angles[:, 0::2].sin(), angles[:, 1::2].cos()
        self.register_buffer("pe", angles)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[: x.size(1)].to(x.dtype)


class SwappedPower(nn.Module):
    def __init__(self, d_model: int, max_len: int = 100):
        super().__init__()
        frequency = 1.0 / (10000.0 ** torch.arange(0, d_model, 2).float() / d_model)
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(torch.arange(max_len).float()[:, None] * frequency)
        pe[:, 1::2] = torch.cos(torch.arange(max_len).float()[:, None] * frequency)
        self.register_buffer("pe", pe.unsqueeze(0), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[:, : x.size(1)].to(x.dtype)


def sinusoid_table(length: int, dim: int = 16) -> Tensor:
    """Sines in the first half of the columns, cosines in the second."""
    i = torch.arange(dim // 2).float()
    sin_angles = torch.arange(length).float()[:, None] * 10000.0 ** (-2 * i / dim)
    cos_angles = torch.arange(length).float()[:, None] * 10000.0 ** (-(2 * i + 1) / dim)
    return torch.cat([sin_angles.sin(), cos_angles.cos()], dim=-1)


class DiscardedSum(nn.Module):
    def __init__(self, d_model: int = 24, max_len: int = 50, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        frequency = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        angles = torch.arange(max_len).float()[:, None] * frequency
        self.register_buffer("pe", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        x.add(self.pe[: x.size(1)])
        return self.dropout(x)


class OneRow(nn.Module):
    """Learned positions."""

    def __init__(self, max_len: int = 48, dim: int = 16):
        super().__init__()
        self.emb = nn.Embedding(max_len, dim)

    def forward(self, x: Tensor) -> Tensor:
        positions = torch.zeros(x.shape[1], dtype=torch.long, device=x.device)
        return x + self.emb(positions)


class ByBatch(nn.Module):
    def __init__(self, d_model: int = 16, max_len: int = 64):
        super().__init__()
        frequency = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        angles = torch.arange(max_len).float()[:, None] * frequency
        self.register_buffer("pe", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, None])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[: x.size(0)].to(x.dtype)


class RightInterleaved(nn.Module):
    def __init__(self, d_model: int = 16, dropout: float = 0.1, max_len: int = 80):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.pe[:, : x.size(1)])


def right_halves(length: int, dim: int = 16, base: float = 10000.0) -> Tensor:
    angles = torch.arange(length).float()[:, None] * base ** (-2 * torch.arange(dim // 2).float() / dim)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class RightLearned(nn.Module):
    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        self.wpe = nn.Embedding(max_len, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.wpe(torch.arange(x.size(1), device=x.device))


class RightParameter(nn.Module):
    def __init__(self, num_patches: int = 36, dim: int = 24):
        super().__init__()
        self.pos_embedding = nn.Parameter(0.02 * torch.randn(1, num_patches, dim))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pos_embedding[:, : x.shape[1]]


CASES = [
    Case("ShiftedCosine", "positions", "sinusoid.frequency", guess=True),
    Case("SwappedPower", "positions", "sinusoid.frequency"),
    Case("sinusoid_table", "positions", "sinusoid.frequency"),
    Case("DiscardedSum", "positions", "position.unused"),
    Case("OneRow", "positions", "position.unused"),
    Case("ByBatch", "positions", "position.unused", ("batch.mixing",)),
    Case("RightInterleaved", "positions", guess=True),
    Case("right_halves", "positions"),
    Case("RightLearned", "positions"),
    Case("RightParameter", "positions"),
]
