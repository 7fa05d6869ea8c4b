"""Is resumption exact? A loop is killed and goes on in what looks like another process."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from clearhead.checking.loop_course import DROPOUT, rate
from clearhead.checking.loop_kinds import Loop, LoopFinding, LoopTask, not_asked, right
from clearhead.checking.loop_subject import Subject
from clearhead.checking.loop_watch import Moved, Seen, watch
from clearhead.messages import say

UPDATES, EVERY = 5, 2
"""Updates of the training, and after how many it saves: it is killed in its third and in its fifth update."""
SEEDS = (11, 23, 47)
"""Of the random numbers of the processes."""


@dataclass(frozen=True)
class _Restart:
    """What went on after a kill, and what it should have been."""

    done: int
    """Updates that were saved."""
    found: list[Moved]
    wanted: list[Moved]
    """Of the run that nobody killed, from there on."""


def resume(loop: Loop, subject: Subject) -> list[LoopFinding]:
    """N updates = k + kill + restart + N - k, bit for bit, and again after a second kill.

    A restart has other weights and other random numbers until it loads what was saved. If the weights at the end are
    not those of a run that nobody killed, what the restart read and held at its very first forward and update is
    compared with that run, before one difference causes others: rows, random numbers, the optimiser's state, rates.

    Returns:
        A finding for each thing that was not restored, or one if all is right.
    """
    task = LoopTask(subject.model(DROPOUT), subject.batches(UPDATES), updates=UPDATES, lr=rate, save_every=EVERY)
    with tempfile.TemporaryDirectory() as name:
        whole, parts = Path(name, "whole"), Path(name, "parts")
        whole.mkdir()
        parts.mkdir()
        try:
            undisturbed = watch(loop, replace(task, folder=whole), seed=SEEDS[0])
            if not any(whole.iterdir()):
                return [not_asked("resume", say("loops.nothing_saved"))]
            again = replace(task, folder=parts)
            runs = [
                watch(loop, replace(again, model=subject.model(DROPOUT)), seed=SEEDS[0], die_after=EVERY),
                watch(loop, _restarted(again, subject), seed=SEEDS[1], die_after=EVERY),
                watch(loop, _restarted(again, subject), seed=SEEDS[2]),
            ]
        except NotImplementedError as reason:
            return [not_asked("resume", say("loops.cannot", reason=reason))]
    return _compared(undisturbed, runs)


def _restarted(task: LoopTask, subject: Subject) -> LoopTask:
    return replace(task, model=subject.model(DROPOUT, other=True), resume=True)


def _compared(undisturbed: Seen, runs: list[Seen]) -> list[LoopFinding]:
    """The findings about the restarts, of the first that is not right."""
    off = _apart(_ends(undisturbed), _ends(runs[-1]))
    if off == 0:
        words = say("loops.resumed", updates=UPDATES, every=EVERY, kills=len(runs) - 1)
        return [right("resume", 0.0, words)]
    if (apart := _parted(undisturbed.moved, runs[0].moved)) != 0:
        words = say("loops.unrepeatable", apart=f"{apart:.1e}")
        return [LoopFinding("resume.mismatch", False, off, words, "resume")]
    for number, run in enumerate(runs[1:], 1):
        restart = _Restart(EVERY * number, run.moved, undisturbed.moved[EVERY * number :])
        if found := _not_restored(restart, off):
            return found
        if _parted(restart.wanted, restart.found) != 0:
            break
    words = say("loops.resume_unknown", off=f"{off:.1e}", updates=UPDATES)
    return [LoopFinding("resume.mismatch", False, off, words, "resume")]


def _parted(wanted: list[Moved], found: list[Moved]) -> float:
    """How far two runs are apart in the weights and gradients of the updates that both have."""
    pairs = list(zip(wanted, found, strict=False))
    weights = (_apart(one.before, other.before) for one, other in pairs)
    gradients = (_apart(one.gradients, other.gradients) for one, other in pairs)
    return max((*weights, *gradients), default=math.inf)


def _not_restored(restart: _Restart, off: float) -> list[LoopFinding]:
    """A finding for each thing that the first update after a kill shows not to be what was saved."""
    if not restart.found:
        words = say("loops.resume_stopped", done=restart.done, updates=UPDATES)
        return [LoopFinding("resume.mismatch", False, off, words, "resume")]
    found, wanted = restart.found[0], restart.wanted[0]
    reads, read = (
        [forward.rows for moved in each for forward in moved.forwards] for each in (restart.found, restart.wanted)
    )
    said, number = [], f"{off:.1e}"
    if (weights := _apart(wanted.before, found.before)) != 0:
        words = say("loops.resume_weights", done=restart.done, apart=f"{weights:.1e}", off=number)
        said.append(LoopFinding("resume.weights", False, off, words, "resume"))
    if reads != read[: len(reads)]:
        words = say("loops.resume_data", done=restart.done, rows=_rows(found), wanted=_rows(wanted), off=number)
        said.append(LoopFinding("resume.data", False, off, words, "resume"))
    if lost := [name for name, state in wanted.state.items() if not _same_state(state, found.state.get(name, {}))]:
        words = say("loops.resume_optimizer", done=restart.done, count=len(lost), name=lost[0], off=number)
        said.append(LoopFinding("resume.optimizer", False, off, words, "resume"))
    if [group.lr for group in found.groups] != [group.lr for group in wanted.groups]:
        rates = [f"{moved.groups[0].lr:.3g}" for moved in (found, wanted)]
        words = say("loops.resume_schedule", done=restart.done, lr=rates[0], wanted=rates[1], off=number)
        said.append(LoopFinding("resume.schedule", False, off, words, "resume"))
    if any(
        not torch.equal(one.random, other.random)
        for one, other in zip(found.forwards[:1], wanted.forwards[:1], strict=False)
    ):
        words = say("loops.resume_random", done=restart.done, off=number)
        said.append(LoopFinding("resume.rng", False, off, words, "resume"))
    return said


def _rows(moved: Moved) -> str:
    """Which rows an update read, counted from 1."""
    return ", ".join("?" if rows is None else str([row + 1 for row in rows]) for rows in _read(moved))


def _read(moved: Moved) -> list[tuple[int, ...] | None]:
    return [forward.rows for forward in moved.forwards]


def _ends(seen: Seen) -> Mapping[str, Tensor]:
    return {name: parameter.detach() for name, parameter in seen.model.named_parameters()}


def _apart(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> float:
    """The largest difference of any value; a NaN counts as infinite."""
    largest = max((tensor - other[name]).abs().max().item() for name, tensor in one.items())
    return math.inf if math.isnan(largest) else largest


def _same_state(wanted: Mapping[str, object], found: Mapping[str, object]) -> bool:
    """Whether an optimiser holds the same for a parameter; numbers and tensors of one value are the same."""
    if wanted.keys() != found.keys():
        return False
    return all(_equal(value, found[key]) for key, value in wanted.items())


def _equal(one: object, other: object) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one.double(), other.double())
    return bool(one == other)
