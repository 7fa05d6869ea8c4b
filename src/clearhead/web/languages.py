"""In which language whoever asks is answered. Imports without torch."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from clearhead.messages import speaking

_WISH = re.compile(r"(?:^|,)\s*(en|zh)(?:-[a-z0-9-]+)?\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?))?\s*(?=,|$)", re.ASCII)


class Languages:
    """Has every message about a request said in the language that it asks for; of one that asks for none, in the server's own.

    Args:
        app: what answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        with speaking(language_of(Headers(scope=scope)) if scope["type"] == "http" else None):
            await self.app(scope, receive, send)


def language_of(headers: Headers) -> str | None:
    """Which of English and Chinese a request would rather have, by its Accept-Language; None if it names neither.

    Args:
        headers: of the request. The page writes the language that a person chose on it; a browser by itself those that it was set to.
    """
    wishes = _WISH.findall(headers.get("accept-language", "").lower())
    return max(wishes, key=lambda wish: float(wish[1] or 1), default=(None, ""))[0]
