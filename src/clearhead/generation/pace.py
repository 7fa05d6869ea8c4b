"""How many tokens to propose at once: as many as pay, none if none does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from clearhead.generation.rows import SPARE

PLAIN_ROUNDS = 2
"""Rounds without proposals before the first ones, so that there is a speed to compare with."""

PRIOR = (2.7, 3.0)
"""Accepted and proposed tokens that are assumed before anything has been seen: high, or a draft that costs half a forward would never
be tried, and few, so that a bad one is given up after some rounds."""

MEMORY = 0.95
"""What a round counts for after the next one."""

REST = 32
"""Tokens written plainly before the first new trial, after proposing did not pay; twice as many after each further one, until a
trial has gone on for as many rounds."""


@dataclass(frozen=True)
class Speculation:
    """What speculation did for one text."""

    proposed: int
    accepted: int
    speed_up: float | None
    """How many times as fast as one token a forward, by the time that forwards without proposals took in the same text; None if
    there were none of either kind."""


class Round(NamedTuple):
    """One reading of a row, and what came of it."""

    proposed: int
    accepted: int
    written: int
    """The accepted tokens, and one of the model's own unless the text ended before it."""
    seconds: float
    """For proposing, reading and drawing."""


class Pace:
    """Chooses the length of the next block from what was accepted so far.

    With acceptance a, a cost c for each proposed token and a cost s for any (a forward of the model without proposals costs 1), a
    block of k yields (1 - a^(k+1)) / (1 - a) tokens on average and costs 1 + s + c·k, or 1 for k = 0. The k with the best ratio is
    taken; for a poor draft it is 0, and after some time another trial is made. No clock is asked: a text must not depend on how
    busy the machine is.

    Args:
        cost: c.
        once: s.

    Source: Leviathan et al. 2023 §3.5 (arXiv:2211.17192).
    """

    def __init__(self, cost: float, once: float = 0.0) -> None:
        self._cost, self._once = cost, once
        self._accepted, self._proposed = PRIOR
        self._total_accepted = self._total_proposed = 0
        self._waiting, self._rest, self._trial = PLAIN_ROUNDS, REST, 0
        self._plain = self._drafted = (0, 0.0)
        """Tokens written, and seconds."""

    def next(self, most: int) -> int:
        """How many tokens to propose now, `most` at most."""
        return 0 if self._waiting else min(most, self._best())

    def learn(self, round: Round) -> None:
        """Count a round."""
        if not round.proposed:
            self._plain = (self._plain[0] + round.written, self._plain[1] + round.seconds)
            self._waiting = max(0, self._waiting - 1)
            return
        self._drafted = (self._drafted[0] + round.written, self._drafted[1] + round.seconds)
        self._total_accepted += round.accepted
        self._total_proposed += round.proposed
        # What comes after the first rejected token was never tried.
        tried = min(round.accepted + 1, round.proposed)
        self._accepted = self._accepted * MEMORY + round.accepted
        self._proposed = self._proposed * MEMORY + tried
        self._trial += 1
        if self._trial >= REST:
            self._rest = REST
        if not self._best():
            self._waiting, self._rest, self._trial = self._rest, 2 * self._rest, 0
            self._accepted, self._proposed = PRIOR

    def report(self) -> Speculation:
        """How it went so far."""
        (plain, plain_seconds), (drafted, seconds) = self._plain, self._drafted
        known = bool(plain and drafted and seconds)
        speed_up = (plain + drafted) * plain_seconds / plain / (plain_seconds + seconds) if known else None
        return Speculation(self._total_proposed, self._total_accepted, speed_up)

    def _best(self) -> int:
        """The length of block with the most tokens for its cost; the shortest of equals."""
        rate = self._accepted / self._proposed
        blocks = range(1, SPARE + 1)
        yields = [sum(rate**i for i in range(k + 1)) / (1 + self._once + self._cost * k) for k in blocks]
        return 0 if max(yields) <= 1 else 1 + yields.index(max(yields))
