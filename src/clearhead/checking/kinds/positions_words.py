"""What code of positions says of its axes, its start and its frequencies."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from clearhead.checking.kinds.norm_words import with_helpers, words
from clearhead.checking.target import Target

USUAL_BASE = r"10_?000(\.0*)?\b|1e4|1\.0e4"
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
    if re.search(r"(seq(uence)?|length|time)s?[ _-]?(first|major)", f"{words(target)} {target.source}", re.IGNORECASE):
        return True
    return _ordered(target, _T, _B) and not _ordered(target, _B, _T)


def file_counts_rows_first(target: Target) -> bool:
    """Whether the other code of its file counts positions along the second axis, and never turns the first two round."""
    try:
        text = inspect.getsource(inspect.getmodule(target.kind_of) or target.kind_of)
    except (OSError, TypeError):
        return False
    text = text.replace(target.source, "")
    if re.search(
        r"(transpose|swapaxes|swapdims)\(\s*0\s*,\s*1|(transpose|swapaxes)\(\s*1\s*,\s*0|permute\(\s*1\s*,\s*0|batch_first\s*=\s*False",
        text,
    ):
        return False
    if _has_order(text, _T, _B):
        return False
    along = r"(arange\(|:\s*)\w+\.(size\(1\)|shape\[1\])|batch_first\s*=\s*True"
    return _has_order(text, _B, _T) or re.search(along, text) is not None


def _ordered(target: Target, first: str, second: str) -> bool:
    return _has_order(f"{words(target)}\n{target.source}", first, second)


def _has_order(text: str, first: str, second: str) -> bool:
    between = r"\s*(?:,|\s|\bx\b|×)\s*"
    return re.search(rf"(?<![\w.]){first}{between}{second}(?![\w(])", text) is not None


def says_other_start(target: Target) -> bool:
    """Whether positions may start elsewhere than at 0."""
    pattern = r"padding_idx|pad_idx|\boffset\b|fairseq|one.?based|1.?based|start\w* (at|from|with) (1|one)|reserved|cls_?token|behind the pad"
    return re.search(pattern, target.source, re.IGNORECASE) is not None


def says_random(target: Target) -> bool:
    """Whether frequencies may be anything."""
    pattern = (
        r"random|randn|fourier|gauss|learn|axial|2d|grid|linspace|wavelength|scal(e|ing)_factor|logspace|relative|rff"
    )
    return re.search(pattern, with_helpers(target), re.IGNORECASE) is not None


def says_sinusoids(target: Target) -> bool:
    """Whether sine and cosine are both taken, or one with the usual base, or they are said to be."""
    text = f"{with_helpers(target)} {target.values}"
    sine, cosine = re.search(r"\bsin\b|\bsin_\(", text), re.search(r"\bcos\b|\bcos_\(", text)
    both = (sine and cosine) or ((sine or cosine) and re.search(USUAL_BASE, text))
    return bool(both) or re.search(r"sinus|sincos|sin_cos", text, re.IGNORECASE) is not None


def bases(target: Target, stated: Callable[..., Any]) -> tuple[float | None, float | None]:
    """The base that an attribute or parameter states, and 10000 if the source has that number."""
    value = stated(target, "base", "theta", "max_period", "temperature", "max_timescale")
    if value is None:
        names = ("base", "theta", "max_period", "max_timescale")
        value = next((p.default for name, p in target.signature.parameters.items() if name in names), None)
    said = float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 1 else None
    literal = re.search(USUAL_BASE, with_helpers(target))
    return said, 10_000.0 if literal else None
