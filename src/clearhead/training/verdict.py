"""Is my loss normal? From the course of a training to findings in words, by rules that are stated here.

L is the lowest validation loss, the one of the checkpoint that is used; U = ln V; u and b are what tables of single tokens
and of token pairs have on the same text; H is its entropy, if known. The training loss is the mean of the last updates'.
Exactly one finding says where the loss stands, the first that holds:

| finding         | rule                                                                                          |
|-----------------|-----------------------------------------------------------------------------------------------|
| `no_number`     | no evaluation gave a finite number                                                            |
| `impossible`    | L < `BELOW` H: a leak between train and validation, or targets that are not moved by one      |
| `near`          | L - H ≤ `NEAR` (b - H)                                                                        |
| `too_good`      | H unknown, L < `TOO_GOOD` b                                                                   |
| `begun`         | L ≥ U, fewer than `ENOUGH` updates                                                            |
| `broken`        | L ≥ U                                                                                         |
| `beyond`        | L ≤ b and L ≤ u                                                                               |
| `between`       | b < L < (1 - `SAME`) u                                                                        |
| `unigram`       | L ≤ (1 + `SAME`) u; without a b (hidden tokens) L > (1 - `SAME`) u, below that `beyond_single`|
| `guessing`      | (1 + `SAME`) u < L < U                                                                        |
| `learnt`        | no table is known, L < U                                                                      |

Any number of others say what went wrong. All but the first need `ENOUGH` updates; rises and gaps also more than `SMALL` U:

| finding         | rule                                                                                          |
|-----------------|-----------------------------------------------------------------------------------------------|
| `nonfinite`     | an update's loss was no finite number, or that of more than `SKIPPED` of all gradients          |
| `climbed`       | the smoothed training loss was above the first update's by more than `RISEN` U                |
| `diverged`      | else: the training loss ends above its lowest by more than `RISEN` U                          |
| `jumps`         | else: at least `JUMPS` jumps (`Course.jumps`) of more than `JUMP` U                           |
| `norms`         | else: of the gradients after the first tenth, most are longer than `FAR` times the clip       |
| `rate`          | else: L is not good (see `healthy`), at a learning rate above `HIGH` times the usual one         |
| `overfitting`   | the last validation loss is above L by more than `ROSE` L, while the training loss fell        |
| `gap`           | else: the last validation loss is above the training loss by more than `APART` of itself      |
| `little_data`   | the data was read more than `MANY` times, and the gap is more than `APART` / 4                |
| `easier`        | the training loss is above the last validation loss by more than `EASIER` of itself           |
| `lr_low`        | the loss still falls (as below), at a learning rate below `LOW` of the usual one              |
| `unfinished`    | else: twice the steps would gain (`Course.gain_of_doubling`) more than `WORTH` (U - L), and more |
|                 | than two standard errors; not where the learning rate is too high or it overfits               |

`healthy` is said if nothing went wrong and L is good: `beyond`, `beyond_single`, `near` or `learnt`. If nothing went wrong and L is
not good, it is said what to try.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from clearhead.messages import say
from clearhead.training.course import Course, course_of
from clearhead.training.standing import ENOUGH, Finding, Known, shown, standing_of

__all__ = ["Finding", "Known", "Verdict", "judged"]

SKIPPED = 0.05
"""A float16 training finds its loss scale by leaving out some updates at its beginning."""
RISEN = 0.1
"""A tenth of all there is to learn; batches differ by less once ten are averaged."""
JUMPS, JUMP = 3, 0.05
"""One leap may be an odd document."""
FAR = 10.0
"""Ten times the clip: then nine tenths of every gradient are cut away. At the usual rates norms come near the clip soon."""
ROSE = 0.02
"""The validation text is the same each time, so a rise of a fiftieth is one."""
APART = 0.2
"""A default training on a megabyte of text is about a tenth apart."""
MANY = 32
"""`train` itself reads a text 30 times at most; a little more is rounding."""
SMALL = 0.01
"""Of ln V: differences of losses that are smaller are of no consequence, however small the losses themselves are."""
EASIER = 0.25
"""Dropout of 0.2 makes training losses about a tenth higher."""
LOW, HIGH = 0.2, 10.0
"""Of the usual learning rate; a third or three times as much is still a matter of taste."""
WORTH = 0.05
"""Of what was learnt; for less nobody waits twice as long."""

GOOD = ("beyond", "beyond_single", "near", "learnt")
TOO_HIGH = ("nonfinite", "climbed", "diverged", "jumps", "norms", "rate")


@dataclass(frozen=True)
class Verdict:
    """What can be said of a training."""

    findings: tuple[Finding, ...]
    """Where the loss stands, then what went wrong, or that nothing did."""
    train: float
    """The training loss at the end; NaN without updates."""
    last: float
    """The last validation loss; NaN if none was a number."""

    @property
    def gap(self) -> float:
        """Validation minus training loss at the end."""
        return self.last - self.train

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the findings."""
        return tuple(each.name for each in self.findings)


def judged(lines: Iterable[Mapping[str, Any]], known: Known) -> Verdict:
    """Judge a training by the lines of its `metrics.jsonl`, by the rules of this module.

    Args:
        lines: one an update, as dictionaries: `step`, `loss`, `lr`, `grad_norm`, and `val_loss` where it was evaluated.
        known: what they are measured against.
    """
    course = course_of(lines)
    last = course.evaluations[-1][1] if course.evaluations else math.nan
    standing = standing_of(course, known)
    wrong = list(_rate_too_high(course, known, standing.name))
    if course.steps.size >= ENOUGH and course.lowest is not None:
        wrong += _by_heart(course, known, last)
        if not {each.name for each in wrong} & {*TOO_HIGH, "overfitting"}:
            wrong += _still_falling(course, known)
    if not wrong:
        standing, *wrong = _nothing_wrong(course, known, standing)
    return Verdict((standing, *wrong), course.tail, last)


