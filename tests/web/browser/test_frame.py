"""What stands around the sections: the form, the way back, the language of what the server says, and addresses that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from clearhead.messages.table import MESSAGES
from tests.web.browser.models import TARGETS, TEXTS
from tests.web.browser.watched import Watched

Visit = Callable[..., Watched]
FORM = """() => { const form = document.querySelector("form.prompt"), whole = form.getBoundingClientRect();
    const size = (each) => { const { left, right, top, bottom, width, height } = each.getBoundingClientRect();
        return { left, right, top, bottom, width: width / whole.width, height }; };
    return { fields: [...form.querySelectorAll(".field")].map(size), button: size(form.querySelector("button")), inside: whole.right }; }"""


def faults(form: dict[str, Any], width: int) -> list[str]:
    """What is wrong with how the form stands in a window of this width."""
    fields, button = form["fields"], form["button"]
    boxes = [*fields, button]
    stacked = width < 576 or (len(fields) > 1 and width < 896)
    least = 0.99 if stacked else 0.8 / len(fields)
    checks = {
        "a field is narrow": all(each["width"] >= least for each in fields),
        "the button is high": button["height"] < 60,
        "something runs out of the form": all(each["right"] <= form["inside"] + 0.5 for each in boxes),
        "they are not one below the other": not stacked
        or all(one["bottom"] <= other["top"] + 0.5 for one, other in pairwise(boxes)),
        "they are not side by side": stacked
        or all(one["right"] <= other["left"] + 0.5 for one, other in pairwise(boxes)),
    }
    return [what for what, right in checks.items() if not right]


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("name", ["bytes", "pair"])
def test_the_form_has_room_for_what_is_typed(visit: Visit, name: str, width: int) -> None:
    page = visit(name, viewport={"width": width, "height": 800})
    page.open(lang="en", text=TEXTS[name], **({"target": TARGETS[name]} if name in TARGETS else {}))
    assert faults(page.js(FORM), width) == []
    # Planted: the columns that a row of weights has.
    page.js("""() => { const { style } = document.querySelector("form.prompt");
        [style.display, style.gridTemplateColumns] = ["grid", "4rem minmax(0, 1fr) 3.2rem"]; }""")
    assert faults(page.js(FORM), width)


TOP = "(name) => document.getElementById(`title-${name}`).getBoundingClientRect().top"


def test_the_way_back_shows_what_was_seen_where_it_stood(visit: Visit) -> None:
    page = visit().open(view="tokens", lang="en", text=TEXTS["bytes"])
    page.press("4")
    page.page.mouse.wheel(0, 130)
    page.page.wait_for_timeout(300)
    stood = page.js(TOP, "head")
    assert stood < 0, "the wheel moved it"
    page.press("6")
    page.write("another prompt")
    for view, where in (("mask", None), ("head", stood), ("tokens", None)):
        before = page.js(TOP, "mask")
        page.page.go_back()
        page.until(lambda view=view: page.state()["view"] == view)
        page.drawn()
        page.page.wait_for_timeout(250)
        assert page.state()["view"] == view
        assert page.state()["text"] == TEXTS["bytes"]
        if where is not None:
            assert abs(page.js(TOP, view) - where) < 2
            assert abs(before - page.js(TOP, "mask")) > 100, "planted: the column did not move"
    assert page.js("() => scrollY") == 0
    # Whoever moves then is followed again.
    page.page.mouse.move(600, 500)
    page.page.mouse.wheel(0, 30)
    page.page.wait_for_timeout(300)
    assert page.state()["view"] == "tokens"


@pytest.mark.slow
def test_a_link_that_makes_no_sense_opens_what_it_can(visit: Visit) -> None:
    page = visit().open(view="bogus", lang="en", text="abc", target="b", sort="q", drawing="x", align="y", theme="pink")
    assert page.texts("#notice") == [""]
    page.page.wait_for_timeout(150)
    address = page.js("() => location.hash")
    assert not [each for each in ("bogus", "target", "sort", "drawing", "align", "theme") if each in address], address
    assert "text=abc" in address


def test_what_the_server_says_is_in_the_language_of_the_page(visit: Visit) -> None:
    page = visit(known=("error: Failed to load resource: the server responded with a status of 422",))
    page.page.goto(f"{page.home}/#lang=zh&text=")
    page.until(lambda: page.texts("#notice span"))
    assert page.texts("#notice span") == [MESSAGES["opening.nothing_to_read"][1]]
    page.page.locator("#language").click()
    page.until(lambda: page.texts("#notice span") == [MESSAGES["opening.nothing_to_read"][0]])
