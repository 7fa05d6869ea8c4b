"""Answers as HTTP has them: what every one says to a browser, what may be kept, and errors in one line. Imports without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

GUARDED = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""What each answer says: it is what its type says, a link away tells nobody of the prompt, and no other page may show it."""

NOTHING_RUNS = "default-src 'none'; frame-ancestors 'none'"
"""The policy of all but the page: shown by itself, nothing in it runs or loads."""


def policy(imports: str) -> str:
    """The policy of the page: everything from here, and the one import map whose hash it names.

    Args:
        imports: the hash, as `files.served_page` gives it.
    """
    return (
        f"default-src 'none'; script-src 'self' {imports}; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def reply(body: bytes, kind: str, headers: Mapping[str, str] | None = None) -> Response:
    """An answer that is not kept, unless `headers` say so."""
    told = {"Cache-Control": "no-store", "Content-Security-Policy": NOTHING_RUNS, **GUARDED, **(headers or {})}
    return Response(body, media_type=kind, headers=told)


def kept(tag: str) -> dict[str, str]:
    """Headers of what a browser keeps and asks about each time."""
    return {"Cache-Control": "private, no-cache", "ETag": tag}


def unchanged(tag: str) -> Response:
    """What a browser is told that has it already."""
    return Response(status_code=304, headers={**GUARDED, **kept(tag)})


def has(request: Request, tag: str) -> bool:
    """Whether the browser says that it has what `tag` stands for."""
    return tag in {each.strip() for each in request.headers.get("if-none-match", "").split(",")}


def tag_of(*told: object) -> str:
    """A tag that is the same for the same values, in every process.

    It is a weak one: what is sent may be compressed or not.
    """
    digest = hashlib.blake2b(digest_size=12)
    for each in told:
        digest.update(each if isinstance(each, bytes) else repr(each).encode("utf-8", "backslashreplace"))
        digest.update(b"\0")
    return f'W/"{digest.hexdigest()}"'


def refusal(status: int, line: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error: JSON with one line."""
    told = {"Cache-Control": "no-store", "Content-Security-Policy": NOTHING_RUNS, **GUARDED, **(headers or {})}
    # What was asked may hold what no text can.
    safe = line.encode("utf-8", "replace").decode()
    return JSONResponse({"error": safe}, status, headers=told)
