"""The script of a character: Latin, Greek, Han, kana, ... or what it is instead of a letter.

Unicode's table of scripts is not in Python; its names and categories are, and they suffice: the name of a letter begins
with its script ("CYRILLIC SMALL LETTER A"), whichever of the two widths it has. What is no letter is told by its category.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

from clearhead.text.code_points import code_points

__all__ = ["SCRIPTS", "script_of", "script_places"]

_NAMES = {
    "Latin": "latin",
    "Greek": "greek",
    "Cyrillic": "cyrillic",
    "Han": "cjk ideographic hangzhou",
    "Kana": "hiragana katakana katakana-hiragana",
    "Hangul": "hangul",
    "Bopomofo": "bopomofo",
    "Arabic": "arabic",
    "Hebrew": "hebrew",
    "Devanagari": "devanagari",
    "Bengali": "bengali",
    "Tamil": "tamil",
    "Telugu": "telugu",
    "Thai": "thai",
    "Lao": "lao",
    "Khmer": "khmer",
    "Myanmar": "myanmar",
    "Tibetan": "tibetan",
    "Mongolian": "mongolian",
    "Georgian": "georgian",
    "Armenian": "armenian",
    "Ethiopic": "ethiopic",
}
"""Script -> the first words of the names of its letters."""

_OF_NAME = {word: script for script, words in _NAMES.items() for word in words.split()}

SCRIPTS = (*_NAMES, "other letters", "digits", "punctuation", "symbols", "white space", "other")
"""Everything that `script_of` may answer."""

_WIDTHS = ("fullwidth ", "halfwidth ")
_OF_CATEGORY = {"L": "other letters", "N": "digits", "P": "punctuation", "S": "symbols"}
_UNKNOWN = len(SCRIPTS)


@cache
def script_of(character: str) -> str:
    """The script of a letter, or of a mark that belongs to one script; otherwise the kind of sign.

    White space is what `str.isspace` takes for it. Digits are numbers of every form, also ½ and Ⅷ, but not 〇, which is
    Han. "other" are marks of no script (a combining acute), control and format codes, and what is not assigned.
    """
    if character.isspace():
        return "white space"
    category = unicodedata.category(character)
    name = unicodedata.name(character, "").lower()
    for width in _WIDTHS:
        name = name.removeprefix(width)
    script = _OF_NAME.get(name.partition(" ")[0])
    if script and (category[0] in "LM" or category == "Nl"):
        return script
    return _OF_CATEGORY.get(category[0], "other")


def script_places(text: str) -> NDArray[np.uint8]:
    """The script of each character of a text, as its place in `SCRIPTS`."""
    points = code_points(text)
    table = _table()
    places = table[points]
    if (places == _UNKNOWN).any():
        # Each character is looked up once in the life of the process, and only those that occur.
        for point in np.unique(points[places == _UNKNOWN]).tolist():
            table[point] = SCRIPTS.index(script_of(chr(point)))
        places = table[points]
    return places


@cache
def _table() -> NDArray[np.uint8]:
    """The place of each code point's script, `_UNKNOWN` where nobody has asked yet; filled by `script_places`."""
    return np.full(0x110000, _UNKNOWN, dtype=np.uint8)
