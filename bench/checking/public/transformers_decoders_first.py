"""Decoders of transformers, GPT-2 to Gemma 3: attention, blocks, norms, rotary positions and the whole."""

from __future__ import annotations

from bench.checking.public.subject import Subject
from bench.checking.public.transformers_families import CONTEXT, GPT, GROUPED, SIZES, Family, subjects

FAMILIES = (
    Family("GPT2LMHeadModel", GPT, {"lm": "GPT2LMHeadModel", "block": "GPT2Block", "attention": "GPT2Attention"}),
    Family(
        "GPTNeoForCausalLM",
        CONTEXT
        | {
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "intermediate_size": 48,
            "vocab_size": 61,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        {"lm": "GPTNeoForCausalLM", "block": "GPTNeoBlock", "attention": "GPTNeoAttention GPTNeoSelfAttention"},
    ),
    Family(
        "GPTNeoXForCausalLM",
        SIZES | CONTEXT,
        {
            "lm": "GPTNeoXForCausalLM",
            "block": "GPTNeoXLayer",
            "attention": "GPTNeoXAttention",
            "rotary": "GPTNeoXRotaryEmbedding",
        },
    ),
    Family(
        "GPTJForCausalLM",
        GPT | {"rotary_dim": 4},
        {"lm": "GPTJForCausalLM", "block": "GPTJBlock", "attention": "GPTJAttention", "rotary": "GPTJRotaryEmbedding"},
    ),
    Family(
        "CodeGenForCausalLM",
        GPT | {"n_ctx": 64, "rotary_dim": 4},
        {
            "lm": "CodeGenForCausalLM",
            "block": "CodeGenBlock",
            "attention": "CodeGenAttention",
            "rotary": "CodeGenRotaryEmbedding",
        },
    ),
    Family(
        "OPTForCausalLM",
        CONTEXT
        | {
            "hidden_size": 32,
            "ffn_dim": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 61,
            "word_embed_proj_dim": 32,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        {
            "lm": "OPTForCausalLM",
            "positions": "OPTLearnedPositionalEmbedding",
            "block": "OPTDecoderLayer",
            "attention": "OPTAttention",
        },
    ),
    Family(
        "BloomForCausalLM",
        {
            "hidden_size": 32,
            "n_layer": 2,
            "n_head": 4,
            "vocab_size": 61,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        {"lm": "BloomForCausalLM", "block": "BloomBlock", "attention": "BloomAttention"},
    ),
    Family(
        "MptForCausalLM",
        {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "vocab_size": 61},
        {"lm": "MptForCausalLM", "block": "MptBlock", "attention": "MptAttention"},
    ),
    Family(
        "FalconForCausalLM",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 61,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        {
            "lm": "FalconForCausalLM",
            "block": "FalconDecoderLayer",
            "attention": "FalconAttention",
            "rotary": "FalconRotaryEmbedding",
        },
    ),
    Family(
        "LlamaForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "LlamaForCausalLM",
            "block": "LlamaDecoderLayer",
            "attention": "LlamaAttention",
            "norm": "LlamaRMSNorm",
            "rotary": "LlamaRotaryEmbedding",
        },
    ),
    Family(
        "MistralForCausalLM",
        SIZES | GROUPED | CONTEXT | {"sliding_window": 4},
        {
            "lm": "MistralForCausalLM",
            "block": "MistralDecoderLayer",
            "attention": "MistralAttention",
            "norm": "MistralRMSNorm",
            "rotary": "MistralRotaryEmbedding",
        },
    ),
    Family(
        "MixtralForCausalLM",
        SIZES | GROUPED | CONTEXT | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4},
        {
            "lm": "MixtralForCausalLM",
            "block": "MixtralDecoderLayer",
            "attention": "MixtralAttention",
            "norm": "MixtralRMSNorm",
            "rotary": "MixtralRotaryEmbedding",
        },
    ),
    Family(
        "Qwen2ForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "Qwen2ForCausalLM",
            "block": "Qwen2DecoderLayer",
            "attention": "Qwen2Attention",
            "norm": "Qwen2RMSNorm",
            "rotary": "Qwen2RotaryEmbedding",
        },
    ),
    Family(
        "Qwen3ForCausalLM",
        SIZES | GROUPED | CONTEXT | {"head_dim": 8},
        {
            "lm": "Qwen3ForCausalLM",
            "block": "Qwen3DecoderLayer",
            "attention": "Qwen3Attention",
            "norm": "Qwen3RMSNorm",
            "rotary": "Qwen3RotaryEmbedding",
        },
    ),
    Family(
        "Qwen3MoeForCausalLM",
        SIZES
        | GROUPED
        | CONTEXT
        | {"head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
        {
            "lm": "Qwen3MoeForCausalLM",
            "block": "Qwen3MoeDecoderLayer",
            "attention": "Qwen3MoeAttention",
            "norm": "Qwen3MoeRMSNorm",
            "rotary": "Qwen3MoeRotaryEmbedding",
        },
    ),
    Family(
        "GemmaForCausalLM",
        SIZES | GROUPED | CONTEXT | {"head_dim": 8},
        {
            "lm": "GemmaForCausalLM",
            "block": "GemmaDecoderLayer",
            "attention": "GemmaAttention",
            "norm": "GemmaRMSNorm",
            "rotary": "GemmaRotaryEmbedding",
        },
    ),
    Family(
        "Gemma2ForCausalLM",
        SIZES | GROUPED | CONTEXT | {"head_dim": 8, "sliding_window": 4},
        {
            "lm": "Gemma2ForCausalLM",
            "block": "Gemma2DecoderLayer",
            "attention": "Gemma2Attention",
            "norm": "Gemma2RMSNorm",
            "rotary": "Gemma2RotaryEmbedding",
        },
        fused=False,
    ),
    Family(
        "Gemma3ForCausalLM",
        SIZES | GROUPED | CONTEXT | {"head_dim": 8, "sliding_window": 4},
        {
            "lm": "Gemma3ForCausalLM",
            "block": "Gemma3DecoderLayer",
            "attention": "Gemma3Attention",
            "norm": "Gemma3RMSNorm",
            "rotary": "Gemma3RotaryEmbedding",
        },
    ),
    Family(
        "PhiForCausalLM",
        SIZES | CONTEXT,
        {
            "lm": "PhiForCausalLM",
            "block": "PhiDecoderLayer",
            "attention": "PhiAttention",
            "rotary": "PhiRotaryEmbedding",
        },
    ),
    Family(
        "Phi3ForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "Phi3ForCausalLM",
            "block": "Phi3DecoderLayer",
            "attention": "Phi3Attention",
            "norm": "Phi3RMSNorm",
            "rotary": "Phi3RotaryEmbedding",
        },
    ),
    Family(
        "CohereForCausalLM",
        SIZES | GROUPED | CONTEXT,
        {
            "lm": "CohereForCausalLM",
            "block": "CohereDecoderLayer",
            "attention": "CohereAttention",
            "norm": "CohereLayerNorm",
            "rotary": "CohereRotaryEmbedding",
        },
    ),
    Family(
        "Cohere2ForCausalLM",
        SIZES | GROUPED | CONTEXT | {"sliding_window": 4},
        {
            "lm": "Cohere2ForCausalLM",
            "block": "Cohere2DecoderLayer",
            "attention": "Cohere2Attention",
            "norm": "Cohere2LayerNorm",
            "rotary": "Cohere2RotaryEmbedding",
        },
    ),
)

SUBJECTS: list[Subject] = subjects(FAMILIES)
