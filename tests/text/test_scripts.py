"""The script of a character, one by one and for whole texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.text import scripts
from clearhead.text.scripts import SCRIPTS, script_of, script_places

KNOWN = {
    "Latin": "aÉßŁＡ",
    "Greek": "αΩἄ",
    "Cyrillic": "Жёї",
    "Han": "小〇々〡㐀𠀀豈",
    "Kana": "ひカーｱゝ",
    "Hangul": "한ㄱᄀﾡ",
    "Bopomofo": "ㄅ",
    "Arabic": "عﷺ",
    "Hebrew": "א",
    "Devanagari": "अािं",
    "Bengali": "ক",
    "Tamil": "அ",
    "Telugu": "అ",
    "Thai": "กะ่",
    "Lao": "ກ",
    "Khmer": "ក",
    "Myanmar": "က",
    "Tibetan": "ཀ",
    "Mongolian": "ᠠ",
    "Georgian": "აა",
    "Armenian": "աԲ",
    "Ethiopic": "አ",
    "other letters": "ಅʰꦏ",
    "digits": "7७½Ⅷ９",
    "punctuation": ",。、，「-…",
    "symbols": "+$€😀→",
    "white space": " \n\t\u00a0\u3000",
    "other": "\u0301\0\u200d\ue000\ud800\U0010ffff",
}


def faults() -> list[str]:
    """The characters whose script is not found, alone or in a text."""
    alone = [sign for script, signs in KNOWN.items() for sign in signs if script_of(sign) != script]
    text = "".join(KNOWN.values())
    wanted = [SCRIPTS.index(script) for script, signs in KNOWN.items() for _ in signs]
    return alone + [
        sign for sign, found, place in zip(text, script_places(text), wanted, strict=True) if found != place
    ]


def test_every_script_has_its_characters() -> None:
    assert tuple(KNOWN) == SCRIPTS
    assert faults() == []


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kana and Han under one name; a table that remembers what it was told first."""
    script_of.cache_clear()
    scripts._table.cache_clear()
    try:
        with monkeypatch.context() as fault:
            fault.setitem(scripts._OF_NAME, "hiragana", "Han")
            assert faults() == ["ひ", "ゝ"] * 2
    finally:
        script_of.cache_clear()
        scripts._table.cache_clear()


@given(st.text(st.characters()))
def test_a_text_is_its_characters(text: str) -> None:
    assert [SCRIPTS[place] for place in script_places(text)] == [script_of(sign) for sign in text]
