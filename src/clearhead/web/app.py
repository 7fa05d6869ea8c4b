"""The one app: the explorer's page, and what it asks of the model behind it.

A request goes through `Languages` (in which it is answered), `Hosts` (who asks), compression, and a route. Whatever cannot be answered is JSON with one line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from clearhead.formats.load import Loaded
from clearhead.messages import UserError, language, say, speaking
from clearhead.web.answer import Answer
from clearhead.web.answers import answer, opening
from clearhead.web.files import KINDS, served_page, static_files, version
from clearhead.web.hosts import Hosts
from clearhead.web.languages import Languages, language_of
from clearhead.web.opening import forward, read_of, session_id
from clearhead.web.replies import has, kept, policy, refusal, reply, tag_of, unchanged
from clearhead.web.session import RefusedError, Session
from clearhead.web.sessions import MEMORY, Desk, GoneError, Sessions
from clearhead.web.told import model_told

LARGEST = 1_000_000
"""Bytes of a request's body, at most."""
READ_AT_MOST = 32_000_000
"""Bytes of one that is too large that are read before it is answered: a browser listens when it has spoken."""
COMPRESSION = 1
"""Of 1 to 9. More is hardly smaller (a picture of all heads by 6%), and takes three times as long."""
GONE = 499
"""What an answer has for a status that nobody reads."""


