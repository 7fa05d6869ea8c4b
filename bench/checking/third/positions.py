"""Position embeddings: added to x, or as a table."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bench.checking.case import Case


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 512) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.pe[:, : x.size(1)])


class PositionalEncoding2(nn.Module):
    def __init__(self, d_model: int, max_len: int = 512) -> None:
        super().__init__()
        position = torch.arange(max_len)[:, None].double()
        i = torch.arange(d_model).double()
        angle = position / 10000.0 ** (2 * i / d_model)
        pe = torch.where(torch.arange(d_model) % 2 == 0, angle.sin(), angle.cos())
        self.register_buffer("pe", pe.float())

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[: x.size(1)]


class PositionalEncoding3(nn.Module):
    def __init__(self, d_model: int, max_len: int = 512) -> None:
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[: x.size(0)]


class SinusoidalPositions(nn.Module):
    """The sines in the first half, the cosines in the second."""

    def __init__(self, dim: int, theta: int = 10000) -> None:
        super().__init__()
        self.dim, self.theta = dim, theta

    def forward(self, x: Tensor) -> Tensor:
        half = self.dim // 2
        freq = torch.exp(-math.log(self.theta) * torch.arange(half, device=x.device, dtype=torch.float64) / half)
        angle = torch.arange(x.size(1), device=x.device)[:, None] * freq
        return x + torch.cat((angle.sin(), angle.cos()), dim=-1).to(x.dtype)


class SinusoidalPositions2(nn.Module):
    def __init__(self, dim: int, theta: int = 10000) -> None:
        super().__init__()
        self.dim, self.theta = dim, theta

    def forward(self, x: Tensor) -> Tensor:
        rate = torch.arange(0, self.dim, 2, device=x.device).double() * (-math.log(self.theta) / self.dim // 2)
        angle = torch.arange(x.size(1), device=x.device)[:, None] * rate.exp()
        return x + torch.cat((angle.sin(), angle.cos()), dim=-1).to(x.dtype)


class SinusoidTable(nn.Module):
    def __init__(self, d_model: int = 24) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, length: int) -> Tensor:
        inv = 10000.0 ** (-torch.arange(0, self.d_model, 2).double() / self.d_model)
        angle = torch.outer(torch.arange(length).double(), inv)
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


class SinusoidTable2(nn.Module):
    def __init__(self, d_model: int = 24) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, length: int) -> Tensor:
        even = 10000.0 ** (-torch.arange(0, self.d_model, 2).double() / self.d_model)
        odd = 10000.0 ** (-torch.arange(1, self.d_model, 2).double() / self.d_model)
        t = torch.arange(length).double()[:, None]
        return torch.stack(((t * even).sin(), (t * odd).cos()), dim=-1).flatten(1)


class LearnedPositions(nn.Module):
    def __init__(self, d_model: int, max_len: int = 64) -> None:
        super().__init__()
        self.weight = nn.Embedding(max_len, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight(torch.arange(x.size(1), device=x.device))


class LearnedPositions2(nn.Module):
    def __init__(self, d_model: int, max_len: int = 64) -> None:
        super().__init__()
        self.weight = nn.Embedding(max_len, d_model)

    def forward(self, x: Tensor) -> Tensor:
        pos = torch.zeros(x.size(1), dtype=torch.long, device=x.device)
        return x + self.weight(pos)


class LearnedPositions3(nn.Module):
    """One parameter for all places."""

    def __init__(self, dim: int, max_len: int = 64) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.randn(1, max_len, dim) * 0.02)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pos_embedding[:, : x.shape[1]]


CASES: list[Case] = [
    Case("PositionalEncoding", "positions", guess=True),
    Case("PositionalEncoding2", "positions", "sinusoid.frequency"),
    Case("PositionalEncoding3", "positions", "batch.mixing", also=("position.unused",)),
    Case("SinusoidalPositions", "positions"),
    Case("SinusoidalPositions2", "positions", "sinusoid.frequency", guess=True),
    Case("SinusoidTable", "positions"),
    Case("SinusoidTable2", "positions", "sinusoid.frequency"),
    Case("LearnedPositions", "positions", guess=True),
    Case("LearnedPositions2", "positions", "position.unused"),
    Case("LearnedPositions3", "positions"),
]
