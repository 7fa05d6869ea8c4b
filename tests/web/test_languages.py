"""Whoever asks is answered in the language that they ask for, whatever the server and others speak at the same time."""

from __future__ import annotations

import asyncio
import re

import httpx
import pytest
from starlette.datastructures import Headers

from clearhead.messages import language, say, speaking
from clearhead.web import sessions
from clearhead.web.app import Questions, make_app
from clearhead.web.languages import language_of
from tests.web.asking import HOME, ask, line, served, small, told

CHINESE = re.compile("[\u4e00-\u9fff]")
WISHES = {
    "zh": "zh",
    "zh-CN,zh;q=0.9,en;q=0.8": "zh",
    "zh-Hans": "zh",
    "EN-gb": "en",
    "en;q=0.5, zh-TW;q=0.7": "zh",
    "fr-FR, en;q=0.3": "en",
    "fr, de": None,
    "zhuang, ench": None,
    "en;q=1.2.3": None,
    "*": None,
    "": None,
}


@pytest.mark.parametrize(("told", "wanted"), WISHES.items())
def test_which_language_a_request_asks_for(told: str, wanted: str | None) -> None:
    assert language_of(Headers({"Accept-Language": told})) == wanted


def test_one_speaks_for_a_while_and_only_here() -> None:
    assert language() == "en"
    with speaking("zh"):
        assert language() == "zh"
        with speaking(None):
            assert language() == "zh"
        with speaking("en"):
            assert language() == "en"
        assert CHINESE.search(say("explore.no_json"))
    assert language() == "en"


MISTAKES = {
    "a stranger's host": ("/", {"Host": "elsewhere.example"}, 403),
    "no such address": ("/nothing", {}, 404),
    "no such prompt": ("/api/s/none/tokens", {}, 404),
    "a wrong method": ("/api/open", {}, 405),
}


@pytest.mark.parametrize(("path", "headers", "status"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_said_in_the_language_of_who_asks(path: str, headers: dict[str, str], status: int) -> None:
    app = make_app(small())
    for wish, chinese in (("zh-CN", True), ("en", False), ("fr", False)):
        given = ask(app, path, headers={**headers, "Accept-Language": wish})
        assert given.status_code == status
        assert bool(CHINESE.search(line(given))) == chinese


def test_a_defect_is_said_in_the_language_of_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(small())
    monkeypatch.setattr(Questions, "_open_one", lambda self, name: 1 / 0)
    given = ask(app, "/api/s/none/tokens", headers={"Accept-Language": "zh"})
    assert given.status_code == 500
    assert CHINESE.search(line(given))


def both() -> list[bool]:
    """Whether two are answered in Chinese who ask at once, of a mistake that is found where the model works: one in Chinese, one in English."""
    app = make_app(small())

    async def asked() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=HOME) as client:
            wishes = ({"Accept-Language": each} for each in ("zh", "en"))
            return list(
                await asyncio.gather(*(client.post("/api/open", json={"text": ""}, headers=each) for each in wishes))
            )

    return [bool(CHINESE.search(line(each))) for each in asyncio.run(asked())]


def test_two_who_ask_at_once_are_each_answered_in_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert both() == [True, False]

    class Deaf:
        """Planted: the thread that works hears nothing of who asked."""

        def run(self, work: object) -> object:
            return work()  # type: ignore[operator]

    monkeypatch.setattr(sessions, "copy_context", Deaf)
    assert both() == [False, False]


def test_who_asks_for_no_language_is_answered_in_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    with served(make_app(small())) as connection:
        for wish, chinese in (({}, True), ({"Accept-Language": "en"}, False)):
            connection.request("GET", "/nothing", headers=wish)
            status, answer = told(connection)
            assert status == 404
            assert bool(CHINESE.search(answer["error"])) == chinese
