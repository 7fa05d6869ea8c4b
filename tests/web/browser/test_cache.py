"""The cache lens: its picture grows a column a step, by keyboard, pointer and by itself, and its numbers are those of the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from clearhead.web import cache, cache_steps
from clearhead.web.answer import unpacked
from clearhead.web.opening import opened
from tests.web.browser.models import TARGETS, TEXTS, model
from tests.web.browser.test_views import COLOURS
from tests.web.browser.watched import Watched
from tests.web.test_cache import Forgetful

Visit = Callable[..., Watched]
SECTION = "#view-cache"
DATA = f"(what) => [...document.querySelectorAll('{SECTION} ' + what)].map((each) => Number(each.value))"
ROWS = f"() => [...document.querySelectorAll('{SECTION} details tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"


def first(name: str) -> dict[str, Any]:
    return {"text": TEXTS[name], "view": "cache"} | ({"target": TARGETS[name]} if name in TARGETS else {})


def wanted(name: str) -> dict[str, Any]:
    """What the answer says."""
    of = opened(model(name), TEXTS[name], TARGETS.get(name))
    header, _ = unpacked(cache.answer(of, {}).body)
    return header


def differences(page: Watched, header: dict[str, Any], shown: int) -> list[str]:
    """Where the page says other numbers than the answer."""
    step, length = header["steps"][shown - 1], header["prefill"] + shown
    size = 2 * header["layers"] * header["kv_heads"] * header["head_width"] * header["bytes_each"]
    pairs = {
        "FLOPs": (page.js(DATA, ".triangle-box data"), [step["flops"], step["flops_without"]]),
        "the largest difference so far": (
            page.js(DATA, "[data-difference]"),
            [max(each["difference"] for each in header["steps"][:shown])],
        ),
        "bytes so far": (page.js(DATA, "[data-total]"), [length * size]),
        "bytes of this model": (
            page.js(DATA, ".cache-weights .own data"),
            [header["prefill"] * size, header["context"] * size],
        ),
    }
    return [
        f"{what}: {said} is not {true}"
        for what, (said, true) in pairs.items()
        if said != pytest.approx(true, rel=1e-6, abs=0)
    ]


@pytest.mark.parametrize("name", ["built-in", "pair"])
def test_the_page_says_what_was_computed(visit: Visit, name: str) -> None:
    page = visit(name).open(lang="en", steps=3, **first(name))
    header = wanted(name)
    assert page.texts(f"{SECTION} > .line") == [""]
    assert page.page.locator(f"{SECTION} .cache-picture canvas").evaluate(COLOURS) > 8
    assert differences(page, header, 3) == []
    assert len(differences(page, header, 4)) >= 2, "planted: the numbers of another step"
    assert len(differences(page, {**header, "kv_heads": 1}, 3)) == 2, "planted: the bytes of one head"
    page.page.locator(f"{SECTION} summary").click()
    page.until(lambda: page.js(ROWS))  # the table is written once a browser says that it is open
    rows = page.js(ROWS)
    assert [int(re.sub(r"\D", "", row[2])) for row in rows] == [each["flops"] for each in header["steps"]]
    assert [float(row[5]) for row in rows] == [each["difference"] for each in header["steps"]]
    assert ("source" in page.page.locator(SECTION).inner_text()) == (name == "pair")


def test_a_cache_that_changes_what_is_said_is_seen(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a cache that drops its first token."""
    line = f"{SECTION} .row-numbers"
    assert "That is rounding" in visit().open(lang="en", **first("bytes")).page.locator(line).inner_text()
    monkeypatch.setattr(cache_steps, "cache_for", Forgetful)
    assert "more than rounding" in visit().open(lang="en", **first("bytes")).page.locator(line).inner_text()


@pytest.mark.slow
def test_by_keyboard_and_pointer(visit: Visit) -> None:
    page = visit().open(lang="en", **first("bytes"))
    picture = page.page.locator(f"{SECTION} .cache-picture canvas")
    picture.focus()
    page.press("Home", "ArrowRight", "ArrowRight")
    assert page.state()["steps"] == 2
    assert page.js("() => document.activeElement.tagName") == "CANVAS"
    page.press("End", "ArrowLeft")
    assert page.state()["steps"] == 15
    box = picture.bounding_box()
    assert box
    page.page.mouse.click(box["x"] + 4, box["y"] + 4)
    assert page.drawn().state()["steps"] == 0
    assert page.page.locator(f"{SECTION} .triangle").count() == 0
    page.page.mouse.click(box["x"] + box["width"] - 4, box["y"] + 4)
    assert page.drawn().state()["steps"] == 16
    page.page.locator(f"{SECTION} [data-side=values]").click()
    assert "value" in page.page.locator(f"{SECTION} .legend").inner_text()
    assert page.state()["held"] == "values"
    assert sum(each.endswith("/cache") for each in page.asked) == 1, "one answer serves all steps, keys and values"
    # Where nothing is to move, nothing plays: it is at the other end at once.
    button = page.page.locator(f"{SECTION} [data-do=play]")
    for steps in (0, 16):
        button.click()
        assert (page.drawn().state()["steps"], button.get_attribute("aria-label")) == (steps, "Play")


