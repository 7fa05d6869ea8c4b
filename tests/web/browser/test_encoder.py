"""A model that reads in both directions has its page, too; and numbers that the flow leaves out come when somebody opens a tensor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from clearhead.tracing.trace import summary, trace
from clearhead.web.opening import opened
from tests.web.browser.models import TEXTS, model
from tests.web.browser.watched import Watched
from tests.web.heads_opened import recorded

Visit = Callable[..., Watched]
FOUR = "() => [...document.querySelectorAll('.stage .numbers dd')].slice(0, 4).map((each) => each.dataset.value)"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_section_of_an_encoder_is_right_or_says_why(visit: Visit, lang: str) -> None:
    state = {"query": 1, "key": 6, "layer": 1, "head": 2, "stage": "blocks.1.feedforward.hidden"}
    page = visit("encoder").open(view="head", lang=lang, text=TEXTS["encoder"], **state)
    assert {"en": "the normal distribution", "zh": "正态分布"}[lang] in page.texts(".stage .formula")[0]
    assert page.texts("#notice, section > .line") == [""] * (1 + page.page.locator("section").count())
    for name in page.js("() => [...document.querySelectorAll('#views > section')].map((each) => each.dataset.view)"):
        body = page.page.locator(f"#view-{name} .body")
        drawn = body.locator("svg, canvas, .piece-token").count()
        assert drawn or len(body.inner_text()) > 20, name
    # A token sees what stands behind it: the weight is that of the trace, above the diagonal.
    weights = recorded(opened(model("encoder"), TEXTS["encoder"]), "blocks.1.attention.weights").popitem()[1][0, 2, 1]
    assert float(weights[6]) > 0
    said = page.page.locator("#view-head .bar", has_text="6 “").first.get_attribute("title") or ""
    assert abs(float(said.split(" · ")[-1]) - float(weights[6])) < 1e-6
    assert abs(float(said.split(" · ")[-1]) - float(weights[5])) > 1e-6, "planted: another key"


def test_numbers_that_the_flow_leaves_out_come_with_the_tensor(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    name, text = "blocks.0.attention.weights", "the cat sat, the cat"
    monkeypatch.setattr("clearhead.web.flow.FEW", 0)
    page = visit().open(view="flow", stage=name, lang="en", text=text)
    assert page.js("async () => (await (await fetch('/api/model')).json()).kind") == "decoder"
    numbers = summary(trace(model("bytes"), text)[name])
    wanted = torch.tensor([numbers[each] for each in ("mean", "std", "least", "most")], dtype=torch.float64)
    said = torch.tensor([float(each) for each in page.js(FOUR)], dtype=torch.float64)
    assert (said - wanted).abs().max() < 1e-6
    # Planted: those of another tensor.
    page.page.locator("[data-stage='blocks.0.attention.scores']").click()
    page.drawn()
    said = torch.tensor([float(each) for each in page.js(FOUR)], dtype=torch.float64)
    assert (said - wanted).abs().max() > 1e-6
