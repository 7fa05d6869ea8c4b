"""What a file holds, on a line of ours."""

from __future__ import annotations

import pytest

from clearhead.text.lines import one_line, reason_of, shown

# It clears a screen, and names a window.
CODES = "q\x1b]0;PWN\x07\x1b[2J\0\u202e"


def is_a_line(text: str) -> bool:
    return bool(text) and text.isprintable()


def test_a_text_is_one_line() -> None:
    assert one_line(" a\n\n b\tc ") == "a b c"
    assert one_line("小猫 é") == "小猫 é"
    assert len(one_line("x" * 5000)) == 200
    assert one_line(CODES) == r"q\x1b]0;PWN\x07\x1b[2J\x00\u202e"


def test_an_error_is_one_line() -> None:
    assert reason_of(ValueError("\n first\nadvice")) == "first"
    assert reason_of(KeyError()) == "KeyError"
    assert reason_of(ValueError(f"Token `{CODES}`")).startswith(r"Token `q\x1b]0;PWN")


@pytest.mark.parametrize("word", ["", CODES, "x" * 5000, "a\nb"])
def test_a_word_is_shown_between_marks_if_it_must(word: str) -> None:
    assert shown(word) == repr(word[:60])
    assert is_a_line(shown(word))


def test_a_word_as_it_is() -> None:
    assert shown("model.layers.0.小猫") == "model.layers.0.小猫"


def test_what_is_joined_alone_would_be_seen() -> None:
    """The codes get through where white space alone is looked at."""
    assert not is_a_line(" ".join(CODES.split()))
