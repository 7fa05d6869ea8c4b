"""Which head a page asks for, and with which query and key: the words of an address turned into what a kernel worked on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from clearhead.messages import say
from clearhead.ops.tap import Ran
from clearhead.web.session import RefusedError, Session


@dataclass(frozen=True, eq=False)
class Place:
    """One head of one layer.

    Args:
        part: such as "attention", "decoder.cross_attention".
        layer: which block.
        head: which query head.
        ran: what the layer worked on.
    """

    part: str
    layer: int
    head: int
    ran: Ran

    @property
    def kv_head(self) -> int:
        """Which key/value head it reads: head // (H/K)."""
        return self.head // (self.ran.q.shape[-3] // self.ran.k.shape[-3])

    @property
    def sizes(self) -> tuple[int, int]:
        """How many queries and keys there are."""
        return self.ran.q.shape[-2], self.ran.k.shape[-2]

    @property
    def crosses(self) -> bool:
        """Whether the keys are of another text than the queries."""
        return crosses(self.part)

    def told(self) -> dict[str, int | str]:
        """What a header says of it."""
        queries, keys = self.sizes
        return {
            "part": self.part,
            "layer": self.layer,
            "head": self.head,
            "kv_head": self.kv_head,
            "queries": queries,
            "keys": keys,
        }


def crosses(part: str) -> bool:
    """Whether the keys of a part are of another text than its queries."""
    return part.endswith("cross_attention")


def parts_of(session: Session) -> dict[str, list[Ran]]:
    """What the layers of each part worked on, in the order of the forward: "decoder.blocks.1.attention" is in "decoder.attention"."""
    parts: dict[str, list[Ran]] = {}
    for name, ran in session.ran.items():
        parts.setdefault(re.sub(r"blocks\.\d+\.", "", name), []).append(ran)
    return parts


def place_of(session: Session, query: Mapping[str, str]) -> Place:
    """The head that `part`, `layer` and `head` name.

    Args:
        session: the forward.
        query: the fields of the address.

    Raises:
        RefusedError: if one is missing, is no number, or there is no such head.
    """
    parts = parts_of(session)
    part = _asked(query, "part")
    if part not in parts:
        raise RefusedError(400, say("heads.no_part", value=part[:40], parts=", ".join(parts)))
    layer = number(query, "layer", len(parts[part]))
    ran = parts[part][layer]
    return Place(part, layer, number(query, "head", ran.q.shape[-3]), ran)


def number(query: Mapping[str, str], name: str, count: int) -> int:
    """The whole number below `count` that the address gives.

    Raises:
        RefusedError: if it is missing, is none, or is `count` or more. The status is 400 for all: on 404 a page opens its prompt again.
    """
    value = _asked(query, name)
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise RefusedError(400, say("heads.not_a_number", name=name, value=value[:40], last=count - 1))
    if int(value) >= count:
        raise RefusedError(400, say("heads.outside", name=name, value=int(value), last=count - 1))
    return int(value)


def _asked(query: Mapping[str, str], name: str) -> str:
    if name not in query:
        raise RefusedError(400, say("heads.missing", name=name))
    return query[name]