def _nothing_wrong(course: Course, known: Known, standing: Finding) -> list[Finding]:
    """Where the loss stands, and that the course is healthy, or what to try."""
    if standing.name in GOOD:
        gain = shown(max(0.0, course.gain_of_doubling()[0]))
        healthy = Finding("healthy", say("closing.healthy", gain=gain))
        return [standing, healthy] if course.steps.size >= ENOUGH else [standing]
    if standing.name not in ("begun", "broken", "guessing", "unigram", "between"):
        return [standing]
    if course.steps.size < ENOUGH or standing.name == "between":
        advice = say("closing.go_on", more=max(2 * int(course.steps[-1]), 1000))
    else:
        usual = known.usual_lr
        lr = _lower(course, known, 10) if usual is None or usual == course.highest_rate else f"{usual:.2g}"
        advice = say("closing.another_rate", lr=lr)
    return [Finding(standing.name, f"{standing.sentence} {advice}")]


def _rate_too_high(course: Course, known: Known, standing: str) -> Iterator[Finding]:
    """Updates without a number; and of the signs of a learning rate too high the plainest."""
    if np.isnan(course.losses).any() or course.lost > SKIPPED * course.steps.size:
        steps = course.steps.size
        yield Finding(
            "nonfinite", say("closing.nonfinite", count=course.lost, steps=steps, lr=_lower(course, known, 3))
        )
    smooth = course.smooth
    if course.steps.size < ENOUGH or not smooth.size:
        return
    first, lowest = course.losses[0], float(smooth.min())
    jumps = course.jumps(JUMP * known.uniform)
    norms = course.norms[course.steps.size // 10 :]
    share = float((norms > FAR * known.clip).mean())
    if smooth.max() - first > RISEN * known.uniform:
        highest = shown(float(smooth.max()))
        climbed = say("closing.climbed", first=shown(first), highest=highest, lr=_lower(course, known, 10))
        yield Finding("climbed", climbed)
    elif course.tail - lowest > RISEN * known.uniform:
        diverged = say("closing.diverged", lowest=shown(lowest), last=shown(course.tail), lr=_lower(course, known, 3))
        yield Finding("diverged", diverged)
    elif len(jumps) >= JUMPS:
        yield Finding("jumps", say("closing.jumps", count=len(jumps), step=jumps[0], lr=_lower(course, known, 3)))
    elif share > 0.5:
        norm, clip, times = f"{np.nanmedian(norms):.3g}", f"{known.clip:g}", f"{FAR:g}"
        sentence = say(
            "closing.norms", share=f"{share:.0%}", times=times, clip=clip, norm=norm, lr=_lower(course, known, 3)
        )
        yield Finding("norms", sentence)
    elif known.usual_lr is not None and standing not in GOOD and course.highest_rate > HIGH * known.usual_lr:
        usual = f"{known.usual_lr:.2g}"
        yield Finding("rate", say("closing.rate", lr=f"{course.highest_rate:.2g}", usual=usual))


def _by_heart(course: Course, known: Known, last: float) -> Iterator[Finding]:
    """What training and validation say together."""
    assert course.lowest is not None
    (step, lowest), train = course.lowest, course.tail
    fall = course.until(step).tail - train
    gap = last - train if known.comparable else 0.0
    small = SMALL * known.uniform
    if last - lowest > max(ROSE * lowest, small) and fall > 0:
        rise = say("closing.overfitting", step=step, rise=shown(last - lowest), last=shown(last), fall=shown(fall))
        yield Finding("overfitting", " ".join([rise, _against(known)]))
    elif gap > max(APART * last, small):
        yield Finding("gap", " ".join([say("closing.gap", gap=shown(gap)), _against(known)]))
    if known.epochs > MANY and gap > max(APART / 4 * last, small):
        steps = int(course.steps[-1] * MANY / known.epochs)
        epochs = f"{known.epochs:.0f}"
        yield Finding("little_data", say("closing.little_data", epochs=epochs, most=MANY, steps=steps))
    if -gap > max(EASIER * train, small):
        yield Finding("easier", say("closing.easier", gap=shown(-gap)))


def _against(known: Known) -> str:
    """What helps against learning by heart."""
    if known.dropout is None or known.dropout >= 0.4:
        return say("closing.add_text")
    return say("closing.add_dropout", dropout=f"{known.dropout + 0.2:.1f}")


def _still_falling(course: Course, known: Known) -> Iterator[Finding]:
    """Whether more updates are worth their time."""
    assert course.lowest is not None
    gain, error = course.gain_of_doubling()
    if gain <= max(WORTH * max(0.0, known.uniform - course.lowest[1]), 2 * error):
        return
    highest = course.highest_rate
    if known.usual_lr is not None and highest < LOW * known.usual_lr:
        usual = f"{known.usual_lr:.2g}"
        yield Finding("lr_low", say("closing.lr_low", lr=f"{highest:.2g}", usual=usual))
    else:
        more = 2 * int(course.steps[-1])
        yield Finding("unfinished", say("closing.unfinished", gain=shown(gain), more=more))


def _lower(course: Course, known: Known, times: float) -> str:
    """A learning rate so many times lower, with one digit; the usual one if that is lower still."""
    lower = course.highest_rate / times
    return f"{lower if known.usual_lr is None else min(lower, known.usual_lr):.1g}"
