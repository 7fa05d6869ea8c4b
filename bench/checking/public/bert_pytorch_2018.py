"""bert-pytorch: a BERT of 2018, its parts one by one."""

from __future__ import annotations

from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "bert-pytorch"
D, H, V = 32, 4, 61
NORM = ("norm.unbiased-variance", "norm.eps-placement")


def _attention() -> Any:
    from bert_pytorch.model.attention import MultiHeadedAttention  # noqa: PLC0415

    return MultiHeadedAttention(H, D)


def _formula() -> Any:
    from bert_pytorch.model.attention import Attention  # noqa: PLC0415

    return Attention()


def _block() -> Any:
    from bert_pytorch.model.transformer import TransformerBlock  # noqa: PLC0415

    return TransformerBlock(D, H, 48, 0.1)


def _norm() -> Any:
    from bert_pytorch.model.utils import LayerNorm  # noqa: PLC0415

    return LayerNorm(D)


def _positions() -> Any:
    from bert_pytorch.model.embedding.position import PositionalEmbedding  # noqa: PLC0415

    return PositionalEmbedding(D, 64)


def _bert() -> Any:
    from bert_pytorch.model import BERT  # noqa: PLC0415

    return BERT(V, D, 2, H)


def _segmented(module: Any, ids: Any) -> Any:
    """Ids of one segment."""
    return module(ids, ids.new_ones(ids.shape))


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "MultiHeadedAttention", _attention, "attention"),
    Subject(PACKAGE, "Attention", _formula, "sdpa"),
    Subject(PACKAGE, "TransformerBlock", _block, "block", confirmed=NORM),
    Subject(PACKAGE, "LayerNorm", _norm, "norm", confirmed=NORM),
    Subject(
        PACKAGE,
        "PositionalEmbedding",
        _positions,
        "positions",
        blind={"batch.mixing": "its table has one row, which all rows share"},
    ),
    Subject(PACKAGE, "BERT", _bert, "encoder", {"vocab": V, "call": _segmented}, NORM),
]
