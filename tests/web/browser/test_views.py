"""Each view shows itself, and its numbers are those of a trace; on the built-in model, a decoder and an encoder-decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.tracing.trace import summary, trace
from clearhead.web.files import VIEWS
from tests.web.browser.models import QUICK, TARGETS, TEXTS, model
from tests.web.browser.watched import Watched

Visit = Callable[..., Watched]
EVERY = [*QUICK, pytest.param("smollm2, float64", marks=pytest.mark.slow)]
PART = {"pair": "decoder.cross_attention"}
"""What is looked at where there are several attentions."""
COLOURS = """(canvas) => new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""


def first(name: str) -> dict[str, Any]:
    """The state in which a model is looked at."""
    target = {"target": TARGETS[name]} if name in TARGETS else {}
    return {"text": TEXTS[name], "part": PART.get(name, "attention"), "layer": 1, "head": 2, **target}


@pytest.mark.parametrize("name", EVERY)
def test_every_view_is_drawn_and_its_numbers_are_those_of_a_trace(visit: Visit, name: str) -> None:
    page = visit(name).open(view="head", stage=_stage(name), query=3, key=2, lang="en", **first(name))
    sections = [each for each in VIEWS if name in TARGETS or each != "alignment"]
    assert (
        page.js("() => [...document.querySelectorAll('#views > section')].map((each) => each.dataset.view)") == sections
    )
    assert page.texts("#notice, section > .line") == [""] * (1 + len(sections)), "nothing to complain of"
    check_drawn(page, name)
    wanted = traced(name)
    assert not differences(page, name, wanted)
    # Planted: the numbers of another head, of another query.
    assert differences(page, name, wanted | {"head": 1})
    assert differences(page, name, wanted | {"query": 4})


def _stage(name: str) -> str:
    return "decoder.blocks.1.feedforward.hidden" if name in TARGETS else "blocks.1.feedforward.hidden"


def check_drawn(page: Watched, name: str) -> None:
    """Something is to be seen in each section."""
    loaded = model(name)
    ids = len(loaded.read(TEXTS[name]))
    assert page.page.locator("#view-tokens .piece-token").count() >= ids
    assert page.page.locator("#view-flow svg [data-stage]").count() > 10
    assert page.page.locator("#view-flow .stage-picture > canvas").evaluate(COLOURS) > 8
    for selector in (
        "#view-atlas .thumbnails canvas",
        "#view-atlas .atlas-head canvas",
        "#view-head .matrix canvas",
        "#view-head .row-bars",
    ):
        assert page.page.locator(selector).first.evaluate(COLOURS) > 3, selector
    assert page.page.locator("#view-cell .step").count() >= 5


def traced(name: str) -> dict[str, Any]:
    """What a trace says of the same text."""
    target = {"target": TARGETS[name]} if name in TARGETS else {}
    tensors = trace(model(name), TEXTS[name], **target)
    place = (PART.get(name, "attention"), 1)
    attention = f"decoder.blocks.{place[1]}.cross_attention" if name in TARGETS else f"blocks.{place[1]}.attention"
    return {"tensors": tensors, "attention": attention, "head": 2, "query": 3, "key": 2}


def differences(page: Watched, name: str, wanted: dict[str, Any]) -> list[str]:
    """Where the page says other numbers than a trace, by more than 1e-6 of the largest."""
    tensors, attention = wanted["tensors"], wanted["attention"]
    head, query, key = wanted["head"], wanted["query"], wanted["key"]
    groups = tensors[f"{attention}.k"].shape[1]
    shared = head * groups // tensors[f"{attention}.q"].shape[1]
    row = _row(page)
    seen = tensors[f"{attention}.weights"][0, head, query]
    pairs = {
        "weights of the row": (_sorted(row[0]), _sorted(seen[: len(row[0])] if "cross" not in attention else seen)),
        "scores of the row": (_sorted(row[1]), _sorted(tensors[f"{attention}.scores"][0, head, query, : len(row[0])])),
        "weight": (_cell(page, 5, -1), seen[key]),
        "score": (_cell(page, 3, -1), tensors[f"{attention}.scores"][0, head, query, key]),
        "value": (_cell(page, 6, 1), tensors[f"{attention}.v"][0, shared, key, 0]),
        "mixed": (_cell(page, 6, -1), tensors[f"{attention}.mixed"][0, head, query, 0]),
        **_stages(page, tensors[_stage(name)]),
    }
    return [f"{what}: {said} is not {true}" for what, (said, true) in pairs.items() if not _same(said, true)]


def _same(said: Tensor, true: Tensor) -> bool:
    true = true.double()
    return said.shape == true.shape and bool((said - true).abs().max() <= 1e-6 * max(1.0, float(true.abs().max())))


def _sorted(numbers: Tensor) -> Tensor:
    return numbers.double().sort().values


def _row(page: Watched) -> tuple[Tensor, Tensor]:
    """The table behind the matrix: weights and scores."""
    page.js("() => { document.querySelector('#view-head details').open = true; }")
    page.until(lambda: page.page.locator("#view-head details tbody tr").count())
    cells = page.js(
        "() => [...document.querySelectorAll('#view-head details tbody tr')].map((row) => [...row.cells].slice(1).map((cell) => Number(cell.textContent)))"
    )
    weights, scores = torch.tensor(cells, dtype=torch.float64).T
    return weights, scores


def _cell(page: Watched, step: int, place: int) -> Tensor:
    """A number of a step, counted from the last one: all digits of it."""
    last = 6 - step
    numbers = page.js(
        "(last) => [...[...document.querySelectorAll('#view-cell .step')].at(-1 - last).querySelectorAll('data')].map((each) => Number(each.value))",
        last,
    )
    return torch.tensor(numbers[place], dtype=torch.float64)


def _stages(page: Watched, tensor: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """The numbers of the stage that is open."""
    said = [
        float(each)
        for each in page.js(
            "() => [...document.querySelectorAll('.stage .numbers dd')].slice(0, 4).map((each) => each.dataset.value)"
        )
    ]
    numbers = summary(tensor)
    true = [torch.tensor(numbers[each], dtype=torch.float64) for each in ("mean", "std", "least", "most")]
    return {
        f"number {place} of the stage": (torch.tensor(each, dtype=torch.float64), true[place])
        for place, each in enumerate(said)
    }
