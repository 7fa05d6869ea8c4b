"""Who proposes tokens before the model has read them: nobody, the text itself, or a smaller model.

A proposal is a guess and the distribution that it was drawn from; `loop.accepted_or_redrawn` makes the result the model's own.

Source: Leviathan et al. 2023 (arXiv:2211.17192); Chen et al. 2023 (arXiv:2302.01318); prompt look-up: Saxena 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from clearhead.generation.draws import Draw, chances_after
from clearhead.generation.pace import Pace, Round, Speculation
from clearhead.generation.rows import Group, Reader, Row
from clearhead.generation.sampling import SamplingSettings

LONGEST = 8
SHORTEST = 2
"""Lengths of the n-grams that `LookupDraft` looks for; the longest that is found counts."""


class Proposal(NamedTuple):
    """A guess at the next token."""

    id: int
    chances: Tensor
    """The distribution (V) that it was drawn from."""


class Draft(Protocol):
    """Proposes tokens for one row, and learns what became of them."""

    def propose(self, row: Row, sampling: SamplingSettings, draw: Draw, most: int) -> list[Proposal]:
        """At most `most` tokens that may follow the row; none if that does not pay."""
        ...

    def learn(self, round: Round) -> None:
        """What became of the last proposals."""
        ...

    def report(self) -> Speculation | None:
        """How it went so far."""
        ...


class NoDraft:
    """Proposes nothing: plain decoding."""

    def propose(self, row: Row, sampling: SamplingSettings, draw: Draw, most: int) -> list[Proposal]:
        """Nothing."""
        return []

    def learn(self, round: Round) -> None:
        """There is nothing to learn."""

    def report(self) -> None:
        """Nothing was proposed."""


NO_DRAFT = NoDraft()


class LookupDraft:
    """Proposes what followed the last time that the text's newest n-gram occurred, in the text itself or in its source.

    Args:
        vocab: V.
        pace: how many to propose.
    """

    def __init__(self, vocab: int, pace: Pace) -> None:
        self._vocab, self._pace = vocab, pace
        self._after: dict[tuple[int, ...], int] = {}
        self._indexed = 0

    def propose(self, row: Row, sampling: SamplingSettings, draw: Draw, most: int) -> list[Proposal]:
        """As `Draft.propose`; each with a distribution that has it alone."""
        text = [*row.source, *row.ids]
        self._index(text)
        found = (self._after.get(tuple(text[-n:])) for n in range(min(LONGEST, len(text)), SHORTEST - 1, -1))
        place = next((at for at in found if at is not None), None)
        if place is None:
            return []
        guesses: list[int] = []
        for _ in range(self._pace.next(most)):
            # Past its own end the text goes on with what has been guessed.
            at = place + len(guesses)
            guess = text[at] if at < len(text) else guesses[at - len(text)]
            if guess >= self._vocab:
                # A source may have ids of its own, which the model cannot write.
                break
            guesses.append(guess)
        return [Proposal(guess, _one_hot(guess, self._vocab)) for guess in guesses]

    def learn(self, round: Round) -> None:
        """As `Draft.learn`."""
        self._pace.learn(round)

    def report(self) -> Speculation:
        """As `Draft.report`."""
        return self._pace.report()

    def _index(self, text: Sequence[int]) -> None:
        """Note where each n-gram was last followed by something."""
        for end in range(self._indexed, len(text)):
            for n in range(SHORTEST, min(LONGEST, end) + 1):
                self._after[tuple(text[end - n : end])] = end
        self._indexed = len(text)


def _one_hot(id: int, vocab: int) -> Tensor:
    return torch.zeros(vocab, dtype=torch.float64).index_fill(0, torch.tensor(id), 1.0)


@dataclass
class ModelDraft:
    """Proposes what a smaller model writes, with the same settings; it has the same vocabulary.

    Args:
        reader: of the smaller model; past its own context it forgets (`window`), which costs guesses, not exactness.
        mirror: its own copy of the row; an encoder-decoder has its own source there.
        pace: how many to propose.
    """

    reader: Reader
    mirror: Row
    pace: Pace

    def __post_init__(self) -> None:
        self._group = Group(self.reader, [self.mirror])

    def propose(self, row: Row, sampling: SamplingSettings, draw: Draw, most: int) -> list[Proposal]:
        """As `Draft.propose`: drawn one after another from the smaller model."""
        proposals: list[Proposal] = []
        self.mirror.ids = list(row.ids)
        # In every round, also if nothing is proposed: see `rewind`.
        self._group.rewind()
        (self._group,) = self._group.parts()
        # Its view moves between blocks alone; within one, a rejection could leave it behind the end of the text.
        room = self.reader.decoder.context - self.mirror.seen + 1
        for _ in range(self.pace.next(min(most, room))):
            chances = chances_after(self.mirror.ids, self._group.read()[0, -1], sampling)
            proposals.append(Proposal(draw(chances), chances))
            self.mirror.ids.append(proposals[-1].id)
        return proposals

    def learn(self, round: Round) -> None:
        """As `Draft.learn`."""
        self.pace.learn(round)

    def report(self) -> Speculation:
        """As `Draft.report`."""
        return self.pace.report()
