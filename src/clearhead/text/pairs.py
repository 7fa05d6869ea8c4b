"""Pairs to learn from, a source and the target that answers it: a file of them, and its two parts.

TSV, one pair a line: source, a tab, target, without quotes or escapes. A line ends at LF or CRLF and nowhere else: U+2028,
a form feed, or a CR that no LF follows is a character of its line. Only in a file without any LF does CR end the lines.

CSV, in a file whose name ends with .csv: source, a comma, target. A field in double quotes may hold commas, line breaks (each
becomes LF) and, written twice, double quotes; a pair has the number of the line where it begins.

Either may be compressed: .tsv.gz, .csv.gz. If the first pair is the words source and target, in small or capital letters, it is
a header and no pair.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from clearhead.messages import UserError, say
from clearhead.text.files import read_raw, with_line_feeds
from clearhead.text.jsonl import lines_of, plain_suffix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["PAIRS", "Pair", "Pairs", "look_like_pairs", "read_pairs", "split_pairs"]


PAIRS = (".tsv", ".csv")
"""What the names of files of pairs in a folder must end with, .gz behind it or not."""


class Pair(NamedTuple):
    """What is read, and what is to be written.

    Attributes:
        source: the text to read; not empty.
        target: the text to write; not empty.
    """

    source: str
    target: str


_HEADER = Pair("source", "target")


@dataclass(frozen=True)
class Pairs:
    """The pairs of one file.

    Attributes:
        pairs: at least two, in the order of the file; one that stands there twice is here twice.
        notes: one line, in the user's language, for each thing that a reader of the file should know: an encoding that
            was recognised (other than UTF-8), bytes that were replaced, a mark that was removed, line ends that were
            changed, CR that were kept, a header that was passed over.
        lines: the number of the line of each pair, from 1, empty lines counted.
    """

    pairs: list[Pair]
    notes: tuple[str, ...]
    lines: list[int]


def read_pairs(path: Path, encoding: str = "auto", errors: str = "strict") -> Pairs:
    """The pairs of the file `path`, CSV if its name says so and TSV otherwise.

    Empty lines are skipped, and counted in the numbers of lines. Spaces are kept as they are.

    Args:
        path: the file; of any size that fits into memory.
        encoding: as for `read_text`: "auto" to recognise it, or any text encoding that Python knows.
        errors: as for `read_text`: "strict" or "replace".

    Raises:
        UserError: the file cannot be read as text (as `read_text`), a line does not have two columns, one of its sides
            is empty (the message names the file, the number of the line and the side), a quote of a CSV is never
            closed, or there are fewer than two pairs.
    """
    raw = read_raw(path, encoding, errors)
    commas = plain_suffix(path) == ".csv"
    text, kinds = with_line_feeds(raw.text, lone=commas or "\n" not in raw.text)
    numbered = dict(_records(path, text) if commas else _rows(path, text))
    notes = [*raw.notes, *(say("text.line_ends", path=path, kind=kind) for kind in kinds)]
    if "\r" in text:
        notes.append(say("text.pairs_lone_cr", path=path, count=text.count("\r")))
    first = next(iter(numbered), 0)
    if first and tuple(map(str.casefold, numbered[first])) == _HEADER:
        del numbered[first]
        notes.append(say("pairs.header", path=path, line=first))
    if not numbered:
        raise UserError(say("pairs.no_pairs_csv", path=path) if commas else say("text.no_pairs", path=path))
    if len(numbered) < 2:
        raise UserError(say("text.one_pair", path=path))
    return Pairs(list(numbered.values()), tuple(notes), list(numbered))


def look_like_pairs(text: str | Iterable[str]) -> bool:
    """Whether `read_pairs` would find pairs in the lines of a text: two lines or more, each of two columns.

    Args:
        text: whole or in parts, its line ends LF; no more of it is read than is needed to say no.
    """
    count = 0
    for _, line in lines_of([text] if isinstance(text, str) else text):
        if line:
            sides = line.split("\t")
            if len(sides) != 2 or not all(sides):
                return False
            count += 1
    return count > 1


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


def _rows(path: Path, text: str) -> Iterator[tuple[int, Pair]]:
    """The pairs of a TSV, and their lines."""
    # Not `splitlines`, which ends a line at ten other characters too.
    for number, line in enumerate(text.split("\n"), start=1):
        if line:
            yield number, _pair(path, number, line)


def _records(path: Path, text: str) -> Iterator[tuple[int, Pair]]:
    """The pairs of a CSV, and the lines where they begin."""
    found, begin = [], 1
    # The limit is the whole process's: raised for a field as long as the file, and put back at once.
    before = csv.field_size_limit(max(len(text), 1))
    try:
        reader = csv.reader(io.StringIO(text, newline="\n"), strict=True)
        for record in reader:
            found.append((begin, record))
            begin = reader.line_num + 1
    except csv.Error:
        raise UserError(say("pairs.quotes", path=path, line=begin)) from None
    finally:
        csv.field_size_limit(before)
    for number, record in found:
        if record:
            yield number, _record(path, number, record)


def _record(path: Path, number: int, record: list[str]) -> Pair:
    """The pair of one record that is not empty."""
    if len(record) != 2:
        raise UserError(say("pairs.columns_csv", path=path, line=number, count=len(record)))
    source, target = record
    if not source:
        raise UserError(say("pairs.no_source_csv", path=path, line=number))
    if not target:
        raise UserError(say("pairs.no_target_csv", path=path, line=number))
    return Pair(source, target)


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
