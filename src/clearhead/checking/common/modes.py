"""Whether a module does the same each time where it should, and not where dropout should be at work."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case
from clearhead.checking.common.chance import Chances, chances
from clearhead.checking.common.dropouts import dropouts
from clearhead.checking.common.trial import Trial, apart, given, output, run, same, trial
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.messages import say

REPEATS = 4
RANDOM = ("parameter.recreated", "dropout.active-in-eval", "noise.injected")


def modes(case: Case) -> Found:
    """Whether evaluation is deterministic and free of history, gradients change nothing, and dropout works where it is stated.

    Args:
        case: how the code is run.
    """
    size = trial(case)
    if size is None:
        reason = say("common.no_trial")
        return Found(tuple(Check(name, "skipped", reason) for name in (*RANDOM, "cache.stale")))
    chance = _chance(case, size)
    if chance.faults:
        # What is random at each call has no history that could be told from it.
        return chance
    return chance + _history(case, size) + _gradients(case, size) + dropouts(case, size)


def _chance(case: Case, size: Trial) -> Found:
    """Whether several calls in evaluation mode give the same."""
    module, x = case.ready(), given(case, *size)
    with torch.no_grad():
        seen = chances(lambda: run(case, module, x))
    layers = _layers_made(case, module, size, seen)
    if layers is not None:
        return layers
    outputs = [output(case, module, x) for _ in range(REPEATS)]
    gap = max(apart(outputs[0], other) for other in outputs[1:])
    asked = say("common.eval_twice", rows=size.rows, length=size.length, calls=REPEATS, gap=f"{gap:.1e}")
    if all(same(case, outputs[0], other) for other in outputs[1:]) or _has_history(case, size):
        return Found(tuple(Check(name, "pass", asked) for name in RANDOM))
    name, where, fix = _name(seen)
    return Found((Check(name, "fail", asked, gap),), (Fault(name, "consistent", asked, where, fix, gap),))


def _name(seen: Chances) -> tuple[str, str, str]:
    """What makes two calls differ: the name, the line and the remedy."""
    if seen.dropped or seen.masks:
        where = seen.dropped[0] if seen.dropped else seen.masks[0][0]
        return "dropout.active-in-eval", where, say("common.fix_eval_dropout")
    where = seen.drawn[0] if seen.drawn else ""
    return "noise.injected", where, say("common.fix_noise")


def _layers_made(case: Case, module: object, size: Trial, seen: Chances) -> Found | None:
    """The fault of layers that are made again at each call; None if there are none."""
    if not isinstance(module, nn.Module):
        return None
    with torch.no_grad():
        # Layers that are made at the first call alone, when sizes become known, are kept.
        again = chances(lambda: run(case, module, given(case, *size)))
    own = {id(parameter) for parameter in module.parameters()}
    strays = [line for key, (_, line) in again.leaves.items() if key not in own | seen.leaves.keys()]
    if not again.made and not strays:
        return None
    layer, _, where = again.made[0].partition(" ") if again.made else ("Parameter", "", strays[0])
    evidence = say("common.recreated", layer=layer, count=len(again.made) or len(strays))
    fault = Fault("parameter.recreated", "reproduced", evidence, where, say("common.fix_recreated"))
    return Found((Check("parameter.recreated", "fail", evidence, 1.0),), (fault,))


def _has_history(case: Case, size: Trial) -> bool:
    """Whether two calls of one copy differ though each draws the same random numbers, and two copies do not."""
    x = given(case, *size)
    one, other = case.ready(), case.ready()
    first, second = output(case, one, x, seed=1), output(case, one, x, seed=1)
    fresh = output(case, other, x, seed=1)
    return same(case, first, fresh) and not same(case, first, second)


def _history(case: Case, size: Trial) -> Found:
    """Whether what was run before changes what comes now."""
    x, earlier = given(case, *size), given(case, size.rows, size.length, 7)
    fresh = output(case, case.ready(), x, seed=1)
    used = case.ready()
    with Attempt() as attempt:
        output(case, used, earlier, seed=1)
        after = output(case, used, x, seed=1)
        return _stale(case, size, fresh, after)
    evidence = say("common.stale_raises", reason=attempt.reason)
    fault = Fault("cache.stale", "consistent", evidence, "", say("common.fix_stale"))
    return Found((Check("cache.stale", "fail", evidence, 1.0),), (fault,))


def _stale(case: Case, size: Trial, fresh: Tensor, after: Tensor) -> Found:
    gap = apart(fresh, after)
    evidence = say("common.stale", rows=size.rows, length=size.length, gap=f"{gap:.1e}")
    if same(case, fresh, after):
        return Found((Check("cache.stale", "pass", evidence, gap),))
    fault = Fault("cache.stale", "consistent", evidence, "", say("common.fix_stale"), gap)
    return Found((Check("cache.stale", "fail", evidence, gap),), (fault,))


def _gradients(case: Case, size: Trial) -> Found:
    """A note if the output is another one where gradients are recorded, or in training mode without any chance."""
    x = given(case, *size)
    plain = output(case, case.ready(), x, seed=1)
    notes = []
    with Seeded(1), Attempt():
        recorded = run(case, case.ready(), x).detach()
        if not same(case, plain, recorded):
            notes.append(say("common.gradients_differ", gap=f"{apart(plain, recorded):.1e}"))
    return Found(notes=tuple(notes))
