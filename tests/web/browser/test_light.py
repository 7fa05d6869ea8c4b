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
    # A character of several code points is longer than what is short without being cut.
    watched.open(view="cell", text="the little cat sat on the mat. 👩‍👩‍👧‍👦👩‍👩‍👧‍👦 " * 3, query=90, key=3)
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


STRIPS = """async () => { const {ribbon, strips} = await import("clearhead/strips.js");
    const paths = (element) => [...element.querySelectorAll("path")].map((each) => [each.getAttribute("class"), each.getAttribute("d")]);
    const kind = (place) => (place % 2 ? "odd" : "even");
    return [
        paths(ribbon([0.5, 0.25, 0.25], kind, 1, "")),
        paths(ribbon([0.0001, 0.4, 0.5999], kind, 0, "")),
        paths(ribbon([0.25, 0.0001, 0.0001, 0.7497, 0.0001], kind, 2, "")),
        paths(ribbon([0.5, 0.0001, 0.0001, 0.4998], kind, 0, "")),
        paths(ribbon([0.25, 0.25, 0.25, 0.25], (place) => (place < 3 ? "seen" : ""), 0, "")),
        paths(strips([{name: "", values: [2, -1, 0], behind: [-2, 1, 0]}], 200, "")),
    ]; }"""


def box(x: float, y: float, wide: float, high: float) -> str:
    return f"M{x:.2f} {y:.2f}h{wide:.2f}v{high:.2f}h{-wide:.2f}z"


def test_what_is_drawn_is_as_wide_and_as_high_as_the_numbers(visit: Callable[..., Watched]) -> None:
    plain, first, thin, joined, mask, bars = visit("bytes").open(view="tokens").js(STRIPS)
    assert plain == [["even", box(0, 0, 500, 20) + box(750, 0, 250, 20)], ["chosen", box(500, 0, 250, 20)]]
    # What is chosen is wide enough to be seen, and above its neighbours.
    assert first == [["odd", box(0.1, 0, 400, 20)], ["even", box(400.1, 0, 599.9, 20)], ["chosen", box(0, 0, 1.5, 20)]]
    # Thin shares are drawn with what follows, but neither with nor without the chosen one; the last one ends the whole.
    odd = box(250, 0, 0.1, 20) + box(250.2, 0, 749.7, 20)
    assert thin == [
        ["even", box(0, 0, 250, 20) + box(999.9, 0, 0.1, 20)],
        ["odd", odd],
        ["chosen", box(250.1, 0, 1.5, 20)],
    ]
    assert joined == [["odd", box(500, 0, 500, 20)], ["chosen", box(0, 0, 500, 20)]]
    assert mask == [["seen", box(250, 0, 500, 20)], ["chosen", box(0, 0, 250, 20)]]
    # From the middle, 27, up or down; 22 at most, and never nothing.
    left, pitch, whole = 74, 36, 22
    at = [left + place * pitch + 0.5 for place in range(3)]
    wide = pitch - 1.5
    assert dict(bars) == {
        "above-zero faint": box(at[1], 27 - whole / 2, wide, whole / 2) + box(at[2], 26.5, wide, 0.5),
        "below-zero faint": box(at[0], 27, wide, whole),
        "above-zero": box(at[0], 27 - whole, wide, whole) + box(at[2], 26.5, wide, 0.5),
        "below-zero": box(at[1], 27, wide, whole / 2),
    }


def above(values: list[float]) -> int:
    """How many are not below zero."""
    return sum(value >= 0 for value in values)


def test_a_row_of_several_queries_is_called_by_the_chosen_one(visit: Callable[..., Watched]) -> None:
    said = (
        visit("bytes")
        .open(view="tokens")
        .js("""async () => { const {HeadPicture} = await import("clearhead/headpicture.js");
        const picture = new HeadPicture("", {choose() {}, hover() {}, leave() {}}), names = [...Array(32).keys()].map((each) => `n${each}`);
        document.body.append(picture.element);
        picture.show({field: {values: new Uint8Array(64), rows: 8, columns: 8}, labels: {queries: names, keys: names}, tall: 4, wide: 4,
            bars: new Float32Array(8), end: 1}, 600);
        picture.choose(30, 5);
        return [picture.left, picture.top].map((axis) => [...axis.element.querySelectorAll("text")].map((each) => each.textContent)); }""")
    )
    first = [f"n{place}" for place in range(0, 32, 4)]
    # A label that is marked is written once more, above the others.
    assert [list(dict.fromkeys(each)) for each in said] == [[*first[:7], "n30"], [first[0], "n5", *first[2:]]]
