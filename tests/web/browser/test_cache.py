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
    header, _ = unpacked(cache.answer(of, {"steps": str(cache.SHOWN)}).body)
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
    assert sum("/cache?" in each for each in page.asked) == 1, "one answer serves all steps"
    # Where nothing is to move, nothing plays: it is at the other end at once.
    button = page.page.locator(f"{SECTION} [data-do=play]")
    for steps in (0, 16):
        button.click()
        assert (page.drawn().state()["steps"], button.get_attribute("aria-label")) == (steps, "Play")


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
    assert not [each for each in page.asked if "/cache?" in each]
