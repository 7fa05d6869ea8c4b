"""The mask lens: its matrix and what the model says are those of Python; every rule by pointer and by keyboard; in a file without a network."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.web import export, masked
from clearhead.web.export import exported
from clearhead.web.mask_rule import parsed
from clearhead.web.opening import opened
from tests.web.browser.models import TARGETS, TEXTS, model
from tests.web.browser.watched import Watched
from tests.web.masks_by_hand import by_hand

pytest.importorskip("playwright")

from playwright.sync_api import Browser

Visit = Callable[..., Watched]
WORDS = "causal.window-6.prefix-4.documents-3-9.padding-2"
PART = {"pair": "decoder.attention"}
CELLS = """() => [...document.querySelectorAll("#view-mask .mask-form")].map((form) => [...form.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)))"""
ROWS = """(place) => { const fold = document.querySelectorAll("#view-mask details")[place]; fold.open = true;
    return [...fold.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)); }"""
PAIRS = "() => [...document.querySelectorAll('#view-mask .mask-pair')].map((pair) => [...pair.querySelectorAll('data')].map((each) => Number(each.value)))"
OUTSIDE = """() => [...document.querySelectorAll("#view-mask .mask-form")].flatMap((card) => [...card.querySelectorAll("h4, p, .mask-form-scroll")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX === "visible"
        || each.getBoundingClientRect().right > card.getBoundingClientRect().right).map((each) => each.textContent))"""
COLOURS = """(canvas) => new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""


def look(name: str, **more: Any) -> dict[str, Any]:
    """The state in which a model is looked at."""
    target = {"target": TARGETS[name]} if name in TARGETS else {}
    return {
        "view": "mask",
        "lang": "en",
        "text": TEXTS[name],
        "part": PART.get(name, "attention"),
        "layer": 1,
        **target,
        **more,
    }


def table(page: Watched, place: int) -> list[list[str]]:
    """A table behind the picture, once it is open."""
    page.js(ROWS, place)
    page.until(lambda: page.js(ROWS, place))
    found: list[list[str]] = page.js(ROWS, place)
    return found


@pytest.mark.parametrize("name", ["built-in", "pair"])
def test_the_matrix_and_what_is_said_are_those_of_python(visit: Visit, name: str) -> None:
    page = visit(name).open(**look(name, query=4, key=3, mask=WORDS))
    assert page.texts("#view-mask > .line") == [""]
    assert page.page.locator("#view-mask .matrix canvas").first.evaluate(COLOURS) > 5
    session = opened(model(name), TEXTS[name], TARGETS.get(name))
    rule, count = parsed(WORDS), len(session.ids)
    assert rule is not None
    seen = by_hand(rule, count, count)[4]
    states = [row[1] for row in table(page, 0)]
    assert states == [
        "may look" if may else "padding: seen by nobody" if key < 2 else "must not look" for key, may in enumerate(seen)
    ]
    # Planted: the row of the next query.
    assert states != ["may look" if may else "must not look" for may in by_hand(rule, count, count)[5]]
    with torch.no_grad():
        features = (session.features, masked.features(session, rule))
        own, other = (masked._headed(session.loaded.model, each).log_softmax(-1) for each in features)
    apart = (own.exp() * (own - other)).sum(-1)
    rows = table(page, 1)
    # Of padding nothing is said: it has no bar, and is not counted.
    assert [row[1] for row in rows[:2]] == ["padding"] * 2
    said, apart = torch.tensor([float(row[1]) for row in rows[2:]]), apart[2:]
    moved = page.texts("#view-mask .cause")[1]
    (longest,) = re.findall(r"the longest is (\S+) nats", moved)
    assert abs(float(longest.replace("−", "-")) - float(apart.max())) <= 1e-3 * float(apart.max())
    assert f"{int((apart > 1e-6).sum())} of {count - 2}. Padding is left out" in moved
    assert (said - apart).abs().max() <= 1e-6 * max(1.0, float(apart.max()))
    swapped = (other.exp() * (other - own)).sum(-1)[2:]
    # Where the model is a drawn one, both sides are nearly the same.
    assert name == "pair" or (said - swapped).abs().max() > 1e-2, "planted: the sides swapped"
    before, after = zip(*page.js(PAIRS), strict=True)
    for numbers, wanted in ((before, own[4].exp()), (after, other[4].exp())):
        five = wanted.topk(min(5, len(wanted))).values.double()
        assert (
            torch.tensor(sorted(numbers, reverse=True)[: len(five)], dtype=torch.float64) - five
        ).abs().max() <= 1e-6


