"""Requests that the app does not answer: each gets the status that says why, and JSON with one line."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from starlette.exceptions import HTTPException

from clearhead.web import app as app_module
from clearhead.web.app import LARGEST, make_app
from clearhead.web.files import KINDS, static_files
from tests.web.asking import ask, line, open_, small


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return make_app(small())


Refused = tuple[str, str, dict[str, Any], int, str]

REFUSED: list[Refused] = [
    ("GET", "/nothing", {}, 404, "/nothing"),
    ("GET", "/docs", {}, 404, "/docs"),
    ("GET", "/openapi.json", {}, 404, "/openapi.json"),
    ("GET", "/api/s/x", {}, 404, "/api/s/x"),
    ("GET", "/api/s/unknown/tokens", {}, 404, "unknown"),
    ("GET", "/static/", {}, 404, "/static/"),
    ("GET", "/static/index.html", {}, 404, "/static/index.html"),
    ("GET", "/static/js", {}, 404, "/static/js"),
    ("GET", "/static/%2e%2e/app.py", {}, 404, "app.py"),
    ("GET", "/static/..%2fapp.py", {}, 404, "app.py"),
    ("GET", "/static/..%5capp.py", {}, 404, "app.py"),
    ("GET", "/static//etc/passwd", {}, 404, "passwd"),
    ("GET", "/static/style.css%00", {}, 404, "style.css"),
    ("PUT", "/api/open", {}, 405, "PUT"),
    ("GET", "/api/open", {}, 405, "GET"),
    ("POST", "/", {}, 405, "POST"),
    ("POST", "/api/open", {"content": b""}, 400, "JSON"),
    ("POST", "/api/open", {"content": b'{"text": "a"'}, 400, "JSON"),
    ("POST", "/api/open", {"content": b'{"text": "\xff"}'}, 400, "JSON"),
    ("POST", "/api/open", {"content": b"[" * 200_000}, 400, "JSON"),
    ("POST", "/api/open", {"content": b'{"text": ' + b"9" * 5000 + b"}"}, 400, "JSON"),
    ("POST", "/api/open", {"json": ["a"]}, 422, "text"),
    ("POST", "/api/open", {"json": {}}, 422, "text"),
    ("POST", "/api/open", {"json": {"text": 3}}, 422, "text"),
    ("POST", "/api/open", {"json": {"text": None}}, 422, "text"),
    ("POST", "/api/open", {"json": {"text": "a", "target": 3}}, 422, "target"),
    ("POST", "/api/open", {"json": {"text": "a", "more": 3}}, 422, "nothing else"),
    ("POST", "/api/open", {"json": {"text": "a", "target": "b"}}, 422, "target"),
    ("POST", "/api/open", {"content": b"x" * (LARGEST + 1)}, 413, "1,000,000"),
    ("GET", "/api/model", {"headers": {"Host": "evil.example"}}, 403, "evil.example"),
    ("GET", "/static/style.css", {"headers": {"Host": "evil.example"}}, 403, "evil.example"),
    ("POST", "/api/open", {"json": {"text": "a"}, "headers": {"Origin": "http://evil.example"}}, 403, "evil.example"),
    ("GET", "/api/model", {"headers": {"Sec-Fetch-Site": "cross-site"}}, 403, "another site"),
]


@pytest.mark.parametrize("asked", REFUSED, ids=lambda each: f"{each[0]} {each[1]} {each[3]} {each[4]}")
def test_what_cannot_be_answered_is_one_line(app: FastAPI, asked: Refused) -> None:
    check_refused(app, asked)


def check_refused(app: FastAPI, asked: Refused) -> None:
    method, path, more, status, named = asked
    answer = ask(app, path, method, **more)
    assert answer.status_code == status
    assert named in line(answer)
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("query", ["head", "head?part=attention&layer=9&head=0", "row?part=attention&layer=0&head=0&query=-1",
                                   "cell?part=%00&layer=0", "stage?name=%ff%fe", "head?part=attention&layer=" + "9" * 5000])  # fmt: skip
def test_a_question_with_a_wrong_field_is_400(app: FastAPI, query: str) -> None:
    refused = ask(app, f"/api/s/{open_(app)}/{query}")
    assert refused.status_code in (400, 422)
    assert line(refused)


def check_all(app: FastAPI, status: int) -> None:
    for asked in REFUSED:
        if asked[3] == status:
            check_refused(app, asked)


@pytest.mark.parametrize(
    ("fault", "status"),
    [("no limit", 413), ("any file", 404), ("any field", 422), ("any host", 403), ("bare errors", 405)],
)
def test_what_is_let_through_is_found(fault: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "no limit":
        monkeypatch.setattr(app_module, "LARGEST", 10 * LARGEST)
    elif fault == "any file":
        monkeypatch.setattr(app_module, "static_files", lambda: {**static_files(), "js": b"", "../app.py": b"secret"})
        monkeypatch.setattr(app_module, "KINDS", dict.fromkeys([".py", "s"], "text/plain") | KINDS)
    elif fault == "any field":
        monkeypatch.setattr(app_module, "_asked", lambda body: app_module.Asked("abc", None))
    elif fault == "any host":
        monkeypatch.setattr(app_module.Hosts, "fault", lambda self, headers, path: None)
    app = make_app(small())
    if fault == "bare errors":
        app.exception_handlers.pop(HTTPException)
    with pytest.raises((AssertionError, ValueError, KeyError)):
        check_all(app, status)
