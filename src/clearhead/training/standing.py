"""Where a loss stands: among guessing, tables of counts and the entropy. The rules are those of `training/verdict.py`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from clearhead.messages import say
from clearhead.training.course import Course

BELOW = 0.95
"""A twentieth below the entropy is no chance: the validation text's own mean differs from it by about a hundredth."""
NEAR = 0.1
"""Nine tenths of the way from a table of pairs to the best."""
TOO_GOOD = 0.05
"""Natural texts have about a third of what pairs have at best."""
SAME = 0.05
"""Two losses so near are the same for a reader."""
ENOUGH = 40
"""With fewer updates the course is warm-up and noise."""


@dataclass(frozen=True)
class Known:
    """What the course of a training is measured against.

    Args:
        uniform: U, the loss of guessing, ln V.
        levels: what tables have, by name: `unigram`, `bigram`; none where nothing was counted.
        entropy: H, if known.
        epochs: how often the data was read.
        usual_lr: the highest learning rate that would have been picked; not judged if None.
        clip: the largest gradient norm an update used.
        dropout: the model's; None where it cannot be chosen anew.
        comparable: whether training and validation losses measure the same; not with label smoothing.
    """

    uniform: float
    levels: Mapping[str, float] = field(default_factory=dict)
    entropy: float | None = None
    epochs: float = 0.0
    usual_lr: float | None = None
    clip: float = math.inf
    dropout: float | None = None
    comparable: bool = True


class Finding(NamedTuple):
    """Something that can be said of a training."""

    name: str
    """As in the table of this module."""
    sentence: str
    """The same in the user's language, with its numbers and what to do."""


def standing_of(course: Course, known: Known) -> Finding:
    """Where the loss stands."""
    if course.lowest is None:
        lower = course.highest_rate / 10 if known.usual_lr is None else min(known.usual_lr, course.highest_rate / 10)
        return Finding("no_number", say("closing.no_number", lr=f"{lower:.1g}"))
    loss = course.lowest[1]
    suspicious = _too_good(known, loss)
    if suspicious is not None:
        return suspicious
    if loss >= known.uniform:
        steps, uniform = int(course.steps[-1]), shown(known.uniform)
        if course.steps.size < ENOUGH:
            return Finding("begun", say("closing.begun", loss=shown(loss), uniform=uniform, steps=steps))
        return Finding("broken", say("closing.broken", loss=shown(loss), uniform=uniform, steps=steps))
    return _beside_tables(known, loss)


def _too_good(known: Known, loss: float) -> Finding | None:
    """What is below or near the entropy, or would be."""
    entropy, pairs, number = known.entropy, known.levels.get("bigram"), shown(loss)
    if entropy is None:
        if pairs is None or loss >= TOO_GOOD * pairs:
            return None
        return Finding("too_good", say("closing.too_good", loss=number, bigram=shown(pairs)))
    if loss < BELOW * entropy:
        return Finding("impossible", say("closing.impossible", loss=number, entropy=shown(entropy)))
    if pairs is not None and loss - entropy <= NEAR * (pairs - entropy):
        return Finding("near", say("closing.near", loss=number, above=shown(loss - entropy)))
    return None


def _beside_tables(known: Known, loss: float) -> Finding:
    """Where a loss below ln V stands among the tables."""
    single, pairs = known.levels.get("unigram"), known.levels.get("bigram")
    number = shown(loss)
    if single is None:
        return Finding("learnt", say("closing.learnt", loss=number, below=shown(known.uniform - loss)))
    if pairs is not None and loss <= min(single, pairs):
        return Finding("beyond", say("closing.beyond", loss=number, below=shown(pairs - loss)))
    unigram = shown(single)
    if loss < (1 - SAME) * single:
        if pairs is None:
            return Finding("beyond_single", say("closing.beyond_single", loss=number, below=shown(single - loss)))
        between = say("closing.between", loss=number, unigram=unigram, bigram=shown(pairs))
        return Finding("between", between)
    if loss <= (1 + SAME) * single:
        return Finding("unigram", say("closing.unigram", loss=number, unigram=unigram))
    return Finding("guessing", say("closing.guessing", loss=number, unigram=unigram))


def shown(loss: float) -> str:
    """A loss as it is printed."""
    return f"{loss:.3f}"
