"""Masks as words of an address: "causal.window-8.padding-2", and the masks that they stand for.

`static/js/maskrule.js` has the same once more: the page names the rule that decides each pair under the pointer, and a saved file draws
masks that nobody computed for it, both without asking. A test holds the two to each other, word by word and pair by pair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from clearhead.layers.look import Direction, Look, both_ways
from clearhead.messages import say
from clearhead.ops.masks import EVERYTHING, Causal, Documents, Mask, Padding, Positions, Prefix, Window
from clearhead.web.session import RefusedError

FULL = "full"
"""The words of a mask that hides nothing."""

NUMBER = "[1-9][0-9]{0,6}"
PARTS = {
    "causal": re.compile("causal"),
    "window": re.compile(f"window-({NUMBER})"),
    "prefix": re.compile(f"prefix-({NUMBER})"),
    "documents": re.compile(f"documents-({NUMBER}(?:-{NUMBER})*)"),
    "padding": re.compile(f"padding-({NUMBER})"),
}
"""The parts of the words, in their order."""

WINDOW, PREFIX, PADDING = 4, 3, 2
"""How large each is when it is switched on first: small enough that a short text shows it."""


@dataclass(frozen=True)
class Rule:
    """Who may look at whom: a query looks at a key where all that is said here allows it.

    Args:
        causal: key <= query.
        window: W: query - W < key. It limits the past alone, as `Window` does.
        prefix: N: what `causal` hides is seen all the same where key < N. It means nothing without `causal`.
        documents: where the second and the further documents begin, rising; a query sees its own document alone.
        padding: the first so many tokens are padding, which nobody sees.
    """

    causal: bool = False
    window: int | None = None
    prefix: int | None = None
    documents: tuple[int, ...] = ()
    padding: int = 0

    @property
    def words(self) -> str:
        """The rule as an address has it."""
        parts = [
            "causal" if self.causal else "",
            "" if self.window is None else f"window-{self.window}",
            "" if self.prefix is None else f"prefix-{self.prefix}",
            "-".join(["documents", *map(str, self.documents)]) if self.documents else "",
            f"padding-{self.padding}" if self.padding else "",
        ]
        return ".".join(filter(None, parts)) or FULL

    def within(self, length: int) -> Rule:
        """The rule without what lies beyond a text: a prefix ends with it, padding leaves one token, no document begins behind its end.

        A window stays as it is: those of the layers may be wider than a text as well.

        Args:
            length: how many tokens the text has.
        """
        return replace(
            self,
            prefix=None if self.prefix is None else min(self.prefix, length),
            documents=tuple(each for each in self.documents if each < length),
            padding=min(self.padding, length - 1),
        )

    def told(self) -> dict[str, Any]:
        """The rule as plain data."""
        return {
            "causal": self.causal,
            "window": self.window,
            "prefix": self.prefix,
            "documents": list(self.documents),
            "padding": self.padding,
        }

    @property
    def direction(self) -> Direction:
        """What it says of before and after."""
        if not self.causal:
            return both_ways
        return Causal if self.prefix is None else partial(_with_prefix, self.prefix)

    def limits(self, length: int, device: torch.device) -> Mask:
        """What it hides besides: other documents, and padding.

        Args:
            length: how many tokens look, and are looked at.
            device: where they are.
        """
        mask: Mask = EVERYTHING
        places = torch.arange(length, device=device)[None]
        if self.documents:
            begins = torch.tensor(self.documents, device=device)
            number = (places[..., None] >= begins).sum(-1)
            mask = mask & Documents(number, number)
        return mask & Padding(places >= self.padding) if self.padding else mask

    def mask(self, length: int, device: torch.device) -> Mask:
        """All of it.

        Args:
            length: how many tokens look, and are looked at.
            device: where they are.
        """
        places = range(length)
        mask = self.direction(places, places)
        if self.window is not None:
            mask = mask & Window(self.window, places, places)
        return mask & self.limits(length, device)


def rule_of(look: Look) -> Rule:
    """What a block's look says of whom it sees."""
    return Rule(causal=look.direction is Causal, window=look.window)


def parsed(words: str) -> Rule | None:
    """The rule that words stand for; None for "", the model's own.

    Args:
        words: "full", or parts joined by points, in the order of `PARTS`.

    Raises:
        RefusedError: 400 if they stand for none.
    """
    if words == "":
        return None
    found: dict[str, tuple[int, ...]] = {}
    names, rest = iter(PARTS), [] if words == FULL else words.split(".")
    for word in rest:
        # The names before it are behind us: the order is held, and no part comes twice.
        match = next(((name, hit) for name in names if (hit := PARTS[name].fullmatch(word))), None)
        if match is None:
            raise RefusedError(400, say("masks.not_understood", value=words[:60]))
        found[match[0]] = tuple(map(int, match[1][1].split("-"))) if match[0] != "causal" else ()
    documents = found.get("documents", ())
    if list(documents) != sorted(set(documents)):
        raise RefusedError(400, say("masks.documents", value=words[:60]))
    if "prefix" in found and "causal" not in found:
        raise RefusedError(400, say("masks.prefix_alone", value=words[:60]))
    (window,), (prefix,), (padding,) = (found.get(name, (None,)) for name in ("window", "prefix", "padding"))
    return Rule("causal" in found, window, prefix, documents, padding or 0)


def understood(words: str) -> str:
    """The words, or "" where they stand for no mask: the page shows the model's own then."""
    try:
        parsed(words)
    except RefusedError:
        return ""
    return words


def first(length: int) -> Rule:
    """The numbers of each rule when it is switched on first; a single token can be neither padding nor two documents.

    Args:
        length: how many tokens there are.
    """
    return Rule(True, WINDOW, PREFIX, (max(1, length // 2),), PADDING).within(length)


def neighbours(own: Rule, length: int) -> list[Rule]:
    """What each switch of the page makes of a model's own rule when it is pressed first.

    Args:
        own: the rule.
        length: how many tokens there are.
    """
    numbers = first(length)
    made = (
        replace(own, causal=not own.causal),
        replace(own, window=numbers.window if own.window is None else None),
        replace(own, causal=True, prefix=numbers.prefix),
        replace(own, documents=numbers.documents),
        replace(own, padding=numbers.padding),
    )
    return [rule for rule in made if rule != own]


def asked(query: Mapping[str, str]) -> Rule | None:
    """The rule that an address asks for; None for the model's own. It may reach beyond the text: see `Rule.within`.

    Raises:
        RefusedError: as `parsed`.
    """
    return parsed(query.get("mask", ""))


def _with_prefix(length: int, queries: Positions, keys: Positions) -> Mask:
    return Prefix(length, queries, keys)
