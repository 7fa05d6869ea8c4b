"""fair-esm: attention with rotary positions, layers, norms, positions and the two models of proteins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "fair-esm"
D, H = 32, 4


def _attention(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from esm.multihead_attention import MultiheadAttention  # noqa: PLC0415

        return MultiheadAttention(D, H, self_attention=True, **options)

    return make


def _layer(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from esm.modules import TransformerLayer  # noqa: PLC0415

        return TransformerLayer(D, 48, H, **options)

    return make


def _norm() -> Any:
    from esm.modules import ESM1LayerNorm  # noqa: PLC0415

    return ESM1LayerNorm(D)


def _sinusoids() -> Any:
    from esm.modules import SinusoidalPositionalEmbedding  # noqa: PLC0415

    return SinusoidalPositionalEmbedding(D, 1)


def _rotary() -> Any:
    from esm.rotary_embedding import RotaryEmbedding  # noqa: PLC0415

    return RotaryEmbedding(8)


def _esm2() -> Any:
    from esm.model.esm2 import ESM2  # noqa: PLC0415

    return ESM2(2, D, H)


def _rows_second(module: Any, x: Any) -> Any:
    """Positions first."""
    return module(x.transpose(0, 1))[0].transpose(0, 1)


def _read(module: Any, ids: Any) -> Any:
    """Ids of residues alone: those of pads and masks mean something else."""
    return module(ids % 20 + 4)["logits"]


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "MultiheadAttention", _attention(), "attention"),
    Subject(
        PACKAGE,
        "MultiheadAttention, rotary",
        _attention(use_rotary_embeddings=True),
        "attention",
        confirmed=("mask.empty-row",),
    ),
    Subject(PACKAGE, "MultiheadAttention, add_bias_kv", _attention(add_bias_kv=True), "attention"),
    Subject(PACKAGE, "TransformerLayer", _layer(add_bias_kv=False), "block", {"call": _rows_second}),
    Subject(
        PACKAGE,
        "TransformerLayer, rotary, norm of ESM-1b",
        _layer(add_bias_kv=False, use_esm1b_layer_norm=True, use_rotary_embeddings=True),
        "block",
        {"call": _rows_second},
    ),
    Subject(PACKAGE, "ESM1LayerNorm", _norm, "norm"),
    Subject(
        PACKAGE,
        "SinusoidalPositionalEmbedding",
        _sinusoids,
        "positions",
        blind={"batch.mixing": "its table has one row, or the same in all"},
    ),
    Subject(PACKAGE, "RotaryEmbedding", _rotary, "rotary"),
    Subject(PACKAGE, "ESM2", _esm2, "encoder", {"vocab": 33, "call": _read}),
]
