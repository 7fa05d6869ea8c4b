"""Beside a cell stands what would be without it, with the numbers of `effect_of_weight`; and hidden cells are hatched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.tracing.effect import Effect, effect_of_weight
from clearhead.web.export import exported
from clearhead.web.opening import opened
from tests.web.browser.models import TARGETS, TEXTS, model
from tests.web.browser.watched import Watched

pytest.importorskip("playwright")

Visit = Callable[..., Watched]
CARD = "#view-cell .effect"
NUMBERS = "(selector) => [...document.querySelectorAll(selector)].map((each) => Number(each.value))"
GREY = """(canvas) => { const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const at = (x, y) => [...data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3)].join();
    const colours = (x, y) => new Set(Array.from({length: 64}, (_, i) => at(x + i % 8, y + (i >> 3)))).size;
    return [colours(canvas.width - 20, 12), colours(12, canvas.height - 20)]; }"""
"""How many colours a few pixels have: above the diagonal, and in a cell of it."""


def timed(page: Watched, seconds: float) -> Watched:
    """A page that is told how long the forward took: on a busy machine the smallest model is slow."""

    def told(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=json.dumps({**answer.json(), "seconds": seconds}))

    page.page.route("**/api/open", told)
    return page


def shown(page: Watched) -> list[float]:
    """All numbers of the table, row by row."""
    found: list[float] = page.js(NUMBERS, f"{CARD} table data")
    return found


def near(page: Watched, true: Effect) -> bool:
    """Whether the table has the numbers of an effect."""
    ran = (true.ran.logit, 2.718281828459045**true.ran.logprob)
    rest = [
        number
        for said in (true.without_weight, true.without_head)
        for number in (said.logit, 2.718281828459045**said.logprob, said.logprob - true.ran.logprob)
    ]
    found = shown(page)
    return len(found) == 8 and all(
        abs(one - other) < 2e-6 * max(1, abs(other)) for one, other in zip(found, [*ran, *rest], strict=True)
    )


@pytest.mark.parametrize(("name", "part", "of"), [("built-in", "attention", "attention"), ("pair", "decoder.cross_attention", "cross_attention")])  # fmt: skip
def test_the_card_has_the_numbers_of_the_definition(visit: Visit, name: str, part: str, of: Any) -> None:
    target = {"target": TARGETS[name]} if name in TARGETS else {}
    place = {"view": "cell", "part": part, "layer": 1, "head": 2, "query": 4, "key": 2, "lang": "en"}
    page = timed(visit(name), 0.01).open(text=TEXTS[name], **target, **place)
    session = opened(model(name), TEXTS[name], target.get("target"))
    ids: Any = {"text": list(session.source), "target": list(session.ids)} if target else {"text": list(session.ids)}
    loaded: Any = model(name).model

    def true(head: int, key: int, position: int = -1) -> Effect:
        return effect_of_weight(loaded, block=1, head=head, query=4, key=key, of=of, position=position, **ids)

    page.page.locator(f"{CARD} select").select_option("query")
    page.until(lambda: near(page, true(2, 2, 4)))
    # Planted: another head, another key, the answer at the end.
    assert not near(page, true(1, 2, 4))
    assert not near(page, true(2, 1, 4))
    assert not near(page, true(2, 2))
    # A key of the picture, by the keyboard.
    first = page.page.locator(f"{CARD} .pair[aria-label]").first
    first.focus()
    first.press("Enter")
    page.drawn()
    page.until(lambda: near(page, true(2, int(page.state()["key"]), 4)))
    assert page.page.locator(f"{CARD} .pair[aria-current]").count() == 1
    assert page.js("() => document.activeElement.dataset.name") == f"key-{page.state()['key']}"
    assert page.state()["at"] == "query", "a link opens the same numbers"
    page.page.locator(f"{CARD} select").select_option("")
    page.until(lambda: near(page, true(2, int(page.state()["key"]))))


@pytest.mark.slow
def test_the_sentence_says_whether_the_largest_weight_does_most(visit: Visit) -> None:
    page = timed(visit("built-in"), 0.01).open(view="cell", text=TEXTS["built-in"], layer=0, head=1, lang="en")
    pairs = page.js(
        "(selector) => [...document.querySelectorAll(selector)].map((each) => each.title.split(' · ').map(Number))",
        f"{CARD} .pair[aria-label]",
    )
    listed = pairs[:12]
    assert [weight for weight, _ in listed] == sorted((weight for weight, _ in listed), reverse=True)
    sentence = page.texts(f"{CARD} .effect-sentence")[0]
    most = max(range(len(pairs)), key=lambda place: abs(pairs[place][1]))
    assert ("also makes" in sentence) == (most == 0)
    chinese = page.open(view="cell", text=TEXTS["built-in"], layer=0, head=1, lang="zh")
    assert "权重" in chinese.texts(f"{CARD} .effect-sentence")[0]


@pytest.mark.slow
def test_a_slow_model_waits_to_be_asked(visit: Visit) -> None:
    page = timed(visit("bytes"), 2.0)
    page.open(view="cell", text=TEXTS["bytes"], layer=1, head=2, query=5, key=1, lang="en")
    assert [url for url in page.asked if "/effect" in url and "/api/" in url] == []
    told = page.page.locator(f"{CARD} p:has(.main-button)").inner_text()
    assert "One run took 2 s when this prompt was opened" in told
    assert "at most" not in told, "how long it will take nobody knows"
    page.page.locator(f"{CARD} .main-button").press("Enter")
    page.until(lambda: len(shown(page)) == 8)
    assert [url.rpartition("from=")[2].partition("&")[0] for url in page.asked if "/effects?" in url] == ["0", "4"]
    assert page.page.locator(f"{CARD} .pair[data-name]").count() == 6
    page.press("ArrowRight")
    assert len(shown(page)) == 8, "the row is computed already"
    page.press("ArrowUp")
    assert page.page.locator(f"{CARD} .main-button").count() == 1
    assert page.page.locator(f"{CARD}[aria-busy]").count() == 0


@pytest.mark.slow
def test_a_saved_file_holds_it(chromium: Any, tmp_path: Path) -> None:
    place = {"view": "cell", "layer": "1", "head": "2", "query": "16", "key": "1", "lang": "en"}
    path = tmp_path / "page.html"
    path.write_text(exported(model("bytes"), TEXTS["bytes"], None, place), "utf-8")
    context = chromium.new_context(offline=True)
    page = Watched(context.new_page(), "file:")
    page.page.goto(path.as_uri())
    page.drawn()
    assert len(shown(page)) == 8
    absent = "This saved file does not hold these numbers. Run clearhead explore to compute them."
    assert absent not in page.texts(f"{CARD} .quiet")
    at_end = shown(page)
    page.page.locator(f"{CARD} select").select_option("query")
    page.until(lambda: shown(page) not in (at_end, []))
    assert len(shown(page)) == 8, "the answer at the query is there too"
    assert absent not in page.texts(f"{CARD} .quiet")
    page.page.locator(f"{CARD} select").select_option("")
    page.until(lambda: shown(page) == at_end)
    listed = page.js(
        "(selector) => [...document.querySelectorAll(selector)].map((each) => each.dataset.name)",
        f"{CARD} .pair[data-name]",
    )
    key = next(key for key in range(17) if f"key-{key}" not in listed)
    page.page.locator("#view-cell select[data-place=key]").select_option(str(key))
    page.until(lambda: absent in page.texts(f"{CARD} .quiet"))
    assert len(shown(page)) == 5, "as it ran and without the head"
    assert page.lines == []
    context.close()


def test_what_is_hidden_is_hatched_and_said(visit: Visit) -> None:
    page = visit("bytes").open(view="head", text=TEXTS["bytes"], layer=1, head=2, lang="en")
    canvas = page.page.locator("#view-head .matrix canvas").first
    above, below = canvas.evaluate(GREY)
    assert (above > 1, below) == (True, 1)
    assert page.texts("#view-head .hidden-legend") == ["Masked: this query may not look there"]
    box = page.page.locator("#view-head .matrix").bounding_box()
    assert box is not None
    page.page.mouse.move(box["x"] + box["width"] - 4, box["y"] + 4)
    page.until(lambda: "Masked" in "".join(page.texts(".tooltip")))
    slowest = page.page.locator("#view-head .matrix canvas").nth(1).get_attribute("data-slowest-hover")
    assert float(slowest or "inf") <= 16
    # Where everything may be seen there is nothing to explain.
    page = visit("pair").open(
        view="head", text=TEXTS["pair"], target=TARGETS["pair"], part="encoder.attention", lang="en"
    )
    assert page.page.locator("#view-head .hidden-legend").count() == 0
