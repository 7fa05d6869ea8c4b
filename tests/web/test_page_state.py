"""The address of the page and its state are one; numbers are written as people read them; answers are read as they were packed."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from clearhead.web.answer import packed
from tests.web.scripts import told

STATE = {
    "view": "head",
    "text": "小猫 & <b> 100% #1\n+",
    "target": None,
    "part": "decoder.cross_attention",
    "layer": 3,
    "head": 0,
    "query": 0,
    "key": 11,
    "stage": "blocks.3.attention.q",
    "sort": "induction",
    "drawing": "arcs",
    "mask": "causal.window-8",
    "steps": 3,
    "held": "values",
    "at": "query",
    "align": "head",
    "lang": "zh",
    "theme": "dark",
}


def again(change: tuple[str, str] = ("", "")) -> dict[str, Any]:
    """The state that the address of a state holds."""
    found: dict[str, Any] = told("state.js", f"page.parsed(page.address({json.dumps(STATE)}))", change)
    return found


def test_a_link_holds_the_state() -> None:
    assert again() == STATE


def test_a_link_that_loses_something_is_found() -> None:
    """Planted: a number that is left out because it is 0."""
    assert again(("value !== FIRST[name] && value !== null", "value !== FIRST[name] && value")) != STATE


def test_an_empty_prompt_is_not_no_prompt() -> None:
    assert told("state.js", '[page.parsed("#text=").text, page.parsed("").text]') == ["", None]


NONSENSE = "#layer=-3&head=x&query=1e9&lang=fr&theme=pink&__proto__=1&constructor=2&view=flow"


def test_nonsense_in_a_link_is_passed_over() -> None:
    asked = f"[page.parsed({json.dumps(NONSENSE)}), {{...page.FIRST, view: 'flow'}}]"
    found, wanted = told("state.js", asked)
    assert found == wanted
    found, wanted = told("state.js", asked, ("!Object.hasOwn(FIRST, name)", "!(name in FIRST)"))
    assert found != wanted


def test_places_that_are_not_there_become_the_nearest() -> None:
    state = {**STATE, "layer": 9, "head": 8, "query": -1, "key": 40}
    model = {"kind": "encoder_decoder", "layers": 4, "encoder_layers": 2, "heads": 3}
    opened = {"tokens": [0] * 5, "source": {"tokens": [0] * 7}}

    def resolved(**more: Any) -> list[Any]:
        asked = f"page.resolved({json.dumps({**state, **more})}, {json.dumps(model)}, {json.dumps(opened)})"
        return [told("places.js", asked)[name] for name in ("part", "layer", "head", "query", "key")]

    assert resolved() == ["decoder.cross_attention", 3, 2, 4, 6]
    assert resolved(part="encoder.attention") == ["encoder.attention", 1, 2, 6, 6]
    assert resolved(part="decoder.attention", key=-1) == ["decoder.attention", 3, 2, 4, 0]
    assert resolved(part="nothing")[0] == "decoder.cross_attention"


def test_numbers_are_written_as_people_read_them() -> None:
    values = [0, 0.12345, -12.3456, 1234.56, 1.2344e-7, None]
    assert told("say.js", f"{json.dumps(values)}.map(page.figures)") == [
        "0",
        "0.1235",
        "−12.35",
        "1235",
        "1.234e−7",
        "–",
    ]
    assert told("say.js", "[page.short(999), page.short(5123456), page.bytes(1536), page.whole(49152)]") == [
        "999",
        "5.12\u202fM",
        "1.5\u202fKB",
        "49\u202f152",
    ]


def test_packed_numbers_are_read() -> None:
    few, many = np.array([[0, 255, 7]], np.uint8), np.array([0.5, -2.25], np.float32)
    body = base64.b64encode(packed({"about": "猫"}, [("few", few), ("many", many)]).body).decode()
    read = f'page.read("application/octet-stream", Uint8Array.from(Buffer.from("{body}", "base64")).buffer)'
    shown = f"(({{header, arrays}}) => [header.about, arrays.few.shape, [...arrays.few.data], [...arrays.many.data]])({read})"
    assert told("api.js", shown) == ["猫", [1, 3], [0, 255, 7], [0.5, -2.25]]
    assert told("api.js", shown, ("Math.ceil(data", "Math.floor(data"))[3] != [0.5, -2.25]


def test_a_question_has_one_name() -> None:
    assert told("api.js", '[page.question("tokens", {}), page.question("head", {part: "a b", layer: 3, head: 2})]') == [
        "tokens",
        "head?head=2&layer=3&part=a%20b",
    ]
