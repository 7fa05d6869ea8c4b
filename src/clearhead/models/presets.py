"""Published models as configurations. Imports without torch."""

from __future__ import annotations

from clearhead.messages import UserError, say
from clearhead.models.choices import (
    GELU,
    GEGLUTanh,
    GELUTanh,
    LayerNorm,
    PostNorm,
    Relative,
    ReLU,
    RMSNorm,
    Rotary,
    Sinusoidal,
    SwiGLU,
)
from clearhead.models.config import DecoderConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig

PRESETS: dict[str, StackConfig] = {
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
    # Vaswani et al. 2017, the base model: source and target share one vocabulary, and the head its weights.
    "transformer": EncoderDecoderConfig(
        vocab=37_000,
        layers=6,
        heads=8,
        width=512,
        context=512,
        dropout=0.1,
        activation=ReLU(),
        block=PostNorm(),
        positions=Sinusoidal(),
        scale_embedding=True,
        qkv_bias=True,
        bias=True,
    ),
    # Devlin et al. 2019, the base model with its head of masked tokens; the pooled vector of pairs is not part of it.
    "bert": EncoderConfig(
        vocab=30_522,
        layers=12,
        heads=12,
        width=768,
        context=512,
        dropout=0.1,
        norm=LayerNorm(eps=1e-12),
        block=PostNorm(),
        segments=2,
        embedding_norm=True,
        qkv_bias=True,
        bias=True,
        head_bias=True,
    ),
    # Raffel et al. 2020 in version 1.1, the smallest: scores are not scaled; it was trained without dropout.
    "t5": EncoderDecoderConfig(
        vocab=32_128,
        layers=8,
        heads=6,
        width=512,
        head_width=64,
        feedforward_width=1024,
        context=512,
        activation=GEGLUTanh(),
        norm=RMSNorm(eps=1e-6),
        positions=Relative(buckets=32, farthest=128),
        attention_scale=1.0,
        tied=False,
    ),
    # Lewis et al. 2020, the base model. The published tables of positions have two rows more, which no token uses.
    "bart": EncoderDecoderConfig(
        vocab=50_265,
        layers=6,
        heads=12,
        width=768,
        context=1024,
        dropout=0.1,
        block=PostNorm(),
        embedding_norm=True,
        qkv_bias=True,
        bias=True,
        head_bias=True,
    ),
}


def preset(name: str) -> StackConfig:
    """The published configuration called `name`.

    Raises:
        UserError: if there is none.
    """
    if name not in PRESETS:
        raise UserError(say("models.no_preset", name=name, known=", ".join(PRESETS)))
    return PRESETS[name]
