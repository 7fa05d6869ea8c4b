"""Every single change of a configuration that leaves its weights usable."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from clearhead.checking.diff.choice_words import called
from clearhead.checking.diff.variation import Variation, changed
from clearhead.checking.diff.variations_built import of_parts
from clearhead.checking.diff.variations_positions import of_positions
from clearhead.messages import say
from clearhead.models import choices
from clearhead.models.config import DecoderConfig, StackConfig

EPSILONS = (1e-5, 1e-6, 1e-12, 1e-8, 1e-3, 1e-7, 1e-4, 2e-5, 1e-9, 1e-10)
"""What is usual for a norm, the commonest first."""

CAPS = (50.0, 30.0, 20.0, 100.0, 10.0, 5.0)
"""What is usual for a soft-cap."""

HEADS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 25, 32)
"""How many heads are usual."""

PLAIN = (choices.GELU(), choices.GELUTanh(), choices.ReLU(), choices.ReLUSquared())
GATED = (choices.SwiGLU(), choices.GEGLU(), choices.GEGLUTanh())


def variations(config: StackConfig, length: int | None = None) -> Iterator[Variation]:
    """Every single change, the commonest kinds first.

    Args:
        config: of a decoder, an encoder or an encoder-decoder.
        length: how many tokens will be read; windows of up to so many keys are tried, and no longer offset than fits.

    Yields:
        Changes of a field, and of a built part where no field says it. A norm's eps, say, is that of all norms of the model.
    """
    seen = {config}
    for each in (*_of_activation(config), *_of_norms(config), *_of_blocks(config), *_of_scores(config, length)):
        if each.config not in seen:
            seen.add(each.config)
            yield each
    yield from of_positions(config, length)
    for each in (*_of_ends(config), *_of_biases(config)):
        if each.config not in seen:
            seen.add(each.config)
            yield each
    yield from of_parts(config)


def _of_activation(config: StackConfig) -> Iterator[Variation]:
    before = called(config.activation)
    for each in GATED if isinstance(config.activation, choices.Gated) else PLAIN:
        texts = (
            say("variations.activation", value=before),
            say("variations.activation", value=called(each)),
        )
        yield from changed(config, "activation.variant", texts, {"activation": each})


def _of_norms(config: StackConfig) -> Iterator[Variation]:
    norm = config.norm
    for eps in EPSILONS:
        texts = (say("variations.eps", value=f"{norm.eps:g}"), say("variations.eps", value=f"{eps:g}"))
        yield from changed(config, "norm.eps-value", texts, {"norm": with_eps(norm, eps)})
    if isinstance(norm, choices.RMSNorm):
        gains = ("w", "1 + w")
        texts = (say("variations.gain", value=gains[norm.offset]), say("variations.gain", value=gains[not norm.offset]))
        yield from changed(config, "norm.offset", texts, {"norm": replace(norm, offset=not norm.offset)})
        if not norm.offset:
            yield from _other_norm(config, choices.LayerNorm(eps=norm.eps, bias=False))
    if isinstance(norm, choices.LayerNorm):
        yield from _other_norm(config, choices.RMSNorm(eps=norm.eps))
        if norm.bias:
            texts = (
                say("variations.shift", value=say("variations.word.there")),
                say("variations.shift", value=say("variations.word.missing")),
            )
            yield from changed(config, "norm.shift", texts, {"norm": replace(norm, bias=False)})


def with_eps(norm: choices.Norm, eps: float) -> choices.Norm:
    """The same norm with another eps."""
    match norm:
        case choices.LayerNorm() | choices.RMSNorm():
            return replace(norm, eps=eps)
    raise TypeError(f"no eps is known of {norm!r}")


def _other_norm(config: StackConfig, norm: choices.Norm) -> Iterator[Variation]:
    texts = (
        say("variations.norm", value=type(config.norm).__name__),
        say("variations.norm", value=type(norm).__name__),
    )
    yield from changed(config, "norm.kind", texts, {"norm": norm})


def _of_blocks(config: StackConfig) -> Iterator[Variation]:
    parallel = (choices.Parallel(), choices.Parallel(shared=True))
    for block in (choices.PreNorm(), choices.PostNorm(), *parallel, choices.AroundNorm()):
        texts = (
            say("variations.placement", value=called(config.block)),
            say("variations.placement", value=called(block)),
        )
        yield from changed(config, "norm.placement", texts, {"block": block})


def _of_scores(config: StackConfig, length: int | None) -> Iterator[Variation]:
    width, model_width = config.width_of_head, config.width
    before = config.attention_scale or width**-0.5
    scales = {
        "scale.head-width": width**-0.5,
        "scale.missing": 1.0,
        "scale.model-width": model_width**-0.5,
        "scale.heads": (model_width / config.heads) ** -0.5,
        "scale.twice": 1.0 / width,
        "scale.inverted": math.sqrt(width),
        "scale.length": length**-0.5 if length else before,
    }
    for id, scale in scales.items():
        if not math.isclose(scale, before):
            texts = (say("variations.scale", value=f"{before:.6g}"), say("variations.scale", value=f"{scale:.6g}"))
            yield from changed(config, id, texts, {"attention_scale": scale})
    yield from _of_heads(config)
    if isinstance(config, DecoderConfig):
        yield from _of_windows(config, length)
    for cap in (None, *CAPS):
        texts = (
            say("variations.softcap", value=config.softcap or say("variations.word.identity")),
            say("variations.softcap", value=cap or say("variations.word.identity")),
        )
        yield from changed(config, "attention.softcap", texts, {"softcap": cap})
    for field, id, text in (("sinks", "attention.sinks", _sinks), ("qk_norm", "attention.qk-norm", _qk_norm)):
        there = bool(getattr(config, field))
        yield from changed(config, id, (text(there), text(not there)), {field: not there})


def _of_heads(config: StackConfig) -> Iterator[Variation]:
    """The same matrices shared out to fewer heads, or more; not where a head has weights of its own size."""
    if config.key_value_heads != config.heads or config.width_of_head * config.heads != config.width:
        return
    if config.sinks or config.qk_norm or isinstance(config.positions, choices.Relative):
        return
    for heads in (n for n in HEADS if n != config.heads and config.width % n == 0):
        texts = (say("variations.heads", value=config.heads), say("variations.heads", value=heads))
        yield from changed(config, "heads.number", texts, {"heads": heads, "kv_heads": None, "head_width": None})


def _sinks(there: bool) -> str:
    return say("variations.sinks", value=_there(there))


def _qk_norm(there: bool) -> str:
    return say("variations.qk_norm", value=_there(there))


def _of_windows(config: DecoderConfig, length: int | None) -> Iterator[Variation]:
    """One key more or fewer, no window, any window that the text shows; in a cycle, of the blocks that have one."""
    windows = dict.fromkeys(sight.window for sight in config.cycle) if config.cycle else [config.window]
    for window in windows:
        near: list[int | None] = [window + 1, window - 1] if window else []
        some = near if config.cycle else [*near, *range(1, length or 1)]
        for other in [*some, None]:
            if other == 0 or (other is None and window is None):
                continue
            id = "window.off-by-one" if other in near else "attention.window"
            texts = (_window(window), _window(other))
            fields: dict[str, Any] = {"window": other}
            if config.cycle:
                cycle = tuple(replace(s, window=other) if s.window == window else s for s in config.cycle)
                fields = {"cycle": cycle}
            yield from changed(config, id, texts, fields)


def _window(window: int | None) -> str:
    if window is None:
        return say("variations.sight", value=say("variations.word.every"))
    return say("variations.window", value=window)


def _of_ends(config: StackConfig) -> Iterator[Variation]:
    """The embedding and the head."""
    root = f"sqrt({config.width})"
    factors = ("1", root)
    texts = [
        say("variations.embedding", value=factors[way]) for way in (config.scale_embedding, not config.scale_embedding)
    ]
    fields: dict[str, Any] = {"scale_embedding": not config.scale_embedding}
    yield from changed(config, "embedding.scale", (texts[0], texts[1]), fields)
    factors = ("1", f"1/{root}")
    texts = [say("variations.head_scale", value=factors[way]) for way in (config.scale_head, not config.scale_head)]
    yield from changed(config, "head.scale", (texts[0], texts[1]), {"scale_head": not config.scale_head})
    if not config.tied:
        both = (
            say("variations.tied", value=say("variations.word.own")),
            say("variations.tied", value=say("variations.word.embedding")),
        )
        yield from changed(config, "head.tied", both, {"tied": True})
    there = config.embedding_norm
    both = (
        say("variations.embedding_norm", value=_there(there)),
        say("variations.embedding_norm", value=_there(not there)),
    )
    yield from changed(config, "embedding.norm", both, {"embedding_norm": not there})


def _of_biases(config: StackConfig) -> Iterator[Variation]:
    """A bias that is there, left out."""
    mixing = config.mixing_bias
    for there, text, fields in (
        (config.qkv_bias, _bias_qkv, {"qkv_bias": False}),
        (mixing, _bias_output, {"output_bias": False}),
        (config.bias, _bias_feedforward, {"bias": False, "output_bias": mixing}),
        (config.head_bias, _bias_head, {"head_bias": False}),
    ):
        if there:
            yield from changed(config, "projection.bias", (text(True), text(False)), dict(fields))


def _bias_qkv(there: bool) -> str:
    return say("variations.bias_qkv", value=_there(there))


def _bias_output(there: bool) -> str:
    return say("variations.bias_output", value=_there(there))


def _bias_feedforward(there: bool) -> str:
    return say("variations.bias_feedforward", value=_there(there))


def _bias_head(there: bool) -> str:
    return say("variations.bias_head", value=_there(there))


def _there(there: bool) -> str:
    return say("variations.word.there") if there else say("variations.word.missing")
