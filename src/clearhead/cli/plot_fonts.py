"""Fonts for pictures: matplotlib's own has no Chinese signs, and a machine may have others."""

from __future__ import annotations

FONT = "DejaVu Sans"
"""Comes with matplotlib."""

CJK_FONTS = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Microsoft YaHei",
    "Hiragino Sans GB",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "SimHei",
    "Arial Unicode MS",
)
"""Those that have Chinese signs, on one system or another."""

FAMILY = ", ".join([f"'{FONT}'", *(f"'{name}'" for name in CJK_FONTS), "sans-serif"])
"""For an SVG or a page, whose reader may have any of them."""


def installed() -> list[str]:
    """The fonts of this machine to draw with; the first that has a sign draws it."""
    from matplotlib import font_manager  # noqa: PLC0415 - an extra that only pictures need

    there = set(font_manager.get_font_names())
    return [FONT, *(name for name in CJK_FONTS if name in there)]


def drawable(text: str) -> bool:
    """Whether some font of this machine has each sign of `text`."""
    from matplotlib import font_manager  # noqa: PLC0415

    fonts = [font_manager.get_font(font_manager.findfont(name)) for name in installed()]
    return all(any(font.get_char_index(ord(sign)) for font in fonts) for sign in set(text))
