"""Who may ask: whoever calls the server by its own name, from its own page.

A page of a stranger may have its name lead to 127.0.0.1 (DNS rebinding) and would then be of one origin with the server, in the eyes of
a browser. Its name gives it away: the browser sends it as Host. A request that a stranger's page sends across origins names that page
as Origin. Imports without torch.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from clearhead.messages import say
from clearhead.web.replies import refusal

EVERY_ADDRESS = ("0.0.0.0", "::")
"""What a server is bound to that listens on every address of its machine."""

_AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.ASCII)


class Hosts:
    """Lets requests through that are meant for this server, and answers others with 403.

    Args:
        app: what answers the others.
        hosts: names by which the server may be called, beside localhost; one of `EVERY_ADDRESS` stands for any address in numbers: a
            stranger's page has a name.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str] = ()) -> None:
        self.app = app
        self.names = {"localhost", *(host.lower() for host in hosts)}
        self.numbers = any(host in EVERY_ADDRESS for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        line = self.fault(Headers(scope=scope), scope["path"]) if scope["type"] == "http" else None
        if line is None:
            await self.app(scope, receive, send)
        else:
            await refusal(403, line)(scope, receive, send)

    def fault(self, headers: Headers, path: str) -> str | None:
        """What is wrong with who asks; None if nothing is.

        Args:
            headers: of the request.
            path: that is asked for.
        """
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if not self._is_own(host):
            return say("explore.foreign_host", host=host[:80])
        if origin is not None and origin.lower() not in {f"http://{host}", f"https://{host}"}:
            return say("explore.foreign_origin", origin=origin[:80])
        # A picture or script of another page's: it names no origin, but a browser says where it is from.
        if path.startswith("/api/") and headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
            return say("explore.foreign_page")
        return None

    def _is_own(self, host: str) -> bool:
        found = _AUTHORITY.fullmatch(host)
        if found is None:
            return False
        name = found["name"].strip("[]").removesuffix(".")
        number = address_in_numbers(name)
        if name in self.names or number is None:
            return name in self.names
        return self.numbers or number.is_loopback


def address_in_numbers(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address such as 127.0.0.1 or ::1; None for a name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that is bound to `host`."""
    number = address_in_numbers(host)
    return host.lower() == "localhost" if number is None else number.is_loopback
