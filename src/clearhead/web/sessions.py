"""Prompts that are open, as many as fit, and the one desk at which a model works. Imports without torch."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from clearhead.web.session import Session

Result = TypeVar("Result")

GIGABYTES = 0.3
"""How many open prompts may keep, together, where nobody says it: 2,048 tokens with GPT-2's size, or four times 512."""
MEMORY = int(GIGABYTES * 2**30)
"""The same in bytes."""


class Sessions:
    """The latest prompts, by their names. The one that was asked least recently goes first; the newest always stays.

    Args:
        budget: how many bytes they may keep, together.
    """

    def __init__(self, budget: int = MEMORY) -> None:
        self.budget = budget
        self._kept: OrderedDict[str, Session] = OrderedDict()

    def get(self, name: str) -> Session | None:
        """The prompt of that name, if it is still open."""
        found = self._kept.get(name)
        if found is not None:
            self._kept.move_to_end(name)
        return found

    def make_room(self, tokens: int) -> None:
        """Let go of the oldest until a prompt of so many tokens would fit, so that it never stands beside what has to go for it.

        Args:
            tokens: to be read, those of a source too; each takes what the tokens of kept prompts take at most.
        """
        kept = self._kept.values()
        each = max((one.size / (len(one.ids) + len(one.source)) for one in kept), default=0.0)
        self._let_go(least=0, budget=self.budget - tokens * each)

    def keep(self, session: Session) -> None:
        """Keep one more, and let go of others until all fit."""
        self._kept[session.id] = session
        self._kept.move_to_end(session.id)
        self._let_go(least=1, budget=self.budget)

    def _let_go(self, least: int, budget: float) -> None:
        while len(self._kept) > least and self.size > budget:
            self._kept.popitem(last=False)

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return sum(session.size for session in self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)


class GoneError(Exception):
    """Whoever asked has left before it was their turn."""


class Desk:
    """Where work is done, in a thread of its own, one piece at a time, in the order in which it was asked for.

    One thread, always the same: PyTorch keeps a pool of workers for each that computes.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "clearhead")

    async def do(self, work: Callable[[], Result], gone: Callable[[], Awaitable[bool]]) -> Result:
        """What `work` gives.

        Args:
            work: is called in the thread.
            gone: whether nobody waits for it any more; asked when its turn has come.

        Raises:
            GoneError: if so: it is not done.
        """
        async with self._turn:
            if await gone():
                raise GoneError
            # The thread speaks the language of whoever asked.
            return await asyncio.get_running_loop().run_in_executor(self._thread, copy_context().run, work)
