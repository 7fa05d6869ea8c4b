"""One browser and one server a model, for all tests here; every page is clean when its test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from clearhead.messages import UserError
from tests.web.browser.chromium import ARGUMENTS, missing, must_exist
from tests.web.browser.models import model
from tests.web.browser.site import Site

pytest.importorskip("playwright")

from playwright.sync_api import Browser, sync_playwright

from tests.web.browser.watched import Watched


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """The browser."""
    path = must_exist()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def site() -> Iterator[Callable[[str], Site]]:
    """The page of a model, served from the first time that it is asked for."""
    sites: dict[str, Site] = {}

    def found(name: str) -> Site:
        if name not in sites:
            try:
                model(name)
            except UserError as error:
                missing(str(error))
            sites[name] = Site(name)
        return sites[name]

    yield found
    for each in sites.values():
        each.end()


@pytest.fixture
def visit(chromium: Browser, site: Callable[[str], Site]) -> Iterator[Callable[..., Watched]]:
    """Visits the page of a model: `visit("pair", color_scheme="dark").open(view="head")`.

    What is given besides is of playwright's `new_context`. When the test ends, no page has asked a stranger or has a line on its console.
    """
    with ExitStack() as stack:
        pages: list[tuple[Watched, tuple[str, ...]]] = []

        def one(name: str = "bytes", *, known: tuple[str, ...] = (), **how: Any) -> Watched:
            settings = {
                "locale": "en-US",
                "viewport": {"width": 1280, "height": 900},
                "reduced_motion": "reduce",
                **how,
            }
            context = stack.enter_context(chromium.new_context(**settings))
            watched = Watched(context.new_page(), site(name).address)
            pages.append((watched, known))
            return watched

        yield one
        assert [each.troubles(*known) for each, known in pages] == [[]] * len(pages)
