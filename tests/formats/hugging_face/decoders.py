"""The decoders of transformers that the tests compare with: small, no two sizes alike, every choice that a family has taken once."""

from __future__ import annotations

from typing import Any

from tests.formats.hugging_face.given import V, random_weights
from tests.oracles.hf_pairs import hf

CONTEXT = 29
QUIET: dict[str, Any] = {"vocab_size": V, "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
GPT2: dict[str, Any] = {**QUIET, "n_positions": CONTEXT, "n_embd": 12, "n_layer": 3, "n_head": 3, "n_inner": 14}
SIZES: dict[str, Any] = {
    **QUIET,
    "max_position_embeddings": CONTEXT,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 14,
}
NEOX: dict[str, Any] = {**SIZES, "hidden_size": 48, "num_attention_heads": 3}
# Heads wider than width / heads; a base so small that scaling moves every pair of a head's features.
LLAMA: dict[str, Any] = {**SIZES, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-4}
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
YARN = {"original_max_position_embeddings": 16, "beta_fast": 3.0, "beta_slow": 0.5}


def scaled(kind: str, **settings: float) -> dict[str, Any]:
    """The fields of rotary positions in the newer spelling."""
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 50.0, "factor": 4.0, **settings}}


VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2", GPT2),
    "gpt2, otherwise": (
        "GPT2",
        {
            **GPT2,
            "n_inner": None,
            "tie_word_embeddings": False,
            "activation_function": "relu",
            "scale_attn_weights": False,
            "layer_norm_epsilon": 1e-3,
        },
    ),
    "neox": ("GPTNeoX", NEOX),
    "neox, sequential, without biases": (
        "GPTNeoX",
        {
            **NEOX,
            "use_parallel_residual": False,
            "attention_bias": False,
            "hidden_act": "gelu_new",
            "tie_word_embeddings": True,
            "layer_norm_eps": 1e-3,
            "rope_parameters": {"rope_type": "default", "rope_theta": 70.0, "partial_rotary_factor": 0.5},
        },
    ),
    "neox, yarn": ("GPTNeoX", {**NEOX, **scaled("yarn", **YARN, partial_rotary_factor=0.5)}),
    "llama": ("Llama", {**SIZES, "rms_norm_eps": 1e-4}),
    "llama, biases, wide heads, tied": (
        "Llama",
        {**LLAMA, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    ),
    "llama, biases of attention": ("Llama", {**LLAMA, "attention_bias": True, "hidden_act": "gelu"}),
    "llama, biases of feed-forward": ("Llama", {**LLAMA, "mlp_bias": True, "hidden_act": "gelu_pytorch_tanh"}),
    "llama, linear": ("Llama", {**LLAMA, **scaled("linear")}),
    "llama, llama3": ("Llama", {**LLAMA, **scaled("llama3", **LLAMA3)}),
    "llama, yarn": ("Llama", {**LLAMA, **scaled("yarn", **YARN)}),
    "mistral": ("Mistral", {**LLAMA, "sliding_window": 3}),
    "mistral, all seen": ("Mistral", {**LLAMA, "sliding_window": None, "tie_word_embeddings": True}),
    "qwen2": ("Qwen2", {**SIZES, "num_key_value_heads": 3, "rms_norm_eps": 1e-4}),
    "qwen2, windows": (
        "Qwen2",
        {
            **SIZES,
            "num_key_value_heads": 1,
            "use_sliding_window": True,
            "sliding_window": 2,
            "max_window_layers": 1,
            "tie_word_embeddings": True,
        },
    ),
    "qwen3": ("Qwen3", {**LLAMA, "num_key_value_heads": 3, "head_dim": 10, "tie_word_embeddings": True}),
    "qwen3, biases, windows": (
        "Qwen3",
        {
            **LLAMA,
            "attention_bias": True,
            "use_sliding_window": True,
            "sliding_window": 4,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
}
EACH = ("gpt2", "neox", "llama", "mistral", "qwen2, windows", "qwen3")
"""One variant of each family."""


def their_config(variant: str) -> Any:
    """The configuration."""
    name, settings = VARIANTS[variant]
    # Their configurations change the mappings that they are given.
    parameters = settings.get("rope_parameters")
    own = {"rope_parameters": dict(parameters)} if parameters else {}
    return getattr(hf, f"{name}Config")(**{**settings, **own})


def their_model(config: Any, std: float = 0.3) -> Any:
    """The causal model, every weight random."""
    return random_weights(hf.AutoModelForCausalLM.from_config(config), std)


def theirs(variant: str, std: float = 0.3) -> Any:
    """The causal model of a variant, every weight random."""
    return their_model(their_config(variant), std)
