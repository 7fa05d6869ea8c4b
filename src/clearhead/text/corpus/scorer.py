"""The ideal scorer: how surprising each character is to a reader who knows the grammar and everything before it.

The forward algorithm. With a(d) the probability of a derivation d that agrees with the text so far,

    P(next = c | before) = sum of a(d) over the d that go on with c / sum of a(d) over all d alive,

and the surprisal is -ln of it, in nats. The probabilities alive depend on the text only since the last point where a single
state was alive, so they are kept as a tree of forks below each such state, grown where a text leads.
"""

from math import log

import numpy as np
from numpy.typing import NDArray

from clearhead.text.corpus.grammar import Automaton, State

_Alive = dict[tuple[str, State], float]
"""Text still to come before a state -> the probability of the derivations that are there."""


class Fork:
    """A point of the text with several derivations alive (or one, at a state); `ways` fills as texts come by.

    A way is (surprisal of its character, the text that is then certain, the next fork).
    """

    def __init__(self, alive: _Alive) -> None:
        self.alive = alive
        self.ways: dict[str, tuple[float, str, Fork]] = {}


class Scorer:
    """The forward algorithm on one automaton.

    `meetings` lists the states where two derivations of one text have met; in an unambiguous grammar there is none.
    """

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._roots: dict[State, Fork] = {}
        self.meetings: list[State] = []

    def surprisals(self, text: str) -> NDArray[np.float64]:
        """-ln P(character | all before), in nats, for a text that starts where a story starts and may end anywhere.

        Raises:
            ValueError: a character that cannot stand there, with its position and the text before it.
        """
        nats = np.zeros(len(text))
        fork, at = self.root(self._automaton.start), 0
        while at < len(text):
            way = fork.ways.get(text[at]) or self.follow(fork, text[at])
            if way is None:
                raise _refused(text, at)
            nats[at], certain, fork = way
            at += 1
            if not text.startswith(certain, at):
                shared = len(_common([text[at : at + len(certain)], certain]))
                if at + shared < len(text):
                    raise _refused(text, at + shared)
            at += len(certain)
        return nats

    def root(self, state: State) -> Fork:
        """The fork at which this state alone is alive."""
        if state not in self._roots:
            self._roots[state] = Fork(self._opened({("", state): 1.0}))
        return self._roots[state]

    def follow(self, fork: Fork, character: str) -> tuple[float, str, Fork] | None:
        """Goes on from a fork by one character; None if no derivation can."""
        heard = {(text[1:], state): p for (text, state), p in fork.alive.items() if text[0] == character}
        if not heard:
            return None
        share = sum(heard.values()) / sum(fork.alive.values())
        certain = _common([text for text, _ in heard])
        rest = {(text[len(certain) :], state): p for (text, state), p in heard.items()}
        after = self.root(next(iter(rest))[1]) if len(rest) == 1 else Fork(self._opened(rest))
        way = fork.ways[character] = (max(0.0, -log(share)), certain, after)
        return way

    def _opened(self, alive: _Alive) -> _Alive:
        """Replaces every derivation that has come to a state by the arcs of that state, until all have text to say."""
        opened: _Alive = {}
        waiting = list(alive.items())
        while waiting:
            (text, state), weight = waiting.pop()
            if not text:
                waiting += [((said, after), weight * p) for p, said, after in self._automaton.arcs(state)]
            elif (text, state) in opened:
                self.meetings.append(state)
                opened[text, state] += weight
            else:
                opened[text, state] = weight
        return opened


def _common(texts: list[str]) -> str:
    """The longest text that all begin with: that of the first and the last in order."""
    low, high = min(texts), max(texts)
    return next((low[:at] for at, character in enumerate(low) if character != high[at]), low)


def _refused(text: str, at: int) -> ValueError:
    before = text[max(0, at - 20) : at]
    return ValueError(f"character {at}, {text[at]!r}, cannot follow {before!r} in the grammar of the built-in corpus")
