"""Is the course of a training right: learning rates, decay groups, and the modes of the model's parts?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torch import Tensor

from clearhead.checking.loop_kinds import Loop, LoopFinding, LoopTask, not_asked, right
from clearhead.checking.loop_subject import Subject
from clearhead.checking.loop_watch import Forward, Seen, is_training, watch
from clearhead.messages import say

UPDATES, MICRO = 9, 3
SAME_RATE = 1e-12
DECAY = 0.1
DROPOUT = 0.5


def rate(update: int) -> float:
    """The schedule that a loop is asked for: no two updates have the same rate, and it goes on for ever."""
    return 1e-3 / (1 + update)


def schedule(loop: Loop, subject: Subject) -> LoopFinding:
    """The learning rate is a function of the number of updates alone.

    The same number of updates is asked for with one and with three micro-batches each: the rates must be the same. A
    loop may have a schedule of its own; the rates of the run with three are then looked for in the run with one.
    """
    try:
        alone, several = (_rates(loop, subject, micro) for micro in (1, MICRO))
    except NotImplementedError as reason:
        return not_asked("schedule", say("loops.cannot", reason=reason))
    if len(alone) != len(several):
        words = say("loops.updates", alone=len(alone), several=len(several), micro=MICRO)
        return LoopFinding("train.schedule", False, abs(len(several) / len(alone) - 1), words, "schedule")
    if len(set(alone)) == 1 and len(set(several)) == 1:
        return not_asked("schedule", say("loops.constant_rate", lr=f"{alone[0][0]:.3g}"))
    largest = max(max(rates) for rates in alone)
    off = max(abs(one - other) for pair in zip(alone, several, strict=True) for one, other in zip(*pair, strict=True))
    first, last = f"{alone[0][0]:.3g}", f"{alone[-1][0]:.3g}"
    if off <= SAME_RATE * largest:
        words = say("loops.rates", updates=len(alone), micro=MICRO, first=first, last=last)
        return right("schedule", off / largest, words)
    if any(_steps_with_parts(alone, several, shift) for shift in range(MICRO + 1)):
        words = say("loops.rates_of_parts", micro=MICRO, updates=len(alone), last=last, found=f"{several[-1][0]:.3g}")
        return LoopFinding("train.schedule-per-microbatch", False, off / largest, words, "schedule")
    words = say("loops.rates_differ", micro=MICRO, off=f"{off / largest:.1e}")
    return LoopFinding("train.schedule", False, off / largest, words, "schedule")


Rates = tuple[float, ...]


def _rates(loop: Loop, subject: Subject, micro: int) -> list[Rates]:
    """The rates of all groups at each update."""
    batches = subject.batches(UPDATES * micro)
    task = LoopTask(subject.model(), batches, updates=UPDATES, lr=rate, accumulation=micro)
    return [tuple(group.lr for group in moved.groups) for moved in watch(loop, task).moved]


def _steps_with_parts(alone: Sequence[Rates], several: Sequence[Rates], shift: int) -> bool:
    """Whether update u has the rate of update k · u + shift, as far as that one is known."""
    known = [(found, MICRO * update + shift) for update, found in enumerate(several)]
    return all(found == alone[place] for found, place in known if place < len(alone))


def groups(loop: Loop, subject: Subject) -> list[LoopFinding]:
    """Weight decay is for matrices; every parameter is in one group, gets a gradient and moves.

    Whether an embedding decays is a choice. That a bias or the weight of a norm does is named, for it has no reason:
    its size says nothing about how complicated the function is, and a norm's weight is drawn to 0.
    """
    task = LoopTask(subject.model(), subject.batches(2), updates=2, lr=lambda _: 1e-3, weight_decay=DECAY)
    begun = {name: parameter.detach().clone() for name, parameter in task.model.named_parameters()}
    try:
        seen = watch(loop, task)
    except NotImplementedError as reason:
        return [not_asked("groups", say("loops.cannot", reason=reason))]
    shapes = {name: parameter.dim() for name, parameter in begun.items()}
    held = [(name, group.weight_decay) for group in seen.moved[0].groups for name in group.names]
    found = list(_not_trained(seen, {name for name, _ in held}, begun))
    twice = [name for name, times in Counter(name for name, _ in held).items() if times > 1]
    if twice:
        words = say("loops.twice", count=len(twice), names=_listed(twice))
        found.append(LoopFinding("parameter.twice", False, float(len(twice)), words, "groups"))
    decayed = [name for name, decay in held if decay and shapes[name] < 2]
    if decayed:
        largest = max(decay for name, decay in held if name in decayed)
        words = say("loops.decayed", count=len(decayed), names=_listed(decayed), decay=f"{largest:g}")
        found.append(LoopFinding("train.decay-on-norms", False, largest, words, "groups"))
    matrices = sum(decay != 0 for name, decay in held)
    words = say("loops.groups", count=len(held), groups=len(seen.moved[0].groups), decayed=matrices)
    return found or [right("groups", 0.0, words)]


def _not_trained(seen: Seen, held: set[str], begun: dict[str, Tensor]) -> list[LoopFinding]:
    """The finding of parameters that no optimiser holds, that never get a gradient, or that do not move."""
    ends = dict(seen.model.named_parameters())
    missing = [name for name in begun if name not in held]
    gradients = {name for moved in seen.moved for name, gradient in moved.gradients.items() if gradient.any()}
    still = [name for name in begun if name in held and (name not in gradients or ends[name].equal(begun[name]))]
    if not missing and not still:
        return []
    words = say("loops.unused", missing=_listed(missing), still=_listed(still))
    return [LoopFinding("parameter.unused", False, float(len(missing + still)), words, "groups")]


def modes(loop: Loop, subject: Subject) -> list[LoopFinding]:
    """Dropout is active when the loop trains, not when it evaluates, and again after it.

    The flags of all parts of the model are read at each forward.
    """
    task = LoopTask(
        subject.model(DROPOUT),
        subject.batches(4),
        updates=4,
        lr=rate,
        evaluate_every=2,
        validation=subject.batches(2, first=100),
    )
    try:
        seen = watch(loop, task)
    except NotImplementedError as reason:
        return [not_asked("modes", say("loops.cannot", reason=reason))]
    if any(forward.rows is None for forward in seen.forwards):
        return [not_asked("modes", say("loops.unknown_rows"))]
    training = sum(len(batch.inputs) for batch in task.batches)
    trains = [is_training(forward, training) for forward in seen.forwards]
    scored = [forward for forward, train in zip(seen.forwards, trains, strict=True) if not train]
    learnt = [forward for forward, train in zip(seen.forwards, trains, strict=True) if train]
    first = trains.index(False) if scored else len(trains)
    found = [
        _asleep("dropout.never-active", learnt[:first], len(learnt)),
        _asleep("train.eval-left-on", learnt[first:], len(learnt))
        if not any(each.asleep for each in learnt[:first])
        else None,
        _awake(scored),
    ]
    faults = [finding for finding in found if finding is not None]
    if faults:
        return faults
    if not scored:
        return [not_asked("modes", say("loops.no_evaluation", forwards=len(learnt)))]
    return [right("modes", 0.0, say("loops.modes", forwards=len(learnt), scored=len(scored)))]


def _asleep(fault: str, forwards: Sequence[Forward], all_of_them: int) -> LoopFinding | None:
    """A finding if parts of the model are in evaluation mode in forwards of the training."""
    wrong = [forward for forward in forwards if forward.asleep]
    if not wrong:
        return None
    share, part = len(wrong) / all_of_them, wrong[0].asleep[0]
    update, count = wrong[0].updates + 1, len(wrong)
    if fault == "train.eval-left-on":
        words = say("loops.eval_left_on", count=count, forwards=all_of_them, part=part, update=update)
    else:
        words = say("loops.never_trains", count=count, forwards=all_of_them, part=part, update=update)
    return LoopFinding(fault, False, share, words, "modes")


def _awake(scored: Sequence[Forward]) -> LoopFinding | None:
    """A finding if the model is in training mode in forwards of an evaluation."""
    wrong = [forward for forward in scored if not forward.asleep]
    if not wrong:
        return None
    words = say("loops.dropout_in_evaluation", count=len(wrong), forwards=len(scored))
    return LoopFinding("dropout.active-in-eval", False, len(wrong) / len(scored), words, "modes")


def _listed(names: Sequence[str], most: int = 4) -> str:
    """The first few names, and how many more there are."""
    more = f" … +{len(names) - most}" if len(names) > most else ""
    return (", ".join(names[:most]) or "—") + more
