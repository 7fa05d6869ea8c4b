"""The grid of encoders and encoder-decoders: every kind of position meets every kernel, every kind of block and of heads."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from clearhead.models import choices as c
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.tap import Tap
from tests.equalities.variants import B, T, V, redrawn

# Sources are shorter than targets in most checks, so that a triangle in cross-attention would hide and a length would show.
M, SOURCE_VOCAB, SEGMENTS, CONTEXT = 7, 13, 5, 19
SHARED = {
    "layers": 2, "heads": 4, "kv_heads": 2, "width": 24, "feedforward_width": 40, "context": CONTEXT, "kernel": c.Visible(),
}  # fmt: skip
FUSED, AROUND, POST, RMS, BIASES = (
    c.Fused(),
    c.AroundNorm(),
    c.PostNorm(),
    c.RMSNorm(),
    {"bias": True, "qkv_bias": True},
)
RELATIVE = c.Relative(buckets=8, farthest=9)

ENCODER = EncoderConfig(vocab=V, head=c.Features(), **SHARED)
ENCODER_CHANGES: dict[str, dict[str, Any]] = {
    "learned": {"head": c.MaskedToken()},
    "learned, fused, MHA": {"kernel": FUSED, "kv_heads": 4, "activation": c.ReLU()},
    "learned, blockwise, MQA": {"kernel": c.Blockwise(3), "kv_heads": 1, "segments": SEGMENTS},
    "BERT": {
        "kernel": FUSED, "block": POST, "kv_heads": 4, "segments": SEGMENTS, "embedding_norm": True, "head_bias": True,
        "head": c.MaskedToken(), **BIASES,
    },
    "sinusoidal, fused, around": {"positions": c.Sinusoidal(), "kernel": FUSED, "block": AROUND, "kv_heads": 1},
    "sinusoidal, blockwise, post-norm": {"positions": c.Sinusoidal(halves=True), "kernel": c.Blockwise(4), "block": POST},
    "sinusoidal, parallel": {"positions": c.Sinusoidal(), "block": c.Parallel(), "kv_heads": 4},
    "rotary, parallel": {"positions": c.Rotary(), "block": c.Parallel(shared=True), "norm": RMS},
    "rotary, fused": {"positions": c.Rotary(interleaved=True), "kernel": FUSED, "kv_heads": 4, "activation": c.SwiGLU()},
    "rotary, blockwise, QK-norm": {"positions": c.Rotary(fraction=0.67), "kernel": c.Blockwise(5), "qk_norm": True, "kv_heads": 1},
    "ALiBi, post-norm": {"positions": c.ALiBi(), "block": POST, "kv_heads": 1},
    "ALiBi, fused": {"positions": c.ALiBi(), "kernel": FUSED, "norm": RMS},
    "ALiBi, blockwise, parallel": {"positions": c.ALiBi(), "kernel": c.Blockwise(1), "block": c.Parallel(), "kv_heads": 4},
    "relative": {"positions": RELATIVE, "norm": RMS, "activation": c.GEGLU(), "attention_scale": 1.0},
    "relative, fused, MHA": {"positions": RELATIVE, "kernel": FUSED, "kv_heads": 4, "head": c.MaskedToken(), "tied": False},
    "relative, blockwise, around": {"positions": RELATIVE, "kernel": c.Blockwise(2), "block": AROUND, "kv_heads": 1},
    "no positions": {"positions": c.NoPositions(), "kv_heads": 4, "scale_embedding": True},
    "no positions, fused, post-norm": {"positions": c.NoPositions(), "kernel": FUSED, "block": POST, "kv_heads": 1},
    "no positions, blockwise, parallel": {
        "positions": c.NoPositions(), "kernel": c.Blockwise(6), "block": c.Parallel(), "segments": SEGMENTS,
    },
    "soft-cap": {"positions": c.Rotary(), "softcap": 5.0, "kernel": c.Auto(), "block": AROUND},
    "soft-cap, blockwise": {"positions": c.ALiBi(), "softcap": 4.0, "kernel": c.Blockwise(4), "kv_heads": 1},
    "sinks": {"positions": c.Rotary(), "sinks": True, "kernel": c.Auto(), "kv_heads": 1},
    "sinks, blockwise": {"positions": RELATIVE, "sinks": True, "kernel": c.Blockwise(3), "kv_heads": 4},
    "first": {"head": c.Pooled(), "kernel": FUSED, "positions": c.Rotary()},
    "first, dense": {"head": c.Pooled(c.First(), dense=True), "block": POST, "segments": SEGMENTS, **BIASES},
    "mean": {"head": c.Pooled(c.Mean()), "kernel": c.Blockwise(4), "positions": RELATIVE},
    "max, dense": {"head": c.Pooled(c.Max(), dense=True), "positions": c.NoPositions()},
}  # fmt: skip
ENCODERS: dict[str, EncoderConfig] = {name: replace(ENCODER, **changes) for name, changes in ENCODER_CHANGES.items()}

PAIR = EncoderDecoderConfig(vocab=V, source_vocab=SOURCE_VOCAB, encoder_layers=1, source_context=17, **SHARED)
PAIR_CHANGES: dict[str, dict[str, Any]] = {
    "learned": {},
    "original": {
        "positions": c.Sinusoidal(), "kernel": FUSED, "block": POST, "kv_heads": 4, "activation": c.ReLU(),
        "scale_embedding": True, "source_vocab": None, **BIASES,
    },
    "T5": {
        "positions": RELATIVE, "norm": RMS, "attention_scale": 1.0, "kv_heads": 4, "activation": c.ReLU(), "source_vocab": None,
        "encoder_layers": 3,
    },
    "T5, blockwise, MQA": {"positions": RELATIVE, "norm": RMS, "kernel": c.Blockwise(3), "activation": c.GEGLU(), "kv_heads": 1},
    "BART": {"block": POST, "embedding_norm": True, "kernel": FUSED, "kv_heads": 4, "head_bias": True, **BIASES},
    "learned, blockwise, post-norm": {"kernel": c.Blockwise(4), "block": POST, "kv_heads": 1},
    "sinusoidal, around": {"positions": c.Sinusoidal(halves=True), "block": AROUND, "kv_heads": 1, "norm": RMS},
    "rotary, fused": {"positions": c.Rotary(), "kernel": FUSED, "norm": RMS, "activation": c.SwiGLU()},
    "rotary, post-norm": {"positions": c.Rotary(interleaved=True), "block": POST, "kv_heads": 4},
    "rotary, blockwise, QK-norm": {"positions": c.Rotary(), "kernel": c.Blockwise(5), "block": AROUND, "qk_norm": True},
    "ALiBi": {"positions": c.ALiBi()},
    "ALiBi, fused, MQA": {"positions": c.ALiBi(), "kernel": FUSED, "kv_heads": 1, "block": AROUND},
    "relative, fused": {"positions": RELATIVE, "kernel": FUSED, "block": POST, "encoder_layers": 2},
    "no positions, fused": {"positions": c.NoPositions(), "kernel": FUSED, "kv_heads": 1, "qkv_bias": True},
    "soft-cap": {"positions": c.Rotary(), "softcap": 5.0, "kernel": c.Auto(), "block": AROUND},
    "soft-cap, blockwise": {"softcap": 4.0, "kernel": c.Blockwise(2), "kv_heads": 4},
    "sinks": {"positions": c.NoPositions(), "sinks": True, "kernel": c.Auto(), "kv_heads": 1},
    "sinks, blockwise": {"positions": RELATIVE, "sinks": True, "kernel": c.Blockwise(4), "block": POST},
    "untied, free head width": {
        "tied": False, "head_width": 10, "attention_scale": 0.5, "kernel": FUSED, "head_bias": True, "encoder_layers": None,
    },
}  # fmt: skip
PAIRS: dict[str, EncoderDecoderConfig] = {name: replace(PAIR, **changes) for name, changes in PAIR_CHANGES.items()}


def encoder_of(variant: str, **changes: object) -> Encoder:
    """The encoder of a variant; `changes` replace fields."""
    model = redrawn(build(replace(ENCODERS[variant], **changes), seed=1))
    assert isinstance(model, Encoder)
    return model


def pair_of(variant: str, **changes: object) -> EncoderDecoder:
    """The encoder-decoder of a variant; `changes` replace fields."""
    model = redrawn(build(replace(PAIRS[variant], **changes), seed=1))
    assert isinstance(model, EncoderDecoder)
    return model


def drawn(rows: int, length: int, below: int, seed: int = 5) -> Tensor:
    """Whole numbers (rows,length), the same at every call."""
    return torch.randint(below, (rows, length), generator=torch.Generator().manual_seed(seed))


def source_of(variant: str, rows: int = B, length: int = M) -> Tensor:
    """Source ids that the variant knows."""
    return drawn(rows, length, PAIRS[variant].encoder.vocab, seed=6)


def target_of(rows: int = B, length: int = T) -> Tensor:
    """Target ids."""
    return drawn(rows, length, V)


def segments_of(variant: str, ids: Tensor) -> Tensor | None:
    """A segment for each token, by its place, for models that have them."""
    return drawn(*ids.shape, SEGMENTS, seed=8) if ENCODERS[variant].segments else None


def sides(length: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Three rows with padding on the left, on the right, on both sides; row 0 is full. And where each row's tokens lie."""
    place = torch.arange(length)
    for first, end in (
        ([0, 2, 5], [length] * 3),
        ([0] * 3, [length, length - 1, length - 4]),
        ([0, 1, 2], [length, length - 1, length - 3]),
    ):
        yield (
            (place >= torch.tensor(first)[:, None]) & (place < torch.tensor(end)[:, None]),
            torch.tensor([first, end]).T,
        )


