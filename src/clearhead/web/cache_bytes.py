"""What a cache weighs: as the model keeps it, and as it would with other heads or a window. Imports without torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.cost import cache_elements

PART = 4
"""A window that is an example sees so much of the context: a quarter."""


def sizes(
    config: DecoderConfig | EncoderDecoderConfig, bytes_each: int, prompt: int, ring: int | None
) -> dict[str, dict[str, Any]]:
    """Bytes of keys and values, 2 · L · K · d · S · `bytes_each`, for this model and for others of its size.

    Args:
        config: of the model.
        bytes_each: of a number.
        prompt: tokens of the prompt.
        ring: how many tokens are kept at most; None if all are.

    Returns:
        `own`; `multi_head` (K = H); `grouped` (the model's own K, or an example, absent where H has no divisor for one); `multi_query`
        (K = 1); `window`, the model's own or an example. Each `{kv_heads, window, token, prompt, context}`: bytes of one token, of the
        prompt, and of a full context; `window` the widest of the layers, null where all is kept.
    """
    heads, own = config.heads, config.key_value_heads
    grouped = own if 1 < own < heads else middle_divisor(heads)
    found = {"own": kept_alike(config, bytes_each, prompt, ring)}
    for name, groups in (("multi_head", heads), ("grouped", grouped), ("multi_query", 1)):
        if groups is not None:
            found[name] = kept_alike(replace(config, kv_heads=groups), bytes_each, prompt, ring)
    return found | {"window": kept_by_window(config, bytes_each, prompt)}


def kept_alike(
    config: DecoderConfig | EncoderDecoderConfig, bytes_each: int, prompt: int, ring: int | None
) -> dict[str, Any]:
    """A cache in which every layer keeps the last `ring` tokens, or all."""

    def of(tokens: int) -> int:
        return bytes_each * cache_elements(config, 1, tokens if ring is None else min(tokens, ring), source=0)

    return described(config, ring, of(1), of(prompt), of(config.context))


def kept_by_window(config: DecoderConfig | EncoderDecoderConfig, bytes_each: int, prompt: int) -> dict[str, Any]:
    """A cache in which each layer keeps what its window may see; where no layer has one, all have a quarter of the context."""
    windows = [sight.window for sight in config.sights]
    if windows == [None] * config.layers:
        windows = [max(1, config.context // PART)] * config.layers
    a_layer = bytes_each * cache_elements(replace(config, layers=1), 1, 1, source=0)

    def of(tokens: int) -> int:
        return a_layer * sum(tokens if window is None else min(tokens, window) for window in windows)

    widest = max(window for window in windows if window is not None)
    return described(config, widest, of(1), of(prompt), of(config.context))


def described(
    config: DecoderConfig | EncoderDecoderConfig, window: int | None, token: int, prompt: int, context: int
) -> dict[str, Any]:
    """A cache as plain data: bytes of a token, of the prompt and of a full context."""
    heads = config.key_value_heads
    return {"kv_heads": heads, "window": window, "token": token, "prompt": prompt, "context": context}


def memory_bytes(config: DecoderConfig | EncoderDecoderConfig, bytes_each: int, source: int) -> int:
    """Bytes of the keys and values of a source, for all layers of a decoder; 0 where there is none.

    Args:
        config: of the model.
        bytes_each: of a number.
        source: tokens of it.
    """
    if isinstance(config, DecoderConfig):
        return 0
    return bytes_each * cache_elements(config, 1, 0, source=source)


def middle_divisor(heads: int) -> int | None:
    """The divisor of `heads` next to its root, neither 1 nor all; None if there is none."""
    between = [number for number in range(2, heads) if heads % number == 0]
    return min(between, key=lambda number: (abs(number * number - heads), number), default=None)
