"""By keyboard alone, in two languages, dark and light, on a phone, at 200%; a link opens what was seen."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.web.browser.watched import Watched

Visit = Callable[..., Watched]
FOCUS = (
    "() => { const on = document.activeElement; return on.id || on.dataset?.stop || on.dataset?.place || on.tagName; }"
)
SEEN_FOCUS = """() => { const on = document.activeElement, style = getComputedStyle(on);
    return style.outlineStyle !== "none" || style.boxShadow !== "none" || on.closest("g, .piece") !== null; }"""
WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
TEXT_OF_PAGE = "() => document.body.innerText"
KEY = re.compile(
    r"\b(?:frame|kind|prompt|tokens|flow|stage|axis|tensor|about|part|atlas|head|cell|effect|mask|cache|alignment|error|help)\.[a-z_]+\b(?!\.py|:)"
)
"""The name of a text, where the text itself should stand."""


def test_everything_by_keyboard(visit: Visit) -> None:
    page = visit().open(lang="en", text="the cat 小猫 the cat")
    page.press("Tab")
    assert page.js(FOCUS) == "skip"
    page.press("/")
    assert page.js(FOCUS) == "text"
    page.page.keyboard.press("Control+a")
    page.page.keyboard.type("abcabcab")
    page.press("Enter")
    assert page.state()["text"] == "abcabcab"
    # Each section by its number; the focus comes along.
    for number, name in enumerate(("tokens", "flow", "atlas", "head", "cell", "mask", "cache"), 1):
        page.page.locator("#title-tokens").focus()
        page.press(str(number))
        assert page.state()["view"] == name
        assert page.js(FOCUS) == f"title-{name}"
    # From a title on with Tab to what can be moved.
    reach(page, "tokens", ".piece-token")
    page.press("ArrowLeft", "ArrowLeft")
    assert page.state()["query"] == 5
    reach(page, "flow", "[data-stop]")
    page.press("ArrowDown", "Enter")
    assert page.state()["stage"] == "input"
    page.press("Escape")
    assert page.state()["stage"] == ""
    reach(page, "atlas", ".thumbnails canvas")
    page.press("ArrowDown", "ArrowRight")
    assert (page.state()["layer"], page.state()["head"]) == (1, 1)
    page.press("Enter")
    assert page.state()["view"] == "head"
    reach(page, "head", ".matrix canvas")
    page.press("ArrowUp", "ArrowRight", "]", "PageDown")
    assert [page.state()[each] for each in ("query", "key", "head", "layer")] == [4, 1, 2, 2]
    page.press("Enter")
    assert page.state()["view"] == "cell"
    reach(page, "cell", ".steps")
    page.press("ArrowLeft", "ArrowUp")
    assert [page.state()[each] for each in ("query", "key")] == [3, 0]
    page.press("?")
    assert page.js("() => document.getElementById('help').open")
    page.press("Escape")
    assert not page.js("() => document.getElementById('help').open")


def reach(page: Watched, section: str, selector: str) -> None:
    """Tab from the title of a section until the focus is on something, where it can be seen."""
    page.page.locator(f"#title-{section}").focus()
    for _ in range(40):
        page.page.keyboard.press("Tab")
        if page.js("(what) => document.activeElement.matches(what)", f"#view-{section} {selector}"):
            assert page.js(SEEN_FOCUS), f"the focus on {selector} cannot be seen"
            return
    pytest.fail(f"Tab does not come to {selector}")


def test_a_link_opens_what_was_seen(visit: Visit) -> None:
    page = visit().open(
        lang="en",
        text="小猫 abcabc",
        view="head",
        layer=1,
        head=3,
        stage="blocks.1.attention.q",
        drawing="arcs",
        sort="entropy",
    )
    page.page.locator("#view-cell [data-place=key]").select_option("2")
    page.drawn()
    page.page.wait_for_timeout(150)
    address = page.js("() => location.href")
    again = visit()
    again.page.goto(address)
    again.drawn()
    assert again.state() == page.state() | {}
    for view in ("tokens", "flow", "cell"):
        assert again.texts(f"#view-{view} .body") == page.texts(f"#view-{view} .body")
    canvas = "#view-atlas .thumbnails canvas"
    picture = "(each) => each.toDataURL()"
    assert again.page.locator(canvas).first.evaluate(picture) == page.page.locator(canvas).first.evaluate(picture)
    # Planted: another head is another picture.
    again.press("5")
    again.page.locator("#view-head [data-field=head]").select_option("0")
    again.drawn()
    assert again.texts("#view-cell .body") != page.texts("#view-cell .body")


def test_two_languages(visit: Visit) -> None:
    page = visit("pair").open(lang="en", text="abc小猫", target="猫a")
    assert page.js("() => document.documentElement.lang") == "en"
    english = page.js(TEXT_OF_PAGE)
    page.page.locator("#language").click()
    page.drawn()
    assert page.js("() => document.documentElement.lang") == "zh-Hans"
    chinese = page.js(TEXT_OF_PAGE)
    assert KEY.findall(english) == KEY.findall(chinese) == []
    assert KEY.findall("a title head.title here") == ["head.title"], "planted"
    assert page.js(FOCUS) == "language"
    titles = page.texts("h2")
    assert all(re.search("[一-鿿]", each) for each in titles), titles
    sentences = [line for line in chinese.splitlines() if re.search(r"[a-z]+ [a-z]+ [a-z]+ [a-z]+", line)]
    assert sentences == [], "English that stayed"


@pytest.mark.slow
def test_the_language_of_the_browser_and_of_the_address(visit: Visit) -> None:
    assert visit(locale="zh-CN").open(text="a").js("() => document.documentElement.lang") == "zh-Hans"
    assert visit(locale="zh-CN").open("?lang=en", text="a").js("() => document.documentElement.lang") == "en"


LIGHT = """() => { const parts = getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number);
    return (parts[0] + parts[1] + parts[2]) / 765; }"""
FAINT = """() => [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility() && !each.closest("svg, canvas, .visually-hidden, .skip")
    && [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim())).map((each) => {
  const number = (text) => text.match(/[\\d.]+/g).map(Number), light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  let behind = each, paper = [255, 255, 255];
  for (; behind; behind = behind.parentElement) {
    const found = number(getComputedStyle(behind).backgroundColor);
    if (found.length < 4 || found[3] > 0.99) { paper = found; break; }
  }
  const [one, other] = [light(number(getComputedStyle(each).color)), light(paper)];
  return [(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), each.className, each.textContent.slice(0, 40)];
}).filter(([contrast]) => contrast < 4.5)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_and_light_are_legible(visit: Visit, scheme: str) -> None:
    page = visit(color_scheme=scheme).open(lang="en", text="the cat 小猫", stage="blocks.0.attention.q")
    assert (page.js(LIGHT) > 0.5) == (scheme == "light")
    assert page.js(FAINT) == []
    page.page.locator("#theme").click()
    page.drawn()
    assert (page.js(LIGHT) > 0.5) == (scheme == "dark")
    assert page.js(FAINT) == []
    # Planted: text that hardly differs from its paper.
    page.js("() => { document.querySelector('h2').style.color = getComputedStyle(document.body).backgroundColor; }")
    assert page.js(FAINT)


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 640])
def test_nothing_is_wider_than_the_window(visit: Visit, width: int) -> None:
    """A phone of 320 pixels; 640 of 1280 are what is left at 200%."""
    page = visit("pair", viewport={"width": width, "height": 700}, device_scale_factor=2)
    page.open(
        lang="en", text="abc小猫" * 3, target="猫a", view="flow", stage="decoder.blocks.0.attention.q", drawing="arcs"
    )
    assert page.js(WIDE) == 0
    for name in ("zh", "arcs"):
        page.page.locator("#language" if name == "zh" else "#view-head [data-name]:not(select)").first.click()
        page.drawn()
        assert page.js(WIDE) == 0
    page.js("() => { document.getElementById('foot').style.minWidth = '2000px'; }")
    assert page.js(WIDE) > 0, "planted"


