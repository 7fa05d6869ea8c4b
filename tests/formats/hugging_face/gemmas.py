"""Small models of Gemma 3 with random weights, as they are, and with all that they keep in float32 in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.formats.hugging_face.given import V, random_weights

hf = pytest.importorskip("transformers", reason="transformers is not installed")

B, T, D, H, K, d, FF, CONTEXT, WINDOW = 3, 9, 18, 6, 2, 8, 14, 40, 4
FULL, SLIDING = "full_attention", "sliding_attention"
REAL = torch.arange(T) >= torch.tensor([[0], [3], [7]])
ROPE = {
    FULL: {"rope_type": "linear", "factor": 3.0, "rope_theta": 200.0},
    SLIDING: {"rope_type": "default", "rope_theta": 30.0},
}
SIZES: dict[str, Any] = {
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": FF,
    "num_hidden_layers": 5,
    "num_attention_heads": H,
    "num_key_value_heads": K,
    "head_dim": d,
    "max_position_embeddings": CONTEXT,
    "query_pre_attn_scalar": 5,
    "sliding_window": WINDOW,
    "layer_types": [SLIDING, SLIDING, FULL, SLIDING, SLIDING],
    "rope_parameters": ROPE,
    "rms_norm_eps": 1e-5,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "small": {},
    "biases, a head of its own": {"attention_bias": True, "tie_word_embeddings": False},
    "one key head": {"num_key_value_heads": 1, "head_dim": 6, "hidden_activation": "silu"},
    "two blocks": {"num_hidden_layers": 2, "layer_types": [SLIDING, FULL]},
    "all slide": {"layer_types": [SLIDING] * 5},
    "all see all": {"layer_types": [FULL] * 5, "query_pre_attn_scalar": d},
}


def config_of(changes: dict[str, Any]) -> Any:
    return hf.Gemma3TextConfig(
        **SIZES | {"rope_parameters": {kind: dict(each) for kind, each in ROPE.items()}} | changes
    )


def theirs_of(name: str = "small", std: float = 0.3, *, padded: bool = False) -> Any:
    """A model with random weights, gains about 1.

    Args:
        name: which of the variants.
        std: of the matrices.
        padded: whether it is to meet padding. In float64 their readable attention then gives NaN, since its softmax is taken in
            float32, where the mask's number for what is hidden is infinite; PyTorch's kernel does not.
    """
    config = config_of(VARIANTS[name])
    config._attn_implementation = "sdpa" if padded else "eager"
    theirs = random_weights(hf.Gemma3ForCausalLM(config), std)
    with torch.no_grad():
        for tensor in theirs.parameters():
            if tensor.dim() == 1:
                tensor.normal_(std=0.3)
    return theirs


def ids(length: int = T) -> Tensor:
    return torch.randint(V, (B, length))


def in_float64(theirs: Any) -> Any:
    """The same model in float64, and with it what its code takes in float32: norms, angles, the embedding's scale."""
    kinds = hf.models.gemma3.modeling_gemma3
    for module in theirs.double().modules():
        if isinstance(module, kinds.Gemma3RMSNorm):
            module.forward = _norm.__get__(module)
        elif isinstance(module, kinds.Gemma3RotaryEmbedding):
            module.forward = _turn.__get__(module)
        elif isinstance(module, kinds.Gemma3TextScaledWordEmbedding):
            module.embed_scale = torch.tensor(D**0.5, dtype=torch.float64)
    return theirs


def _norm(self: Any, x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (1 + self.weight)


def _turn(self: Any, x: Tensor, positions: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    rope, width = self.config.rope_parameters[kind], self.config.head_dim
    frequencies = rope["rope_theta"] ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = positions[..., None] * frequencies / rope.get("factor", 1.0)
    return torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
