"""What the page's scripts declare of an answer is what the answer holds: a field that was renamed on one side alone is seen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from clearhead.web import cache, effect, effects
from clearhead.web.answer import Answer, unpacked
from clearhead.web.opening import opened
from clearhead.web.session import Session
from tests.web.heads_opened import query
from tests.web.read_models import TEXT, loaded_of, target_of


def declared(module: str, name: str) -> set[str]:
    """The properties of a type that stands in a script."""
    script = (files("clearhead.web") / "static" / "js" / module).read_text("utf-8")
    found = re.search(rf"@typedef {{object}} {name}\b.*?\*/", script, re.S)
    assert found, f"{module} declares no {name}"
    return set(re.findall(r"@property \{.*\} (\w+)", found[0]))


def header(answer: Answer) -> dict[str, Any]:
    """What stands before the arrays, or all of it."""
    found: dict[str, Any] = json.loads(answer.body) if answer.kind.endswith("json") else unpacked(answer.body)[0]
    return found


def pair() -> Session:
    return opened(loaded_of("pair", "T5"), TEXT, target_of("pair"))


ASKED: dict[str, tuple[str, Callable[[Session], dict[str, Any]]]] = {
    "CacheHeader": ("cachesteps.js", lambda of: header(cache.answer(of, {}))),
    "Row": ("effect.js", lambda of: header(effects.answer(of, query("decoder.attention", 0, 1, query=2)))),
    "One": ("effect.js", lambda of: header(effect.answer(of, query("decoder.attention", 0, 1, query=2, key=1)))),
    "Outcome": (
        "effecttable.js",
        lambda of: header(effects.answer(of, query("decoder.attention", 0, 1, query=2)))["ran"],
    ),
}
"""Each type, where it stands, and what it describes."""


def strangers(name: str, module: str, told: dict[str, Any]) -> set[str]:
    """Fields that the page believes in and no answer has."""
    return declared(module, name) - told.keys()


@pytest.mark.parametrize("name", ASKED)
def test_a_script_reads_what_there_is(name: str) -> None:
    module, asked = ASKED[name]
    told = asked(pair())
    assert len(declared(module, name)) > 2
    assert strangers(name, module, told) == set()
    # Planted: a field of the answer gets another name.
    field = sorted(declared(module, name))[0]
    renamed = {f"{each}_now" if each == field else each: value for each, value in told.items()}
    assert strangers(name, module, renamed) == {field}


def test_all_of_the_cache_is_declared() -> None:
    told = header(cache.answer(pair(), {}))
    assert told.keys() - {"arrays"} == declared("cachesteps.js", "CacheHeader")
    going_on = header(cache.answer(opened(loaded_of("decoder", "learned"), TEXT[:5]), {"steps": "1"}))
    assert going_on["steps"][0].keys() == declared("cachesteps.js", "Step")
