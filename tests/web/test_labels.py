"""What tokens are called beside a picture: whole characters, blanks that can be seen, and which bytes of a character that is shared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.scripts import told

FAMILY = "👩‍👩‍👧"
TEXT = f"a 猫{FAMILY}\n"


def token(start: int, end: int, piece: str = "", part: list[int] | None = None) -> dict[str, Any]:
    """A token as /tokens tells it."""
    return {"id": 7, "piece": piece, "start": start, "end": end, "bytes": part}


def labels(part: str, tokens: list[dict[str, Any]], source: Any = None, change: tuple[str, str] = ("", "")) -> Any:
    """What the page calls them, as queries and as keys."""
    answer = json.dumps({"text": TEXT, "tokens": tokens, "source": source})
    return told("labels.js", f"page.labelsOf({answer}, {json.dumps(part)})", change)


TOKENS = [
    token(0, 0, "<begin>"),
    token(0, 1),
    token(1, 3),
    token(2, 3, part=[0, 1]),
    token(2, 3, part=[2, 2]),
    token(2, 3, part=[0, 2]),
    token(3, 8),
    token(8, 9),
]
NAMES = ["<begin>", "a", "·猫", "猫₀₋₁", "猫₂", "猫", FAMILY, "↵"]


def test_names_are_made_once_an_answer() -> None:
    answer = json.dumps({"text": TEXT, "tokens": TOKENS, "source": None})
    twice = f"((told) => page.labelsOf(told, 'attention').queries === page.labelsOf(told, 'encoder.attention').keys)({answer})"
    assert told("labels.js", twice) is True
    assert told("labels.js", twice, ("known.set(told, found);", "")) is False


@pytest.mark.parametrize(("text", "said"), [("a" * 14, "a" * 14), ("a" * 15, "a" * 13 + "…"), (FAMILY * 2, FAMILY * 2)])
def test_a_long_token_is_cut_at_a_whole_character(text: str, said: str) -> None:
    assert told("labels.js", f"page.visible({json.dumps(text)})") == said


def test_tokens_have_whole_characters_and_blanks_that_can_be_seen() -> None:
    assert labels("attention", TOKENS) == {"queries": NAMES, "keys": NAMES}


def test_characters_are_counted_as_python_counts_them() -> None:
    """Planted: a text whose halves of surrogates are counted."""
    assert labels("attention", TOKENS, change=("Array.from(told.text)", 'told.text.split("")'))["queries"] != NAMES


def test_a_mark_that_stands_alone_has_its_number() -> None:
    assert told("labels.js", 'page.visible("\\u200d")') == "U+200D"


def test_a_long_piece_is_cut_between_characters() -> None:
    long = told("labels.js", f"page.visible({json.dumps(FAMILY * 40)})")
    assert long == FAMILY * 13 + "…"
    cut = ("[...segments.segment(signs)].map((each) => each.segment)", "[...signs]")
    assert told("labels.js", f"page.visible({json.dumps(FAMILY * 40)})", cut) != long


def test_each_part_has_its_own_queries_and_keys() -> None:
    source = {"text": "xy", "tokens": [token(0, 1), token(1, 2)]}
    own, read = ["a"], ["x", "y"]
    tokens = [token(0, 1)]
    assert labels("encoder.attention", tokens, source) == {"queries": read, "keys": read}
    assert labels("decoder.attention", tokens, source) == {"queries": own, "keys": own}
    assert labels("decoder.cross_attention", tokens, source) == {"queries": own, "keys": read}
