"""Published models as configurations. Imports without torch."""

from __future__ import annotations

from clearhead.messages import UserError, say
from clearhead.models.choices import GELU, GELUTanh, LayerNorm, ReLU, RMSNorm, Rotary, SwiGLU
from clearhead.models.config import DecoderConfig

PRESETS: dict[str, DecoderConfig] = {
    # The notes' own: ReLU, q/k/v without bias, a head of its own with bias, dropout 0.2.
    "course": DecoderConfig(
        vocab=65,
        layers=6,
        heads=6,
        width=384,
        context=256,
        dropout=0.2,
        activation=ReLU(),
        tied=False,
        bias=True,
        head_bias=True,
    ),
    # nanoGPT's recipe for a CPU.
    "nanogpt": DecoderConfig(
        vocab=65, layers=4, heads=4, width=128, context=64, activation=GELU(), norm=LayerNorm(bias=False)
    ),
    # Radford et al. 2019, the smallest.
    "gpt2": DecoderConfig(
        vocab=50_257,
        layers=12,
        heads=12,
        width=768,
        context=1024,
        dropout=0.1,
        activation=GELUTanh(),
        qkv_bias=True,
        bias=True,
    ),
    # The shape of Llama 2 (7B) and after: rotary, RMSNorm, SwiGLU, no bias.
    "llama": DecoderConfig(
        vocab=32_000,
        layers=32,
        heads=32,
        width=4096,
        feedforward_width=11_008,
        context=4096,
        activation=SwiGLU(),
        norm=RMSNorm(eps=1e-5),
        positions=Rotary(),
        tied=False,
    ),
    # Qwen2 0.5B: grouped queries, and biases on q, k, v alone.
    "qwen2": DecoderConfig(
        vocab=151_936,
        layers=24,
        heads=14,
        kv_heads=2,
        width=896,
        feedforward_width=4864,
        context=32_768,
        activation=SwiGLU(),
        norm=RMSNorm(eps=1e-6),
        positions=Rotary(theta=1e6),
        qkv_bias=True,
    ),
    # Qwen3 0.6B: normalised queries and keys, heads wider than width / heads.
    "qwen3": DecoderConfig(
        vocab=151_936,
        layers=28,
        heads=16,
        kv_heads=8,
        width=1024,
        head_width=128,
        feedforward_width=3072,
        context=40_960,
        activation=SwiGLU(),
        norm=RMSNorm(eps=1e-6),
        positions=Rotary(theta=1e6),
        qk_norm=True,
    ),
}


def preset(name: str) -> DecoderConfig:
    """The published configuration called `name`.

    Raises:
        UserError: if there is none.
    """
    if name not in PRESETS:
        raise UserError(say("models.no_preset", name=name, known=", ".join(PRESETS)))
    return PRESETS[name]
