"""What a page leaves behind when a person goes on: little, so that its memory stays small after many heads."""

from __future__ import annotations

from collections.abc import Callable

from tests.web.browser.watched import Watched

COUNTING = """window.cuts = 0;
const whole = Intl.Segmenter.prototype.segment;
Intl.Segmenter.prototype.segment = function (text) { window.cuts++; return whole.call(this, text); };"""
"""Counts how often a text is cut into characters: each time takes two kilobytes that JavaScript does not know of."""
HEAD = "async (head) => (await import('clearhead/state.js')).go({head})"


def test_another_head_loads_no_document_and_cuts_no_text(visit: Callable[..., Watched]) -> None:
    watched = visit("built-in")
    watched.page.add_init_script(COUNTING)
    watched.open(
        view="cell", text="the little cat sat on the mat, and a very long afternoon went by. " * 3, query=150, key=3
    )
    counters = watched.page.context.new_cdp_session(watched.page)
    documents = counters.send("Memory.getDOMCounters")["documents"]
    cuts = watched.js("() => window.cuts")
    assert cuts > 0
    for head in (1, 2, 3):
        watched.js(HEAD, head)
        watched.drawn()
        watched.page.wait_for_timeout(200)  # the address follows, and a browser looks for the icon of its page again
    assert counters.send("Memory.getDOMCounters")["documents"] <= documents
    assert watched.js("() => window.cuts") == cuts


def test_the_shares_of_all_keys_are_a_few_elements(visit: Callable[..., Watched]) -> None:
    watched = visit("built-in").open(view="cell", text="the little cat sat on the mat. " * 5, query=120, key=3)
    found = watched.js("""() => [...document.querySelectorAll("#view-cell .ribbon")].map((ribbon) => [...ribbon.children]
        .map((each) => [each.getAttribute("class"), (each.getAttribute("d").match(/M/g) || []).length]))""")
    mask, softmax = (dict(each) for each in found)
    # What may be looked at is before and behind the chosen key.
    assert mask == {"seen": 2, "chosen": 1}
    assert set(softmax) == {"share", "share odd", "chosen"}
    assert softmax["chosen"] == 1
    assert softmax["share"] + softmax["share odd"] > 10


def test_the_bars_of_vectors_are_an_element_for_each_side(visit: Callable[..., Watched]) -> None:
    watched = visit("bytes").open(view="cell", query=5, key=2)
    bars = watched.js("""() => [...document.querySelectorAll("#view-cell .strips")].map((strips) => [...strips.querySelectorAll("path")]
        .map((each) => [each.getAttribute("class"), (each.getAttribute("d").match(/M/g) || []).length]))""")
    cell = watched.js("""async () => { const {apiOf} = await import("clearhead/api.js");
        return (await apiOf().get("cell", {part: "attention", layer: 0, head: 0, query: 5, key: 2})).header; }""")
    sums = [sum(cell["terms"][: place + 1]) for place in range(len(cell["terms"]))]
    product = [cell["q"]["after"], cell["k"]["after"], cell["terms"], sums]
    mix = [cell["v"], cell["share"], cell["mixed"]]
    assert bars == [
        [
            each
            for values in strips
            for each in (["above-zero", above(values)], ["below-zero", len(values) - above(values)])
        ]
        for strips in (product, mix)
    ]


def above(values: list[float]) -> int:
    """How many are not below zero."""
    return sum(value >= 0 for value in values)
