"""Positions that are right, in the styles in which people write them."""

from __future__ import annotations

import math

import torch
from torch import nn

from bench.checking.case import Case


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 5000):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        """x: (seq_len, batch_size, embedding_dim)."""
        return self.dropout(x + self.pe[: x.size(0)])


class AnnotatedEncoding(nn.Module):
    def __init__(self, d_model, dropout, max_len=128):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)].requires_grad_(False))


class ScaledInput(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.d_model = d_model

    def forward(self, x):
        half = self.d_model // 2
        inv = torch.exp(-math.log(10000.0) / (half - 1) * torch.arange(half, device=x.device))
        angle = torch.arange(x.size(1), device=x.device)[:, None] * inv
        return x * math.sqrt(self.d_model) + torch.cat([angle.sin(), angle.cos()], -1)


class GPTPositions(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.wpe = nn.Embedding(config.block_size, config.n_embd)

    def forward(self, x):
        return x + self.wpe(torch.arange(x.size(1), device=x.device))


class ViTPositions(nn.Module):
    def __init__(self, num_positions, dim):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.zeros(1, num_positions, dim))

    def forward(self, x):
        return x + self.pos_embedding[:, : x.size(1)]


class FairseqLearned(nn.Embedding):
    """Positions start behind the padding index, as in fairseq."""

    def __init__(self, max_len, dim, padding_idx=1):
        self.offset = padding_idx + 1
        super().__init__(max_len + self.offset, dim)

    def forward(self, x):
        return x + super().forward(torch.arange(x.size(1), device=x.device) + self.offset)


class WithStart(nn.Module):
    def __init__(self, dim, max_len=64):
        super().__init__()
        self.emb = nn.Embedding(max_len, dim)

    def forward(self, x, start_pos: int = 0):
        return x + self.emb(torch.arange(start_pos, start_pos + x.shape[1], device=x.device))


def sinusoids(length, channels, max_timescale=10000):
    inc = math.log(max_timescale) / (channels // 2 - 1)
    inv = torch.exp(-inc * torch.arange(channels // 2))
    angle = torch.arange(length)[:, None] * inv[None]
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)


def cos_first_table(seq_len, d_model, base=10000.0):
    angle = torch.arange(seq_len)[:, None] * base ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angle.cos(), angle.sin()], -1).flatten(-2)


class TableOfLength(nn.Module):
    def __init__(self, d_model, theta=500.0):
        super().__init__()
        self.theta = theta
        self.register_buffer("inv", theta ** (-torch.arange(0, d_model, 2).float() / d_model))

    def forward(self, length):
        angle = torch.arange(length, device=self.inv.device)[:, None] * self.inv
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


CASES = [
    Case("PositionalEncoding", "positions", guess=True),
    Case("AnnotatedEncoding", "positions", guess=True),
    Case("ScaledInput", "positions"),
    Case("GPTPositions", "positions", guess=True),
    Case("ViTPositions", "positions", guess=True),
    Case("FairseqLearned", "positions"),
    Case("WithStart", "positions"),
    Case("sinusoids", "positions", guess=True),
    Case("cos_first_table", "positions"),
    Case("TableOfLength", "positions"),
]
