"""The alignment on the page: its numbers are those of a trace, it is moved by keys, leads into the head, and works in a saved file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser
from torch import Tensor

from clearhead.tracing.trace import trace
from clearhead.web.export import exported
from clearhead.web.opening import opened
from tests.web.browser.models import TARGETS, TEXTS, model
from tests.web.browser.test_people import WIDE
from tests.web.browser.watched import Watched

Visit = Callable[..., Watched]
PAIR: dict[str, Any] = {"text": TEXTS["pair"], "target": TARGETS["pair"], "part": "decoder.cross_attention"}
SECTION = "#view-alignment"
MARKED = """(canvas) => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data]
    .filter((each, place) => place % 4 === 3 && each).length"""


def mean(layer: int | None = None, head: int | None = None) -> Tensor:
    """What a trace says: (T,S)."""
    tensors = trace(model("pair"), TEXTS["pair"], target=TARGETS["pair"])
    weights = torch.stack([each[0] for name, each in tensors.items() if name.endswith("cross_attention.weights")])
    weights = weights if layer is None else weights[[layer]]
    return (weights if head is None else weights[:, [head]]).mean((0, 1))


def table(page: Watched) -> list[list[str]]:
    """The table behind the picture: written token, the token that it looked at most, that weight."""
    page.js("() => { document.querySelector('#view-alignment details').open = true; }")
    page.until(lambda: page.page.locator(f"{SECTION} details tbody tr").count())
    rows: list[list[str]] = page.js(
        "() => [...document.querySelectorAll('#view-alignment details tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    return rows


def bars(page: Watched) -> dict[int, float]:
    """Weights of the chosen row, by the source token."""
    told = page.js(
        "() => [...document.querySelectorAll('#view-alignment .bar')].map((bar) => [bar.dataset.name, bar.title])"
    )
    return {int(name.split()[0]): float(title.split(" · ")[-1]) for name, title in told}


def differences(page: Watched, wanted: Tensor, query: int) -> list[str]:
    """Where the page says something else than a trace."""
    rows = table(page)
    found = [f"{len(rows)} rows"] if len(rows) != len(wanted) else []
    for row, weights in zip(rows, wanted, strict=False):
        if abs(float(row[2]) - float(weights.max())) > 1e-6 or int(row[1].split()[0]) != int(weights.argmax()):
            found.append(str(row))
    return found + [
        f"{key}: {weight}" for key, weight in bars(page).items() if abs(weight - float(wanted[query, key])) > 1e-6
    ]


def test_it_says_what_a_trace_says(visit: Visit) -> None:
    page = visit("pair").open(view="alignment", query=2, key=1, layer=1, head=3, lang="en", **PAIR)
    assert page.texts("#notice, section > .line") == [""] * (1 + page.page.locator("section").count())
    assert page.texts("section h2")[-1].startswith("Alignment")
    select = page.page.locator(f"{SECTION} [data-name=align]")
    for align, of in (("", mean()), ("layer", mean(1)), ("head", mean(1, 3))):
        select.select_option(align)
        page.drawn()
        assert differences(page, of, 2) == []
        assert page.page.locator(f"{SECTION} .arc").count() > 10
    assert page.page.locator(f"{SECTION} .matrix canvas").nth(1).evaluate(MARKED) > 60, "the largest are marked"
    # Planted: another head, another row.
    assert differences(page, mean(1, 2), 2)
    assert differences(page, mean(1, 3), 3)
    # The row of a token is that in which it was being written: it bears the name of the next one.
    assert [row[0] for row in table(page)] == ["0 猫", "1 a", "2 b", "3 猫", "4 c", "5 (next)"]
    line = page.texts(f"{SECTION} .cell-sentence")[0]
    assert line.startswith("“b” was written while looking at “")
    assert f"({float(f'{float(mean(1, 3)[2].max()):.2g}'):g})" in line


@pytest.mark.slow
def test_by_keyboard_and_into_the_head(visit: Visit) -> None:
    page = visit("pair").open(view="alignment", query=2, key=1, align="layer", lang="en", **PAIR)
    page.page.locator(f"{SECTION} .matrix canvas").nth(1).focus()
    page.press("ArrowDown", "ArrowRight", "PageDown")
    assert [page.state()[each] for each in ("query", "key", "layer")] == [3, 2, 1]
    page.press("End", "Home", "ArrowRight")
    assert page.state()["key"] == 1
    page.page.locator(f"{SECTION} [data-name=open]").click()
    page.drawn()
    tensors = trace(model("pair"), TEXTS["pair"], target=TARGETS["pair"])
    best = tensors["decoder.blocks.1.cross_attention.weights"][0, :, 3, 1].argmax()
    state = page.state()
    assert [state[each] for each in ("view", "part", "layer", "head", "query", "key")] == [
        "head", "decoder.cross_attention", 1, int(best), 3, 1]  # fmt: skip
    # From the encoder's own attention a cell leads to cross-attention, and a place that the target lacks is its last one.
    page = visit("pair").open(view="alignment", lang="en", **{**PAIR, "part": "encoder.attention"}, query=10, key=4)
    assert page.texts(f"{SECTION} .cell-sentence")[0].startswith("What comes next")
    page.page.locator(f"{SECTION} .bar").first.click()
    page.drawn()
    assert (page.state()["part"], page.state()["query"]) == ("decoder.cross_attention", 5)


def test_the_model_writes_by_itself(visit: Visit) -> None:
    page = visit("pair").open(view="alignment", lang="en", text="abc小猫", target="")
    assert len(table(page)) == 1
    page.page.locator(f"{SECTION} button", has_text="Let the model write").click()
    page.until(lambda: page.state()["target"])
    page.drawn()
    assert len(table(page)) == len(page.state()["target"]) + 1


@pytest.mark.slow
def test_without_a_target_it_opens_with_what_the_model_writes(visit: Visit) -> None:
    page = visit("pair").open(view="alignment", lang="en", text="abc小猫")
    own = opened(model("pair"), "abc小猫").target
    assert own
    assert page.state()["target"] == own
    assert len(table(page)) == len(own) + 1
    # Another source gets an answer of its own; one that a person has typed stays.
    page.page.locator("#text").fill("ab")
    page.page.locator("#prompt button[type=submit]").click()
    page.until(lambda: page.state()["text"] == "ab" and page.state()["target"])
    page.drawn()
    assert page.state()["target"] == opened(model("pair"), "ab").target
    page.page.locator("#text").fill("abc")
    page.page.locator("#target").fill("cc")
    page.page.locator("#prompt button[type=submit]").click()
    page.until(lambda: page.state()["text"] == "abc")
    page.drawn()
    assert page.state()["target"] == "cc"
    assert len(table(page)) == 3


@pytest.mark.slow
def test_in_chinese_on_a_phone(visit: Visit) -> None:
    page = visit("pair", viewport={"width": 390, "height": 844}, color_scheme="dark").open(
        view="alignment", lang="zh", align="head", **PAIR
    )
    assert page.js(WIDE) <= 0
    assert page.texts(f"{SECTION} h2") == ["对齐：每个词看着什么写出来"]
    assert "写下一个词元" in page.texts(f"{SECTION} .cell-sentence")[0]


@pytest.mark.slow
def test_a_saved_file_works_without_a_server(chromium: Browser, tmp_path: Path) -> None:
    state = {"view": "alignment", "query": "2", "key": "1", "layer": "1", "head": "3", "align": "head", "lang": "en"}
    path = tmp_path / "page.html"
    page_text = exported(model("pair"), TEXTS["pair"], TARGETS["pair"], {**state, "part": PAIR["part"]})
    path.write_text(page_text, encoding="utf-8")
    context = chromium.new_context(offline=True)
    page = Watched(context.new_page(), "file://")
    page.page.goto(path.as_uri())
    page.drawn()
    assert differences(page, mean(1, 3), 2) == []
    own = tmp_path / "own.html"
    own.write_text(exported(model("pair"), TEXTS["pair"], None, {"lang": "en"}), encoding="utf-8")
    page.page.goto(own.as_uri())
    page.drawn()
    assert len(table(page)) == len(opened(model("pair"), TEXTS["pair"]).target or "") + 1 > 1
    page.page.goto(path.as_uri())
    page.drawn()
    assert page.page.locator(f"{SECTION} button", has_text="Let the model write").count() == 0
    page.page.locator(f"{SECTION} [data-name=align]").select_option("")
    page.drawn()
    assert differences(page, mean(), 2) == []
    assert page.lines == []
    context.close()


@pytest.mark.slow
def test_other_models_have_none(visit: Visit) -> None:
    page = visit().open(lang="en", text="abc")
    assert page.page.locator(SECTION).count() == 0
    assert page.page.locator("[data-tab=alignment]").count() == 0
