"""Positions that are right, in the styles in which people write them."""

from __future__ import annotations

import math

import numpy as np
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


def get_sinusoid_encoding_table(n_position, d_hid):
    table = np.array([[p / 10000 ** (2 * (j // 2) / d_hid) for j in range(d_hid)] for p in range(n_position)])
    table[:, 0::2], table[:, 1::2] = np.sin(table[:, 0::2]), np.cos(table[:, 1::2])
    return table


def sinusoids_of_dim(dim, n_pos, base=10000.0):
    angle = torch.arange(n_pos)[:, None] * base ** (-torch.arange(0, dim, 2) / dim)
    return nn.Embedding.from_pretrained(torch.cat([angle.sin(), angle.cos()], -1), freeze=True)


def positions_of(m, k=16):
    angle = torch.arange(m)[:, None] * 10000.0 ** (-torch.arange(0, k, 2) / k)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


class OfIds(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.wpe = nn.Embedding(max_len, d_model)

    def forward(self, input_ids, input_pos=None):
        if input_pos is None:
            input_pos = torch.arange(input_ids.size(1), device=input_ids.device)
        return self.wpe(input_pos.expand(input_ids.shape))


class OfAxis(nn.Module):
    def __init__(self, dim, max_len=64):
        super().__init__()
        self.emb = nn.Embedding(max_len, dim)

    def forward(self, x, seq_dim):
        return self.emb(torch.arange(x.shape[seq_dim], device=x.device))


class WholeTable(nn.Module):
    def __init__(self, max_len, dim):
        super().__init__()
        self.pe = nn.Parameter(torch.randn(1, max_len, dim))

    def forward(self):
        return self.pe


class OfBatch(nn.Module):
    def __init__(self, max_len, dim):
        super().__init__()
        self.emb = nn.Embedding(max_len, dim)

    def forward(self, batch_size, seq_len):
        return self.emb.weight[:seq_len].expand(batch_size, -1, -1)


class ShortTutorial(nn.Module):
    """Time-major."""

    def __init__(self, d_model, max_len=60):
        super().__init__()
        self.register_buffer("pe", torch.as_tensor(get_sinusoid_encoding_table(max_len, d_model))[:, None])

    def forward(self, token_embedding):
        return token_embedding + self.pe[: token_embedding.size(0)]


class OfMask(nn.Embedding):
    def __init__(self, max_len, dim):
        self.offset = 2
        super().__init__(max_len + self.offset, dim)

    def forward(self, attention_mask, past_key_values_length=0):
        positions = attention_mask.long().cumsum(1) * attention_mask.long() - 1
        return super().forward(positions[:, past_key_values_length:] + self.offset)


def encode_positions(batch, T, C):
    return torch.as_tensor(get_sinusoid_encoding_table(T, C)).expand(batch, T, C)


class Tutorial(nn.Module):
    """Sequence-first, as nn.Transformer has it."""

    def __init__(self, d_model, max_len=512):
        super().__init__()
        angle = torch.arange(max_len)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        self.register_buffer("pe", torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, None])

    def forward(self, x):
        return x + self.pe[: x.size(0)]


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
    Case("get_sinusoid_encoding_table", "positions", guess=True),
    Case("sinusoids_of_dim", "positions"),
    Case("positions_of", "positions"),
    Case("OfIds", "positions"),
    Case("OfAxis", "positions"),
    Case("WholeTable", "positions"),
    Case("OfBatch", "positions"),
    Case("Tutorial", "positions"),
    Case("ShortTutorial", "positions"),
    Case("OfMask", "positions"),
    Case("encode_positions", "positions"),
]
