"""The factors of q kᵀ by their formulas, and what the wrong ones are called."""

from __future__ import annotations

SCALES = {
    "1": "scale.missing",
    "1 / d": "scale.twice",
    "sqrt(d)": "scale.inverted",
    "1 / sqrt(D)": "scale.model-width",
    "1 / sqrt(T)": "scale.length",
}
"""The names of factors of q kᵀ that are not 1 / sqrt(d)."""


def _scales(width: int, heads: int, length: int) -> dict[str, float]:
    return {
        "1": 1.0,
        "1 / sqrt(d)": width**-0.5,
        "1 / d": 1.0 / width,
        "sqrt(d)": width**0.5,
        "1 / sqrt(D)": (width * heads) ** -0.5,
        "1 / sqrt(T)": length**-0.5,
        "1 / sqrt(H)": heads**-0.5,
        "d": float(width),
    }


def scale_words(c: float, width: int, heads: int, length: int) -> str:
    """A factor of scores by its formula."""
    for words, value in _scales(width, heads, length).items():
        if abs(c / value - 1) < 1e-5:
            return f"{words} = {c:.6g}"
    return f"{c:.6g}"


def scale_id(factors: tuple[float, float], width: int, heads: int, length: int) -> str:
    """The name of the factor that is not 1 / sqrt(d)."""
    values = _scales(width, heads, length)
    right = values["1 / sqrt(d)"]
    odd = [c for c in factors if abs(c / right - 1) > 1e-5]
    for words, name in SCALES.items():
        if len(odd) == 1 and abs(odd[0] / values[words] - 1) < 1e-5:
            return name
    return "scale.factor"
