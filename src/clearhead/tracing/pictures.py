"""Attention as a picture: for a terminal, as SVG, as PNG."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from torch import Tensor

from clearhead.messages import UserError, say
from clearhead.text.columns import columns_of, shown

SHADES = " ░▒▓█"
"""From a weight of 0 to a weight of 1, in equal steps; two of them are a cell."""

FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Microsoft YaHei", "PingFang SC", "WenQuanYi Micro Hei", "SimHei")
"""Those that a PNG's labels are drawn with, where they are installed; between them they have letters and Chinese signs."""

CELL = 18
"""Side of a cell in SVG, in pixels."""


def heat_text(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> str:
    """A head in shades for a terminal: a line a query, two columns a key.

    Args:
        weights: (T,S), from 0 to 1.
        queries: T tokens.
        keys: S tokens.
    """
    labels = [shown(token) for token in queries]
    margin = max(map(columns_of, labels), default=0)
    head = " " * (margin + 1) + "".join(_cell(shown(token)) for token in keys)
    lines = [head.rstrip()]
    for label, row in zip(labels, weights.tolist(), strict=True):
        shades = "".join(SHADES[min(int(weight * len(SHADES)), len(SHADES) - 1)] * 2 for weight in row)
        lines.append(f"{' ' * (margin - columns_of(label))}{label} {shades}".rstrip())
    return "\n".join(lines)


def heat_svg(weights: Tensor, queries: Sequence[str], keys: Sequence[str], title: str) -> str:
    """A head as SVG, which shows a weight's number under the pointer.

    Args:
        weights: (T,S), from 0 to 1.
        queries: T tokens.
        keys: S tokens.
        title: stands above.
    """
    # Tokens of several letters stand in their own width; a letter is about 8 pixels wide, a Chinese sign 14.
    margin = 12 + max((7 * columns_of(shown(token)) for token in [*queries, *keys]), default=0)
    width, height = margin + CELL * len(keys) + 10, margin + 24 + CELL * len(queries) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="8" y="17">{escape(title)}</text>',
    ]
    top = margin + 24
    for place, token in enumerate(keys):
        x = margin + CELL * place + 13
        parts.append(f'<text transform="translate({x},{top - 5}) rotate(-90)">{escape(shown(token))}</text>')
    for line, (token, row) in enumerate(zip(queries, weights.tolist(), strict=True)):
        y = top + CELL * line
        parts.append(f'<text x="{margin - 5}" y="{y + 13}" text-anchor="end">{escape(shown(token))}</text>')
        for place, weight in enumerate(row):
            tip = f"{shown(token)} → {shown(keys[place])}: {weight:.4f}"
            parts.append(
                f'<rect x="{margin + CELL * place}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" fill="{_blue(weight)}">'
                f"<title>{escape(tip)}</title></rect>"
            )
    return "\n".join([*parts, "</svg>", ""])


def heat_png(weights: Tensor, queries: Sequence[str], keys: Sequence[str], title: str, path: Path) -> bool:
    """A head as PNG, drawn by matplotlib; whether this machine has a font for every label.

    Args:
        weights: (T,S), from 0 to 1.
        queries: T tokens.
        keys: S tokens.
        title: stands above.
        path: the file.

    Raises:
        UserError: if matplotlib is not installed.
    """
    try:
        # Figures of its own, not pyplot's: no window, no state.
        from matplotlib import font_manager, rc_context  # noqa: PLC0415 - an extra that only this picture needs
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise UserError(say("tracing.no_matplotlib")) from None
    fonts = [name for name in FONTS if name in font_manager.get_font_names()]
    with warnings.catch_warnings(record=True) as missing, rc_context({"font.family": fonts}):
        warnings.simplefilter("always")
        figure = Figure(figsize=(1.5 + 0.28 * len(keys), 1.5 + 0.28 * len(queries)), dpi=120, layout="constrained")
        axes = figure.subplots()
        axes.imshow(weights.float().numpy(), cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(len(keys)), [shown(token) for token in keys], rotation=90)
        axes.set_yticks(range(len(queries)), [shown(token) for token in queries])
        axes.set_title(title, fontsize=9)
        figure.savefig(path)
    return not any("Glyph" in str(warning.message) for warning in missing)


def _blue(weight: float) -> str:
    """White for 0, dark blue for 1."""
    light = [round(255 + (dark - 255) * min(max(weight, 0.0), 1.0)) for dark in (8, 48, 107)]
    return f"#{light[0]:02x}{light[1]:02x}{light[2]:02x}"


def _cell(token: str) -> str:
    """The beginning of a token, two columns wide."""
    cell = ""
    for sign in token:
        if columns_of(cell + sign) > 2:
            break
        cell += sign
    return cell + " " * (2 - columns_of(cell))
