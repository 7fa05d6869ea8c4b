"""Is the gradient that an update steps with the right one: summed up, cleared, clipped and unscaled?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from clearhead.checking.loop_kinds import Loop, LoopFinding, LoopTask, not_asked, right
from clearhead.checking.loop_references import (
    EXACT,
    FORMS,
    GUARDS,
    Gradients,
    Match,
    Parts,
    added,
    clipped,
    distance,
    nearest,
    norm_of,
    parts_of,
    right_gradient,
    times,
)
from clearhead.checking.loop_subject import ROWS, Rows, Subject
from clearhead.checking.loop_watch import Moved, watch
from clearhead.messages import say

MICRO = 3
"""Micro-batches of an update."""
SCALE = 1024.0
"""The loss scale, a power of two: it takes nothing from a float64."""
RATE = 1e-3


class _Run(NamedTuple):
    """A short run, and what its updates are made of."""

    moved: list[Moved]
    parts: list[Parts]


def accumulation(loop: Loop, subject: Subject) -> list[LoopFinding]:
    """k micro-batches = one batch, with unequal numbers of real targets; and each update begins from nothing.

    The gradient must be that of (sum of all losses) / (number of all real targets), to 1e-10 of its largest value in
    float64. Otherwise the ways in which loops go wrong are tried, and the one that gives the loop's numbers names it.

    Returns:
        The answers about `accumulation` and about `clearing`.
    """
    try:
        run = _run(loop, _task(subject, MICRO))
    except NotImplementedError as reason:
        # Whether gradients are cleared can also be asked of a loop with one batch an update.
        said = not_asked("accumulation", say("loops.cannot", reason=reason))
        return [said, _cleared(_run(loop, _task(subject, 1)))]
    return [_accumulated(run), _cleared(run)]


def _accumulated(run: _Run | None) -> LoopFinding:
    if run is None:
        return not_asked("accumulation", say("loops.unknown_rows"))
    moved, parts = run.moved[0], run.parts[0]
    rows = sum(len(forward.rows or ()) for forward in moved.forwards)
    if rows != MICRO * ROWS:
        words = say("loops.rows", rows=rows, wanted=MICRO * ROWS, micro=MICRO)
        return LoopFinding("train.accumulation", False, abs(rows / (MICRO * ROWS) - 1), words, "accumulation")
    match = _form(run)
    off = distance(moved.gradients, added(parts.put_together("right")[0]))
    counts = "+".join(str(count) for count in parts.counts)
    if match is None:
        words = say("loops.accumulation_unknown", counts=counts, apart=f"{off:.1e}")
        return LoopFinding("train.accumulation", False, off, words, "accumulation")
    if match.form == "right":
        words = say("loops.accumulated", counts=counts, apart=f"{off:.1e}") + _island(match)
        return right("accumulation", off, words)
    form = say(f"loops.form_{match.form}")
    words = say("loops.accumulation_wrong", counts=counts, form=form, same=f"{match.apart:.1e}", apart=f"{off:.1e}")
    return LoopFinding(FORMS[match.form], False, off, words, "accumulation")


def _cleared(run: _Run | None) -> LoopFinding:
    """Of the second update: whether the first one's gradient is still in it."""
    if run is None:
        return not_asked("clearing", say("loops.unknown_rows"))
    if len(run.moved) < 2:
        return not_asked("clearing", say("loops.one_update"))
    (first, second), parts = run.moved[:2], run.parts[1]

    def references(contributions: Sequence[Gradients]) -> dict[str, Gradients]:
        fresh = added(contributions)
        return {"cleared": fresh, "kept": added([fresh, first.gradients])}

    match = nearest(second.gradients, parts, references, tuple(FORMS))
    if match is None:
        # How the parts are put together is not known, so what was there before cannot be told apart from it.
        return not_asked("clearing", say("loops.clearing_unknown"))
    if match.name == "cleared":
        words = say("loops.cleared", apart=f"{match.apart:.1e}")
        return right("clearing", match.apart, words)
    off = norm_of(first.gradients) / norm_of(second.gradients)
    words = say("loops.kept", same=f"{match.apart:.1e}", off=f"{off:.0%}")
    return LoopFinding("train.gradients-kept", False, off, words, "clearing")


def clipping(loop: Loop, subject: Subject) -> LoopFinding:
    """The norm is clipped once an update, after the micro-batches are summed up.

    Asked with half the norm of the right gradient, so that there is something to clip in every part.
    """
    try:
        largest, run = _clipping_run(loop, subject, factor=0.5, scale=None)
    except NotImplementedError as reason:
        return not_asked("clipping", say("loops.cannot", reason=reason))
    if run is None:
        return not_asked("clipping", say("loops.unknown_rows"))
    gradients, parts = run.moved[0].gradients, run.parts[0]

    def references(contributions: Sequence[Gradients]) -> dict[str, Gradients]:
        whole = added(contributions)
        found = {f"once{guard}": clipped(whole, largest, guard=guard) for guard in GUARDS} | {"none": whole}
        for guard in GUARDS if len(contributions) > 1 else ():
            found[f"each{guard}"] = added([clipped(part, largest, guard=guard) for part in contributions])
            found[f"running{guard}"] = _running(contributions, largest, guard)
        return found

    match = nearest(gradients, parts, references, tuple(FORMS))
    norm = norm_of(gradients)
    if match is None:
        words = say("loops.clip_unknown", largest=f"{largest:.3g}", norm=f"{norm:.3g}")
        return LoopFinding("train.clip", False, abs(norm / largest - 1), words, "clipping")
    if match.name == "none":
        words = say("loops.no_clip", largest=f"{largest:.3g}", norm=f"{norm:.3g}")
        return not_asked("clipping", words)
    wanted = clipped(added(parts.put_together(match.form)[0]), largest)
    off = distance(gradients, wanted)
    if match.name.startswith("once"):
        words = say("loops.clipped", largest=f"{largest:.3g}", apart=f"{match.apart:.1e}") + _island(match)
        return right("clipping", match.apart, words)
    words = say("loops.clip_parts", largest=f"{largest:.3g}", norm=f"{norm:.3g}", off=f"{off:.1e}")
    return LoopFinding("train.clip-per-microbatch", False, off, words, "clipping")


