"""What a module of sequences claims about who sees whom."""

from __future__ import annotations

import re

import torch
from torch import nn

from clearhead.checking.claims import size, stated
from clearhead.checking.settings import Settings
from clearhead.checking.target import Target

DENIED = r"(is_)?causal\s*[:=]\s*(bool\s*=\s*)?False|(non|not|no|without|un)[- _]?(a )?causal|bidirectional|acausal"
CAUSAL_WORDS = r"\btril\b|\btriu\b|tril_|triu_|causal|autoregressive|auto-regressive|look.?ahead|subsequent|future"
CAUSAL_NAMES = r"causal|masked|autoregressive|decoder|gpt"


def causal(target: Target, settings: Settings) -> bool | None:
    """Whether the code claims that a position sees no later one; None if it says nothing of it."""
    if settings.causal is not None:
        return settings.causal
    said = stated(
        target, "causal", "is_causal", "use_causal_mask", "causal_mask", "masked", "autoregressive", "is_decoder"
    )
    if isinstance(said, bool):
        return said
    for name in ("is_causal", "causal", "use_causal_mask"):
        parameter = target.signature.parameters.get(name)
        if parameter is not None and isinstance(parameter.default, bool):
            return parameter.default
    name = getattr(target.kind_of, "__name__", "")
    if re.search(CAUSAL_NAMES, name, re.IGNORECASE) and not re.search(DENIED, name, re.IGNORECASE):
        return True
    if triangles(target):
        return True
    text = re.sub(DENIED, " ", target.source, flags=re.IGNORECASE)
    return True if re.search(CAUSAL_WORDS, text, re.IGNORECASE) else None


def triangles(target: Target) -> list[str]:
    """The buffers and tensors that are triangular and square: masks of causality, whatever they are called."""
    made = target.make()
    if not isinstance(made, nn.Module):
        return []
    plain = {name: value for name, value in vars(made).items() if isinstance(value, torch.Tensor)}
    held = dict(made.named_buffers()) | plain
    return [name for name, value in held.items() if _triangular(value)]


def _triangular(value: torch.Tensor) -> bool:
    while value.dim() > 2 and value.shape[0] == 1:
        value = value[0]
    if value.dim() != 2 or value.shape[0] != value.shape[1] or value.shape[0] < 3:
        return False
    upper = value.triu(1)[torch.ones_like(value, dtype=torch.bool).triu(1)]
    lower = value[torch.ones_like(value, dtype=torch.bool).tril(-1)]
    return bool((upper == upper[0]).all() and (lower == lower[0]).all() and upper[0] != lower[0])


def window(target: Target, settings: Settings) -> int | None:
    """How many keys a query is claimed to see, itself included; None if nothing is claimed or all are seen."""
    said = size(target, settings, "window")
    if said is None:
        said = stated(target, "window_size", "sliding_window", "local_window", "window_len", "attention_window")
        said = said if isinstance(said, int) and not isinstance(said, bool) else None
    return said if said is not None and said > 0 else None