UNCOVERED = """(name) => { const stage = document.querySelector(`[data-stage="${name}"]`), box = stage.getBoundingClientRect();
    return [box.top + 2, box.bottom - 2].every((y) => stage.contains(document.elementFromPoint(box.left + box.width / 2, y))); }"""


def test_a_link_to_a_stage_shows_it_on_a_phone(visit: Visit) -> None:
    name = "blocks.2.feedforward.output"
    page = visit(viewport={"width": 360, "height": 700}).open(lang="en", text="abc", view="flow", layer=2, stage=name)
    assert page.js(UNCOVERED, name)
    assert not page.js(UNCOVERED, "embedding"), "planted: the first box is far above"


COLOURS = """() => ["true", "false"].map((pressed) => { const style = getComputedStyle(document.querySelector(`#view-head .chip[aria-pressed=${pressed}]`));
    return [style.backgroundColor, style.color]; })"""


def test_what_is_pressed_is_told_in_a_persons_own_colours(visit: Visit) -> None:
    pressed, other = visit("bytes", forced_colors="active").open(view="head").js(COLOURS)
    (ground, letters), (plain, _) = ([light(colour) for colour in each] for each in (pressed, other))
    assert abs(ground - letters) > 100
    assert abs(ground - plain) > 100


def light(colour: str) -> float:
    """How light it is, from 0 to 255."""
    red, green, blue = (float(each) for each in re.findall(r"[\d.]+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
