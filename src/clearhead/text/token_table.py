"""The tokens of a text as a table: characters, the tokens over them, their ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from clearhead.text.alignment import completion
from clearhead.text.columns import columns_of, shown
from clearhead.text.tokenizer import Tokenizer

__all__ = ["Group", "groups_of", "table"]

_BYTE = re.compile("<0x([0-9A-F]{2})>")


class Group(NamedTuple):
    """Tokens that only together stand for whole characters; most are alone."""

    ids: Sequence[int]
    pieces: Sequence[str]
    """Each token as it is shown by itself."""
    start: int | None
    """The first of the characters in the text; None if nobody can say."""
    end: int | None
    """Where they end."""


def groups_of(tokenizer: Tokenizer, text: str) -> list[Group]:
    """The tokens of a text, over the characters that they stand for.

    Where they do not spell the text, as it was changed before it was cut, each token stands by itself.
    """
    ids = tokenizer.encode_array(text)
    pieces = tokenizer.pieces(ids)
    counts = completion(tokenizer)(text, ids)
    if counts is None:
        return [Group([id], [piece], None, None) for id, piece in zip(ids.tolist(), pieces, strict=True)]
    ends = np.cumsum(counts)
    found: list[Group] = []
    begin = start = 0
    for last in np.flatnonzero(counts).tolist():
        end = int(ends[last])
        found.append(Group(ids[begin : last + 1].tolist(), pieces[begin : last + 1], start, end))
        begin, start = last + 1, end
    return found


def table(text: str, groups: Sequence[Group], width: int) -> str:
    """The groups in lines as wide as a terminal: characters, tokens where they are not just these characters, ids.

    Args:
        text: the text.
        groups: its tokens, as `groups_of` gives them.
        width: columns that a line may have; a group that is wider has a line of its own.
    """
    blocks = [_block(text, group) for group in groups]
    return "".join(f"{line}\n" for row in _rows(blocks, width) for line in _drawn(row))


class _Block(NamedTuple):
    """A group, drawn: three lines of equal width, and whether the second says anything."""

    characters: str
    tokens: str
    ids: str
    parts: bool


def _block(text: str, group: Group) -> _Block:
    alone = len(group.ids) == 1
    characters = shown(group.pieces[0] if group.start is None else text[group.start : group.end])
    told = [_spaced(shown(piece)) for piece in group.pieces]
    parts = not alone or told[0] != characters
    tokens = told if parts else [""]
    widths = [max(columns_of(token), len(str(id))) for token, id in zip(tokens, group.ids, strict=True)]
    widths[-1] += max(0, columns_of(characters) - sum(widths) - (len(widths) - 1))
    return _Block(
        _padded(characters, sum(widths) + len(widths) - 1),
        "│".join(map(_padded, tokens, widths)),
        "│".join(_padded(str(id), width) for id, width in zip(group.ids, widths, strict=True)),
        parts,
    )


def _spaced(piece: str) -> str:
    """A token with its bytes as they are written beside each other: a E7 8C for a<0xE7><0x8C>."""
    return re.sub(" +", " ", _BYTE.sub(r" \1 ", piece)).strip()


def _padded(text: str, width: int) -> str:
    return text + " " * (width - columns_of(text))


def _rows(blocks: Sequence[_Block], width: int) -> Iterator[list[_Block]]:
    """As many blocks as fit into a line, and again."""
    row: list[_Block] = []
    taken = 1
    for block in blocks:
        needed = columns_of(block.characters) + 1
        if row and taken + needed > width:
            yield row
            row, taken = [], 1
        row.append(block)
        taken += needed
    if row:
        yield row


def _drawn(row: Sequence[_Block]) -> Iterator[str]:
    yield _line([block.characters for block in row])
    if any(block.parts for block in row):
        yield _line([block.tokens for block in row])
    yield _line([block.ids for block in row])
    yield ""


def _line(cells: Sequence[str]) -> str:
    return f"│{'│'.join(cells)}│"
