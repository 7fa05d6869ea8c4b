"""Decoders of transformers, Phi to GPT-BigCode: attention, blocks, norms, rotary positions and the whole."""

from __future__ import annotations

from bench.checking.public.subject import Subject
from bench.checking.public.transformers_families import CONTEXT, GROUPED, SIZES, Family, subjects

DEEPSEEK = {
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    "moe_intermediate_size": 24,
    "first_k_dense_replace": 1,
    "num_key_value_heads": 4,
}
"""Low-rank queries, keys and values, and experts."""

FAMILIES = (
    Family(
        "OlmoForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "OlmoForCausalLM",
            "block": "OlmoDecoderLayer",
            "attention": "OlmoAttention",
            "norm": "OlmoLayerNorm",
            "rotary": "OlmoRotaryEmbedding",
        },
    ),
    Family(
        "Olmo2ForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "Olmo2ForCausalLM",
            "block": "Olmo2DecoderLayer",
            "attention": "Olmo2Attention",
            "norm": "Olmo2RMSNorm",
            "rotary": "Olmo2RotaryEmbedding",
        },
    ),
    Family(
        "Starcoder2ForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "Starcoder2ForCausalLM",
            "block": "Starcoder2DecoderLayer",
            "attention": "Starcoder2Attention",
            "rotary": "Starcoder2RotaryEmbedding",
        },
    ),
    Family(
        "StableLmForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "StableLmForCausalLM",
            "block": "StableLmDecoderLayer",
            "attention": "StableLmAttention",
            "rotary": "StableLmRotaryEmbedding",
        },
    ),
    Family(
        "GptOssForCausalLM",
        SIZES | GROUPED | {"head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4},
        {
            "lm": "GptOssForCausalLM",
            "block": "GptOssDecoderLayer",
            "attention": "GptOssAttention",
            "norm": "GptOssRMSNorm",
            "rotary": "GptOssRotaryEmbedding",
        },
        fused=False,
    ),
    Family(
        "NemotronForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "NemotronForCausalLM",
            "block": "NemotronDecoderLayer",
            "attention": "NemotronAttention",
            "norm": "NemotronLayerNorm1P",
            "rotary": "NemotronRotaryEmbedding",
        },
    ),
    Family(
        "XGLMForCausalLM",
        CONTEXT
        | {
            "d_model": 32,
            "ffn_dim": 48,
            "num_layers": 2,
            "attention_heads": 4,
            "vocab_size": 61,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        {
            "lm": "XGLMForCausalLM",
            "positions": "XGLMSinusoidalPositionalEmbedding",
            "block": "XGLMDecoderLayer",
            "attention": "XGLMAttention",
        },
    ),
    Family(
        "SmolLM3ForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "SmolLM3ForCausalLM",
            "block": "SmolLM3DecoderLayer",
            "attention": "SmolLM3Attention",
            "norm": "SmolLM3RMSNorm",
            "rotary": "SmolLM3RotaryEmbedding",
        },
    ),
    Family(
        "GraniteForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "GraniteForCausalLM",
            "block": "GraniteDecoderLayer",
            "attention": "GraniteAttention",
            "norm": "GraniteRMSNorm",
            "rotary": "GraniteRotaryEmbedding",
        },
    ),
    Family(
        "GlmForCausalLM",
        SIZES | GROUPED | CONTEXT | {"head_dim": 8},
        {
            "lm": "GlmForCausalLM",
            "block": "GlmDecoderLayer",
            "attention": "GlmAttention",
            "norm": "GlmRMSNorm",
            "rotary": "GlmRotaryEmbedding",
        },
    ),
    Family(
        "Glm4ForCausalLM",
        SIZES | GROUPED | CONTEXT | {"head_dim": 8},
        {
            "lm": "Glm4ForCausalLM",
            "block": "Glm4DecoderLayer",
            "attention": "Glm4Attention",
            "norm": "Glm4RMSNorm",
            "rotary": "Glm4RotaryEmbedding",
        },
    ),
    Family(
        "DeepseekV3ForCausalLM",
        SIZES | CONTEXT | DEEPSEEK,
        {
            "lm": "DeepseekV3ForCausalLM",
            "block": "DeepseekV3DecoderLayer",
            "attention": "DeepseekV3Attention",
            "norm": "DeepseekV3RMSNorm",
            "rotary": "DeepseekV3RotaryEmbedding",
        },
    ),
    Family(
        "DeepseekV2ForCausalLM",
        SIZES | CONTEXT | DEEPSEEK,
        {
            "lm": "DeepseekV2ForCausalLM",
            "block": "DeepseekV2DecoderLayer",
            "attention": "DeepseekV2Attention",
            "norm": "DeepseekV2RMSNorm",
            "rotary": "DeepseekV2RotaryEmbedding",
        },
    ),
    Family(
        "BioGptForCausalLM",
        SIZES | CONTEXT,
        {
            "lm": "BioGptForCausalLM",
            "positions": "BioGptLearnedPositionalEmbedding",
            "block": "BioGptDecoderLayer",
            "attention": "BioGptAttention",
        },
    ),
    Family(
        "PersimmonForCausalLM",
        SIZES | CONTEXT,
        {
            "lm": "PersimmonForCausalLM",
            "block": "PersimmonDecoderLayer",
            "attention": "PersimmonAttention",
            "rotary": "PersimmonRotaryEmbedding",
        },
    ),
    Family(
        "HeliumForCausalLM",
        SIZES | GROUPED | CONTEXT | {"head_dim": 8},
        {
            "lm": "HeliumForCausalLM",
            "block": "HeliumDecoderLayer",
            "attention": "HeliumAttention",
            "norm": "HeliumRMSNorm",
            "rotary": "HeliumRotaryEmbedding",
        },
    ),
    Family(
        "OpenAIGPTLMHeadModel",
        {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 61},
        {"lm": "OpenAIGPTLMHeadModel", "block": "Block", "attention": "Attention"},
    ),
    Family(
        "Ernie4_5ForCausalLM",
        SIZES | GROUPED | CONTEXT | {"head_dim": 8},
        {
            "lm": "Ernie4_5ForCausalLM",
            "block": "Ernie4_5DecoderLayer",
            "attention": "Ernie4_5Attention",
            "norm": "Ernie4_5RMSNorm",
            "rotary": "Ernie4_5RotaryEmbedding",
        },
    ),
    Family(
        "Exaone4ForCausalLM",
        SIZES | GROUPED | CONTEXT | {"sliding_window": 4},
        {
            "lm": "Exaone4ForCausalLM",
            "block": "Exaone4DecoderLayer",
            "attention": "Exaone4Attention",
            "norm": "Exaone4RMSNorm",
            "rotary": "Exaone4RotaryEmbedding",
        },
    ),
    Family(
        "ArceeForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "ArceeForCausalLM",
            "block": "ArceeDecoderLayer",
            "attention": "ArceeAttention",
            "norm": "ArceeRMSNorm",
            "rotary": "ArceeRotaryEmbedding",
        },
    ),
    Family(
        "GPTBigCodeForCausalLM",
        {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 61},
        {"lm": "GPTBigCodeForCausalLM", "block": "GPTBigCodeBlock", "attention": "GPTBigCodeAttention"},
    ),
    Family(
        "XLNetLMHeadModel",
        {"d_model": 32, "d_inner": 48, "n_head": 4, "n_layer": 2, "vocab_size": 61},
        {"block": "XLNetLayer", "attention": "XLNetRelativeAttention", "encoder": "XLNetModel"},
    ),
)

SUBJECTS: list[Subject] = subjects(FAMILIES)
