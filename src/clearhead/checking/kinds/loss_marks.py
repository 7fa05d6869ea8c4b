"""What does not count in a loss: -100, a mask, the padding's id; and by how many targets it is divided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from clearhead.checking.kinds.loss_calling import LENGTH, ROWS, LossCase, constants
from clearhead.checking.kinds.loss_reading import NEAR, Formula, aligned, counted, formula, gradient, logits_of
from clearhead.checking.strangers import Attempt

LENGTHS = torch.tensor([LENGTH, 5, 3])
"""Real tokens of the rows: no two alike, and no count of anything is that of something else."""
MINUS_ONE = r"ignore_index\s*=\s*-1\b|[!=]=\s*-1\b|>=\s*0\b|<\s*0\b|>\s*-1\b"
SAME = r"pad\w*\W{0,12}(=|==|is|and|as)\W{0,3}(the |an |also |same |as )*\w*\.?eos|eos\w*\W{0,12}(=|==|is|and|as)\W{0,3}(the |a |also |same |as )*\w*\.?pad"
"""Code that says that the padding's id is that of the end of a text."""


class Mark(NamedTuple):
    """How padding was marked, and what became of it.

    Args:
        name: "-100", "attention_mask", "pad_id=9".
        role: ignored, mask, pad or lengths.
        wrong: positions (B,T) that count and must not.
        lost: positions that must count and do not.
        real: positions that must count.
        read: the formula, with the weights of the positions.
        reverse: whether True in the mask means that a position is dropped.
    """

    name: str
    role: str
    wrong: Tensor
    lost: Tensor
    real: Tensor
    read: Formula
    reverse: bool = False

    @property
    def right(self) -> bool:
        """Whether exactly the real positions count."""
        return not bool(self.wrong.any()) and not bool(self.lost.any())


def hidden(case: LossCase, shift: int) -> list[int]:
    """The ids that never count, though nobody asked for that."""
    wanted = range(case.vocab) if case.vocab <= 16 else sorted({0, *constants(case.target).values()})
    found = []
    logits = logits_of(case, ROWS, LENGTH)
    for each in (v for v in wanted if v < case.vocab):
        ids = ids_of(case, avoid={each})
        ids[:, 4] = each
        ids[0, 6] = each
        with Attempt():
            real = counted(gradient(case, logits, ids))
            here = aligned(ids, shift) == each
            if bool(here.any()) and not bool((real & here).any()) and bool(real.any()):
                found.append(each)
    return found


def ids_of(case: LossCase, avoid: set[int] | None = None, seed: int = 3) -> Tensor:
    """Random ids (B,T) without some."""
    allowed = torch.tensor([v for v in range(min(case.vocab, 64)) if v not in (avoid or set())])
    drawn = torch.Generator().manual_seed(seed)
    return allowed[torch.randint(len(allowed), (ROWS, LENGTH), generator=drawn)]


def marks(case: LossCase, shift: int, ignored: list[int]) -> Iterator[Mark]:
    """Each way of marking padding that the loss takes, tried; what it refuses is left out."""
    spare = {_free(case, ignored)} if "pad" in case.roles else set()
    logits, ids = logits_of(case, ROWS, LENGTH, 1), ids_of(case, {*ignored, *constants(case.target).values(), *spare})
    real = torch.arange(LENGTH) < LENGTHS[:, None]
    values = [-100, *([-1] if re.search(MINUS_ONE, case.target.source) else [])]
    for value in values:
        yield from _tried(case, str(value), "ignored", _Padded(logits, ids.where(real, value), real, {}), shift)
    if "mask" in case.roles:
        mark = _masked(case, logits, ids, real, shift)
        yield from [mark] if mark is not None else []
    if "lengths" in case.roles:
        yield from _tried(
            case, case.roles["lengths"], "lengths", _Padded(logits, ids, real, {"lengths": LENGTHS}), shift
        )
    for value, options in _pads(case, ids, ignored):
        name = f"{case.roles['pad']}={value}" if options else f"id {value}"
        yield from _tried(case, name, "pad", _Padded(logits, ids.where(real, value), real, options), shift)


