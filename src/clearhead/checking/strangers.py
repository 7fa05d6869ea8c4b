"""Running a stranger's code, which may raise anything."""

from __future__ import annotations

from types import TracebackType

import torch


class Attempt:
    """A block in which somebody else's code runs: what it raises is kept, not passed on. Being interrupted is passed on.

    with Attempt() as attempt:
        made = module(x)
    if attempt.error: ...
    """

    error: Exception | None = None

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if isinstance(error, Exception):
            self.error = error
            return True
        return False

    @property
    def reason(self) -> str:
        """What was raised, in one line: "RuntimeError: shapes cannot be multiplied"; "" if nothing was."""
        if self.error is None:
            return ""
        first = next(iter(str(self.error).splitlines()), "")
        return f"{type(self.error).__name__}: {first}"[:200]


class Seeded:
    """A block that draws the same random numbers each time, and leaves those outside as they were."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def __enter__(self) -> None:
        self.state = torch.get_rng_state()
        torch.manual_seed(self.seed)

    def __exit__(self, *_: object) -> None:
        torch.set_rng_state(self.state)
