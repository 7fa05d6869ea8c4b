"""What a comparison of two models says. Imports without torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from clearhead.checking.report import Certainty

Held = Literal["equal", "island", "differs", "unpaired"]
"""Equal to rounding of the type in which both ran; to that of a narrower type which one uses inside; not; or nothing to compare with."""

State = Literal["same", "changed", "related", "missing", "unexpected"]
"""The same numbers; others; the same rearranged; only A has it; only B has it."""


@dataclass(frozen=True)
class Pair:
    """A stage of A and the stage of B that stands for it.

    Args:
        a: its name in A: "blocks.0.attention.q", "h.0.attn.c_attn", "softmax (att.py:31)".
        b: in B, "" if it has no partner.
        shape: in A.
        largest: the largest difference beside the largest number; infinity if shapes differ, NaN where one gives no number.
        allowed: what rounding explains.
        held: the verdict.
        where: the line of B's code that made it, "att.py:31"; A's if B is no code; "" if neither is.
    """

    a: str
    b: str
    shape: tuple[int, ...]
    largest: float
    allowed: float
    held: Held
    where: str = ""


@dataclass(frozen=True)
class Reason:
    """Why the two part.

    Args:
        id: what kind of difference: "activation", "norm.eps", "rotary.pairing"; as in the dictionary of faults where that has it.
        certainty: whether A, changed so, gives what B gives, or the name only fits what was seen.
        place: the stage at which it was seen first.
        text: one sentence: what A does and what B does.
        before: the largest difference at that stage, beside the largest number.
        after: what remains of it once A is changed so.
    """

    id: str
    certainty: Certainty
    place: str
    text: str
    before: float
    after: float


@dataclass(frozen=True)
class TensorRow:
    """A tensor of the weights.

    Args:
        a: its name in A, "" if only B has it.
        b: its name in B, "" if only A has it.
        state: how the two are to each other.
        text: what relates them, or how far they are apart; "" if they are the same.
        id: what kind of relation that is: "weights.transposed", "weights.joined" ...; "" if there is none.
    """

    a: str
    b: str
    state: State
    text: str = ""
    id: str = ""


@dataclass(frozen=True)
class Difference:
    """What `clearhead diff` found.

    Args:
        a: the first, as the user called it.
        b: the second.
        given: what both were given, in words: "the 12 ids of the text", "2 x 11 random ids below 50257".
        weights: where the weights of the two come from: "own", or "a" if B was given those of A.
        pairs: all stages, in the order in which A runs them; the last is the result.
        first: the first pair that parts, None if none does.
        reasons: why, the first cause first.
        tensors: the weights.
        notes: what is legal and worth knowing: a float32 island, a difference of names.
        unreached: tensors of A that differ in B though no stage does: what both were given does not reach them.
    """

    a: str
    b: str
    given: str
    weights: Literal["own", "a"]
    pairs: tuple[Pair, ...]
    first: Pair | None
    reasons: tuple[Reason, ...]
    tensors: tuple[TensorRow, ...]
    notes: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the two are equal to rounding, in their results, at every stage that both have, and in their weights."""
        return self.first is None and not self.unreached

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {"ok": self.ok, **asdict(self)}
