"""Small packages that build a whole Transformer: attention, layers and position tables of each."""

from __future__ import annotations

from typing import Any

from bench.checking.public.subject import Subject

WIDTH, HEADS, CONTEXT, VOCAB = 24, 4, 64, 61


def _simple_attention() -> Any:
    from simple_transformer import SelfAttention  # noqa: PLC0415

    return SelfAttention(WIDTH, HEADS)


def _simple_block() -> Any:
    from simple_transformer import TransformerBlock  # noqa: PLC0415

    return TransformerBlock(WIDTH, HEADS, 0.1, 2)


def _simple_encoder() -> Any:
    from simple_transformer import Encoder  # noqa: PLC0415

    return Encoder(VOCAB, WIDTH, 2, HEADS, "cpu", 2, 0.1, CONTEXT)


def _simple_transformer() -> Any:
    from simple_transformer import Transformer  # noqa: PLC0415

    return Transformer(VOCAB, VOCAB, 0, 0, WIDTH, 2, 2, HEADS, 0.1, "cpu", CONTEXT)


def _encoder_norm() -> Any:
    from transformer_encoder.layer_norm import LayerNorm  # noqa: PLC0415

    return LayerNorm(WIDTH)


def _encoder_attention() -> Any:
    from transformer_encoder.multi_head_attention import MultiHeadAttention  # noqa: PLC0415

    return MultiHeadAttention(HEADS, WIDTH, 0.1)


def _encoder_positions() -> Any:
    from transformer_encoder.utils import PositionalEncoding  # noqa: PLC0415

    return PositionalEncoding(WIDTH, 0.0, CONTEXT)


def _encoder() -> Any:
    from transformer_encoder import TransformerEncoder  # noqa: PLC0415

    return TransformerEncoder(WIDTH, 48, HEADS, 2, 0.1)


def _scratch_attention() -> Any:
    from transformer_variants.model import MultiHeadSelfAttention  # noqa: PLC0415

    return MultiHeadSelfAttention(WIDTH, HEADS)


def _scratch_cross() -> Any:
    from transformer_variants.model import MultiHeadCrossAttention  # noqa: PLC0415

    return MultiHeadCrossAttention(WIDTH, HEADS)


def _scratch_block() -> Any:
    from transformer_variants.model import TransformerBlock  # noqa: PLC0415

    return TransformerBlock(WIDTH, 48, HEADS)


def _scratch_positions() -> Any:
    from transformer_variants.model import PositionalEncoding  # noqa: PLC0415

    return PositionalEncoding(CONTEXT, WIDTH)


def _scratch_decoder() -> Any:
    from transformer_variants import DecoderOnlyTransformer  # noqa: PLC0415

    return DecoderOnlyTransformer(VOCAB, CONTEXT, WIDTH, 48, HEADS, 2)


def _scratch_encoder() -> Any:
    from transformer_variants import EncoderTransformer  # noqa: PLC0415

    return EncoderTransformer(VOCAB, CONTEXT, WIDTH, 48, HEADS, 2)


def _scratch_both() -> Any:
    from transformer_variants import EncoderDecoderTransformer  # noqa: PLC0415

    return EncoderDecoderTransformer(VOCAB, CONTEXT, WIDTH, 48, HEADS, 2, 2)


def _torch_norm() -> Any:
    from torch_transformers.CoreLayers import LayerNormalization  # noqa: PLC0415

    return LayerNormalization(WIDTH)


def _torch_positions() -> Any:
    from torch_transformers.PositionalEncoding import PositionalEncoding  # noqa: PLC0415

    return PositionalEncoding(WIDTH)


def _torch_attention() -> Any:
    from torch_transformers.Attention import MultiHeadAttention  # noqa: PLC0415

    return MultiHeadAttention(WIDTH, HEADS)


def _latent() -> Any:
    from mla import MLA, MLAConfig  # noqa: PLC0415

    return MLA(MLAConfig(WIDTH, HEADS, 12, 16, 4, CONTEXT, dropout=0.1))


EMPTY = ("mask.empty-row",)

SUBJECTS: list[Subject] = [
    Subject(
        "simple-transformer",
        "SelfAttention",
        _simple_attention,
        "attention",
        confirmed=("heads.input-sliced", "scale.model-width"),
    ),
    Subject(
        "simple-transformer",
        "TransformerBlock",
        _simple_block,
        "block",
        confirmed=("heads.input-sliced", "scale.model-width"),
    ),
    Subject(
        "simple-transformer",
        "Encoder",
        _simple_encoder,
        "encoder",
        {"vocab": VOCAB},
        confirmed=("heads.input-sliced", "scale.model-width"),
    ),
    Subject("simple-transformer", "Transformer", _simple_transformer, "seq2seq", {"vocab": VOCAB}),
    Subject(
        "transformer-encoder",
        "LayerNorm",
        _encoder_norm,
        "norm",
        confirmed=("norm.unbiased-variance", "norm.eps-placement"),
    ),
    Subject("transformer-encoder", "MultiHeadAttention", _encoder_attention, "attention"),
    Subject("transformer-encoder", "PositionalEncoding", _encoder_positions, "positions"),
    Subject(
        "transformer-encoder",
        "TransformerEncoder",
        _encoder,
        "encoder",
        confirmed=("norm.unbiased-variance", "norm.eps-placement", "parameter.unused"),
    ),
    Subject("transformers-from-scratch", "MultiHeadSelfAttention", _scratch_attention, "attention", confirmed=EMPTY),
    Subject("transformers-from-scratch", "MultiHeadCrossAttention", _scratch_cross, "attention"),
    Subject("transformers-from-scratch", "TransformerBlock", _scratch_block, "block", confirmed=EMPTY),
    Subject("transformers-from-scratch", "PositionalEncoding", _scratch_positions, "positions"),
    Subject("transformers-from-scratch", "DecoderOnlyTransformer", _scratch_decoder, "lm", {"vocab": VOCAB}),
    Subject(
        "transformers-from-scratch",
        "EncoderTransformer",
        _scratch_encoder,
        "encoder",
        {"vocab": VOCAB},
        confirmed=EMPTY,
    ),
    Subject("transformers-from-scratch", "EncoderDecoderTransformer", _scratch_both, "seq2seq", {"vocab": VOCAB}),
    Subject("torch-transformers", "LayerNormalization", _torch_norm, "norm"),
    Subject(
        "torch-transformers", "PositionalEncoding", _torch_positions, "positions", confirmed=("sinusoid.frequency",)
    ),
    Subject("torch-transformers", "MultiHeadAttention", _torch_attention, "attention"),
    Subject("multihead-latent-attention", "MLA", _latent, "attention"),
]
