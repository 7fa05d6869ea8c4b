"""transformer-pytorch: an encoder and decoder with a cache of their own."""

from __future__ import annotations

from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "transformer-pytorch"
D, H, V = 32, 4, 61


def _transformer() -> Any:
    from transformer.model.transformer import Transformer  # noqa: PLC0415

    return Transformer(V, V, 0, D, 48, 2, H, 0.1, 64, True, True)


def _scored(module: Any, given: Any) -> Any:
    """Whole sentences: their lengths are those of the tensors."""
    import torch  # noqa: PLC0415

    lengths = [torch.full((t.shape[0],), t.shape[1]) for t in given]
    return module(*given, *lengths)


def _attention() -> Any:
    from transformer.model.multi_head_attention import MultiHeadAttention  # noqa: PLC0415

    return MultiHeadAttention(D, H, 0.1, None)


def _attended(module: Any, x: Any) -> Any:
    from transformer.model.state import AttentionState  # noqa: PLC0415

    return module(x, x, x, None, AttentionState(), False)[0]


def _layer() -> Any:
    from transformer.model.encoder_layer import TransformerEncoderLayer  # noqa: PLC0415

    return TransformerEncoderLayer(D, 48, H, 0.1)


def _layered(module: Any, x: Any) -> Any:
    from transformer.model.state import LayerState  # noqa: PLC0415

    return module(x, None, LayerState())[0]


def _positions() -> Any:
    from transformer.model.positional_encoding import PositionalEncoding  # noqa: PLC0415

    return PositionalEncoding(D, 64)


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "MultiHeadAttention", _attention, "attention", {"call": _attended}),
    Subject(PACKAGE, "TransformerEncoderLayer", _layer, "block", {"call": _layered}),
    Subject(PACKAGE, "PositionalEncoding", _positions, "positions"),
    Subject(PACKAGE, "Transformer", _transformer, "seq2seq", {"vocab": V, "call": _scored}),
]
