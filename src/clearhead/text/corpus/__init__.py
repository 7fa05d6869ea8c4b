"""The built-in corpus: children's stories, English and Chinese, of any length from a seed, whose entropy is known.

The stories come from a small unambiguous probabilistic grammar (`english.py`, `chinese.py`). Because every text has exactly
one derivation, the entropy of the text is that of the derivations, so a model's loss can be set beside the best possible:

    loss of a model (nats per character)  >=  entropy_per_character()  =  H(story) / E[characters of a story].
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from random import Random

import numpy as np
from numpy.typing import NDArray

from clearhead.text.corpus.chinese import CHINESE
from clearhead.text.corpus.english import ENGLISH
from clearhead.text.corpus.grammar import MENTION, STORY_END, Arc, Automaton, Language, State, expectations
from clearhead.text.corpus.scorer import Scorer

__all__ = ["LANGUAGES", "characters", "entropy_per_character", "surprisals", "write"]

LANGUAGES: dict[str, tuple[tuple[int, Language], ...]] = {
    "both": ((1, ENGLISH), (1, CHINESE)),
    "en": ((1, ENGLISH),),
    "zh": ((1, CHINESE),),
}
"""What `language` may be, and the weights with which a story draws its language."""


def write(characters: int, seed: int, language: str = "both") -> str:
    """Writes exactly `characters` characters of stories; the last one is cut where the length is reached.

    The same seed gives the same text on every platform and Python version: only `random.Random(seed).random()` is used,
    whose sequence Python guarantees, and IEEE additions and comparisons. A longer text starts with the shorter one.

    Args:
        characters: length of the text, in characters (Unicode code points), 0 or more.
        seed: any integer, 0 or more.
        language: "both" (each story draws its language), "en" or "zh".

    Raises:
        ValueError: a negative length or seed, or an unknown language.
    """
    if characters < 0 or seed < 0:
        raise ValueError(f"length and seed must be 0 or more, not {characters} and {seed}")
    draw = Random(seed).random
    walk, state = _walker(language), _automaton(language).start
    pieces: list[str] = []
    written = 0
    while written < characters:
        ends, arcs = walk(state)
        _, text, state = arcs[bisect_right(ends, draw())] if ends else arcs[0]
        pieces.append(text)
        written += len(text)
    return "".join(pieces)[:characters]


@cache
def entropy_per_character(language: str = "both") -> float:
    """The entropy of the stories, in nats per character: the least loss that any model of them can have in the long run.

    H(story) / E[characters of a story], both by exact recursion over the states of the grammar, nothing sampled (error of
    float64 rounding only). A renewal process: stories are independent, so this is the limit of -ln P(text) / len(text).

    Raises:
        ValueError: an unknown language.
    """
    nats, length = expectations(_automaton(language))
    return nats / length


def surprisals(text: str, language: str = "both") -> NDArray[np.float64]:
    """-ln P(character | everything before it), in nats, of each character: the ideal scorer (forward algorithm).

    Their mean over a long text of `write` tends to `entropy_per_character`; their sum is -ln P(text).

    Args:
        text: starts where a story starts; may end anywhere.
        language: the grammar that is assumed; "both" pays ln 2 a story to learn its language.

    Returns:
        (len(text),) float64.

    Raises:
        ValueError: the text is not of the grammar: the position, the character and what stands before it; or an unknown
            language.
    """
    return _scorer(language).surprisals(text)


def characters(language: str = "both") -> str:
    """The alphabet: every character that a story can hold, each once, sorted by code point.

    Raises:
        ValueError: an unknown language.
    """
    found = set(STORY_END)
    for _, tables in _tables(language):
        found.update(tables.gap)
        for step in tables.steps:
            for _, pattern in step.patterns:
                found.update(MENTION.sub("", pattern))
                for mention in MENTION.finditer(pattern):
                    found.update(*(word.form(mention["form"] or "text") for word in tables.rows(mention["name"])))
    return "".join(sorted(found))


def _tables(language: str) -> tuple[tuple[int, Language], ...]:
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    return LANGUAGES[language]


@cache
def _automaton(language: str) -> Automaton:
    return Automaton(_tables(language))


@cache
def _scorer(language: str) -> Scorer:
    return Scorer(_automaton(language))


@cache
def _walker(language: str) -> Callable[[State], tuple[list[float], tuple[Arc, ...]]]:
    """A function state -> (ends of the alternatives' shares of [0, 1) but the last, the alternatives)."""
    arcs = _automaton(language).arcs

    @cache
    def walk(state: State) -> tuple[list[float], tuple[Arc, ...]]:
        ways = arcs(state)
        return list(accumulate(probability for probability, _, _ in ways[:-1])), ways

    return walk
