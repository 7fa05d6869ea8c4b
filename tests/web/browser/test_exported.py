"""A page that was saved, opened from disk with the network off; in a notebook's frame; and its sections as pictures."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from clearhead.formats.load import load
from clearhead.web import export
from clearhead.web.export import exported
from clearhead.web.notebook import explore
from tests.web.asking import small
from tests.web.browser.models import TARGETS, TEXTS

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Frame, Page

from tests.web.browser.watched import Watched

EVIL = "小猫 👩‍👩‍👧 </script><script>window.evil = 1</script><img src=x onerror=evil()>"
DRAWN = (
    """() => !document.body.classList.contains("busy") && document.getElementById("views")?.dataset.drawing === "0" """
)
NAMES = ("tokens", "flow", "atlas", "head", "cell", "mask", "cache")
"""The sections that every model has."""


class Offline:
    """A page of a browser that has no network, and what it did."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.lines: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda each: self.lines.append(each.text))
        page.on("pageerror", lambda each: self.lines.append(str(each)))
        page.on("request", lambda each: self.asked.append(each.url))

    def open(self, html: str, hash: str = "") -> Offline:
        """Writes a file and opens it."""
        path = self.folder / "page.html"
        path.write_text(html, "utf-8")
        self.asked.clear()
        self.page.goto(f"{path.as_uri()}{hash}")
        return self.drawn(self.page.main_frame)

    def drawn(self, frame: Frame) -> Offline:
        """Waits until every section is drawn; the policy lets no text be run as a script, so that it is asked from outside."""
        for _ in range(1000):
            if frame.evaluate(DRAWN) and frame.locator("#views > section").count() >= len(NAMES):
                return self
            self.page.wait_for_timeout(20)
        raise AssertionError(self.lines)

    def outside(self) -> list[str]:
        """What it asked of anybody but itself."""
        own = (self.folder / "page.html").as_uri()
        return [each for each in self.asked if not each.startswith((own, "data:", "blob:", "about:srcdoc"))]

    def said(self) -> dict[str, str]:
        """What a section says in the place of its picture."""
        return {name: text for name in NAMES if (text := self.page.locator(f"#view-{name} > .line").inner_text())}


@pytest.fixture
def offline(chromium: Browser, tmp_path: Path) -> Iterator[Offline]:
    context = chromium.new_context(offline=True, locale="en-US", viewport={"width": 1280, "height": 900})
    found = Offline(context.new_page(), tmp_path)
    yield found
    context.close()
    assert found.lines == []
    assert found.outside() == []


def test_a_saved_page_shows_all_of_it_without_a_network(offline: Offline) -> None:
    state = {"view": "cell", "layer": "2", "head": "1", "query": "3", "key": "2", "stage": "blocks.2.attention.q"}
    offline.open(exported(load("builtin"), EVIL, None, state))
    page = offline.page
    assert offline.said() == {}
    assert page.locator("#text").input_value() == EVIL
    assert page.evaluate("() => window.evil") is None
    assert page.locator("#view-head select[data-field=layer]").input_value() == "2"
    assert page.locator("#view-cell .step").count() == 6
    assert page.locator("#view-flow .stage .path").inner_text() == "blocks.2.attention.q"
    assert page.locator("#view-flow .stage-picture > canvas").count() == 1
    assert "holds the prompt" in page.locator("#foot").inner_text()
    assert page.locator("#save").count() == 0
    # Another head of the same file, and a link to it.
    page.locator("#view-head select[data-field=head]").select_option("3")
    offline.drawn(page.main_frame)
    assert offline.said() == {}
    page.wait_for_timeout(150)
    assert "head=3" in page.url


def test_what_is_seen_is_what_is_saved(offline: Offline, visit: Callable[..., Watched]) -> None:
    served = visit("pair", accept_downloads=True)
    state = {"part": "decoder.cross_attention", "layer": 1, "head": 2, "query": 3, "key": 5}
    served.open(view="head", drawing="arcs", text=TEXTS["pair"], target=TARGETS["pair"], lang="zh", **state)
    with served.page.expect_download() as download:
        served.page.locator("#save").click()
    assert download.value.suggested_filename.endswith(".html")
    offline.open(Path(download.value.path()).read_text("utf-8"))
    # The pointer has been nowhere on either page.
    for name in NAMES:
        seen = [page.locator(f"#view-{name}").inner_text() for page in (served.page, offline.page)]
        assert seen[0] == seen[1]
        assert len(seen[0]) > 50
    assert offline.page.locator("#target").input_value() == TARGETS["pair"]


def test_a_link_into_a_file_opens_it_there_and_with_its_own_prompt(offline: Offline) -> None:
    offline.open(exported(small(), "abc 小猫"), "#view=head&layer=1&head=2&query=2&text=another&lang=zh")
    assert offline.page.locator("#text").input_value() == "abc 小猫"
    assert offline.page.locator("#view-head select[data-field=head]").input_value() == "2"
    assert offline.page.evaluate("() => document.documentElement.lang") == "zh-Hans"


