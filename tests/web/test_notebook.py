"""The explorer in a notebook: a frame that holds the whole page, and nothing that reaches out of it."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from clearhead.messages import UserError
from clearhead.web.notebook import explore
from tests.web.asking import small


class Frame(HTMLParser):
    """The frame, as a browser reads it."""

    def __init__(self, shown: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(shown)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_frame_holds_the_page_and_cannot_reach_the_notebook() -> None:
    made = explore(small(), "abc 小猫", height=512)
    shown = made._repr_html_()
    ((tag, attributes),) = Frame(shown).found
    assert tag == "iframe"
    assert attributes["srcdoc"] == made.page
    # With allow-same-origin it would be the notebook's own page, and could read and run whatever that can.
    assert set(str(attributes["sandbox"]).split()) == {"allow-scripts", "allow-downloads"}
    assert attributes["height"] == "512"
    assert "src" not in attributes
    assert shown.isascii()


def test_where_nothing_is_shown_it_says_how() -> None:
    assert "\n" not in repr(explore(small(), "abc"))
    assert ".save(" in repr(explore(small(), "abc"))


def test_it_can_be_written_down(tmp_path: Path) -> None:
    made = explore(small(), "abc 小猫")
    made.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == made.page
    with pytest.raises(UserError):
        made.save(tmp_path / "no" / "page.html")


def test_a_model_that_is_not_there_is_said() -> None:
    with pytest.raises(UserError, match="no-such-run"):
        explore("no-such-run", "abc")


@pytest.mark.parametrize(("text", "target"), [(5, None), (None, None), (b"abc", None), ("abc", 7)])
def test_what_is_no_text_is_said(text: Any, target: Any) -> None:
    with pytest.raises(UserError, match="a prompt is a text"):
        explore(small(), text, target=target)
