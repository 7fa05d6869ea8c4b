"""Text as a terminal shows it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.text.columns import columns_of, shown


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("猫a", 3), ("，", 2), ("e\u0301", 1), ("한글", 4), ("👩\u200d🚀", 4), ("☂\ufe0f", 1), ("", 0)],
)
def test_columns(text: str, columns: int) -> None:
    assert columns_of(text) == columns
    assert len(text) != columns or text in ("abc", ""), "counting characters would be wrong"


def test_what_nobody_would_see_is_shown() -> None:
    assert shown(" a\n\t\r\0\x1b\x7f") == "␣a↵⇥␍␀␛␡"
    assert shown("") == "∅"


@given(st.text(st.characters()))
def test_no_terminal_is_told_what_to_do(text: str) -> None:
    assert not any(unicodedata.category(sign) == "Cc" for sign in shown(text))
    assert not {"\u202e", "\u2067"} & set(shown(text + "\u202e\u2067"))
