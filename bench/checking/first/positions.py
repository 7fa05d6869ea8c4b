"""Positions with planted faults, in the styles in which people write them."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from bench.checking.case import Case


class OwnFrequencyEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        pe = torch.zeros(max_len, d_model)
        for pos in range(max_len):
            for i in range(0, d_model, 2):
                pe[pos, i] = math.sin(pos / (10000 ** ((2 * i) / d_model)))
                pe[pos, i + 1] = math.cos(pos / (10000 ** ((2 * (i + 1)) / d_model)))
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]


def sinusoid_table(length, d_model):
    position = torch.arange(length).float()[:, None]
    column = torch.arange(d_model).float()[None]
    angle = position / torch.pow(10000, column / d_model)
    angle[:, 0::2], angle[:, 1::2] = torch.sin(angle[:, 0::2]), torch.cos(angle[:, 1::2])
    return angle


class SteppedTwice(nn.Module):
    """Sinusoidal positions."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        i = torch.arange(0, self.dim, 2, device=x.device)
        angle = torch.arange(x.shape[1], device=x.device)[:, None] / 10000 ** (2 * i / self.dim)
        return x + torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


class NotDivided(nn.Module):
    def __init__(self, d_model, max_len=50):
        super().__init__()
        div = torch.exp(torch.arange(0, d_model, 2).double() * (math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model).double()
        pe[:, 0::2] = torch.sin(torch.arange(max_len)[:, None] * div)
        pe[:, 1::2] = torch.cos(torch.arange(max_len)[:, None] * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.shape[1]]


def base_and_exponent_swapped(length, dim):
    i = torch.arange(dim // 2).float()
    angle = torch.arange(length).float()[:, None] / torch.pow(2 * i / dim, 10000)
    return torch.cat([angle.sin(), angle.cos()], -1)


class AddedToNothing(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        self.pos = nn.Embedding(max_len, d_model)

    def forward(self, x):
        return x + self.pos(torch.zeros(x.size(1), dtype=torch.long, device=x.device))


class PositionDropped(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, max_len, d_model) * 0.02)

    def forward(self, x):
        pos = self.table[:, : x.size(1)].mean(dim=1, keepdim=True)
        return x + pos


class CountedLate(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        self.pos_emb = nn.Embedding(max_len, d_model)

    def forward(self, x):
        return x + self.pos_emb(torch.arange(1, x.size(1) + 1, device=x.device))


class SinusoidFromOne(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.d_model = d_model

    def forward(self, x):
        t = torch.arange(x.size(1), device=x.device).float() + 1
        inv = torch.exp(-math.log(10000.0) * torch.arange(0, self.d_model, 2, device=x.device).float() / self.d_model)
        angle = t[:, None] * inv
        return x + torch.cat([angle.sin(), angle.cos()], -1)


class StartForgotten(nn.Module):
    def __init__(self, n_embd, block_size=64):
        super().__init__()
        self.wpe = nn.Embedding(block_size, n_embd)

    def forward(self, x, start_pos=0):
        return x + self.wpe(torch.arange(x.size(1), device=x.device))


class ByRow(nn.Module):
    """Adds positions to x of shape (batch, seq_len, d_model)."""

    def __init__(self, d_model, max_len=100):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]


class LearnedByRow(nn.Module):
    def __init__(self, d_model, max_len=64, batch_first=True):
        super().__init__()
        self.batch_first = batch_first
        self.emb = nn.Embedding(max_len, d_model)

    def forward(self, x):
        return x + self.emb(torch.arange(x.size(0), device=x.device)).unsqueeze(1)


class PlainTensorTable(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        t = torch.arange(max_len)[:, None] * torch.exp(-math.log(10000.0) * torch.arange(0, d_model, 2) / d_model)
        self.pe = torch.stack([t.sin(), t.cos()], -1).flatten(-2)

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class StatedBase(nn.Module):
    def __init__(self, dim, base=1000.0):
        super().__init__()
        self.dim, self.base = dim, base

    def forward(self, length: int):
        angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, self.dim, 2) / self.dim)
        return torch.cat([angle.sin(), angle.cos()], -1)


class DividedOutside(nn.Module):
    def __init__(self, d_model, max_len=80):
        super().__init__()
        angle = torch.arange(max_len)[:, None] * (1.0 / 10000 ** torch.arange(0, d_model, 2).float() / d_model)
        self.register_buffer("pe", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class LogarithmToTen(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.speeds = [math.exp(-2 * i * math.log10(10000) / dim) for i in range(dim // 2)]

    def forward(self, x):
        angle = torch.arange(x.size(1), device=x.device)[:, None] * torch.tensor(self.speeds, device=x.device)
        return x + torch.cat([angle.sin(), angle.cos()], -1)


class GrowingInFloat(nn.Module):
    def __init__(self, d_model, max_len=60):
        super().__init__()
        div = torch.exp(torch.arange(0, d_model, 2).float() * (math.log(10000.0) / d_model))
        angle = torch.arange(max_len).float()[:, None] * div
        self.register_buffer("pe", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))

    def forward(self, x):
        return x + self.pe[None, : x.shape[1]]


def get_sinusoid_encoding_table(n_position, d_hid):
    table = np.array([[p / 10000 ** (2 * j / d_hid) for j in range(d_hid)] for p in range(n_position)])
    table[:, 0::2], table[:, 1::2] = np.sin(table[:, 0::2]), np.cos(table[:, 1::2])
    return torch.from_numpy(table)[None]


def table_in_numpy(length, dim=16):
    angle = np.arange(length)[:, None] / 10000 ** (np.arange(dim // 2) / dim)
    return np.concatenate([np.sin(angle), np.cos(angle)], -1)


def halved_twice(n, d):
    angle = np.arange(n)[:, None] / np.power(10000, np.arange(d // 2) / d)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(n, d)


class ByHelper(nn.Module):
    def __init__(self, d_model, max_len=45):
        super().__init__()
        self.register_buffer("pe", torch.as_tensor(halved_twice(max_len, d_model)))

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class SineTwice(nn.Module):
    def __init__(self, d_model, max_len=50):
        super().__init__()
        angle = torch.arange(max_len)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(angle), torch.sin(angle)
        self.register_buffer("pe", pe[None])

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]


class RowsAmongOthers(nn.Module):
    def __init__(self, max_len, dim):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, 1, dim))

    def forward(self, x):
        return x + self.table[: len(x)]


CASES = [
    Case("OwnFrequencyEncoding", "positions", "sinusoid.frequency", guess=True),
    Case("sinusoid_table", "positions", "sinusoid.frequency", guess=True),
    Case("SteppedTwice", "positions", "sinusoid.frequency"),
    Case("NotDivided", "positions", "sinusoid.frequency"),
    Case("base_and_exponent_swapped", "positions", "sinusoid.frequency"),
    Case("StatedBase", "positions", "sinusoid.frequency"),
    Case("AddedToNothing", "positions", "position.unused"),
    Case("PositionDropped", "positions", "position.unused"),
    Case("CountedLate", "positions", "position.offset"),
    Case("SinusoidFromOne", "positions", "position.offset"),
    Case("StartForgotten", "positions", "position.offset"),
    Case("ByRow", "positions", "batch.mixing"),
    Case("LearnedByRow", "positions", "batch.mixing"),
    Case("PlainTensorTable", "positions", "device.hard-coded", ("parameter.unregistered",)),
    Case("DividedOutside", "positions", "sinusoid.frequency"),
    Case("LogarithmToTen", "positions", "sinusoid.frequency"),
    Case("GrowingInFloat", "positions", "sinusoid.frequency"),
    Case("get_sinusoid_encoding_table", "positions", "sinusoid.frequency", guess=True),
    Case("table_in_numpy", "positions", "sinusoid.frequency"),
    Case("RowsAmongOthers", "positions", "batch.mixing"),
    Case("ByHelper", "positions", "sinusoid.frequency"),
    Case("SineTwice", "positions", "sinusoid.frequency"),
]
