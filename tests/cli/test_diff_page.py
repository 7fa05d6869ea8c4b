"""The page of a comparison: complete in itself, names of strangers escaped, a bar a stage."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from clearhead.cli.diff_page import HEIGHT, page
from tests.checking.diff.examples import EQUAL, PARTED


def chart(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])


@pytest.mark.parametrize("found", [EQUAL, PARTED])
def test_nothing_is_loaded_and_every_compared_stage_has_a_bar(found) -> None:
    html = page(found.to_dict())
    assert not re.search(r"https?:|<script|<link|@import|url\(|src=", html)
    assert "default-src 'none'" in html
    assert len(chart(html).findall("g/rect")) == len(found.pairs)


def test_a_bar_is_as_high_as_the_power_of_ten() -> None:
    bars = chart(page(PARTED.to_dict())).findall("g/rect")
    tops = [float(bar.attrib["y"]) for bar in bars]
    assert tops[0] == HEIGHT
    assert tops[4] < tops[3] < tops[0]
    assert "bar-differs" in bars[4].attrib["class"]
    endless = replace(PARTED, pairs=(*PARTED.pairs[:4], replace(PARTED.pairs[4], largest=float("inf"))))
    assert float(chart(page(endless.to_dict())).findall("g/rect")[4].attrib["y"]) == 0


def test_strangers_cannot_write_into_the_page() -> None:
    evil = "<img src=x onerror=alert(1)>'\""
    pair = replace(PARTED.pairs[4], a=evil, b=evil, where=evil)
    found = replace(PARTED, a=evil, b=evil, given=evil, notes=(evil,), first=pair, pairs=(*PARTED.pairs[:4], pair))
    rows = tuple(replace(row, a=evil, text=evil) for row in PARTED.tensors)
    reason = replace(PARTED.reasons[0], id=evil, place=evil, text=evil)
    html = page(replace(found, tensors=rows, reasons=(reason,)).to_dict())
    assert "<img" not in html
    assert html.count("&lt;img") > 20
    chart(html)


def test_it_speaks_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    html = page(PARTED.to_dict())
    assert "lang='zh'" in html
    assert "逐阶段" in html
