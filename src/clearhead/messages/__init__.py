"""What clearhead says to its users: one table, English and Chinese.

Everything a person reads on the console because of what they typed goes through `say`, so that a message exists in
both languages or in none. A mistake the user can mend is a `UserError`: the command line prints its one line and
exits with status 2; in Python it is an ordinary exception.

The room stands under all others and imports only the standard library.
"""

from __future__ import annotations

import locale
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from clearhead.messages.table import MESSAGES

__all__ = ["UserError", "language", "say", "speaking"]

_SPOKEN: ContextVar[str | None] = ContextVar("language of messages", default=None)


class UserError(ValueError):
    """A mistake the user can mend: one line that says what is wrong and what to do."""


def language() -> str:
    """The language of messages: "en" or "zh".

    That of `speaking` inside it; elsewhere `CLEARHEAD_LANG` decides if it is set; otherwise the locale of the environment, in the order that POSIX gives
    (LC_ALL, LC_MESSAGES, LANG), otherwise what the operating system reports.
    """
    if (spoken := _SPOKEN.get()) is not None:
        return spoken
    names = ("CLEARHEAD_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    chosen = next((os.environ[name] for name in names if os.environ.get(name)), None) or locale.getlocale()[0] or "en"
    return "zh" if chosen.lower().startswith(("zh", "chinese")) else "en"


@contextmanager
def speaking(lang: str | None) -> Iterator[None]:
    """Messages in one language, for the code inside the `with` alone: other threads and tasks speak on as they did.

    Args:
        lang: "en" or "zh"; None changes nothing.
    """
    token = _SPOKEN.set(_SPOKEN.get() if lang is None else lang)
    try:
        yield
    finally:
        _SPOKEN.reset(token)


def say(key: str, **values: object) -> str:
    """The message `key` in the user's language, its fields filled in as by `str.format`.

    Args:
        key: a key of `clearhead.messages.table.MESSAGES`.
        values: exactly the fields that the message names.

    Raises:
        KeyError: if there is no such message or a field is missing (a defect of clearhead, never the user's).
    """
    english, chinese = MESSAGES[key]
    return (chinese if language() == "zh" else english).format(**values)
