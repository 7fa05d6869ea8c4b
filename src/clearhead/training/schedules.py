"""The learning rate as a function of the number of updates, and of nothing else. Imports without torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from clearhead.messages import UserError, say

DECAYED = 0.2
"""The last part of the updates, in which `wsd` falls."""


def warmup_cosine(step: int, *, lr: float, steps: int, warmup: int, final: float) -> float:
    """The learning rate of update `step` (from 0): a straight rise, then half a cosine from `lr` down to `final`·`lr`.

    lr (step + 1) / (warmup + 1)                                   before `warmup`,
    lr (final + (1 - final) ½ (1 + cos(π (step - warmup) / (steps - warmup))))   after it.

    Source: Loshchilov and Hutter 2017 (arXiv:1608.03983), without restarts.
    """
    if step < warmup:
        return _rising(step, lr, warmup)
    progress = min(1.0, (step - warmup) / max(1, steps - warmup))
    return lr * (final + (1 - final) * 0.5 * (1 + math.cos(math.pi * progress)))


def warmup_linear(step: int, *, lr: float, steps: int, warmup: int, final: float) -> float:
    """The same rise, then a straight line from `lr` down to `final`·`lr`: lr (1 - (1 - final) (step - warmup) / (steps - warmup)).

    Source: Devlin et al. 2019 §A.2 (arXiv:1810.04805), with `final` 0.
    """
    if step < warmup:
        return _rising(step, lr, warmup)
    return lr * (1 - (1 - final) * min(1.0, (step - warmup) / max(1, steps - warmup)))


def warmup_stable_decay(step: int, *, lr: float, steps: int, warmup: int, final: float) -> float:
    """The same rise, `lr` for most of the training, and a fall in its last fifth that is steep at first.

    lr (1 - (1 - final) √((step - stable) / (steps - stable)))     from `stable` on, which is `steps` less a fifth of them.

    A training can go on from any point before the fall with another number of steps, and nothing before has changed.

    Source: Hu et al. 2024 §4 (arXiv:2404.06395) for the form; Hägele et al. 2024 §3 (arXiv:2405.18392) for the root, which
    did better than a straight line, and for a fifth.
    """
    if step < warmup:
        return _rising(step, lr, warmup)
    stable = max(warmup, steps - max(1, round(DECAYED * steps)))
    if step <= stable:
        return lr
    return lr * (1 - (1 - final) * math.sqrt(min(1.0, (step - stable) / max(1, steps - stable))))


def warmup_constant(step: int, *, lr: float, steps: int, warmup: int, final: float) -> float:
    """The same rise, then `lr`; `steps` and `final` change nothing."""
    return _rising(step, lr, warmup) if step < warmup else lr


def _rising(step: int, lr: float, warmup: int) -> float:
    return lr * (step + 1) / (warmup + 1)


SCHEDULES: dict[str, Callable[..., float]] = {
    "cosine": warmup_cosine,
    "linear": warmup_linear,
    "wsd": warmup_stable_decay,
    "constant": warmup_constant,
}


def schedule(kind: str, *, lr: float, steps: int, warmup: int, final: float) -> Callable[[int], float]:
    """From the number of an update, counted from 0, to its learning rate.

    |            | before `warmup`           | at `warmup` | between                  | at `steps` |
    |------------|---------------------------|-------------|--------------------------|------------|
    | `cosine`   | lr (step + 1)/(warmup + 1)| lr          | half a cosine            | final·lr   |
    | `linear`   | the same                  | lr          | a straight line          | final·lr   |
    | `wsd`      | the same                  | lr          | lr; in the last fifth 1-√| final·lr   |
    | `constant` | the same                  | lr          | lr                       | lr         |

    The first value is above 0. Update `steps` would be the one after the last, so that with `final` 0 no update is idle.

    Args:
        kind: a name of the table.
        lr: the highest learning rate.
        steps: updates of the whole training.
        warmup: updates in which the learning rate rises.
        final: where it ends, as a part of `lr`.

    Raises:
        UserError: if there is no such kind.
    """
    if kind not in SCHEDULES:
        raise UserError(say("training.setting", name="schedule", value=kind, wanted=" | ".join(SCHEDULES)))
    return partial(SCHEDULES[kind], lr=lr, steps=steps, warmup=warmup, final=final)
