"""Changes that may be the reason: of the whole model, or of one block alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from torch import nn

from clearhead.checking.diff.ours import ModelSide
from clearhead.checking.diff.variation import Variation, looks_in, set_looks
from clearhead.checking.diff.variations import variations
from clearhead.messages import say


class Candidate(NamedTuple):
    """A change that may be the reason.

    Args:
        id: of the reason.
        before: what the side did, in words.
        after: what it does then.
        make: the changed side.
    """

    id: str
    before: str
    after: str
    make: Callable[[], ModelSide]


class Place(NamedTuple):
    """A block.

    Args:
        stack: "encoder", "decoder", or "" for the model itself.
        number: of the block.
    """

    stack: str
    number: int

    @property
    def name(self) -> str:
        """As traced tensors call it: "encoder.blocks.3"."""
        return f"{self.stack}.blocks.{self.number}".lstrip(".")


def place_of(name: str) -> Place | None:
    """The block that a stage is in, None if it is in none."""
    found = re.match(r"(?:(encoder|decoder)\.)?blocks\.(\d+)\.", name)
    return None if found is None else Place(found[1] or "", int(found[2]))


def candidates_of(side: ModelSide, length: int) -> Iterator[Candidate]:
    """Every variation of a side that reads so many tokens."""
    for variation in variations(side.config, length):
        yield candidate_of(side, variation)


def candidate_of(side: ModelSide, variation: Variation) -> Candidate:
    """A variation of the side."""
    return Candidate(variation.id, variation.text_a, variation.text_b, lambda: side.varied(variation))


def alone(side: ModelSide, candidate: Candidate, place: Place) -> Candidate:
    """The change in one block; all others are as the side has them."""
    after = say("diff_ours.in_block", text=candidate.after, block=place.name)
    return Candidate(candidate.id, candidate.before, after, lambda: grafted(side, candidate.make(), place))


def grafted(side: ModelSide, changed: ModelSide, place: Place) -> ModelSide:
    """The side with one block of another one.

    Args:
        side: all but the block.
        changed: where the block is taken from, with how it looks at positions.
        place: which block.
    """
    donor = changed.model.get_submodule(place.stack)

    def change(model: nn.Module) -> None:
        stack = model.get_submodule(place.stack)
        stack.get_submodule("blocks").add_module(
            str(place.number), donor.get_submodule("blocks").get_submodule(str(place.number))
        )
        looks = list(looks_in(stack))
        looks[place.number] = looks_in(donor)[place.number]
        set_looks(stack, looks)

    return replace(side, changes=(*side.changes, change))