def _pads(case: LossCase, ids: Tensor, ignored: list[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The ids that mean padding, and how the loss is told so."""
    if "pad" in case.roles:
        free = _free(case, ignored)
        yield free, {"pad": free}
    else:
        yield from ((value, {}) for value in ignored)
        known = {
            v for name, v in constants(case.target).items() if re.search("pad|ignore", name, re.I) and v < case.vocab
        }
        yield from ((value, {}) for value in known - set(ignored) if value not in ids)


def _free(case: LossCase, ignored: list[int]) -> int:
    """The highest id that means nothing yet; the lowest if all do."""
    return next((v for v in range(case.vocab - 1, 0, -1) if v not in ignored), 0)


def _masked(case: LossCase, logits: Tensor, ids: Tensor, real: Tensor, shift: int) -> Mark | None:
    """The mask, in the type and with the meaning that fit; the usual meaning if none does."""
    name = case.roles["mask"]
    drops = re.search(r"pad", name) is not None
    tried = []
    for reverse in (drops, not drops):
        for dtype in (torch.long, torch.bool, case.dtype):
            options = {"mask": (~real if reverse else real).to(dtype)}
            # A mask of the loss may belong to the positions that are scored, not to the tokens.
            for where in (real, _of_positions(real, shift)) if re.search("loss|label|target|weight", name) else (real,):
                for mark in _tried(case, name, "mask", _Padded(logits, ids, where, options), shift):
                    if mark.right:
                        return mark._replace(reverse=reverse)
                    tried.append(mark._replace(reverse=reverse))
    return tried[0] if tried else None


def _of_positions(real: Tensor, shift: int) -> Tensor:
    """Tokens, such that the positions before them are the real ones."""
    return torch.nn.functional.pad(real, (shift, 0), value=True)[:, : real.shape[1]] if shift > 0 else real


def _tried(case: LossCase, name: str, role: str, given: _Padded, shift: int) -> Iterator[Mark]:
    """What became of the marks; nothing if the loss refuses them."""
    logits, ids, real, options = given
    with Attempt():
        found = gradient(case, logits, ids, options)
        if not bool(found.isfinite().all()):
            return
        scored = aligned(torch.ones_like(ids), shift) == 1
        wanted = aligned(real.long(), shift) == 1
        counts = counted(found)
        # Only what counts is read: the target of a marked position is no class.
        read = formula(found * wanted.unsqueeze(-1), logits, ids.clamp_min(0), shift)
        yield Mark(name, role, counts & scored & ~wanted, wanted & ~counts, wanted, read)


class _Padded(NamedTuple):
    """Logits (B,T,V), ids (B,T), which of them are real, and what the loss is told."""

    logits: Tensor
    ids: Tensor
    real: Tensor
    options: Mapping[str, Any]


class Division(NamedTuple):
    """By what the sum over the real targets is divided.

    Args:
        name: "count", "sum", "rows", "positions", "means" or "" if it is something else.
        number: by how many, of one real target.
        weights: the different weights, smallest first.
    """

    name: str
    number: float
    weights: tuple[float, ...]


def division(mark: Mark, even: bool, case: LossCase, shift: int) -> Division | None:
    """The division that gives these weights; None if the formula is not known.

    Args:
        mark: padding of which nothing counts.
        even: whether all positions weigh the same if there is no padding.
        case: of the loss.
        shift: how far ahead targets are.
    """
    if not mark.read.name:
        return None
    weights = mark.read.weights[mark.real]
    several = tuple(sorted({round(float(w), 6) for w in weights}))
    if float(weights.max() - weights.min()) > NEAR * float(weights.abs().max()):
        means = even and abs(float(weights.sum()) - 1) < 1e-3
        return Division("means" if means else "", 0.0, several)
    number, count = 1 / float(weights[0]), int(mark.real.sum())
    sizes = {"count": count, "sum": 1, "rows": ROWS}
    sizes |= {
        "positions": ROWS * LENGTH,
        "shifted": ROWS * (LENGTH - max(shift, 0)),
        "padded": ROWS * (LENGTH - 2 * shift),
    }
    name = next((name for name, size in sizes.items() if abs(number / size - 1) < 1e-3), "")
    return Division("positions" if name in ("shifted", "padded") else name, number, several)
