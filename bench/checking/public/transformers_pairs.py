"""Encoders with decoders of transformers: attention, blocks, norms, positions and the whole, written out and fused."""

from __future__ import annotations

from bench.checking.public.subject import Subject
from bench.checking.public.transformers_families import BART, CONTEXT, SMALL_T5, Family, subjects

FAMILIES = (
    Family(
        "T5ForConditionalGeneration",
        SMALL_T5,
        {
            "seq2seq": "T5ForConditionalGeneration",
            "block": "T5Block",
            "attention": "T5LayerSelfAttention T5Attention",
            "norm": "T5LayerNorm",
        },
    ),
    Family(
        "BartForConditionalGeneration",
        BART,
        {
            "seq2seq": "BartForConditionalGeneration",
            "positions": "BartLearnedPositionalEmbedding",
            "block": "BartEncoderLayer BartDecoderLayer",
            "attention": "BartAttention",
        },
    ),
    Family(
        "MBartForConditionalGeneration",
        BART,
        {
            "seq2seq": "MBartForConditionalGeneration",
            "positions": "MBartLearnedPositionalEmbedding",
            "block": "MBartEncoderLayer MBartDecoderLayer",
            "attention": "MBartAttention",
        },
    ),
    Family(
        "MarianMTModel",
        BART | {"decoder_vocab_size": 61},
        {
            "seq2seq": "MarianMTModel",
            "positions": "MarianSinusoidalPositionalEmbedding",
            "block": "MarianEncoderLayer MarianDecoderLayer",
            "attention": "MarianAttention",
        },
    ),
    Family(
        "PegasusForConditionalGeneration",
        BART,
        {
            "seq2seq": "PegasusForConditionalGeneration",
            "positions": "PegasusSinusoidalPositionalEmbedding",
            "block": "PegasusEncoderLayer PegasusDecoderLayer",
            "attention": "PegasusAttention",
        },
    ),
    Family(
        "WhisperForConditionalGeneration",
        BART | {"num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 64},
        {
            "block": "WhisperEncoderLayer WhisperDecoderLayer",
            "attention": "WhisperAttention",
            "positions": "WhisperPositionalEmbedding",
        },
    ),
    Family(
        "M2M100ForConditionalGeneration",
        BART,
        {
            "seq2seq": "M2M100ForConditionalGeneration",
            "positions": "M2M100SinusoidalPositionalEmbedding",
            "block": "M2M100EncoderLayer M2M100DecoderLayer",
            "attention": "M2M100Attention",
        },
    ),
    Family(
        "BlenderbotForConditionalGeneration",
        BART,
        {
            "seq2seq": "BlenderbotForConditionalGeneration",
            "positions": "BlenderbotLearnedPositionalEmbedding",
            "block": "BlenderbotEncoderLayer BlenderbotDecoderLayer",
            "attention": "BlenderbotAttention",
        },
    ),
    Family(
        "UMT5ForConditionalGeneration",
        SMALL_T5,
        {
            "seq2seq": "UMT5ForConditionalGeneration",
            "block": "UMT5Block",
            "attention": "UMT5LayerSelfAttention UMT5Attention",
            "norm": "UMT5LayerNorm",
        },
    ),
    Family(
        "LongT5ForConditionalGeneration",
        SMALL_T5,
        {
            "seq2seq": "LongT5ForConditionalGeneration",
            "block": "LongT5Block",
            "attention": "LongT5LayerLocalSelfAttention LongT5LocalAttention LongT5LayerSelfAttention LongT5Attention",
            "norm": "LongT5LayerNorm",
        },
        fused=False,
    ),
    Family(
        "ProphetNetForConditionalGeneration",
        CONTEXT
        | {
            "hidden_size": 32,
            "encoder_ffn_dim": 48,
            "num_encoder_layers": 1,
            "num_encoder_attention_heads": 4,
            "decoder_ffn_dim": 48,
            "num_decoder_layers": 1,
            "num_decoder_attention_heads": 4,
            "vocab_size": 61,
        },
        {
            "seq2seq": "ProphetNetForConditionalGeneration",
            "positions": "ProphetNetPositionalEmbeddings",
            "block": "ProphetNetEncoderLayer ProphetNetDecoderLayer",
            "attention": "ProphetNetAttention ProphetNetNgramSelfAttention",
        },
    ),
    Family(
        "LEDForConditionalGeneration",
        BART | {"max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64, "attention_window": 4},
        {
            "seq2seq": "LEDForConditionalGeneration",
            "positions": "LEDLearnedPositionalEmbedding",
            "block": "LEDEncoderLayer LEDDecoderLayer",
            "attention": "LEDEncoderAttention LEDEncoderSelfAttention LEDDecoderAttention",
        },
    ),
)

SUBJECTS: list[Subject] = subjects(FAMILIES)