def make_app(
    loaded: Loaded,
    *,
    state: Mapping[str, str] | None = None,
    hosts: Sequence[str] = (),
    memory: int = MEMORY,
    name: str | None = None,
) -> FastAPI:
    """The explorer of a model, for a server or a test.

    Args:
        loaded: the model.
        state: what the page shows where its address does not say: view, lang, text, target.
        hosts: names by which it may be called, beside localhost; see `Hosts`.
        memory: bytes that open prompts may keep, together.
        name: what the model is called; after its folder or file if None.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.include_router(_page(state or {}))
    app.include_router(Questions(loaded, name, memory).routes())
    for kind, handler in (
        (RefusedError, _refused),
        (UserError, _mistaken),
        (HTTPException, _not_found),
        (GoneError, _gone),
        (ClientDisconnect, _gone),
        (Exception, _broken),
    ):
        app.add_exception_handler(kind, handler)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=COMPRESSION)
    app.add_middleware(Hosts, hosts=hosts)
    app.add_middleware(Languages)
    return app


def _page(state: Mapping[str, str]) -> APIRouter:
    """The page and its files."""
    router, static = APIRouter(), static_files()
    page, imports = served_page(static, state)
    tags = {path: tag_of(body) for path, body in static.items()}

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index() -> Response:
        return reply(page.encode(), KINDS[".html"], {"Content-Security-Policy": policy(imports)})

    @router.api_route("/static/{path:path}", methods=["GET", "HEAD"])
    async def file(path: str, request: Request) -> Response:
        # Looked up among what was read from the package: no path leads anywhere else.
        if path not in static or path == "index.html":
            raise HTTPException(404)
        if has(request, tags[path]):
            return unchanged(tags[path])
        return reply(static[path], KINDS[path[path.rindex(".") :]], kept(tags[path]))

    return router


class Questions:
    """What the page asks of the model.

    Args:
        loaded: the model.
        name: what it is called; after its folder or file if None.
        memory: bytes that open prompts may keep, together.
    """

    def __init__(self, loaded: Loaded, name: str | None, memory: int) -> None:
        self.loaded, self.name = loaded, name
        self.sessions, self.desk, self.version = Sessions(memory), Desk(), version()

    def routes(self) -> APIRouter:
        """By which address each is asked."""
        router = APIRouter()
        router.add_api_route("/api/model", self.model)
        router.add_api_route("/api/open", self.open, methods=["POST"])
        router.add_api_route("/api/s/{session}/export", self.export)
        router.add_api_route("/api/s/{session}/{path}", self.ask)
        return router

    async def model(self, request: Request) -> Response:
        """What it is."""
        await _body(request)
        given = await self._worked(lambda: model_told(self.loaded, self.name), request)
        return reply(given.body, given.kind)

    async def open(self, request: Request) -> Response:
        """One forward on a prompt, unless it is open already."""
        asked = _asked(await _body(request))

        def work() -> Answer:
            name = session_id(self.loaded, asked.text, asked.target)
            session = self.sessions.get(name)
            if session is None:
                read = read_of(self.loaded, asked.text, asked.target)
                self.sessions.make_room(len(read.ids) + len(read.source))
                session = forward(self.loaded, read, name)
            self.sessions.keep(session)
            return opening(session, {})

        given = await self._worked(work, request)
        return reply(given.body, given.kind)

    async def ask(self, session: str, path: str, request: Request) -> Response:
        """Something of a prompt that is open."""
        await _body(request)
        query = dict(request.query_params)
        tag = tag_of(self.version, language(), session, path, sorted(query.items()))
        if has(request, tag):
            # The name of a session says all that the answer depends on, so it need not be open.
            return unchanged(tag)
        given = await self._worked(lambda: answer(self._open_one(session), path, query), request)
        return reply(given.body, given.kind, kept(tag))

    async def export(self, session: str, request: Request) -> Response:
        """The page as one file."""
        await _body(request)
        state = dict(request.query_params)

        def work() -> Answer:
            # It asks by the same table.
            from clearhead.web.export import exported  # noqa: PLC0415

            read = self._open_one(session)
            return Answer(KINDS[".html"], exported(read, read.text, read.target, state).encode())

        given = await self._worked(work, request)
        return reply(given.body, given.kind, {"Content-Disposition": 'attachment; filename="clearhead.html"'})

    async def _worked(self, work: Callable[[], Answer], request: Request) -> Answer:
        return await self.desk.do(work, request.is_disconnected)

    def _open_one(self, name: str) -> Session:
        found = self.sessions.get(name)
        if found is None:
            raise RefusedError(404, say("explore.no_session", session=name[:40]))
        return found


class Asked(NamedTuple):
    """What is to be opened."""

    text: str
    target: str | None


def _asked(body: bytes) -> Asked:
    """The fields of a request to open a prompt.

    Raises:
        RefusedError: 400 if it is no JSON, 422 if the fields are not what is asked for.
    """
    try:
        told = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise RefusedError(400, say("explore.no_json")) from None
    if not isinstance(told, dict) or not set(told) <= {"text", "target"}:
        raise RefusedError(422, say("explore.fields"))
    text, target = told.get("text"), told.get("target")
    if not isinstance(text, str) or not (target is None or isinstance(target, str)):
        raise RefusedError(422, say("explore.fields"))
    return Asked(text, target)


async def _body(request: Request) -> bytes:
    """All that was sent. Only after it was read is it known whether the client is still there.

    Raises:
        RefusedError: 413 if it is too large.
    """
    parts, size = [], 0
    told = request.headers.get("content-length", "")
    if not (told.isdecimal() and int(told) > READ_AT_MOST):
        async for part in request.stream():
            size += len(part)
            if size > READ_AT_MOST:
                break
            parts += [part] if size <= LARGEST else []
        if size <= LARGEST:
            return b"".join(parts)
    raise RefusedError(413, say("explore.too_large", most=LARGEST))


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return refusal(error.status, str(error))


def _mistaken(request: Request, error: Exception) -> Response:
    return refusal(422, str(error))


def _not_found(request: Request, error: Exception) -> Response:
    """An address, or a method, that the app does not have."""
    assert isinstance(error, HTTPException)
    path = request.url.path[:80]
    if error.status_code == 405:
        return refusal(405, say("explore.no_method", method=request.method, path=path), error.headers)
    return refusal(error.status_code, say("explore.no_address", path=path))


def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=GONE)


def _broken(request: Request, error: Exception) -> Response:
    """A defect: the server prints where, and the page says one line."""
    # Starlette answers outside of all that a request goes through.
    with speaking(language_of(request.headers)):
        return refusal(500, say("explore.broken", kind=type(error).__name__))
