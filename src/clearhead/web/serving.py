"""Serving an app on this machine: a place to listen, and a browser that goes there. Imports without torch."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from clearhead.messages import UserError, say
from clearhead.web.hosts import EVERY_ADDRESS

PORT = 8421
"""Where the page is looked for, if no port is named: links to it hold tomorrow."""
NEXT = 20
"""How many ports after it are tried before any will do."""
TAKEN = {errno.EADDRINUSE, errno.EACCES, errno.EPERM}
"""What a system says of a port that somebody has, or that we may not have."""

ALLOCATOR = (
    ("MALLOC_ARENA_MAX", -8, 1),
    ("MALLOC_MMAP_THRESHOLD_", -3, 2**24),
    ("MALLOC_TRIM_THRESHOLD_", -1, 2**26),
)
"""Name in the environment, number in malloc.h and value of what glibc's allocator can be told: one heap for all threads; bytes from which on
memory is asked of the system by itself; free bytes at the end of a heap from which on they are given back."""


def listening(host: str, port: int | None = None) -> socket.socket:
    """A socket that listens: whoever connects from now on waits to be served.

    Args:
        host: an address of this machine, or its name.
        port: 0 for any that is free; None for `PORT`, or another near it where that is taken.

    Raises:
        UserError: if the port is taken or is none, or the host is not of this machine.
    """
    if port is not None and not 0 <= port < 65536:
        raise UserError(say("explore.no_port", port=port))
    family, address = _place(host)
    for each in [*range(PORT, PORT + NEXT), 0] if port is None else [port]:
        found = _bound(family, address, each)
        if found is not None:
            return found
    raise UserError(say("explore.port_taken", port=port))


def address_of(listener: socket.socket) -> str:
    """The address of what is served there, as a browser on this machine takes it."""
    host, port = listener.getsockname()[:2]
    six = listener.family == socket.AF_INET6
    if host in EVERY_ADDRESS:
        host = "::1" if six else "127.0.0.1"
    return f"http://[{host}]:{port}/" if six else f"http://{host}:{port}/"


def leave_cores() -> None:
    """Have the threads that compute wait for each other asleep. To be called before PyTorch is loaded; what a person has set stays.

    They would spin, on cores that the browser needs to draw: beside one, a head of GPT-2's size took 56 to 200 ms in the place of 10.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # GNU's would go to sleep at once, and many small pieces of work, such as the picture of all heads, take twice as long.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def return_memory() -> None:
    """Have memory that a forward no longer needs go back to the system, with the allocator of Linux; elsewhere nothing is done.

    By itself glibc comes to take tensors of up to 32 MB from heaps, another one for each thread, where what is kept for long lies between what
    is thrown away: with GPT-2's size and 2,048 tokens more than 100 MB of holes. From 16 MB on each has a piece of its own then; docs/log.md
    has the numbers. What a person has set in the environment stays.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    for name, option, value in ALLOCATOR:
        if mallopt is not None and not {name, "GLIBC_TUNABLES"} & os.environ.keys():
            mallopt(option, value)


class Server(uvicorn.Server):
    """uvicorn's, but whoever presses Ctrl-C twice does not wait for what is being computed."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: the first ends the server."""
        super().handle_exit(sig, frame)
        if self.force_exit:
            # A thread that computes cannot be stopped, and Python would wait for it.
            os._exit(0)


def server_of(app: ASGIApp) -> Server:
    """What serves the app; `run([listener])` does until `should_exit` is set, or a signal comes."""
    return Server(
        uvicorn.Config(
            app,
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
        )
    )


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until somebody presses Ctrl-C; what is being computed then is finished first, unless it is pressed again.

    Args:
        app: what answers.
        listener: as `listening` gives it; it is closed.
    """
    # uvicorn ends, and passes the signal on.
    with suppress(KeyboardInterrupt):
        server_of(app).run([listener])


def go_there(address: str) -> None:
    """Have the person's browser open the address, if there is a screen; nothing waits for it."""
    if sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _place(host: str) -> tuple[socket.AddressFamily, str]:
    """The family and the number of an address."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UserError(say("explore.no_host", host=host)) from None
    # A name may have both, and 127.0.0.1 is the one that every browser finds.
    family, *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, str(address[0])


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket | None:
    """A socket that listens there; None if the port is not to be had."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":
        # A server that ended a moment ago still holds its port; on Windows the same flag would take it from one that lives.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno in TAKEN:
            return None
        raise UserError(say("explore.no_host", host=address)) from None
    return listener
