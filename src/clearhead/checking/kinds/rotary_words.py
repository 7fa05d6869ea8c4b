"""What rotary code says of its axes and pairs."""

from __future__ import annotations

import re
from typing import Any

from clearhead.checking.claims import stated
from clearhead.checking.kinds.norm_words import with_helpers, words
from clearhead.checking.target import Target

_T = r"(?:[TtSsLlN]|seq(?:_?len(?:gth)?)?|slen|q_?len|time|length|tokens?|positions?|n_tokens|num_tokens|seqlen|ctx)"
_H = r"(?:[HhKk]|n?_?heads?|nh|n_?heads?|num_heads|n_head|n_kv_heads?|head)"
_B = r"(?:[Bb]|bs|bsz|batch(?:_size)?|n|N|bs?z)"
_LAST = r"(?:[A-Za-z_]\w*(?:\s*//?\s*2)?)"


def said_layout(target: Target) -> str:
    """The order of axes that the code states, "BHTd" or "BTHd"; "" if it states none.

    What the words say counts before what the statements name.
    """
    for text in (words(target), target.source):
        found = [layout for layout, order in (("BTHd", (_B, _T, _H)), ("BHTd", (_B, _H, _T))) if _has(text, order)]
        if len(found) == 1:
            return found[0]
    return ""


def _has(text: str, order: tuple[str, str, str]) -> bool:
    between = r"\s*(?:,|\s|\bx\b|×)\s*"
    return re.search(r"(?<![\w.])" + between.join([*order, _LAST]), text) is not None


HALVES = (
    r"half.?split|two halves|split\w* in(to)? half|NeoX|first half|second half|rotate.?half|\bhalves\b|i ?\+ ?d ?/+ ?2"
)
ADJACENT = r"interleav|adjacent|consecutive|neighbou?r|even.{0,12}odd|\(?2i, ?2i ?\+ ?1|GPT-?J|x0, ?x1"
DENIED = r"(not|non|un|no|never|without|instead of|rather than|unlike|vs\.?|or)[ -]+(the )?\w*[ -]?$"


def said_pairs(target: Target) -> str:
    """Which features form a pair as the code states: "half-split", "interleaved", or "" if it states nothing or both."""
    flag = stated(target, "interleaved", "interleave", "is_interleaved", "use_interleaved", "rotary_interleaved")
    if isinstance(flag, bool):
        return "interleaved" if flag else "half-split"
    neox = stated(target, "is_neox", "neox_style", "is_neox_style", "half_split", "neox", "rotate_half_style")
    if isinstance(neox, bool):
        return "half-split" if neox else "interleaved"
    parameter = target.signature.parameters.get("interleaved") or target.signature.parameters.get("interleave")
    if parameter is not None and isinstance(parameter.default, bool):
        return "interleaved" if parameter.default else "half-split"
    text = words(target)
    found = [name for name, pattern in (("half-split", HALVES), ("interleaved", ADJACENT)) if _says(text, pattern)]
    return found[0] if len(found) == 1 else ""


def _says(text: str, pattern: str) -> bool:
    hits = list(re.finditer(pattern, text, re.IGNORECASE))
    return any(not re.search(DENIED, text[max(0, hit.start() - 30) : hit.start()], re.IGNORECASE) for hit in hits)


def says_scaled(target: Target) -> bool:
    """Whether the frequencies may be others than a plain power."""
    pattern = r"scal|yarn|ntk|llama.?3|factor|dynamic|longrope|pixel|axial|2d|learn|lambda|xpos|sections|m.?rope|custom_freqs|freqs_for|extrapolat|interpolat|\bp-?rope"
    return re.search(pattern, target.source, re.IGNORECASE) is not None


def says_partial(target: Target) -> bool:
    """Whether it says that it turns a part of the features alone."""
    pattern = r"partial|fraction|rotary_?(dim|pct|ndims|percent)|rope_?dim|rot_?dim|pct\b|rest\b|pass"
    return re.search(pattern, target.source, re.IGNORECASE) is not None


def says_sixteen(target: Target) -> bool:
    """Whether the code says that it is run in 16 bits."""
    pattern = r"b?float_?16|\b[bf]p?16\b|\.half\(\)|autocast|16.bits?\b|half.precision|mixed.precision|\bamp\b"
    return re.search(pattern, f"{target.source} {target.values}", re.IGNORECASE) is not None


BASES = ("base", "theta", "rope_theta", "rotary_base", "rope_base", "freq_base", "base_freq", "rope_freq_base")


def said_base(target: Target) -> float | None:
    """The base that the code states; None if it states none."""
    value = stated(target, *BASES)
    if value is None:
        defaults = [p.default for name, p in target.signature.parameters.items() if name in BASES]
        value = next(iter(defaults), None)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 1 else None


def power_of(target: Target) -> float | None:
    """The base that the code states, or else 10000 where its source raises that number to a power."""
    literal = r"(10_?000(\.0*)?|1e4|1\.0e4)\)?\s*\*\*|(pow|log)\(\s*(torch\.tensor\()?(10_?000|1e4)"
    said = said_base(target)
    return said if said is not None else 10_000.0 if re.search(literal, with_helpers(target)) else None


def one_of(module: Any, name: str) -> str | None:
    """The first of the words that a module, or its configuration, lists for a parameter: `layer_types` for `layer_type`; None if none does."""
    for place in (module, getattr(module, "config", None)):
        words = getattr(place, f"{name}s", None)
        if isinstance(words, list | tuple) and words and all(isinstance(word, str) for word in words):
            return str(words[0])
    return None