@pytest.mark.slow
def test_the_three_conventions_say_the_same_in_their_own_words(visit: Visit) -> None:
    page = visit("built-in").open(**look("built-in", query=9, key=3, mask="causal.window-4"))
    sdpa, multihead, additive = page.js(CELLS)
    rule = parsed("causal.window-4")
    assert rule is not None
    seen = by_hand(rule, 21, 21)
    for row in sdpa:
        assert row[1:] == [str(each) for each in seen[int(row[0])][0:6]]
    assert [[{"True": "False", "False": "True"}[each] for each in row[1:]] for row in sdpa] == [
        row[1:] for row in multihead
    ]
    assert [["0" if each == "True" else "−inf" for each in row[1:]] for row in sdpa] == [row[1:] for row in additive]
    assert "would see just the keys that it must not (17), and none that it may (4)" in page.texts(".mask-form")[0]
    assert page.page.locator("#view-mask .mask-form [aria-current]").all_text_contents() == ["False", "True", "−inf"]


def press(page: Watched, name: str) -> str:
    """A switch is pressed; the mask that the address has then."""
    page.page.locator(f"#view-mask [data-name={name}]").click()
    page.drawn()
    found: str = page.state()["mask"]
    return found


def test_every_rule_can_be_switched(visit: Visit) -> None:
    page = visit("bytes").open(**look("bytes", query=9, key=2))
    assert page.page.locator("#view-mask [data-name=own]").get_attribute("aria-pressed") == "true"
    assert page.page.locator("#view-mask .mask-pair").count() == 5
    assert press(page, "causal") == "full"
    assert "Earlier positions change too" in page.texts("#view-mask .cause")[1]
    assert press(page, "causal") == "", "back at the model's own"
    assert press(page, "window") == "causal.window-4"
    assert "too far back" in page.texts("#view-mask .mask-verdict")[0]
    field = page.page.locator("#view-mask [data-name=window-number]")
    field.fill("8")
    field.press("Enter")
    page.drawn()
    assert page.state()["mask"] == "causal.window-8"
    assert page.js("() => document.activeElement.dataset.name") == "window-number", "the focus stays"
    assert "near enough" in page.texts("#view-mask .mask-verdict")[0]
    assert press(page, "prefix") == "causal.window-8.prefix-3"
    assert press(page, "documents") == "causal.window-8.prefix-3.documents-9"
    page.page.locator("#view-mask [data-token='4']").click()
    page.drawn()
    assert page.state()["mask"] == "causal.window-8.prefix-3.documents-4-9"
    page.press("ArrowRight", "ArrowRight", "Enter")
    assert page.state()["mask"] == "causal.window-8.prefix-3.documents-4-6-9"
    typed = page.page.locator("#view-mask .mask-begins")
    typed.fill("7, 5 x 0")
    typed.press("Enter")
    page.drawn()
    assert page.state()["mask"] == "causal.window-8.prefix-3.documents-5-7"
    assert press(page, "padding") == "causal.window-8.prefix-3.documents-5-7.padding-2"
    assert "unless another rule hides them" in page.texts("#view-mask .mask-about")[0]
    assert press(page, "causal") == "window-8.documents-5-7.padding-2", (
        "a prefix opens what causal hides, and nothing else"
    )
    assert "Prefix was switched off with Causal" in page.texts("#view-mask .mask-about")[0]
    assert press(page, "prefix") == "causal.window-8.prefix-3.documents-5-7.padding-2"
    assert press(page, "own") == ""
    # By keyboard in the matrix.
    page.page.locator("#view-mask .matrix canvas + canvas").focus()
    page.press("ArrowUp", "ArrowRight", "End", "PageDown")
    assert [page.state()[each] for each in ("query", "key", "layer")] == [8, 17, 2]
    assert "the key comes later" in page.texts("#view-mask .mask-verdict")[0]


@pytest.mark.slow
def test_what_keeps_its_mask_says_so(visit: Visit) -> None:
    page = visit("pair").open(**look("pair", part="decoder.cross_attention", mask="causal.window-2"))
    assert "keeps its mask" in page.texts("#view-mask .cause")[0]
    assert not page.page.locator("#view-mask .mask-switches").is_visible()
    assert page.page.locator("#view-mask .mask-pair").count() == 0
    assert page.texts("#view-mask .mask-about") == [
        "No rule: every token that is written reads every token of the source."
    ]
    page.page.locator("#view-mask [data-name=to-decoder]").click()
    page.drawn()
    assert page.state()["mask"] == "causal.window-2"
    assert page.page.locator("#view-mask .mask-pair").count() >= 5


