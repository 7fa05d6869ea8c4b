"""minibert: attention without heads, its positions, and the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "minibert"
D, V = 32, 61


def _attention(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from minibert.attention import Attention  # noqa: PLC0415

        return Attention(D, D, **options)

    return make


def _plain() -> Any:
    from minibert.attention import NonTransformingAttention  # noqa: PLC0415

    return NonTransformingAttention(D)


def _positions(kind: str) -> Callable[[], Any]:
    def make() -> Any:
        from minibert.embeddings import PositionalEmbedding, PositionalEmbeddingType  # noqa: PLC0415

        return PositionalEmbedding(D, 64, PositionalEmbeddingType[kind])

    return make


def _embedding(kind: str) -> Callable[[], Any]:
    def make() -> Any:
        from minibert.attention import AttentionEmbedding  # noqa: PLC0415
        from minibert.embeddings import PositionalEmbeddingType  # noqa: PLC0415

        return AttentionEmbedding(D, V, max_seq_len=64, position_type=PositionalEmbeddingType[kind])

    return make


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "Attention", _attention(), "attention", {"heads": 1}),
    Subject(PACKAGE, "Attention, key_is_query", _attention(key_is_query=True), "attention", {"heads": 1}),
    Subject(
        PACKAGE,
        "NonTransformingAttention",
        _plain,
        "attention",
        {"heads": 1, "width": D},
        blind={"scale.missing": "there are no projections from which scores could be followed"},
    ),
    Subject(
        PACKAGE,
        "PositionalEmbedding, trained",
        _positions("TRAINED"),
        "positions",
        blind={"batch.mixing": "its table has one row, or the same in all"},
    ),
    Subject(PACKAGE, "PositionalEmbedding, fixed", _positions("FIXED"), "positions", confirmed=("sinusoid.frequency",)),
    Subject(PACKAGE, "AttentionEmbedding", _embedding("TRAINED"), "encoder", {"vocab": V}),
]
