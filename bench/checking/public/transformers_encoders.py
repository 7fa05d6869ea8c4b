"""Encoders of transformers: attention, blocks, norms, positions and the whole, written out and fused."""

from __future__ import annotations

from bench.checking.public.subject import Subject
from bench.checking.public.transformers_families import CONTEXT, SIZES, Family, subjects

FAMILIES = (
    Family(
        "BertModel",
        SIZES | CONTEXT,
        {"encoder": "BertModel", "block": "BertLayer", "attention": "BertAttention BertSelfAttention"},
    ),
    Family(
        "RobertaModel",
        SIZES | CONTEXT,
        {"encoder": "RobertaModel", "block": "RobertaLayer", "attention": "RobertaAttention RobertaSelfAttention"},
    ),
    Family(
        "DistilBertModel",
        CONTEXT | {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "vocab_size": 61},
        {"encoder": "DistilBertModel", "block": "TransformerBlock", "attention": "DistilBertSelfAttention"},
    ),
    Family(
        "AlbertModel",
        SIZES | CONTEXT | {"embedding_size": 16},
        {"encoder": "AlbertModel", "block": "AlbertLayer", "attention": "AlbertAttention"},
    ),
    Family(
        "ElectraModel",
        SIZES | CONTEXT | {"embedding_size": 16},
        {"encoder": "ElectraModel", "block": "ElectraLayer", "attention": "ElectraAttention ElectraSelfAttention"},
    ),
    Family(
        "DebertaV2Model",
        SIZES | CONTEXT | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
        {
            "encoder": "DebertaV2Model",
            "block": "DebertaV2Layer",
            "attention": "DebertaV2Attention DisentangledSelfAttention",
        },
    ),
    Family(
        "DebertaModel",
        SIZES | CONTEXT | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
        {
            "encoder": "DebertaModel",
            "norm": "DebertaLayerNorm",
            "block": "DebertaLayer",
            "attention": "DebertaAttention DisentangledSelfAttention",
        },
    ),
    Family(
        "MPNetModel",
        SIZES | CONTEXT,
        {"encoder": "MPNetModel", "block": "MPNetLayer", "attention": "MPNetAttention MPNetSelfAttention"},
    ),
    Family(
        "ModernBertModel",
        SIZES | CONTEXT | {"local_attention": 4, "cls_token_id": 1, "sep_token_id": 2},
        {
            "encoder": "ModernBertModel",
            "block": "ModernBertEncoderLayer",
            "attention": "ModernBertAttention",
            "rotary": "ModernBertRotaryEmbedding",
        },
    ),
    Family(
        "EsmModel",
        SIZES | CONTEXT | {"position_embedding_type": "rotary"},
        {
            "encoder": "EsmModel",
            "rotary": "EsmRotaryEmbedding",
            "block": "EsmLayer",
            "attention": "EsmAttention EsmSelfAttention",
        },
    ),
    Family(
        "XLMRobertaModel",
        SIZES | CONTEXT,
        {
            "encoder": "XLMRobertaModel",
            "block": "XLMRobertaLayer",
            "attention": "XLMRobertaAttention XLMRobertaSelfAttention",
        },
    ),
    Family(
        "ViTModel",
        {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 16,
            "patch_size": 4,
        },
        {"block": "ViTLayer", "attention": "ViTAttention"},
    ),
    Family(
        "CLIPTextModel",
        SIZES | CONTEXT,
        {"encoder": "CLIPTextModel", "block": "CLIPEncoderLayer", "attention": "CLIPAttention"},
    ),
    Family(
        "SiglipTextModel",
        SIZES | CONTEXT,
        {"encoder": "SiglipTextModel", "block": "SiglipEncoderLayer", "attention": "SiglipAttention"},
    ),
    Family(
        "Wav2Vec2Model",
        SIZES
        | {
            "conv_dim": [16, 16],
            "conv_stride": [2, 2],
            "conv_kernel": [3, 3],
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 2,
        },
        {"block": "Wav2Vec2EncoderLayer", "attention": "Wav2Vec2Attention"},
    ),
    Family(
        "FunnelModel",
        {
            "d_model": 32,
            "d_inner": 48,
            "n_head": 4,
            "d_head": 8,
            "block_sizes": [1, 1],
            "num_decoder_layers": 1,
            "vocab_size": 61,
        },
        {"encoder": "FunnelModel"},
    ),
    Family(
        "XLMModel",
        CONTEXT | {"emb_dim": 32, "n_heads": 4, "n_layers": 2, "n_words": 61},
        {"encoder": "XLMModel", "attention": "MultiHeadAttention"},
    ),
    Family(
        "RoFormerModel",
        SIZES | CONTEXT,
        {
            "encoder": "RoFormerModel",
            "positions": "RoFormerSinusoidalPositionalEmbedding",
            "block": "RoFormerLayer",
            "attention": "RoFormerAttention RoFormerSelfAttention",
        },
    ),
    Family(
        "FNetModel",
        CONTEXT
        | {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "vocab_size": 61,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        {"encoder": "FNetModel", "block": "FNetLayer"},
        fused=False,
    ),
    Family(
        "BigBirdModel",
        SIZES | CONTEXT | {"attention_type": "original_full"},
        {"encoder": "BigBirdModel", "block": "BigBirdLayer", "attention": "BigBirdAttention BigBirdSelfAttention"},
    ),
    Family(
        "LongformerModel",
        SIZES | CONTEXT | {"attention_window": 4},
        {
            "encoder": "LongformerModel",
            "block": "LongformerLayer",
            "attention": "LongformerAttention LongformerSelfAttention",
        },
    ),
    Family(
        "NomicBertModel",
        SIZES | CONTEXT,
        {
            "encoder": "NomicBertModel",
            "rotary": "NomicBertRotaryEmbedding",
            "block": "NomicBertLayer",
            "attention": "NomicBertAttention",
        },
    ),
    Family(
        "IBertModel",
        SIZES | CONTEXT,
        {
            "encoder": "IBertModel",
            "norm": "IntLayerNorm",
            "block": "IBertLayer",
            "attention": "IBertAttention IBertSelfAttention",
        },
    ),
    Family(
        "MegatronBertModel",
        SIZES | CONTEXT,
        {
            "encoder": "MegatronBertModel",
            "block": "MegatronBertLayer",
            "attention": "MegatronBertAttention MegatronBertSelfAttention",
        },
    ),
    Family(
        "SqueezeBertModel",
        SIZES | CONTEXT | {"embedding_size": 32},
        {"encoder": "SqueezeBertModel", "norm": "SqueezeBertLayerNorm"},
    ),
    Family(
        "MobileBertModel",
        SIZES | CONTEXT | {"trigram_input": False, "embedding_size": 32, "intra_bottleneck_size": 32},
        {
            # NoNorm, which stands where norms stand, multiplies and adds, and normalises nothing: no kind asks about it.
            "encoder": "MobileBertModel",
            "block": "MobileBertLayer",
            "attention": "MobileBertAttention MobileBertSelfAttention",
        },
    ),
    Family(
        "NystromformerModel",
        SIZES | CONTEXT,
        {
            "encoder": "NystromformerModel",
            "block": "NystromformerLayer",
            "attention": "NystromformerAttention NystromformerSelfAttention",
        },
    ),
    Family(
        "YosoModel",
        SIZES | CONTEXT,
        {"encoder": "YosoModel", "block": "YosoLayer", "attention": "YosoAttention YosoSelfAttention"},
    ),
    Family("ConvBertModel", SIZES | CONTEXT | {"embedding_size": 32}, {}),
)

SUBJECTS: list[Subject] = subjects(FAMILIES)