@pytest.mark.slow
def test_a_mask_is_cut_to_a_shorter_prompt_and_rows_that_see_nothing_are_named(visit: Visit) -> None:
    page = visit("bytes").open(**look("bytes", text="the cat", query=2, key=0, mask="causal.documents-500.padding-4"))
    assert "This prompt has only 7 tokens" in page.texts("#view-mask .cause")[0]
    assert page.page.locator("#view-mask [data-name=documents]").get_attribute("aria-pressed") == "false"
    assert "Rows that see nothing: 4" in page.page.locator("#view-mask").inner_text()
    assert "is padding" in page.texts("#view-mask .mask-said")[0]
    assert page.page.locator("#view-mask .mask-pair").count() == 0
    assert "of 3. Padding is left out" in page.texts("#view-mask .cause")[1]
    # The same mask on another prompt; one token of it is left.
    page.page.locator("#text").fill("Hi")
    page.page.locator("#prompt button[type=submit]").click()
    page.until(lambda: page.state()["text"] == "Hi")
    page.drawn()
    assert "has only 2 tokens" in page.texts("#view-mask .cause")[0]
    assert page.page.locator("#view-mask [data-name=padding-number]").input_value() == "1"
    assert page.page.locator("#view-mask .mask-pair").count() >= 5
    assert press(page, "padding") == "", "what was cut is gone once a switch is pressed"
    assert press(page, "window") == "causal.window-4"
    assert "here it hides nothing" in page.texts("#view-mask .mask-about")[0]
    page = visit("bytes").open(**look("bytes", text="a"))
    switches = [page.page.locator(f"#view-mask [data-name={name}]") for name in ("documents", "padding", "window")]
    assert [each.is_disabled() for each in switches] == [True, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_runs_out_of_the_cards_of_the_conventions(visit: Visit, width: int) -> None:
    page = visit("bytes", viewport={"width": width, "height": 844}).open(**look("bytes", mask="causal.window-4"))
    assert page.js(OUTSIDE) == []
    # Planted: words that are not broken.
    page.js(
        """() => { for (const card of document.querySelectorAll(".mask-form")) card.style.overflowWrap = "normal"; }"""
    )
    assert bool(page.js(OUTSIDE)) == (width == 320)


def test_nonsense_in_the_address_is_the_models_own(visit: Visit) -> None:
    page = visit("bytes").open(**look("bytes", mask="prefix-3.window<b>"))
    assert "makes no sense" in page.texts("#view-mask .cause")[0]
    assert page.texts("#view-mask > .line") == [""]
    assert page.page.locator("#view-mask [data-name=own]").get_attribute("aria-pressed") == "true"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_chinese_on_a_phone(visit: Visit, scheme: str) -> None:
    page = visit("built-in", color_scheme=scheme, viewport={"width": 390, "height": 844}).open(
        **look("built-in", mask=WORDS, lang="zh", query=9)
    )
    assert page.js("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    text = page.page.locator("#view-mask").inner_text()
    assert re.findall(r"mask\.[a-z.]+", text) == []
    assert [line for line in text.splitlines() if re.search(r"[a-z]+ [a-z]+ [a-z]+", line)] == [], "English that stayed"


@pytest.mark.slow
def test_a_file_shows_its_masks_without_a_network(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = {"view": "mask", "mask": "causal.window-5", "lang": "en"}
    context = chromium.new_context(offline=True, locale="en-US")
    page = Watched(context.new_page(), "file:///")
    path = tmp_path / "page.html"
    path.write_text(exported(model("bytes"), TEXTS["bytes"], None, state), "utf-8")
    page.page.goto(path.as_uri())
    page.drawn()
    assert page.page.locator("#view-mask .mask-pair").count() >= 5
    assert press(page, "own") == ""
    for name in ("causal", "window", "prefix", "documents", "padding"):
        press(page, name)
        assert page.page.locator("#view-mask .mask-pair").count() >= 5, f"{name} is not in the file"
        press(page, "own")
    # Two switches at once it does not hold: the matrix is there all the same, and what is missing is said.
    press(page, "window")
    assert press(page, "padding") == "causal.window-5.padding-2"
    assert "does not hold what the model says" in page.texts("#view-mask .mask-said")[0]
    assert page.texts("#view-mask > .line") == [""]
    states = [row[1] for row in table(page, 0)]
    rule = parsed("causal.window-5.padding-2")
    assert rule is not None
    seen = by_hand(rule, len(states), len(states))[-1]
    assert [each == "may look" for each in states] == seen
    monkeypatch.setattr(export, "ROOM", 0)
    path.write_text(exported(model("bytes"), TEXTS["bytes"], None, state), "utf-8")
    page.page.goto(path.as_uri())
    page.drawn()
    assert page.page.locator("#view-mask .mask-pair").count() >= 5
    assert page.troubles() == []
    context.close()
