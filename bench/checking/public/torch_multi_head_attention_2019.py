"""torch-multi-head-attention and torch-layer-normalization, of one author."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.subject import Subject

D, H = 32, 4


def _attention(activation: Any = None) -> Callable[[], Any]:
    def make() -> Any:
        from torch_multi_head_attention import MultiHeadAttention  # noqa: PLC0415

        return MultiHeadAttention(D, H, activation=activation)

    return make


def _activated() -> Any:
    from torch_multi_head_attention import MultiHeadAttention  # noqa: PLC0415

    return MultiHeadAttention(D, H)


def _formula() -> Any:
    from torch_multi_head_attention import ScaledDotProductAttention  # noqa: PLC0415

    return ScaledDotProductAttention()


def _norm() -> Any:
    from torch_layer_normalization import LayerNormalization  # noqa: PLC0415

    return LayerNormalization(D)


SUBJECTS: list[Subject] = [
    Subject(
        "torch-multi-head-attention",
        "MultiHeadAttention, no activation",
        _attention(),
        "attention",
        confirmed=("mask.wrong-row",),
    ),
    Subject("torch-multi-head-attention", "MultiHeadAttention", _activated, "attention", confirmed=("mask.wrong-row",)),
    Subject("torch-multi-head-attention", "ScaledDotProductAttention", _formula, "sdpa"),
    Subject("torch-layer-normalization", "LayerNormalization", _norm, "norm"),
]
