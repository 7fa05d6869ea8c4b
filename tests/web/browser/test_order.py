"""What a person looks at is there first; what asks for forwards of its own waits, in a slow model until somebody comes near."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from urllib.parse import urlsplit

import pytest

from tests.web.browser.models import TEXTS
from tests.web.browser.watched import Watched

NEAR = (files("clearhead.web") / "static" / "js" / "near.js").read_text("utf-8")
LATER = ("mask", "cache")
FULL = """() => Object.fromEntries([...document.querySelectorAll("#views > section")].map((each) => [each.dataset.view, each.querySelector(".body").childElementCount > 0]))"""


def slow(watched: Watched, *change: tuple[str, str]) -> Watched:
    """The page as of a model for which every forward is slow."""
    source = NEAR
    for old, new in (("QUICK = 2 ** 35", "QUICK = 0"), *change):
        assert old in source
        source = source.replace(old, new)
    watched.page.route("**/js/near.js", lambda route: route.fulfill(body=source, content_type="text/javascript"))
    return watched


def asked(watched: Watched) -> list[str]:
    """Of which kinds the questions were, in their order."""
    return re.findall(r"/api/s/\w+/(\w+)", " ".join(urlsplit(each).path for each in watched.asked))


def test_what_need_not_be_there_waits_until_somebody_comes(visit: Callable[..., Watched]) -> None:
    page = slow(visit("bytes")).open(view="tokens", text=TEXTS["bytes"], lang="zh")
    full = page.js(FULL)
    assert {name for name, there in full.items() if not there} == set(LATER)
    assert not {"mask", "masked", "cache"} & set(asked(page))
    assert page.texts("#view-cache > .line") == ["看到这里时才计算：模型要为此再运行几遍。"]
    # Another head is chosen: what waits is not asked for either.
    page.js("async () => (await import('clearhead/state.js')).go({layer: 1})")
    page.drawn()
    assert not {"mask", "masked", "cache"} & set(asked(page))
    page.page.locator("[data-tab=cache]").click()
    page.until(lambda: page.js(FULL)["cache"])
    page.drawn()
    assert page.texts("#view-cache > .line") == [""]
    assert "cache" in asked(page)


def test_what_a_link_names_is_there_at_once(visit: Callable[..., Watched]) -> None:
    page = slow(visit("bytes")).open(view="cache", text=TEXTS["bytes"], lang="en")
    assert page.js(FULL)["cache"]
    assert asked(page).index("cache") < asked(page).index("flow")


@pytest.mark.slow
@pytest.mark.parametrize("change", [("NEAR = 600", "NEAR = 99999"), ("QUICK = 0", "QUICK = 2 ** 35")])
def test_what_does_not_wait_is_found(visit: Callable[..., Watched], change: tuple[str, str]) -> None:
    page = slow(visit("bytes"), change).open(view="tokens", text=TEXTS["bytes"])
    assert all(page.js(FULL).values())


@pytest.mark.slow
def test_what_several_sections_want_is_asked_once(visit: Callable[..., Watched]) -> None:
    page = visit("bytes").open(view="atlas", text=TEXTS["bytes"])
    kinds = asked(page)
    assert kinds[0] == "atlas"
    assert [kinds.count(each) for each in ("tokens", "flow", "atlas", "head", "row", "cell")] == [1] * 6
    assert kinds.index("cell") < kinds.index("masked"), "forwards come last"
