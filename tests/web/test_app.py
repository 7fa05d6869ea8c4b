"""The app: what each address gives, what may be kept, and that whatever cannot be answered is JSON with one line."""

from __future__ import annotations

import base64
import hashlib
import html
import http.client
import itertools
import json
import re
import sys
import threading
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest
from fastapi import FastAPI
from starlette.responses import Response

from clearhead.web import app as app_module
from clearhead.web import files
from clearhead.web.answer import Answer, as_json
from clearhead.web.answers import PATHS, answer
from clearhead.web.app import LARGEST, make_app
from clearhead.web.files import static_files
from clearhead.web.opening import opened
from tests.web.asking import ask, line, open_, served, small, told

QUERIES = {
    "stage": "name=embedding",
    "head": "part=attention&layer=1&head=2",
    "row": "part=attention&layer=1&head=2&query=3",
    "cell": "part=attention&layer=1&head=2&query=3&key=1",
    "mask": "part=attention&layer=1&mask=causal.window-2",
    "masked": "mask=causal.window-2",
    "cache": "steps=3",
    "effect": "part=attention&layer=1&head=2&query=4&key=3",
    "effects": "part=attention&layer=1&head=2&query=4",
}
OF_TWO_TEXTS = {"alignment", "aligned", "written"}
"""What is asked of a model that reads one and writes another."""


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return make_app(small())


