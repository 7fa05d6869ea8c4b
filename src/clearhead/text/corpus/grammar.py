r"""From tables of words and sentences to one weighted automaton, which both the writer and the scorer walk.

A pattern holds text and mentions in braces. With a list `place` and a story variable `hero` that draws from a list:

    {place}        a word of the list, drawn afresh with the probability weight / sum of weights
    {place.at}     the column `at` of the drawn word's row
    {new hero}     draws the hero, from the words that no other variable of the same list holds, and keeps it for the story
    {hero.they}    the column `they` of the hero that was drawn; {hero.They} writes it with a capital letter

The automaton has places (points of the tables, fixed) and states (a place with the variables that can still be mentioned
there). A state's arcs are its alternatives: (probability, text, next state). A story is a walk from the start back to it, so

    P(story) = product of the probabilities of its arcs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

State = tuple[int, tuple[int, ...]]
"""A place and, for each variable, the row it holds (-1: none, or never mentioned again)."""

Arc = tuple[float, str, State]
"""(probability, text, next state)"""

MENTION = re.compile(r"\{(?P<new>new )?(?P<name>\w+)(?:\.(?P<form>\w+))?\}")
STORY_END = "\n\n"
_NOBODY = -1


@dataclass(frozen=True)
class Word:
    """One row of a list: its columns by name (`text` is the word itself) and its weight among the others."""

    forms: Mapping[str, str]
    weight: int = 1

    def form(self, name: str) -> str:
        """The column `name`; a capital first letter in the name asks for a capital first letter in the text."""
        if name in self.forms:
            return self.forms[name]
        lower = self.forms[name[0].lower() + name[1:]]
        return lower[:1].upper() + lower[1:]


@dataclass(frozen=True)
class Sentence:
    """One place of the story: patterns with weights, and the weight of saying nothing there."""

    patterns: tuple[tuple[int, str], ...]
    skip: int = 0


@dataclass(frozen=True)
class Language:
    """All tables of one language; `gap` stands between two sentences, `variables` maps a story variable to its list."""

    name: str
    gap: str
    variables: Mapping[str, str]
    words: Mapping[str, tuple[Word, ...]]
    steps: tuple[Sentence, ...]

    def rows(self, name: str) -> tuple[Word, ...]:
        """The words that a mention of `name`, a list or a variable, can draw."""
        return self.words[self.variables.get(name, name)]


def words(text: str) -> tuple[Word, ...]:
    """A list of equally likely words, written with commas between them."""
    return tuple(Word({"text": word.strip()}) for word in text.split(","))


def table(text: str) -> tuple[Word, ...]:
    """A list whose words have columns: a header line, then a line a word; a column `weight` is its weight (default 1)."""
    header, *rows = ([cell.strip() for cell in line.split("|")] for line in text.strip().splitlines())
    columns = [dict(zip(header, row, strict=True)) for row in rows]
    return tuple(Word(row, int(row.get("weight", 1))) for row in columns)


def sentence(*patterns: tuple[int, str], skip: int = 0) -> Sentence:
    """One place of the story: `(weight, pattern)` pairs, and the weight of leaving the sentence out."""
    return Sentence(patterns, skip)


@dataclass(frozen=True)
class _Choice:
    """A place where one of several ways on is taken: (probability, text, next place)."""

    ways: tuple[tuple[float, str, int], ...]


@dataclass(frozen=True)
class _Mention:
    """A place where a word is said.

    `variable` is the index of the story variable, None for a word that is forgotten at once. `rivals` are the other variables
    of the same list where a word is drawn, None where one is said again. `total` sums the weights.
    """

    rows: tuple[Word, ...]
    form: str
    variable: int | None
    rivals: tuple[int, ...] | None
    after: int
    total: int


class Automaton:
    """The automaton of one or several languages; with several, each story draws its language by weight.

    Args:
        languages: (weight, language) pairs.

    Attributes:
        start: the state before and after every story.
    """

    def __init__(self, languages: Sequence[tuple[int, Language]]) -> None:
        width = max(len(language.variables) for _, language in languages)
        total = sum(weight for weight, _ in languages)
        self.start: State = (0, (_NOBODY,) * width)
        self._places: list[_Choice | _Mention] = [_Choice(())]
        self._places[0] = _Choice(tuple((weight / total, "", self._story(language)) for weight, language in languages))
        self._live = [tuple(index in live for index in range(width)) for live in self._mentioned_later()]
        self._arcs: dict[State, tuple[Arc, ...]] = {}

    def arcs(self, state: State) -> tuple[Arc, ...]:
        """The alternatives at a state; their probabilities sum to 1."""
        found = self._arcs.get(state)
        if found is None:
            found = self._arcs[state] = self._expand(*state)
        return found

    def _expand(self, place: int, held: tuple[int, ...]) -> tuple[Arc, ...]:
        here = self._places[place]
        if isinstance(here, _Choice):
            return tuple((probability, text, self._state(after, held)) for probability, text, after in here.ways)
        if here.variable is None:
            after = self._state(here.after, held)
            return tuple((word.weight / here.total, word.form(here.form), after) for word in here.rows)
        if here.rivals is None:
            row = held[here.variable]
            if row == _NOBODY:
                raise ValueError(
                    f"a pattern mentions the {here.form!r} of a story variable that no sentence before has drawn"
                )
            return ((1.0, here.rows[row].form(here.form), self._state(here.after, held)),)
        return tuple(self._draws(here, here.variable, here.rivals, held))

    def _draws(self, here: _Mention, variable: int, rivals: tuple[int, ...], held: tuple[int, ...]) -> Iterator[Arc]:
        taken = {held[rival] for rival in rivals}
        total = sum(word.weight for row, word in enumerate(here.rows) if row not in taken)
        for row, word in enumerate(here.rows):
            if row not in taken:
                now = (*held[:variable], row, *held[variable + 1 :])
                yield word.weight / total, word.form(here.form), self._state(here.after, now)

    def _state(self, place: int, held: tuple[int, ...]) -> State:
        """Forgets what cannot be mentioned any more: fewer states, and two walks that differ in nothing meet."""
        live = self._live[place]
        return place, tuple([row if kept else _NOBODY for row, kept in zip(held, live, strict=True)])

    def _add(self, place: _Choice | _Mention) -> int:
        self._places.append(place)
        return len(self._places) - 1

    def _story(self, language: Language) -> int:
        """The places of one language, built from the last sentence back; returns the first one."""
        after = self._add(_Choice(((1.0, STORY_END, 0),)))
        for index, step in reversed(list(enumerate(language.steps))):
            gap = language.gap if index else ""
            total = step.skip + sum(weight for weight, _ in step.patterns)
            ways = [(weight / total, gap, self._pattern(language, text, after)) for weight, text in step.patterns]
            if step.skip:
                ways.append((step.skip / total, "", after))
            after = self._add(_Choice(tuple(ways)))
        return after

    def _pattern(self, language: Language, text: str, after: int) -> int:
        """The places of one pattern, built from its end back to its first character."""
        end = len(text)
        for mention in reversed(list(MENTION.finditer(text))):
            after = self._literal(text[mention.end() : end], after)
            after = self._add(self._mention(language, mention, after))
            end = mention.start()
        return self._literal(text[:end], after)

    def _literal(self, text: str, after: int) -> int:
        return self._add(_Choice(((1.0, text, after),))) if text else after

    def _mention(self, language: Language, mention: re.Match[str], after: int) -> _Mention:
        name, form, rows = mention["name"], mention["form"] or "text", language.rows(mention["name"])
        total = sum(word.weight for word in rows)
        names = list(language.variables)
        if name not in names:
            return _Mention(rows, form, None, (), after, total)
        same = tuple(i for i, other in enumerate(names) if other != name and language.rows(other) is rows)
        return _Mention(rows, form, names.index(name), same if mention["new"] else None, after, total)

    def _mentioned_later(self) -> list[frozenset[int]]:
        """For each place, the variables whose rows can still matter there (liveness, from the end of the story back)."""
        live: list[frozenset[int]] = [frozenset()]
        # Places are added after those they lead to, so one pass in order is enough; place 0 starts a new story.
        for place in self._places[1:]:
            if isinstance(place, _Choice):
                live.append(frozenset().union(*(live[after] for _, _, after in place.ways)))
            elif place.rivals is None:
                assert place.variable is not None
                live.append(live[place.after] | {place.variable})
            else:
                live.append((live[place.after] - {place.variable}) | set(place.rivals))
        return live


def expectations(automaton: Automaton) -> tuple[float, float]:
    r"""Entropy and expected length of one story, exactly, by a recursion over the states.

        H(s) = sum over arcs  p (-ln p + H(next)),    N(s) = sum over arcs  p (len(text) + N(next)),    both 0 back at the start

    Returns:
        (nats, characters) of a story; in an unambiguous grammar the entropy of the walks is that of the texts.
    """
    known: dict[State, tuple[float, float]] = {}

    def value(state: State) -> tuple[float, float]:
        nats = length = 0.0
        for probability, text, after in automaton.arcs(state):
            further = known.get(after) or value(after)
            nats += probability * (further[0] - log(probability))
            length += probability * (further[1] + len(text))
        known[state] = (nats, length)
        return nats, length

    known[automaton.start] = (0.0, 0.0)
    return value(automaton.start)
