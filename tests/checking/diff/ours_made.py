"""Tiny models of ours with weights that are all unlike, and a GPT in the style of a well-known file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch

from clearhead.checking.diff.ours import ModelSide
from clearhead.formats.load import Loaded
from clearhead.formats.weights import own_tensors
from clearhead.models import choices
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, Sight
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text.numbers import NumberTokenizer

V, H, D, F, T, LIMIT = 23, 6, 48, 56, 11, 17

GPT = DecoderConfig(
    vocab=V, layers=2, heads=H, width=D, feedforward_width=F, context=LIMIT, qkv_bias=True, bias=True, tied=True
)
LLAMA = DecoderConfig(
    vocab=V,
    layers=2,
    heads=H,
    kv_heads=2,
    width=D,
    feedforward_width=F,
    context=LIMIT,
    activation=choices.SwiGLU(),
    norm=choices.RMSNorm(),
    positions=choices.Rotary(),
    tied=False,
    cycle=(Sight(window=4), Sight()),
)
BERT = EncoderConfig(
    vocab=V,
    layers=2,
    heads=H,
    width=D,
    feedforward_width=F,
    context=LIMIT,
    block=choices.PostNorm(),
    embedding_norm=True,
    qkv_bias=True,
    bias=True,
    head_bias=True,
    segments=2,
)
T5 = EncoderDecoderConfig(
    vocab=V,
    layers=2,
    encoder_layers=1,
    heads=H,
    width=D,
    feedforward_width=F,
    context=LIMIT,
    positions=choices.Relative(buckets=8, farthest=16),
    norm=choices.RMSNorm(),
    attention_scale=1.0,
)
CONFIGS = {"gpt": GPT, "llama": LLAMA, "bert": BERT, "t5": T5}


@cache
def side(name: str) -> ModelSide:
    """The model of that name in float64, no tensor as it is initialised."""
    config = CONFIGS[name]
    model = build(config, seed=3)
    drawn = torch.Generator().manual_seed(5)
    tensors = {
        key: x.double() + 0.3 * torch.randn(x.shape, generator=drawn).double() * (float(x.std()) or 1.0)
        for key, x in own_tensors(model).items()
    }
    return ModelSide(name, config, tensors)


def loaded(config: DecoderConfig, seed: int = 3) -> Loaded:
    """A model of ours as `load` gives it."""
    model = build(config, seed=seed).eval()
    drawn = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=drawn) * (float(p.std()) or 1.0))
    return Loaded(model, NumberTokenizer(config.vocab), config, Path("run"))


SOURCE = """
import math
import torch
import torch.nn as nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(48, 3 * 48)
        self.c_proj = nn.Linear(48, 48)
        self.register_buffer("bias", torch.tril(torch.ones(17, 17)).view(1, 1, 17, 17))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (each.view(B, T, 6, C // 6).transpose(1, 2) for each in self.c_attn(x).split(C, dim=2))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = nn.Linear(48, 56)
        self.c_proj = nn.Linear(56, 48)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(48), Attention()
        self.ln_2, self.mlp = nn.LayerNorm(48), MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size=23, block_size=17):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, 48)
        self.wpe = nn.Embedding(block_size, 48)
        self.h = nn.ModuleList([Block() for _ in range(2)])
        self.ln_f = nn.LayerNorm(48)
        self.lm_head = nn.Linear(48, vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(0, idx.size(1)))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))
"""
"""A GPT as many write it; its sizes are those of `GPT`."""
