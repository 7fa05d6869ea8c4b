"""A page with a witness: every request, every line on its console, and a way to wait until it is drawn."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Page

PATIENCE = 120
"""Seconds after which nothing more is expected; a busy machine is no fault of the page."""
DRAWN = """() => !document.body.classList.contains("busy") && document.getElementById("views")?.dataset.drawing === "0"
    && document.querySelectorAll("#views > section").length > 0"""


class Watched:
    """A page, and what it did.

    Attributes:
        page: playwright's.
        lines: what stands on its console, and errors that nobody caught.
        asked: the addresses that it asked for.
    """

    def __init__(self, page: Page, home: str) -> None:
        self.page, self.home = page, home.rstrip("/")
        self.lines: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda each: self.lines.append(f"{each.type}: {each.text} {each.location['url']}".rstrip()))
        page.on("pageerror", lambda each: self.lines.append(f"error: {each}"))
        page.on("request", lambda each: self.asked.append(each.url))

    def open(self, search: str = "", /, **state: Any) -> Watched:
        """Goes to the address of a state, and waits until all of it is drawn."""
        self.page.goto(f"{self.home}/{search}#{urlencode(state)}")
        return self.drawn()

    def drawn(self) -> Watched:
        """Waits until every section is drawn."""
        self.until(lambda: self.page.evaluate(DRAWN))
        return self

    def until(self, holds: Callable[[], Any]) -> None:
        """Waits for something; the policy of the page lets no text be run as a script, so that it is asked from outside."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"still waiting; on the console: {self.lines}"
            self.page.wait_for_timeout(20)

    def press(self, *keys: str) -> Watched:
        """Keys, one after another; then all is drawn."""
        for key in keys:
            self.page.keyboard.press(key)
        return self.drawn()

    def write(self, text: str) -> Watched:
        """Opens a text as a person does: into the field, and Enter."""
        self.page.locator("#text").fill(text)
        self.page.locator("#text").press("Enter")
        self.page.wait_for_timeout(30)
        return self.drawn()

    def state(self) -> dict[str, Any]:
        """What the page shows, as its own module has it."""
        found: dict[str, Any] = self.page.evaluate("async () => ({...(await import('clearhead/state.js')).current()})")
        return found

    def texts(self, selector: str) -> list[str]:
        """The texts of the elements, also of those that are not in sight."""
        return self.page.locator(selector).all_text_contents()

    def js(self, expression: str, given: Any = None) -> Any:
        """The value of a function of JavaScript on the page."""
        return self.page.evaluate(expression, given)

    def troubles(self, *known: str) -> list[str]:
        """What a page may not do: a line on the console, a request to another place.

        Args:
            known: beginnings of lines that the browser itself writes, and no page can prevent.
        """
        own = urlsplit(self.home).netloc
        strangers = [
            url
            for url in self.asked
            if urlsplit(url).scheme in ("http", "https", "ws", "wss") and urlsplit(url).netloc != own
        ]
        return [line for line in self.lines if not line.startswith(known)] + [f"asked {url}" for url in strangers]
