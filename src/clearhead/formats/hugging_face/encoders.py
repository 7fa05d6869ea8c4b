"""What the families with an encoder share: the simplest form of a configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from clearhead.models.choices import Auto, MaskedToken
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig

Kind = TypeVar("Kind", EncoderConfig, EncoderDecoderConfig)


def simplest(config: Kind) -> Kind:
    """The same model, nothing said that goes without saying: two configurations of one model become equal.

    The kernel is no part of a model that others could read.
    """
    same: dict[str, Any] = {
        "kv_heads": config.heads,
        "head_width": config.width / config.heads,
        "feedforward_width": 4 * config.width,
        "output_bias": config.bias,
        "attention_scale": config.width_of_head**-0.5,
    }
    if isinstance(config, EncoderDecoderConfig):
        same |= {"encoder_layers": config.layers, "source_context": config.context}
    told: dict[str, Any] = {name: None for name, value in same.items() if getattr(config, name) == value}
    if isinstance(config, EncoderConfig) and not isinstance(config.head, MaskedToken):
        # There are no logits that could share the embedding's weights, or be made of scaled features.
        told["tied"] = True
    return replace(config, **told, kernel=Auto())