def test_what_a_file_does_not_hold_it_says_and_leads_back(offline: Offline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "ROOM", 0)
    offline.open(exported(small(), "abc 小猫", None, {"layer": "1"}))
    page = offline.page
    assert offline.said() == {}
    page.locator("#view-head select[data-field=head]").select_option("2")
    offline.drawn(page.main_frame)
    said = offline.said()
    assert list(said) == ["head", "cell"]
    assert all("does not hold this view" in each for each in said.values())
    page.locator("#view-head > .line button").click()
    offline.drawn(page.main_frame)
    assert offline.said() == {}
    assert page.locator("#view-head select[data-field=head]").input_value() == "0"


@pytest.mark.slow
def test_a_row_that_a_file_does_not_hold_leaves_the_matrix(offline: Offline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "ROOM", 0)
    offline.open(exported(small(), "abc 小猫"), "#view=head&query=2")
    assert list(offline.said()) == ["cell"]
    assert offline.page.locator("#view-head .matrix canvas").count() == 2
    assert "does not hold the numbers of this row" in offline.page.locator("#view-head .row-numbers").inner_text()


def test_a_script_from_elsewhere_does_not_run(offline: Offline) -> None:
    """The planted fault: what no escaping had stopped is stopped by the policy."""
    torn = exported(small(), "abc").replace(
        "</body>", '<script>window.evil = 1</script><script src="data:text/javascript,window.evil=1"></script></body>'
    )
    offline.open(torn)
    assert offline.page.evaluate("() => window.evil") is None
    refused = [each for each in offline.lines if "Content Security Policy" in each]
    assert len(refused) == 2
    offline.lines.clear()


def test_in_a_notebook_it_is_a_frame_of_its_own(offline: Offline) -> None:
    path = offline.folder / "page.html"
    path.write_text(
        f"<!doctype html><title>notebook</title>{explore(small(), EVIL[:2] + 'abc')._repr_html_()}", "utf-8"
    )
    offline.page.goto(path.as_uri())
    inside = offline.page.frames[1]
    offline.drawn(inside)
    assert inside.locator("#text").input_value() == "小猫abc"
    inside.locator("#view-head select[data-field=head]").select_option("1")
    offline.drawn(inside)
    assert inside.locator("#view-atlas .atlas-head h3").inner_text() == "Layer 0, head 1"
    assert inside.evaluate("() => window.origin") == "null"
    inside.locator("#skip").focus()
    offline.page.keyboard.press("Enter")
    assert offline.page.frames[1].url == "about:srcdoc"


@pytest.fixture
def pictures(offline: Offline) -> Callable[[str, str], bytes]:
    offline.open(exported(load("builtin"), EVIL, None, {"layer": "1"}))

    def saved(name: str, kind: str) -> bytes:
        with offline.page.expect_download() as download:
            offline.page.locator(f"#view-{name} [data-save={kind}]").click()
        assert download.value.suggested_filename.startswith(f"clearhead-{name}")
        assert download.value.suggested_filename.endswith(f".{kind}")
        return Path(download.value.path()).read_bytes()

    return saved


def test_a_section_is_saved_as_a_drawing_whose_texts_are_texts(
    offline: Offline, pictures: Callable[[str, str], bytes]
) -> None:
    space = "{http://www.w3.org/2000/svg}"
    drawn = {name: ElementTree.fromstring(pictures(name, "svg")) for name in NAMES}
    texts = {name: ["".join(each.itertext()) for each in root.iter(f"{space}text")] for name, root in drawn.items()}
    for name, root in drawn.items():
        box = offline.page.locator(f"#view-{name}").bounding_box()
        assert box
        assert abs(float(root.get("width") or 0) - box["width"]) <= 1
        assert offline.page.locator(f"#title-{name}").inner_text() in texts[name]
        assert {each.tag.removeprefix(space) for each in root.iter()}.isdisjoint({"foreignObject", "script", "style"})
    # The matrix is an image, and the tokens along its edges are texts.
    images = [each.get("href") or "" for each in drawn["head"].iter(f"{space}image")]
    assert len(images) >= 3
    assert all(each.startswith("data:image/png;base64,") for each in images)
    assert "小猫" in texts["tokens"]
    assert "<begin>" in texts["head"]


@pytest.mark.slow
def test_a_section_is_saved_as_pixels_twice_as_fine(offline: Offline, pictures: Callable[[str, str], bytes]) -> None:
    box = offline.page.locator("#view-head").bounding_box()
    assert box
    body = pictures("head", "png")
    assert body.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", body[16:24])
    assert abs(width - 2 * box["width"]) <= 2
    assert abs(height - 2 * box["height"]) <= 2
    assert len(body) > 20_000
