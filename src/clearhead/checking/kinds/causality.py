"""Whether a position sees what it may see: the future, itself, the past, a window of it; on every path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.claimed import backwards, patterned, shuns_itself
from clearhead.checking.kinds.cores import added_triangle, cores, masked_later, renormalised
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.seeing import changed, influence, moved, ready, seen_above, sight, size_of
from clearhead.checking.kinds.sequence_case import SequenceCase, run
from clearhead.checking.kinds.windows import band, window_faults
from clearhead.checking.report import Check, Fault
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.watch import Record, watched
from clearhead.messages import say

LENGTH, LONG = 7, 37
"""Of the matrix of who sees whom, and of the look at long inputs: odd, so that blocks do not fit."""


@dataclass(frozen=True)
class Seen:
    """What a module was seen to do without any mask.

    Args:
        found: (T,T), whether query t sees key s.
        strength: how far its output moves.
        causal: whether it is to be causal, by its claim or its behaviour.
        record: a forward of the same input, watched.
    """

    found: Tensor
    strength: Tensor
    causal: bool
    record: Record

    @property
    def length(self) -> int:
        """T."""
        return self.found.shape[0]


def looked(case: SequenceCase) -> Seen:
    """Who sees whom, and whether that is to be causal."""
    length = case.length(LENGTH if case.window is None else max(LENGTH, min(case.window + 4, 40)))
    x, module = case.inputs(2, length, 1), ready(case)
    with torch.no_grad():
        record = watched(module if isinstance(module, nn.Module) else None, lambda: run(case, module, x))
    strength = influence(case, module, x).amax(0)
    found = strength > seen_above(case)
    return Seen(found, strength, _causal(case, found), record)


def _causal(case: SequenceCase, found: Tensor) -> bool:
    """Whether the module is to be causal: it claims to be, or it hides the future, whole or in part."""
    future = _future(found)
    if case.causal:
        return True
    if not bool(found[future].any()):
        return bool(found[future.T].any())
    hidden = ~found & future
    if _turned_over(found):
        return case.causal is None and not backwards(case.case.target)
    if not bool(hidden.any()) or case.causal is False or patterned(case.case.target):
        return False
    # Who sees me is seen by me: a window on both sides, or blocks. Otherwise some of the future was meant to be hidden.
    return not bool((found == found.T).all()) and bool(found[future.T].all())


def _turned_over(found: Tensor) -> bool:
    """Whether each position sees all that comes later, and nothing before it."""
    future = _future(found)
    return found.shape[0] > 2 and bool(found[future].all()) and not bool(found[future.T].any())


def _future(found: Tensor) -> Tensor:
    return torch.ones_like(found).triu(1)


def causality(case: SequenceCase, seen: Seen) -> Found:
    """What is wrong with who sees whom."""
    names = ("causal.future-leak", "causal.self-masked", "causal.past-lost")
    if not bool(seen.found.any()):
        reason = say("attention.nothing_moves", length=seen.length)
        return Found(tuple(Check(name, "skipped", reason) for name in names))
    expected = torch.ones_like(seen.found)
    if seen.causal:
        expected = expected.tril()
    if case.window is not None and seen.causal:
        expected &= ~torch.ones_like(expected).tril(-case.window)
    shown = sight(expected, seen.strength, seen_above(case))
    if not seen.causal:
        reason = say("attention.not_causal")
        return Found(tuple(Check(name, "skipped", reason) for name in names), sight=shown)
    itself = _self_masked(case, seen)
    leak = _leak(case, seen)
    lost = _lost(case, seen)
    checks = []
    for name, fault in zip(names, (leak, itself, lost), strict=True):
        passed = say("attention.passed_causal", length=seen.length, pairs=int(seen.found.sum()))
        largest = _largest(seen) if name == "causal.future-leak" else 0.0
        checks.append(Check(name, "fail" if fault else "pass", fault.evidence if fault else passed, largest))
    faults = [fault for fault in (itself, leak, lost) if fault is not None]
    causes = [_after_softmax(seen), _added(seen)] if leak is not None else []
    for cause in (each for each in causes if each is not None):
        faults.insert(0, cause)
        checks.append(Check(cause.id, "fail", cause.evidence))
    return Found(tuple(checks), tuple(faults), sight=shown) + window_faults(case, seen.found, seen.causal)


def _largest(seen: Seen) -> float:
    return float(seen.strength[_future(seen.found)].nan_to_num(posinf=1.0).max()) if seen.length > 1 else 0.0


def _leak(case: SequenceCase, seen: Seen) -> Fault | None:
    """The future seen: in the matrix, in long inputs, alone in the batch, in training."""
    future = seen.found & _future(seen.found)
    if bool(future.any()):
        query, key = [int(n) for n in future.nonzero()[0]]
        strength = float(seen.strength[query, key])
        short = _shortest(case) or seen.length
        evidence = say(
            "attention.leak",
            length=seen.length,
            query=query,
            source=key,
            change=f"{strength:.2g}",
            count=int(future.sum()),
            all=int(_future(future).sum()),
            shortest=short,
        )
        return _leaks(seen, evidence, _largest(seen))
    for path, length, rows, training in (
        ("long", LONG, 2, False),
        ("alone", LENGTH, 1, False),
        ("training", LENGTH, 2, True),
    ):
        with Attempt():
            worst = _leak_on(case, case.length(length), rows, training=training)
            if worst is not None:
                query, key, change = worst
                evidence = say(
                    f"attention.leak_on_{path}",
                    length=case.length(length),
                    query=query,
                    source=key,
                    change=f"{change:.2g}",
                )
                return _leaks(seen, evidence, change)
    return None


def _leaks(seen: Seen, evidence: str, effect: float) -> Fault:
    return Fault("causal.future-leak", "consistent", evidence, place(seen), say("attention.leak_fix"), min(effect, 1e6))


def place(seen: Seen) -> str:
    """The line of the mask, or of the softmax."""
    masks = [op for op in seen.record.named("masked_fill", "masked_fill_", "where", "tril", "triu") if op.where]
    found = [core.where for core in cores(seen.record, seen.length) if core.where]
    return masks[-1].where if masks else next(iter(found), "")


@torch.no_grad()
def _leak_on(case: SequenceCase, length: int, rows: int, *, training: bool) -> tuple[int, int, float] | None:
    """The first output that moves with a later input, on one path; None if none does."""
    module, x = ready(case), case.inputs(rows, length, 2)
    if training and isinstance(module, nn.Module):
        module.train()

    def out(given: Tensor) -> Tensor:
        with Seeded():
            return run(case, module, given)

    base = out(x)
    if not torch.equal(out(x), base):
        return None
    for position in sorted({1, length // 2, length - 1} - {0}):
        apart = moved(base, out(changed(case, x, position)))[:, :position].amax((0, -1)) / size_of(base)
        if float(apart.max()) > seen_above(case):
            query = int(apart.argmax())
            return query, position, float(apart[query])
    return None


def _shortest(case: SequenceCase) -> int | None:
    """The fewest positions that show the leak."""
    with Attempt():
        for length in range(2, LENGTH if case.fixed is None else 0):
            if _leak_on(case, length, 2, training=False) is not None:
                return length
    return None


def _self_masked(case: SequenceCase, seen: Seen) -> Fault | None:
    """A position that does not see itself. Its output depends on it through its query alone, so at 1, where only 0 is left, not at all."""
    hearts = cores(seen.record, seen.length)
    past = torch.ones_like(seen.found).tril(-1)
    strict = any(
        bool((core.weights.diagonal(dim1=-2, dim2=-1)[..., 1:] == 0).all())
        and bool((core.weights[..., past] > 0).any())
        for core in hearts
    )
    alone = seen.length > 2 and not bool(seen.found[1, 1]) and bool(seen.found[1, 0])
    if not (strict or alone) or shuns_itself(case.case.target):
        return None
    evidence = say("attention.self_masked", length=seen.length)
    return Fault(
        "causal.self-masked",
        "reproduced" if strict else "consistent",
        evidence,
        place(seen),
        say("attention.self_masked_fix"),
        None,
    )


def _lost(case: SequenceCase, seen: Seen) -> Fault | None:
    """Earlier positions that are not seen though no window is claimed."""
    past = torch.ones_like(seen.found).tril(-1)
    if case.window is not None or patterned(case.case.target) or not bool(past.any()):
        return None
    lost = past & ~seen.found
    width = band(seen.found)
    if not bool(lost.any()) or (width is not None and width > 1):
        # The same number of keys everywhere is a window whose size the code writes as a number.
        return None
    query, key = [int(n) for n in lost.nonzero()[-1]]
    evidence = say(
        "attention.past_lost", length=seen.length, query=query, source=key, count=int(lost.sum()), all=int(past.sum())
    )
    return Fault("causal.past-lost", "consistent", evidence, place(seen), say("attention.past_lost_fix"), None)


def _after_softmax(seen: Seen) -> Fault | None:
    """The triangle on the weights, not on the scores."""
    hearts = cores(seen.record, seen.length)
    op = masked_later(seen.record, hearts, _future(seen.found))
    if op is None or renormalised(seen.record, op):
        return None
    sums = op.result.sum(-1)
    evidence = say("attention.after_softmax", least=f"{float(sums.min()):.3f}", length=seen.length)
    return Fault(
        "causal.after-softmax",
        "reproduced",
        evidence,
        op.where,
        say("attention.after_softmax_fix"),
        float(1 - sums.min()),
    )


def _added(seen: Seen) -> Fault | None:
    """A triangle of ones as a number in the scores."""
    found = added_triangle(seen.record, cores(seen.record, seen.length))
    if found is None:
        return None
    op, step = found
    amount = say("attention.triangle_by", step=f"{step:+.0f}") if step else say("attention.triangle_zero")
    evidence = say("attention.triangle_added", amount=amount, length=seen.length)
    fix = say("attention.leak_fix")
    return Fault("mask.added-as-number", "reproduced", evidence, op.where, fix, min(_largest(seen), 1e6))


def with_causality(case: SequenceCase, seen: Seen) -> SequenceCase:
    """The case, its claim settled by what was seen: what follows asks for no more."""
    return replace(case, causal=seen.causal)


def watched_with(case: SequenceCase, x: Tensor, keep: Tensor | None, use: Any = None) -> Record:
    """A forward with a mask, watched."""
    module = ready(case)
    with torch.no_grad():
        return watched(module if isinstance(module, nn.Module) else None, lambda: run(case, module, x, keep, use=use))
