"""Pairs to learn from, a source and the target that answers it: a file of them, and its two parts.

One pair a line: source, a tab, target (TSV, without quotes or escapes). A line ends at LF or CRLF and nowhere else: U+2028,
a form feed, or a CR that no LF follows is a character of its line. Only in a file without any LF does CR end the lines.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from clearhead.messages import UserError, say
from clearhead.text.files import read_raw, with_line_feeds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Pair", "Pairs", "look_like_pairs", "read_pairs", "split_pairs"]


class Pair(NamedTuple):
    """What is read, and what is to be written.

    Attributes:
        source: the text to read; not empty.
        target: the text to write; not empty.
    """

    source: str
    target: str


@dataclass(frozen=True)
class Pairs:
    """The pairs of one file.

    Attributes:
        pairs: at least two, in the order of the file; one that stands there twice is here twice.
        notes: one line, in the user's language, for each thing that a reader of the file should know: an encoding that
            was recognised (other than UTF-8), a mark that was removed, line ends that were changed, CR that were kept.
        lines: the number of the line of each pair, from 1, empty lines counted.
    """

    pairs: list[Pair]
    notes: tuple[str, ...]
    lines: list[int]


def read_pairs(path: Path, encoding: str = "auto") -> Pairs:
    """The pairs of the file `path`.

    Empty lines are skipped, and counted in the numbers of lines. Spaces are kept as they are.

    Args:
        path: the file; of any size.
        encoding: as for `read_text`: "auto" to recognise it, or any text encoding that Python knows.

    Raises:
        UserError: the file cannot be read as text (as `read_text`), a line does not have two columns, one of its sides
            is empty (the message names the file, the number of the line and the side), or there are fewer than two
            pairs.
    """
    raw = read_raw(path, encoding)
    text, kinds = with_line_feeds(raw.text, lone="\n" not in raw.text)
    # Not `splitlines`, which ends a line at ten other characters too.
    lines = {number: line for number, line in enumerate(text.split("\n"), start=1) if line}
    pairs = [_pair(path, number, line) for number, line in lines.items()]
    if not pairs:
        raise UserError(say("text.no_pairs", path=path))
    if len(pairs) < 2:
        raise UserError(say("text.one_pair", path=path))
    notes = [*raw.notes, *(say("text.line_ends", path=path, kind=kind) for kind in kinds)]
    if "\r" in text:
        notes.append(say("text.pairs_lone_cr", path=path, count=text.count("\r")))
    return Pairs(pairs, tuple(notes), list(lines))


def look_like_pairs(text: str) -> bool:
    """Whether `read_pairs` would find pairs in a text whose lines end with LF: two lines or more, each of two columns."""
    columns = [line.split("\t") for line in text.split("\n") if line]
    return len(columns) > 1 and all(len(sides) == 2 and all(sides) for sides in columns)


def split_pairs(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """The pairs to train on and those to validate on; no source stands in both parts.

    With n pairs, floor(n / 10) of them are to validate. The sources, each with all its pairs, are asked in the order of
    the SHA-256 of their UTF-8; one is taken if all its pairs fit into what is left of the tenth. If none fits, the one
    with the fewest pairs validates (among equals, the first in that order), so that at least one pair does.

    So which pairs validate depends on nothing but the pairs: not on their order, nor on a seed or the machine. If all
    sources differ, exactly floor(n / 10) of them validate, or one.

    Args:
        pairs: at least two different sources.

    Returns:
        The pairs to train on and those to validate on, each in the order given; neither is empty.

    Raises:
        UserError: there are not two different sources.
    """
    counts = Counter(pair.source for pair in pairs)
    if len(counts) < 2:
        raise UserError(say("text.pairs_one_source", count=len(pairs)))
    ordered = sorted(counts, key=_digest)
    left = len(pairs) // 10
    chosen = set()
    for source in ordered:
        if counts[source] <= left:
            chosen.add(source)
            left -= counts[source]
    if not chosen:
        chosen.add(min(ordered, key=lambda source: counts[source]))
    train = [pair for pair in pairs if pair.source not in chosen]
    validation = [pair for pair in pairs if pair.source in chosen]
    return train, validation


def _pair(path: Path, number: int, line: str) -> Pair:
    """The pair of one line that is not empty."""
    source, *targets = line.split("\t")
    if not targets:
        raise UserError(say("text.pair_no_tab", path=path, line=number))
    if len(targets) > 1:
        raise UserError(say("text.pair_columns", path=path, line=number, count=1 + len(targets)))
    if not source:
        raise UserError(say("text.pair_no_source", path=path, line=number))
    if not targets[0]:
        raise UserError(say("text.pair_no_target", path=path, line=number))
    return Pair(source, targets[0])


def _digest(source: str) -> bytes:
    # A pair that was made in Python may hold half a surrogate pair; it has bytes of its own all the same.
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).digest()
