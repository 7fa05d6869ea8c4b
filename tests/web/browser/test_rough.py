"""A saved file without the numbers of a row shows what its picture holds of them, as near as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser

from clearhead.tracing.trace import trace
from clearhead.web import export
from clearhead.web.export import exported
from tests.web.asking import small
from tests.web.browser.watched import Watched

TEXT = "abc 小猫 abc"


def test_a_row_is_read_from_the_picture(chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "ROOM", 0)
    path = tmp_path / "page.html"
    path.write_text(exported(small(), TEXT, None, {"view": "head", "lang": "en", "layer": "1", "head": "2"}), "utf-8")
    context = chromium.new_context(offline=True)
    page = Watched(context.new_page(), "file://")
    page.page.goto(f"{path.as_uri()}#view=head&layer=1&head=2&query=5&lang=en")
    page.drawn()
    weights = trace(small(), TEXT)["blocks.1.attention.weights"][0, 2]
    told = page.js(
        "() => [...document.querySelectorAll('#view-head .bar')].map((bar) => [bar.dataset.name, bar.title])"
    )
    said = {int(name.split()[0]): float(title.split(" · ")[-1]) for name, title in told}
    assert len(said) == 6
    note = page.texts("#view-head .row-numbers .quiet")[0]
    found = re.search(r"±(\d[\d.e−]*\d)", note)
    assert found is not None
    error = float(found[1].replace("−", "-"))
    assert error == pytest.approx(float(weights.max()) / 255, rel=0.1)
    # Two digits are shown, so half of the second is added.
    assert all(abs(each - float(weights[5, key])) <= 1.1 * error + 0.06 * each for key, each in said.items())
    assert any(abs(each - float(weights[4, key])) > 0.06 * each + 1.1 * error for key, each in said.items()), "planted"
    assert page.lines == []
    context.close()
