"""The grid: named decoders that differ in every choice there is, each axis of another size, weights large enough to matter.

Not the product of all choices but a cover: every kernel meets every kind of position and every number of key/value heads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.models import build as factory
from clearhead.models import choices as c
from clearhead.models.config import DecoderConfig, Sight
from clearhead.models.decoder import Decoder

V, B, T, CONTEXT = 11, 3, 13, 16
BASE = DecoderConfig(
    vocab=V, layers=2, heads=4, kv_heads=2, width=24, feedforward_width=40, context=CONTEXT, kernel=c.Visible()
)
FUSED = c.Fused()
ROTARY = c.Rotary()
CHANGES: dict[str, dict[str, Any]] = {
    "learned": {},
    "learned, fused, MHA": {"kernel": FUSED, "kv_heads": 4, "activation": c.ReLU()},
    "learned, fused, MQA": {"kernel": FUSED, "kv_heads": 1, "activation": c.GELUTanh(), "norm": c.LayerNorm(bias=False)},
    "no positions": {"positions": c.NoPositions(), "kv_heads": 4},
    "no positions, fused": {"positions": c.NoPositions(), "kernel": FUSED, "kv_heads": 1, "norm": c.RMSNorm()},
    "sinusoidal, post-norm": {
        "positions": c.Sinusoidal(), "kernel": FUSED, "block": c.PostNorm(), "activation": c.ReLU(), "bias": True,
        "output_bias": False,
    },
    "sinusoidal halves": {"positions": c.Sinusoidal(base=100.0, halves=True), "kv_heads": 1, "embedding_norm": True},
    "rotary, fused": {"positions": ROTARY, "kernel": FUSED, "norm": c.RMSNorm(), "activation": c.SwiGLU()},
    "rotary, MHA": {"positions": c.Rotary(theta=50.0), "kv_heads": 4, "activation": c.ReLUSquared()},
    "rotary interleaved": {"positions": c.Rotary(interleaved=True), "kernel": FUSED, "kv_heads": 1},
    "rotary partial, parallel": {
        "positions": c.Rotary(fraction=0.67, interleaved=True), "block": c.Parallel(shared=True), "kernel": FUSED,
        "norm": c.RMSNorm(), "activation": c.SwiGLU(), "kv_heads": 4,
    },
    "linear": {"positions": c.Rotary(scaling=c.Linear(2.0)), "kv_heads": 1},
    "YaRN": {"positions": c.Rotary(scaling=c.YaRN(4.0, 8)), "kernel": FUSED, "tied": False},
    "llama3": {
        "positions": c.Rotary(scaling=c.Llama3(original_context=16)), "norm": c.RMSNorm(), "activation": c.SwiGLU(),
    },
    "ALiBi": {"positions": c.ALiBi(), "kernel": FUSED, "norm": c.RMSNorm(), "scale_head": True},
    "ALiBi, MQA": {"positions": c.ALiBi(), "kv_heads": 1, "block": c.PostNorm()},
    "window": {"positions": ROTARY, "window": 3},
    "window, fused, learned": {"window": 4, "kernel": FUSED, "kv_heads": 4},
    "window, ALiBi": {"positions": c.ALiBi(), "window": 3, "kernel": FUSED, "kv_heads": 1},
    "cycle": {
        "positions": ROTARY, "layers": 3, "cycle": (Sight(window=3), Sight(positions=c.NoPositions())),
        "kernel": FUSED,
    },
    "cycle of windows": {"positions": ROTARY, "layers": 3, "cycle": (Sight(window=2), Sight(window=5))},
    "soft-cap": {
        "positions": ROTARY, "softcap": 5.0, "kernel": c.Auto(), "block": c.AroundNorm(), "activation": c.GEGLU(),
        "norm": c.RMSNorm(),
    },
    "sinks": {"positions": ROTARY, "sinks": True, "kernel": c.Auto(), "kv_heads": 1, "window": 5},
    "around, QK-norm": {
        "positions": ROTARY, "block": c.AroundNorm(), "norm": c.RMSNorm(offset=True), "qk_norm": True,
        "scale_embedding": True, "activation": c.GEGLUTanh(), "kernel": FUSED,
    },
    "parallel, biases": {
        "block": c.Parallel(), "activation": c.ReLUSquared(), "bias": True, "qkv_bias": True, "kernel": FUSED,
    },
    "untied, biases": {"tied": False, "bias": True, "qkv_bias": True, "head_bias": True, "kv_heads": 4},
    "free head width": {
        "positions": ROTARY, "head_width": 10, "attention_scale": 0.5, "qk_norm": True, "kernel": FUSED, "kv_heads": 1,
    },
}  # fmt: skip
VARIANTS: dict[str, DecoderConfig] = {name: replace(BASE, **changes) for name, changes in CHANGES.items()}


def those(**wanted: object) -> list[str]:
    """The variants whose configuration has these values; a class asks for any of its kind."""
    return [
        name
        for name, config in VARIANTS.items()
        if all(
            isinstance(getattr(config, field), value) if isinstance(value, type) else getattr(config, field) == value
            for field, value in wanted.items()
        )
    ]


def redrawn(model: nn.Module) -> nn.Module:
    """In float64, not dropping, every parameter drawn anew with deviation 0.3, so that nothing is trivially small."""
    generator = torch.Generator().manual_seed(3)
    model = model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3, generator=generator)
    return model


def model_of(variant: str | DecoderConfig, **changes: object) -> Decoder:
    """The model of a variant, or of a configuration; `changes` replace fields."""
    config = VARIANTS[variant] if isinstance(variant, str) else variant
    model = redrawn(factory.build(replace(config, **changes), seed=1))
    assert isinstance(model, Decoder)
    return model


def ids_of(rows: int = B, length: int = T, vocab: int = V) -> Tensor:
    """Token ids (rows,length), the same at every call."""
    return torch.randint(vocab, (rows, length), generator=torch.Generator().manual_seed(5))


def input_of(model: Decoder, rows: int = B, length: int = T) -> Tensor:
    """Something for a block of the model to work on, (rows,length,D) in float64."""
    generator = torch.Generator().manual_seed(7)
    return torch.randn(rows, length, model.embedding.embedding_dim, dtype=torch.float64, generator=generator)