def check_page(app: FastAPI) -> None:
    """The page names its modules, and its policy lets nothing run but them and the one map that names them."""
    page = ask(app, "/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    (imports,) = re.findall(r'<script type="importmap">(.*?)</script>', page.text)
    digest = base64.b64encode(hashlib.sha256(imports.encode()).digest()).decode()
    policy = page.headers["content-security-policy"]
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert {"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert "unsafe" not in policy
    modules = json.loads(imports)["imports"]
    for name, address in modules.items():
        assert ask(app, address).headers["content-type"] == "text/javascript; charset=utf-8", name
    imported = {found for body in static_files().values() for found in re.findall(r'from "([^"]+)"', body.decode())}
    assert imported
    assert imported <= set(modules)


def test_the_page_and_its_modules(app: FastAPI) -> None:
    check_page(app)


@pytest.mark.parametrize("fault", ["no map", "another hash"])
def test_a_page_that_could_not_run_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "no map":
        monkeypatch.setattr(files, "IMPORTS", "elsewhere")
    else:
        monkeypatch.setattr(app_module, "policy", lambda imports: "script-src 'self' 'sha256-x'")
    with pytest.raises((AssertionError, KeyError)):
        check_page(make_app(small()))


@pytest.mark.parametrize("text", ['"><script>alert(1)</script>', "小猫 & a=b#c+d\n", "\ud800"])
def test_the_page_begins_with_what_was_asked_for_and_it_stays_text(text: str) -> None:
    page = ask(make_app(small(), state={"view": "head", "lang": "zh", "text": text}), "/").text
    (state,) = re.findall(r'<html lang="en" data-state="#([^"]*)">', page)
    found = parse_qs(html.unescape(state), keep_blank_values=True)
    assert found == {"view": ["head"], "lang": ["zh"], "text": [text.replace("\ud800", "?")]}
    assert "alert(1)" not in page


@pytest.mark.parametrize("path", [path for path in PATHS if path not in OF_TWO_TEXTS])
def test_what_is_asked_over_http_is_what_the_table_says(app: FastAPI, path: str) -> None:
    session, query = open_(app), QUERIES.get(path, "")
    given = ask(app, f"/api/s/{session}/{path}?{query}")
    assert given.status_code == 200, given.text
    wanted = answer(opened(small(), "abc 小猫 abc"), path, {name: value for name, (value,) in parse_qs(query).items()})
    assert given.headers["content-type"] == wanted.kind
    if path != "open":  # which says how long it took
        assert given.content == wanted.body


def test_a_prompt_that_is_open_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    opening, times = app_module.forward, []
    monkeypatch.setattr(app_module, "forward", lambda *asked: times.append(1) or opening(*asked))
    app = make_app(small())
    assert open_(app) == open_(app)
    assert len(times) == 1
    assert open_(app, "abc") != open_(app)
    assert len(times) == 2


def test_a_prompt_that_has_gone_is_404_and_can_be_opened_again() -> None:
    app = make_app(small(), memory=1)
    first = open_(app)
    open_(app, "abc")
    gone = ask(app, f"/api/s/{first}/flow")
    assert gone.status_code == 404
    assert "open it again" in line(gone)
    assert open_(app) == first
    assert ask(app, f"/api/s/{first}/flow").status_code == 200


def check_kept(app: FastAPI) -> None:
    """What a browser has is not sent again, and nothing else is taken for it."""
    session = open_(app)
    address = f"/api/s/{session}/head?part=attention&layer=0&head=1"
    first = ask(app, address)
    tag = first.headers["etag"]
    again = ask(app, address, headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    # In whatever order the fields stand, and in another server on the same model, where nobody opened the prompt.
    turned = f"/api/s/{session}/head?head=1&layer=0&part=attention"
    assert ask(make_app(small()), turned, headers={"If-None-Match": tag}).status_code == 304
    others = [
        f"/api/s/{session}/head?part=attention&layer=1&head=1",
        f"/api/s/{open_(app, 'abc')}/head?{QUERIES['head']}",
    ]
    assert all(ask(app, each, headers={"If-None-Match": tag}).status_code == 200 for each in others)
    file = ask(app, "/static/style.css")
    assert ask(app, "/static/style.css", headers={"If-None-Match": file.headers["etag"]}).status_code == 304
    assert "etag" not in ask(app, f"/api/s/{session}/head").headers


def test_what_a_browser_has_is_not_sent_again(app: FastAPI) -> None:
    check_kept(app)


@pytest.mark.parametrize("fault", ["all alike", "never the same", "by the session alone"])
def test_a_wrong_tag_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tag_of, count = app_module.tag_of, itertools.count()

    def wrong(*told: object) -> str:
        if fault == "all alike" or len(told) == 1:
            return tag_of("one")
        return tag_of(next(count)) if fault == "never the same" else tag_of(*told[:3])

    monkeypatch.setattr(app_module, "tag_of", wrong)
    with pytest.raises(AssertionError):
        check_kept(make_app(small()))


def test_another_release_answers_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    tag = ask(app := make_app(small()), f"/api/s/{open_(app)}/flow").headers["etag"]
    monkeypatch.setattr(files, "__version__", "99")
    newer = make_app(small())
    assert ask(newer, f"/api/s/{open_(newer)}/flow", headers={"If-None-Match": tag}).status_code == 200


def test_answers_are_compressed_where_the_browser_can_read_it(app: FastAPI) -> None:
    for address in (f"/api/s/{open_(app)}/flow", "/static/style.css", "/"):
        small_one = ask(app, address, headers={"Accept-Encoding": "gzip"})
        plain = ask(app, address, headers={"Accept-Encoding": "identity"})
        assert small_one.headers["content-encoding"] == "gzip"
        assert int(small_one.headers["content-length"]) < len(plain.content)
        assert "content-encoding" not in plain.headers
        assert small_one.content == plain.content


def test_an_unknown_question_names_those_that_are(app: FastAPI) -> None:
    refused = ask(app, f"/api/s/{open_(app)}/weights")
    assert refused.status_code == 404
    assert "'weights'" in line(refused)
    assert "tokens, flow" in line(refused)


def test_errors_are_in_the_language_of_the_server(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert "网页在 /" in line(ask(app, "/nothing"))


def test_a_defect_is_one_line_without_its_insides(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*asked: object) -> Answer:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(app_module, "forward", broken)
    answer = ask(make_app(small()), "/api/open", "POST", json={"text": "abc"})
    assert answer.status_code == 500
    assert "ZeroDivisionError" in line(answer)
    assert "secret" not in answer.text


def test_head_alone_is_answered(app: FastAPI) -> None:
    assert [ask(app, path, "HEAD").status_code for path in ("/", "/static/style.css")] == [200, 200]


def test_over_a_socket_paths_and_sizes_are_refused_too(app: FastAPI) -> None:
    with served(app) as server:
        for path in ("/static/../app.py", "/static/js/../../app.py", "/../../../etc/passwd"):
            server.putrequest("GET", path)
            server.endheaders()
            assert told(server)[0] == 404
        server.request("POST", "/api/open", b"x" * (LARGEST * 3))
        assert told(server)[0] == 413
        # In pieces, so that nobody says beforehand how much it is.
        server.request("POST", "/api/open", iter([b"x" * 600_000] * 2), encode_chunked=True)
        assert told(server)[0] == 413
        server.request("POST", "/api/open", json.dumps({"text": "小猫"}).encode())
        status, answer = told(server)
        assert (status, [each["piece"] for each in answer["tokens"]]) == (200, ["小", "猫"])


def check_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    running, go_on, times = threading.Event(), threading.Event(), []

    def slow(*asked: object) -> Answer:
        times.append(1)
        running.set()
        go_on.wait(10)
        return as_json({})

    monkeypatch.setattr(app_module, "model_told", slow)
    app = make_app(small())
    with served(app) as server:
        assert server.port is not None
        server.request("GET", "/api/model")
        assert running.wait(10)
        other = http.client.HTTPConnection("127.0.0.1", server.port)
        other.request("GET", "/api/model")
        other.close()
        threading.Event().wait(0.3)  # until the server has heard of it
        go_on.set()
        assert server.getresponse().read() == b"{}"
        threading.Event().wait(0.2)
    assert len(times) == 1


def test_a_question_that_was_given_up_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    check_given_up(monkeypatch)


def test_computing_for_nobody_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def here() -> bool:
        return False

    do = app_module.Desk.do
    monkeypatch.setattr(app_module.Desk, "do", lambda self, work, gone: do(self, work, here))
    with pytest.raises(AssertionError):
        check_given_up(monkeypatch)


def test_the_export_is_a_file_of_the_prompt_and_the_state(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    writes = SimpleNamespace(exported=lambda *given: asked.append(given) or "<html>")
    monkeypatch.setitem(sys.modules, "clearhead.web.export", writes)
    answer = ask(app, f"/api/s/{open_(app)}/export?view=head&layer=1")
    assert (answer.status_code, answer.text) == (200, "<html>")
    assert answer.headers["content-disposition"].startswith("attachment")
    ((session, text, target, state),) = asked
    assert (session.text, text, target, state) == (text, "abc 小猫 abc", None, {"view": "head", "layer": "1"})


def test_a_stranger_is_refused_whatever_the_app(app: FastAPI) -> None:
    """The check stands before every route, those too that are added later."""
    other = make_app(small())
    other.add_api_route("/more", lambda: Response("more"))
    assert ask(other, "/more").text == "more"
    assert ask(other, "/more", headers={"Host": "evil.example"}).status_code == 403
