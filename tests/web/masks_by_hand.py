"""Masks written out pair by pair, as the words of an address say them: what the page's masks are held to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from clearhead.web.mask_rule import Rule


class Fault(NamedTuple):
    """A mistake that a test plants in the table.

    Args:
        window: by how much a window is too wide.
        padding: whether the real tokens are taken for the padding.
        prefix: whether a prefix opens anything.
    """

    window: int = 0
    padding: bool = False
    prefix: bool = True


NONE = Fault()
FAULTS = (Fault(window=1), Fault(window=-1), Fault(padding=True), Fault(prefix=False))
RULES = (
    Rule(),
    Rule(causal=True),
    Rule(window=3),
    Rule(causal=True, window=3),
    Rule(causal=True, window=1),
    Rule(causal=True, prefix=4),
    Rule(causal=True, window=5, prefix=3),
    Rule(documents=(2, 7)),
    Rule(causal=True, documents=(5,)),
    Rule(padding=3),
    Rule(causal=True, padding=2),
    Rule(causal=True, window=6, prefix=4, documents=(3, 9), padding=1),
    # Numbers beyond the text.
    Rule(causal=True, window=400, prefix=300, documents=(100,)),
    Rule(causal=True, padding=500),
)


def by_hand(rule: Rule, queries: int, keys: int, fault: Fault = NONE) -> list[list[bool]]:
    """Who may look at whom, a row a query."""
    return [[all(_says(rule, query, key, fault)) for key in range(keys)] for query in range(queries)]


def _says(rule: Rule, query: int, key: int, fault: Fault) -> Iterator[bool]:
    if rule.causal:
        yield key <= query or (fault.prefix and rule.prefix is not None and key < rule.prefix)
    if rule.window is not None:
        yield query - key < rule.window + fault.window
    if rule.documents:
        yield _document(rule, query) == _document(rule, key)
    if rule.padding:
        yield (key < rule.padding) == fault.padding


def _document(rule: Rule, place: int) -> int:
    number = 0
    for begin in rule.documents:
        number += place >= begin
    return number
