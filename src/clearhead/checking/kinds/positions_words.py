"""What code of positions says of its axes, its start and its frequencies."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from clearhead.checking.kinds.norm_words import words
from clearhead.checking.target import Target

_T = r"(?:[TtSsLl]|seq(?:uence)?(?:_?len(?:gth)?)?|src_len|time|length|tokens?)"
_B = r"(?:[BbN]|bs|bsz|batch(?:_size)?)"


def says_batch_first(target: Target) -> bool:
    """Whether x is said to be (B,T,D)."""
    if re.search(r"batch_first\s*(:\s*bool\s*)?=\s*True", target.source):
        return True
    return _ordered(target, _B, _T) and not _ordered(target, _T, _B)


def says_seq_first(target: Target) -> bool:
    """Whether x is said to be (T,B,D)."""
    if re.search(r"batch_first\s*(:\s*bool\s*)?=\s*False", target.source):
        return True
    return _ordered(target, _T, _B) and not _ordered(target, _B, _T)


def _ordered(target: Target, first: str, second: str) -> bool:
    between = r"\s*(?:,|\s|\bx\b|×)\s*"
    return re.search(rf"(?<![\w.]){first}{between}{second}(?![\w(])", f"{words(target)}\n{target.source}") is not None


def says_other_start(target: Target) -> bool:
    """Whether positions may start elsewhere than at 0."""
    pattern = r"padding_idx|pad_idx|\boffset\b|fairseq|one.?based|1.?based|start\w* (at|from|with) (1|one)|reserved|cls_?token|behind the pad"
    return re.search(pattern, target.source, re.IGNORECASE) is not None


def says_random(target: Target) -> bool:
    """Whether frequencies may be anything."""
    pattern = r"random|randn|fourier|gauss|learn|axial|2d|linspace|wavelength|scal(e|ing)_factor|logspace|relative|rff"
    return re.search(pattern, target.source, re.IGNORECASE) is not None


def says_sinusoids(target: Target) -> bool:
    """Whether sine and cosine are both taken, or said to be."""
    text = f"{target.source} {target.values}"
    both = re.search(r"\bsin\b|\bsin_\(", text) and re.search(r"\bcos\b|\bcos_\(", text)
    return bool(both) or re.search(r"sinus|sincos|sin_cos", text, re.IGNORECASE) is not None


def bases(target: Target, stated: Callable[..., Any]) -> tuple[float | None, float | None]:
    """The base that an attribute or parameter states, and 10000 if the source has that number."""
    value = stated(target, "base", "theta", "max_period", "temperature", "max_timescale")
    if value is None:
        names = ("base", "theta", "max_period", "max_timescale")
        value = next((p.default for name, p in target.signature.parameters.items() if name in names), None)
    said = float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 1 else None
    literal = re.search(r"10_?000(\.0*)?\b|1e4|1\.0e4", target.source)
    return said, 10_000.0 if literal else None
