"""PyTorch's own attention, norms and layers of a Transformer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from bench.checking.public.subject import Subject

D, H, INNER = 32, 4, 48


def _of(name: str, make: Callable[[], Any], kind: str, options: Mapping[str, Any] | None = None) -> Subject:
    return Subject("torch", name, make, kind, options or {})


def _masked(module: nn.Module, given: tuple[Tensor, Tensor]) -> Tensor:
    """Whoever calls it hides the future of the target."""
    source, wanted = given
    hidden = nn.Transformer.generate_square_subsequent_mask(wanted.shape[1], dtype=wanted.dtype)
    return module(source, wanted, tgt_mask=hidden, tgt_is_causal=True)


def _turned(module: nn.Module, given: tuple[Tensor, Tensor]) -> Tensor:
    """The same where positions come first."""
    source, wanted = (each.transpose(0, 1) for each in given)
    hidden = nn.Transformer.generate_square_subsequent_mask(wanted.shape[0], dtype=wanted.dtype)
    return module(source, wanted, tgt_mask=hidden, tgt_is_causal=True).transpose(0, 1)


def _layer(decoder: bool = False, **options: Any) -> nn.Module:
    kind = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
    return kind(D, H, INNER, **options)


SUBJECTS: list[Subject] = [
    _of("MultiheadAttention", lambda: nn.MultiheadAttention(D, H), "attention"),
    _of("MultiheadAttention, batch_first", lambda: nn.MultiheadAttention(D, H, batch_first=True), "attention"),
    _of("MultiheadAttention, no bias", lambda: nn.MultiheadAttention(D, H, bias=False), "attention"),
    _of("MultiheadAttention, dropout", lambda: nn.MultiheadAttention(D, H, 0.2, batch_first=True), "attention"),
    _of(
        "MultiheadAttention, add_bias_kv",
        lambda: nn.MultiheadAttention(D, H, batch_first=True, add_bias_kv=True),
        "attention",
    ),
    _of(
        "MultiheadAttention, add_zero_attn",
        lambda: nn.MultiheadAttention(D, H, batch_first=True, add_zero_attn=True),
        "attention",
    ),
    _of("scaled_dot_product_attention", lambda: F.scaled_dot_product_attention, "sdpa"),
    _of("TransformerEncoderLayer", _layer, "block"),
    _of("TransformerEncoderLayer, batch_first", lambda: _layer(batch_first=True), "block"),
    _of("TransformerEncoderLayer, norm_first", lambda: _layer(norm_first=True, batch_first=True), "block"),
    _of("TransformerEncoderLayer, gelu", lambda: _layer(activation="gelu", batch_first=True), "block"),
    _of("TransformerEncoderLayer, no bias", lambda: _layer(bias=False, batch_first=True), "block"),
    _of("TransformerDecoderLayer", lambda: _layer(True), "block"),
    _of("TransformerDecoderLayer, batch_first", lambda: _layer(True, batch_first=True), "block"),
    _of("TransformerDecoderLayer, norm_first", lambda: _layer(True, norm_first=True, batch_first=True), "block"),
    _of("TransformerEncoder", lambda: nn.TransformerEncoder(_layer(batch_first=True), 2), "encoder"),
    _of(
        "TransformerEncoder, norm_first",
        lambda: nn.TransformerEncoder(
            _layer(batch_first=True, norm_first=True), 2, nn.LayerNorm(D), enable_nested_tensor=False
        ),
        "encoder",
    ),
    _of("TransformerDecoder", lambda: nn.TransformerDecoder(_layer(True, batch_first=True), 2), "encoder"),
    _of("Transformer", lambda: nn.Transformer(D, H, 2, 2, INNER, batch_first=True), "seq2seq", {"call": _masked}),
    _of(
        "Transformer, norm_first",
        lambda: nn.Transformer(D, H, 2, 2, INNER, batch_first=True, norm_first=True),
        "seq2seq",
        {"call": _masked},
    ),
    _of("LayerNorm", lambda: nn.LayerNorm(D), "norm"),
    _of("LayerNorm, no bias", lambda: nn.LayerNorm(D, eps=1e-3, bias=False), "norm"),
    _of("LayerNorm, no weights", lambda: nn.LayerNorm(D, elementwise_affine=False), "norm"),
    _of("RMSNorm", lambda: nn.RMSNorm(D), "norm"),
    _of("RMSNorm, eps", lambda: nn.RMSNorm(D, eps=1e-4), "norm"),
    _of("layer_norm", lambda: F.layer_norm, "norm", {"call": lambda f, x: f(x, (x.shape[-1],))}),
    _of("cross_entropy", lambda: F.cross_entropy, "loss"),
    _of("CrossEntropyLoss", nn.CrossEntropyLoss, "loss"),
    _of("CrossEntropyLoss, smoothed", lambda: nn.CrossEntropyLoss(label_smoothing=0.1), "loss"),
    _of("Transformer, positions first", lambda: nn.Transformer(D, H, 2, 2, INNER), "seq2seq", {"call": _turned}),
]
