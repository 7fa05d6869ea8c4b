"""Who sees whom, drawn as text. Imports without torch."""

from __future__ import annotations

from collections.abc import Iterator

from clearhead.checking.report import Sight
from clearhead.messages import say

MARKS = {(True, True): "█", (False, False): "·", (False, True): "!", (True, False): "?"}
"""Seen and should be, neither, seen and should not be, not seen and should be."""


def drawn(sight: Sight) -> Iterator[str]:
    """Expected beside found, a line a query; keys from left to right."""
    size = len(sight.expected[0])
    yield f"  {say('check.sight_expected'):<{max(2 * size, 10)}}  {say('check.sight_found')}"
    for should, does in zip(sight.expected, sight.found, strict=True):
        left = " ".join(MARKS[each, each] for each in should)
        right = " ".join(MARKS[pair] for pair in zip(should, does, strict=True))
        yield f"  {left:<{max(2 * size, 10)}}  {right}"
    yield f"  {say('check.sight_marks')}"
