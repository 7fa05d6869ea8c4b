"""The page of a model, served from a thread."""

from __future__ import annotations

import threading

from clearhead.web.app import make_app
from clearhead.web.serving import address_of, listening, server_of
from tests.web.browser.models import model


class Site:
    """The page of a model on a port of this machine; it can die and return.

    Args:
        name: of the model.
    """

    def __init__(self, name: str) -> None:
        self.name, self.port = name, 0
        self.address = ""
        self.begin()

    def begin(self) -> None:
        """Serves from now on, on the port that it had before."""
        listener = listening("127.0.0.1", self.port)
        self.address = address_of(listener)
        self.port = int(self.address.rstrip("/").rpartition(":")[2])
        self._server = server_of(make_app(model(self.name), name=self.name))
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Answers no more, and forgets what was open."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()