@pytest.mark.slow
def test_it_plays(visit: Visit) -> None:
    page = visit(reduced_motion="no-preference").open(lang="en", steps=14, **first("bytes"))
    button = page.page.locator(f"{SECTION} [data-do=play]")
    button.click()
    assert button.get_attribute("aria-label") == "Pause"
    page.until(lambda: page.state()["steps"] == 16 and button.get_attribute("aria-label") == "Play")
    button.click()
    assert page.drawn().state()["steps"] == 0
    page.page.locator(f"{SECTION} [data-do=on]").click()
    assert page.drawn().state()["steps"] == 1
    assert button.get_attribute("aria-label") == "Play", "a step by hand ends it"


@pytest.mark.slow
def test_a_full_context_says_so_and_fits_a_phone_in_chinese(visit: Visit) -> None:
    page = visit(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.open(lang="zh", view="cache", text="小猫" * 20, steps=4)
    assert "上下文在此已满" in page.page.locator(f"{SECTION} .row-numbers").inner_text()
    assert page.js("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    page.open(lang="zh", view="cache", text="小猫" * 9, steps=10)
    assert "上下文在此已满" in page.page.locator(f"{SECTION} .row-numbers").inner_text()
    assert page.js("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    words = set(re.findall(r"[A-Za-z]{3,}", page.page.locator(SECTION).inner_text()))
    assert words <= {"PNG", "SVG", "FLOPs", "logits", "logit", "float", "xAB"}, "and a byte that was written"


def test_an_encoder_says_why_it_has_none(visit: Visit) -> None:
    page = visit("encoder").open(lang="en", **first("encoder"))
    assert page.texts(f"{SECTION} > .line") == [""]
    assert "every token may look at all others" in page.page.locator(f"{SECTION} .body").inner_text()
    assert not [each for each in page.asked if each.endswith("/cache")]


HATCHED = """(canvas) => { const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours = (left) => new Set(Array.from({length: 60}, (_, place) => {
        const at = 4 * ((8 + Math.floor(place / 6)) * canvas.width + left + place % 6);
        return [...data.slice(at, at + 3)].join();
    })).size;
    return [colours(3), colours(Math.round((canvas.width - 10) / 34 * 9.5) - 3)]; }"""
"""How many colours a few pixels have, in the first column and in the tenth, of 34."""


def test_what_a_ring_lets_go_is_hatched_and_said(visit: Visit) -> None:
    page = visit("ring").open(lang="en", steps=8, **first("ring"))
    picture = page.page.locator(f"{SECTION} .cache-picture canvas")
    box = picture.bounding_box()
    assert box

    def said() -> str:
        page.page.mouse.move(box["x"] + 3, box["y"] + 3)
        page.until(lambda: page.texts(".tooltip") not in ([], [""]))
        return "".join(page.texts(".tooltip"))

    # The window is 3 and 16 are spare: of 18 + 8 tokens the last 19 are kept.
    told = page.page.locator(f"{SECTION} .row-numbers").inner_text()
    assert "Of 26 tokens the last 19 are kept; the query reads the last 3" in told
    assert "What stands before 7 “" in told
    assert "no longer kept" in said()
    assert "length about" not in said()
    gone, kept = picture.evaluate(HATCHED)
    assert gone > 1 == kept
    # At the first step all are kept.
    page.open(lang="en", steps=1, **first("ring"))
    assert "are kept;" not in page.page.locator(f"{SECTION} .row-numbers").inner_text()
    assert "length about" in said()
    # A prompt that the ring does not hold.
    page.open(lang="en", view="cache", steps=0, text="the little cat sat on the mat")
    assert "those of the last 19 are kept" in page.page.locator(f"{SECTION} .row-numbers").inner_text()
    assert "no longer kept" in said()


@pytest.mark.slow
def test_it_ends_where_the_model_does(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    header = wanted("built-in")
    third = header["steps"][2]["id"]
    assert third not in [step["id"] for step in header["steps"][:2]]
    monkeypatch.setattr(cache_steps, "ends_of", lambda *_: frozenset([third]))
    page = visit("built-in").open(lang="en", **first("built-in"))
    assert "Here the model ends its text" in page.page.locator(f"{SECTION} .row-numbers").inner_text()
    assert page.page.locator(f"{SECTION} output").inner_text() == "2 of 2 written"


@pytest.mark.slow
def test_reading_the_source_again_is_part_of_what_is_spared(visit: Visit) -> None:
    page = visit("pair").open(lang="en", steps=3, **first("pair"))
    assert "and the whole source as well" in page.page.locator(f"{SECTION} .row-numbers").inner_text()
    assert "the whole source (length" in page.page.locator(f"{SECTION} .spared").inner_text()
    page = visit().open(lang="en", steps=3, **first("bytes"))
    assert "source" not in page.page.locator(SECTION).inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 1280])
def test_no_word_is_cut(visit: Visit, width: int) -> None:
    page = visit(viewport={"width": width, "height": 800}).open(
        lang="en", view="cache", text="ab", steps=8, held="values"
    )
    assert page.page.locator(f"{SECTION} [data-side=values]").get_attribute("aria-pressed") == "true", "a link holds it"
    cut = """() => [...document.querySelectorAll("#view-cache .bracket, #view-cache .bracket-names span")]
        .filter((each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline").map((each) => each.textContent)"""
    assert page.js(cut) == []
    assert "Prefill: 2 at once" in page.page.locator(f"{SECTION} .cache-picture").inner_text()
    over = """() => { const right = document.querySelector("#view-cache .head-room").getBoundingClientRect().right;
        return [...document.querySelectorAll("#view-cache .axis text")].filter((each) => each.getBoundingClientRect().right > right + 1).length; }"""
    assert page.js(over) == 0
