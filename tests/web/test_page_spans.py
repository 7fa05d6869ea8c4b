"""The boxes over the characters of a prompt: no character is cut, whatever the tokens do."""

from __future__ import annotations

import json
from typing import Any

from tests.web.scripts import told

FAMILY = "👩‍👩‍👧"
TEXT = f"a猫{FAMILY}e\u0301\r\nz"
SPANS = [
    (0, 0),
    (0, 1),
    (1, 2),
    (1, 2),
    *[(place, place + 1) for place in range(2, 7)],
    (7, 8),
    (8, 9),
    (9, 10),
    (10, 11),
    (11, 12),
    (12, 12),
]


def boxes(change: tuple[str, str] = ("", "")) -> list[dict[str, Any]]:
    """Of a text with a character split over two tokens, one of five code points, an accent, and a line's end."""
    tokens = [{"id": 7, "piece": "", "start": start, "end": end} for start, end in SPANS]
    found: list[dict[str, Any]] = told("spans.js", f"page.boxes({json.dumps(TEXT)}, {json.dumps(tokens)})", change)
    return found


def test_boxes_hold_whole_characters() -> None:
    assert [box["text"] for box in boxes()] == ["", "a", "猫", FAMILY, "e\u0301", "\r\n", "z", ""]
    assert [len(box["tokens"]) for box in boxes()] == [1, 1, 2, 5, 2, 2, 1, 1]


def test_boxes_cover_the_text_and_every_token() -> None:
    assert "".join(box["text"] for box in boxes()) == TEXT
    assert [place for box in boxes() for place in box["tokens"]] == list(range(len(SPANS)))


def test_a_character_that_is_cut_is_found() -> None:
    """Planted: a family of emoji in five boxes; tokens that share a character in boxes of their own."""
    assert len(boxes(("inside.has(start) && start", "false && start"))) == 8 + 4 + 1 + 1
    assert [box["text"] for box in boxes(("start < last.end ||", "false ||"))].count("猫") == 2


def test_bytes_are_those_that_a_token_holds() -> None:
    letters = json.dumps(list("a猫"))
    whole, part = {"start": 1, "end": 2, "bytes": None}, {"start": 1, "end": 2, "bytes": [1, 2]}
    asked = f"[page.hex({letters}, {json.dumps(whole)}), page.hex({letters}, {json.dumps(part)})]"
    assert told("spans.js", asked) == [["E7", "8C", "AB"], ["8C", "AB"]]
    assert told("spans.js", asked, ("bytes[1] + 1", "bytes[1]"))[1] != ["8C", "AB"]


def test_blanks_are_seen() -> None:
    runs = told("spans.js", r'page.visible(" a\t\n\u200b")')
    assert [(run["text"], run["mark"]) for run in runs] == [("·", True), ("a", False), ("⇥↵U+200B", True)]
    assert told("spans.js", r'page.visible("\u0301")')[0]["text"] == "◌\u0301"
