"""grouped-query-attention-pytorch: grouped attention, layers, and a decoder of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "grouped-query-attention-pytorch"
D, H, K, V = 32, 4, 2, 61


def _formula() -> Any:
    from grouped_query_attention_pytorch.attention import scaled_dot_product_gqa  # noqa: PLC0415

    return scaled_dot_product_gqa


def _heads_third(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """Its axes are (rows, positions, heads, width)."""
    return _formula()(*(t.transpose(1, 2) for t in (q, k, v)), mask=mask)[0].transpose(1, 2)


def _attention(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from grouped_query_attention_pytorch.attention import MultiheadGQA  # noqa: PLC0415

        return MultiheadGQA(D, H, K, **options)

    return make


def _layer(name: str) -> Callable[[], Any]:
    def make() -> Any:
        from grouped_query_attention_pytorch import transformer  # noqa: PLC0415

        return getattr(transformer, name)(D, H, K, 48)

    return make


def _lm() -> Any:
    from grouped_query_attention_pytorch.transformer import GQATransformerLM  # noqa: PLC0415

    return GQATransformerLM(V, D, H, K, 2, 2, 48)


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "scaled_dot_product_gqa", lambda: _heads_third, "sdpa"),
    Subject(PACKAGE, "MultiheadGQA", _attention(), "attention"),
    Subject(
        PACKAGE, "MultiheadGQA, dropout", _attention(dropout=0.2), "attention", confirmed=("dropout.never-active",)
    ),
    Subject(PACKAGE, "MultiheadGQA, no norm", _attention(layer_norm=False), "attention"),
    Subject(PACKAGE, "GQATransformerEncoderLayer", _layer("GQATransformerEncoderLayer"), "block"),
    Subject(PACKAGE, "GQATransformerDecoderLayer", _layer("GQATransformerDecoderLayer"), "block"),
    Subject(PACKAGE, "GQATransformerLM", _lm, "lm", {"vocab": V}),
]
