"""A small model behind the app, and ways to ask it: in this process, and over a socket."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from clearhead.formats.load import Loaded
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.text import CharacterTokenizer
from clearhead.web.serving import address_of, listening, server_of

LETTERS = CharacterTokenizer.of("abcdefgh 小猫")
HOME = "http://127.0.0.1:8421"


def small(seed: int = 0) -> Loaded:
    """Two layers of three heads that read some letters."""
    config = DecoderConfig(vocab=LETTERS.size, layers=2, heads=3, kv_heads=3, width=12, context=16)
    model = build(config, seed=seed).eval()
    assert isinstance(model, Decoder)
    return Loaded(model, LETTERS, config, Path("small"))


def ask(app: ASGIApp, path: str, method: str = "GET", **more: Any) -> httpx.Response:
    """One request, as by a browser that opened the printed address."""

    async def one() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=HOME) as client:
            return await client.request(method, path, **more)

    return asyncio.run(one())


def open_(app: ASGIApp, text: str = "abc 小猫 abc") -> str:
    """The name of the prompt, opened."""
    answer = ask(app, "/api/open", "POST", json={"text": text})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["session"])


def line(answer: httpx.Response) -> str:
    """What an error says; it is JSON with one line, and nothing that a browser would run."""
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    told = answer.json()
    assert list(told) == ["error"]
    assert "\n" not in told["error"]
    return str(told["error"])


@contextmanager
def served(app: ASGIApp) -> Iterator[http.client.HTTPConnection]:
    """A connection to a server in a thread."""
    listener = listening("127.0.0.1", 0)
    server = server_of(app)
    thread = threading.Thread(target=server.run, args=([listener],))
    port = int(address_of(listener).rstrip("/").rpartition(":")[2])
    thread.start()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        yield connection
    finally:
        connection.close()
        server.should_exit = True
        thread.join(timeout=30)
    assert not thread.is_alive()


def told(connection: http.client.HTTPConnection) -> tuple[int, Any]:
    """Status and JSON of the answer to what was sent."""
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())