def scaling(loop: Loop, subject: Subject) -> LoopFinding:
    """With a loss scale the gradient is unscaled first and clipped then.

    Asked with a scale of 1024 and three times the norm of the right gradient: there is nothing to clip, unless the norm
    is still multiplied by the scale.
    """
    try:
        largest, run = _clipping_run(loop, subject, factor=3.0, scale=SCALE)
    except NotImplementedError as reason:
        return not_asked("scaling", say("loops.cannot", reason=reason))
    return not_asked("scaling", say("loops.unknown_rows")) if run is None else _scaled(run, largest)


def _scaled(run: _Run, largest: float) -> LoopFinding:
    moved, parts = run.moved[0], run.parts[0]

    def references(contributions: Sequence[Gradients]) -> dict[str, Gradients]:
        whole = added(contributions)
        found = {"right": whole} | {f"right{guard}": clipped(whole, largest, guard=guard) for guard in GUARDS}
        for guard in GUARDS:
            early = clipped(times(whole, SCALE), largest, guard=guard)
            found[f"early{guard}"], found[f"never{guard}"] = times(early, 1 / SCALE), early
        return found | {"never": times(whole, SCALE)}

    # Micro-batches are unequal and may already be clipped, so what arrived is compared with a part of the scale.
    if norm_of(moved.arrived) < SCALE / 16 * norm_of(added(parts.put_together("right")[0])):
        return not_asked("scaling", say("loops.no_scale", scale=f"{SCALE:g}"))
    match = nearest(moved.gradients, parts, references, tuple(FORMS))
    norm = norm_of(moved.gradients)
    if match is None:
        words = say("loops.clip_unknown", largest=f"{largest:.3g}", norm=f"{norm:.3g}")
        return LoopFinding("train.clip", False, abs(norm / largest - 1), words, "scaling")
    if match.name.startswith("right"):
        words = say("loops.scaled", scale=f"{SCALE:g}", apart=f"{match.apart:.1e}") + _island(match)
        return right("scaling", match.apart, words)
    whole = added(parts.put_together(match.form)[0])
    off, wanted = distance(moved.gradients, whole), norm_of(whole)
    if match.name.startswith("early"):
        words = say("loops.clip_early", scale=f"{SCALE:g}", norm=f"{norm:.3g}", wanted=f"{wanted:.3g}")
        return LoopFinding("train.clip-before-unscale", False, off, words, "scaling")
    words = say("loops.never_unscaled", scale=f"{SCALE:g}", norm=f"{norm:.3g}", wanted=f"{wanted:.3g}")
    return LoopFinding("train.unscale-missing", False, off, words, "scaling")


def _task(subject: Subject, micro: int) -> LoopTask:
    """Two updates of so many micro-batches, without dropout."""
    return LoopTask(subject.model(), subject.batches(2 * micro), updates=2, lr=lambda _: RATE, accumulation=micro)


def _run(loop: Loop, task: LoopTask) -> _Run | None:
    """Run it; None if it read rows that nobody gave it, or none."""
    moved, rows = watch(loop, task).moved[:2], Rows([*task.batches])
    parts = [parts_of(task.model, each, rows) for each in moved]
    known = [each for each in parts if each is not None]
    return _Run(moved, known) if len(known) == len(parts) else None


def _clipping_run(loop: Loop, subject: Subject, *, factor: float, scale: float | None) -> tuple[float, _Run | None]:
    """A run that clips at `factor` times the norm of the right gradient; of one micro-batch if the loop takes no more."""
    for micro in (MICRO, 1):
        task = _task(subject, micro)
        largest = factor * norm_of(right_gradient(task.model, task.batches[:micro]))
        try:
            return largest, _run(loop, replace(task, clip=largest, scale=scale))
        except NotImplementedError:
            if micro == 1:
                raise
    raise AssertionError("unreachable")


def _form(run: _Run) -> Match | None:
    """How the first update is put together."""
    return nearest(run.moved[0].gradients, run.parts[0], lambda each: {"sum": added(each)}, tuple(FORMS))


def _running(contributions: Sequence[Gradients], largest: float, guard: float) -> Gradients:
    """The gradient of a loop that clips what it has so far after each part."""
    return reduce(
        lambda so_far, part: clipped(added([so_far, part]), largest, guard=guard),
        contributions[1:],
        clipped(contributions[0], largest, guard=guard),
    )


def _island(match: Match) -> str:
    """What is added to the words if the numbers agree, but not to a float64's last places."""
    return say("loops.island") if match.apart > EXACT else ""
