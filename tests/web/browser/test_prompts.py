"""What a person may type: Chinese, emoji, nothing, too much, what looks like HTML; it stays text, whole, and is what the model read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clearhead.text.corpus import write
from tests.web.browser.models import model
from tests.web.browser.watched import Watched

Visit = Callable[..., Watched]
FAMILY = "👩‍👩‍👧"
HTML = "</script><img src=x onerror=alert(1)><b>{text}&amp;"
TEXTS = (
    "床前明月光",
    f"a {FAMILY} b e\u0301🇨🇳",
    HTML,
    "tab\tand\nline\u3000\u200b",
)
SHOWN = """() => [...document.querySelectorAll("#view-tokens .letters")].map((each) => each.textContent).join("")"""
MARKS = {" ": "·", "\u3000": "□", "\t": "⇥", "\n": "↵", "\u200b": "U+200B"}
"""How white space is drawn."""


def shown(text: str) -> str:
    """A text with its white space visible."""
    return "".join(MARKS.get(letter, letter) for letter in text)


def test_any_text_stays_text_and_whole(visit: Visit) -> None:
    page = visit().open(lang="en", text="a")
    page.page.on("dialog", lambda each: pytest.fail(f"the page said {each.message}"))
    for text in TEXTS:
        page.write(text)
        assert page.js(SHOWN) == shown(text)
        # Planted: the same check on another text.
        assert page.js(SHOWN) != shown(text[1:])
        assert page.page.locator("body b, body img, body script").count() == 0
        assert page.state()["text"] == text
        ids = [int(each) for each in page.texts("#view-tokens .id")]
        assert ids == model("bytes").read(text)
        assert page.texts("#notice") == [""]
    assert (
        page.js(
            "(family) => [...document.querySelectorAll('#view-tokens .letters')].some((each) => each.textContent === family)",
            FAMILY,
        )
        is False
    )
    page.write(f"x{FAMILY}y")
    boxes = page.texts("#view-tokens .letters")
    assert boxes == ["x", FAMILY, "y"], "a character of many bytes is one box"
    assert page.page.locator("#view-tokens .ticks i").count() == len(FAMILY.encode())


def test_a_prompt_that_is_too_long_is_cut_and_said(visit: Visit) -> None:
    page = visit().open(lang="en", text="小" * 30)
    assert page.texts("#view-tokens .body > .line") == [
        "The prompt is longer than the model's context of 64 tokens: 27 tokens at its front were left out."
    ]
    # 64 bytes hold 21 whole characters.
    assert page.js(SHOWN) == "小" * 21
    page.write("短")
    assert page.page.locator("#view-tokens .body > .line").count() == 0


def test_no_text_at_all(visit: Visit) -> None:
    """A model with a mark that begins a text reads that; one that has none says so, and the page goes on."""
    page = visit("pair").open(lang="en", text="", target="")
    assert page.texts("#notice") == [""]
    assert "bos" in page.js(SHOWN) or page.page.locator("#view-tokens .special").count() >= 1
    assert page.page.locator("#view-cell .step").count() >= 5
    bare = visit(known=("error: Failed to load resource: the server responded with a status of 422",)).open(
        lang="en", text="a"
    )
    bare.page.locator("#text").fill("")
    bare.page.locator("#text").press("Enter")
    bare.until(lambda: bare.texts("#notice span"))
    assert bare.texts("#notice span")[0].startswith("the prompt is empty")
    bare.write("again")
    assert bare.texts("#notice") == [""]
    assert bare.js(SHOWN) == "again"


@pytest.mark.slow
def test_two_thousand_tokens(visit: Visit) -> None:
    text = write(9000, seed=1, language="en")
    page = visit("smollm2").open(lang="en", view="head", layer=5, head=3, text=text)
    told = page.page.locator("#view-tokens .piece-token").count()
    assert told == 2048 or told == len(model("smollm2").read(text))
    assert told > 1400
    assert "Too large to be drawn whole" in " ".join(page.texts("#view-head .quiet"))
    assert page.texts("#notice") == [""]