def padded(ids: Tensor, left: int, right: int) -> tuple[Tensor, Tensor]:
    """The rows with padding of token 0 added on either side, and which tokens are real."""
    rows, length = ids.shape
    real = torch.zeros(rows, left + length + right, dtype=torch.bool)
    real[:, left : left + length] = True
    whole = torch.zeros(real.shape, dtype=ids.dtype)
    whole[:, left : left + length] = ids
    return whole, real


class Leaves(Tap):
    """A tap that cuts the named tensors off from what made them, to differentiate to them.

    Args:
        names: in full.
    """

    def __init__(self, *names: str) -> None:
        self.names, self.prefix = names, ""
        self.tensors: dict[str, Tensor] = {}

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        whole = self.prefix + name
        if whole not in self.names:
            return tensor
        self.tensors[whole] = tensor.detach().requires_grad_()
        return self.tensors[whole]

    def within(self, scope: str) -> Leaves:
        inner = copy.copy(self)
        inner.prefix = f"{self.prefix}{scope}."
        return inner


def reached(out: Tensor, leaf: Tensor) -> Tensor:
    """Which tokens of each row a random sum of `out` depends on, by its gradient: (B,length) booleans."""
    direction = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(4))
    (gradient,) = torch.autograd.grad((out * direction).sum(), leaf, retain_graph=True, materialize_grads=True)
    return (gradient != 0).any(-1)
