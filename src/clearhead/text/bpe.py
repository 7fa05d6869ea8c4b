"""Byte-pair encoding, to be read: how merges are learnt from words, and how they turn a text into ids.

A text is split into words. A word begins as its bytes of UTF-8, a token each. Training joins the pair of neighbouring
tokens that is most frequent over all words into one new token, everywhere, and again, as often as asked; what it
learns is the list of those merges, in their order. Encoding a word does the merges that apply to it, the earliest
learnt first.

Which of several equally frequent pairs is joined: the one whose first token has the lower id, then the one whose second
has. An id is a place in the vocabulary: first the 256 bytes, in the order of the signs that byte-level tokenizers write
for them (those that are printable in Latin-1 first, then the rest, both ascending), then the merged tokens as they came.

This is the `tokenizers` library's byte-level BPE, merge for merge and id for id, as long as no id is given to special
tokens, which the library puts in front. Two properties make the short form exact. A pair's count is the number of
places where it stands, overlapping ones each ("aaa" holds "aa" twice). And no token is ever made by two merges: between
the edges of a token nothing from outside has interfered, so the same bytes were merged in the same way wherever they
became one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from clearhead.text.ids import Ids, checked_ids

__all__ = ["BYTES", "Merge", "Splitter", "count_words", "decode", "encode", "split_words", "train", "vocabulary"]

Merge: TypeAlias = tuple[bytes, bytes]
"""Two tokens that become one."""

Splitter: TypeAlias = Callable[[str], Iterable[str]]
"""A text -> its words, which joined are the text. No token reaches from one word into the next."""

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]

BYTES = tuple(bytes([byte]) for byte in sorted(range(256), key=lambda byte: (byte not in _PRINTABLE, byte)))
"""The first 256 tokens, in the order of their ids."""

_WORD = re.compile(r" ?[^\W\d]+| ?\d+| ?[^\w\s]+|\s+")


def split_words(text: str) -> list[str]:
    """Letters, digits, other signs, each with the space before it, and runs of white space."""
    return _WORD.findall(text)


def count_words(texts: Iterable[str], split: Splitter = split_words) -> Counter[str]:
    """How often each word stands in the texts: all that training needs to know of them."""
    return Counter(word for text in texts for word in split(text))


def train(words: Mapping[str, int], merges: int, *, least: int = 1) -> list[Merge]:
    """The merges learnt from words, in their order; fewer than asked where no pair is left.

    Counts of pairs are kept and corrected where a merge changes a word, so a merge costs the words that hold its pair,
    and one look over all counts to find the largest.

    Args:
        words: each word and how often it occurs.
        merges: how many to learn at most.
        least: how often a pair must occur to be merged.
    """
    ids = {token: id for id, token in enumerate(BYTES)}
    parts = [[bytes([byte]) for byte in word.encode()] for word in words]
    times = list(words.values())
    counts: Counter[Merge] = Counter()
    holders: defaultdict[Merge, set[int]] = defaultdict(set)
    for number, tokens in enumerate(parts):
        for pair in pairwise(tokens):
            counts[pair] += times[number]
            holders[pair].add(number)
    learnt: list[Merge] = []
    while len(learnt) < merges:
        most = max(counts.values(), default=0)
        if most < max(least, 1):
            break
        best = min(
            (pair for pair, count in counts.items() if count == most), key=lambda pair: (ids[pair[0]], ids[pair[1]])
        )
        learnt.append(best)
        ids[best[0] + best[1]] = len(ids)
        for number in holders.pop(best):
            for pair in pairwise(parts[number]):
                counts[pair] -= times[number]
            parts[number] = _joined(parts[number], best)
            for pair in pairwise(parts[number]):
                counts[pair] += times[number]
                holders[pair].add(number)
        del counts[best]
    return learnt


def _joined(tokens: Sequence[bytes], pair: Merge) -> list[bytes]:
    """The tokens with the pair joined wherever it stands, from left to right."""
    joined: list[bytes] = []
    place = 0
    while place < len(tokens):
        found = tuple(tokens[place : place + 2]) == pair
        joined.append(pair[0] + pair[1] if found else tokens[place])
        place += 2 if found else 1
    return joined


def vocabulary(merges: Sequence[Merge]) -> list[bytes]:
    """The token of each id: the bytes, then what each merge makes."""
    return [*BYTES, *(first + second for first, second in merges)]


def encode(text: str, merges: Sequence[Merge], split: Splitter = split_words) -> NDArray[np.int64]:
    """The ids of a text.

    Args:
        text: any text without surrogates.
        merges: as `train` gave them.
        split: the same that the words of training came from.
    """
    ids = {token: id for id, token in enumerate(vocabulary(merges))}
    order = {pair: place for place, pair in enumerate(merges)}

    @cache
    def of_word(word: str) -> list[int]:
        tokens = [bytes([byte]) for byte in word.encode()]
        while known := [pair for pair in pairwise(tokens) if pair in order]:
            tokens = _joined(tokens, min(known, key=order.__getitem__))
        return [ids[token] for token in tokens]

    return np.array([id for word in split(text) for id in of_word(word)], dtype=np.int64)


def decode(ids: Ids, merges: Sequence[Merge]) -> str:
    """The text of the ids; U+FFFD for bytes that are no UTF-8.

    Raises:
        UserError: an id is outside the vocabulary; the message names both numbers.
    """
    tokens = vocabulary(merges)
    return b"".join(tokens[id] for id in checked_ids(ids, len(tokens)).tolist()).decode("utf-8", errors="replace")
