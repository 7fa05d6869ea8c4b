"""Dropout in training: at work where it is stated, and what it keeps made larger."""

from __future__ import annotations

import copy
import dataclasses
import re
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case
from clearhead.checking.common.chance import Chances, chances
from clearhead.checking.common.trial import SAME, Trial, apart, given, run
from clearhead.checking.constructing import CONFIGS, NAMES
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault, Verdict
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.target import Target
from clearhead.messages import say

SHARE = 0.37
"""The p that is tried: neither it, nor 1 - p, nor 1 / (1 - p) is a number that code multiplies by for another reason."""

SEEDS = (11, 12, 13, 14)
RATE = r"dropout|^p_?drop|_?pdrop$|^drop(_?(rate|prob|p))?$"
"""Names of a rate; layerdrop and drop_path leave whole layers out, and say nothing of single values."""


def dropouts(case: Case, size: Trial) -> Found:
    """Whether stated dropout is at work in training, and keeps the expectation.

    Args:
        case: how the code is run.
        size: of the inputs.
    """
    if not case.target.is_module:
        return Found((Check("dropout.never-active", "skipped", say("common.no_modes")),))
    made, stated = _with_dropout(case)
    if not stated or _inherited(case.target):
        return Found((Check("dropout.never-active", "skipped", say("common.no_dropout")),))
    with Attempt() as attempt:
        return _active(case, size, made, stated) + _rescaled(case, size, made)
    return Found((Check("dropout.never-active", "skipped", say("common.train_raises", reason=attempt.reason)),))


def _with_dropout(case: Case) -> tuple[nn.Module, str]:
    """The module in training mode with a large share of dropout, and where it states dropout; "" if it states none."""
    rebuilt, name = _rebuilt(case.target)
    made = case.target.make() if rebuilt is None else rebuilt
    stated = _strengthened(made) or name
    return made.to(case.dtype).train(), stated


def _rebuilt(target: Target) -> tuple[nn.Module | None, str]:
    """The class built anew with a large share of dropout, if its constructor takes one; the name of that parameter."""
    rates = [name for name, value in target.values.items() if _is_rate(name, value)]
    configs = [name for name in target.values if name in CONFIGS]
    if not rates and not configs:
        return None, ""
    # A rate in a configuration is none that this very class states: it may be meant for another one.
    values = target.values | dict.fromkeys(rates, SHARE) | {name: _config(target.values[name]) for name in configs}
    with Seeded(), Attempt():
        made = target.kind_of(**values)
        return (made, rates[0] if rates else "") if isinstance(made, nn.Module) else (None, "")
    return None, ""


def _inherited(target: Target) -> bool:
    """Whether the constructor is that of a base class whose forward was replaced: its dropout may have been left behind on purpose."""
    kinds = target.kind_of.__mro__
    built = next((index for index, kind in enumerate(kinds) if "__init__" in vars(kind)), 0)
    runs = next((index for index, kind in enumerate(kinds) if "forward" in vars(kind)), 0)
    return runs < built


def _is_rate(name: str, value: Any) -> bool:
    """Whether a constructor's parameter is a rate of dropout."""
    known = name in NAMES["dropout"] or re.search(RATE, name) is not None
    real = isinstance(value, float) and 0 <= value < 1
    return known and (real or (value == 0 and not isinstance(value, bool) and isinstance(value, int)))


def _config(config: Any) -> Any:
    """A copy of a configuration with a large share under every name of dropout."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        fields = [field.name for field in dataclasses.fields(config) if field.init]
        return dataclasses.replace(config, **{name: SHARE for name in fields if _is_rate(name, getattr(config, name))})
    if isinstance(config, dict):
        return config | {name: SHARE for name, value in config.items() if _is_rate(str(name), value)}
    made = copy.copy(config)
    for name, value in list(getattr(made, "__dict__", {}).items()):
        if _is_rate(name, value):
            setattr(made, name, SHARE)
    return made


def _strengthened(module: nn.Module) -> str:
    """Raises every share above 0 that a part of the module holds; where the first of them is held, "" if there is none."""
    found = ""
    for path, part in module.named_modules():
        for name, value in list(vars(part).items()):
            rate = name == "p" if isinstance(part, nn.modules.dropout._DropoutNd) else re.search(RATE, name)
            if rate and isinstance(value, float) and 0 < value < 1:
                setattr(part, name, SHARE)
                found = found or (f"{path}.{name}".strip(".") if name != "p" else path)
    return found


def _active(case: Case, size: Trial, made: nn.Module, stated: str) -> Found:
    """Whether several calls in training differ, in outputs or in gradients."""
    outcomes = [_outcome(case, size, made, seed) for seed in SEEDS]
    gap = max(apart(one, other) for found in outcomes[1:] for one, other in zip(outcomes[0], found, strict=True))
    evidence = say("common.train_differs", stated=stated, share=SHARE, calls=len(SEEDS), gap=f"{gap:.1e}")
    if gap > SAME[torch.float64]:
        return Found((Check("dropout.never-active", "pass", evidence, gap),))
    fault = Fault("dropout.never-active", "consistent", evidence, stated, say("common.fix_never_active"))
    return Found((Check("dropout.never-active", "fail", evidence, 1.0),), (fault,))


def _outcome(case: Case, size: Trial, made: nn.Module, seed: int) -> list[Tensor]:
    """The output and the gradients: where a projection is zero at the start, dropout shows in gradients alone."""
    with Seeded(seed), torch.enable_grad():
        found = run(case, made, given(case, *size))
        if not found.requires_grad:
            return [found.detach()]
        drawn = torch.Generator().manual_seed(3)
        weights = torch.randn(found.shape, generator=drawn, dtype=torch.float64).to(found.dtype)
        wanted = [parameter for parameter in made.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad((found * weights).sum(), wanted, allow_unused=True)
    return [found.detach(), *(each for each in gradients if each is not None)]


def _rescaled(case: Case, size: Trial, made: nn.Module) -> Found:
    """Whether what a random mask of ones and zeros keeps is made larger by 1 / (1 - p), there or by 1 - p in evaluation."""
    x = given(case, *size)
    with torch.no_grad(), Seeded(21):
        trained = chances(lambda: run(case, made, x))
        evaluated = chances(lambda: run(case, made.eval(), x))
    if not trained.masks:
        verdict: Verdict = "pass" if trained.dropped else "skipped"
        return Found((Check("dropout.no-rescale", verdict, say("common.no_masks")),))
    wrong = [(line, kept) for line, kept in trained.masks if not _makes_up(kept, trained, evaluated)]
    if not wrong:
        return Found((Check("dropout.no-rescale", "pass", say("common.rescaled")),))
    line, kept = wrong[0]
    evidence = say("common.no_rescale", share=f"{1 - kept:.2f}", kept=f"{kept:.2f}", line=line)
    fault = Fault("dropout.no-rescale", "reproduced", evidence, line, say("common.fix_rescale"), 1 - kept)
    return Found((Check("dropout.no-rescale", "fail", evidence, 1 - kept),), (fault,))


def _makes_up(kept: float, *seen: Chances) -> bool:
    """Whether some number that scales is the share that is kept, or one over it."""
    if not 0 < kept < 1:
        return True
    return any(
        abs(scale - wanted) < 1e-4 * wanted for each in seen for scale in each.scales for wanted in (kept, 1 / kept)
    )
