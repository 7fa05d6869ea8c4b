"""Which keys a query sees where attention of given q, k and v says that it is causal."""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import Tensor

from clearhead.checking.kinds.attention_references import CAUSAL_FAULTS, TRIANGLES, Variant, attend, matches, triangle
from clearhead.checking.kinds.claimed import causal as claimed
from clearhead.checking.kinds.formula_stages import fault
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.sdpa_opening import SdpaCase, drawn, run
from clearhead.checking.report import Certainty, Check, Fault, Sight
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.messages import say

UPPER = r"(upper|top)[- ]left (causal|align|corner)|(causal|aligned|alignment)[^\n.]{0,24}(upper|top)[- ]left"
"""Words for a triangle that begins in the first row and column, as it is meant."""

SIZES = ((6, 6), (4, 7), (1, 5))
"""Queries and keys: as many, fewer queries, one query."""
STRESS = 2e4


def causality(case: SdpaCase, settings: Settings, base: Variant | None) -> Found:
    """The faults of what is hidden because it is later."""
    claims = bool(case.causal) or _claims(case, settings)
    nearly = base is not None and base.triangle != "all"
    if not (claims or nearly) and base is not None:
        return Found((Check("causal.future-leak", "skipped", say("sdpa.not_causal")),))
    seen = sight(case, 6, 6)
    if not (claims or nearly) and not _some_hidden(seen):
        return Found((Check("causal.future-leak", "skipped", say("sdpa.not_causal")),))
    found = Found(sight=_shown(seen))
    windowed = base is not None and base.window > 0
    for T, S in SIZES if not windowed else SIZES[:1]:
        found += _of_size(case, base, T, S)
        if found.faults:
            return found
    found += _windows(case)
    return found + _stressed(case)


def _claims(case: SdpaCase, settings: Settings) -> bool:
    """Whether the code says that it is causal, its flag apart."""
    if settings.causal is not None:
        return settings.causal
    name = str(getattr(case.case.target.kind_of, "__name__", ""))
    if re.search("causal|autoregressive|decoder", name, re.IGNORECASE) and not re.search(
        "non_?causal", name, re.IGNORECASE
    ):
        return True
    return not case.mask and claimed(case.case.target, settings) is True


def sight(case: SdpaCase, T: int, S: int, keep: Tensor | None = None) -> Tensor:
    """How much each query takes of the value of each key, (T,S): the largest over rows and heads."""
    q, k, v = drawn(2, 3, T, S, seed=3, dtype=case.case.dtype)
    v.requires_grad_(True)
    out = run(case, (q, k, v), keep, causal=True if case.causal and keep is None else None)
    found = torch.zeros(T, S)
    for row in range(T):
        slopes = torch.autograd.grad(out[:, :, row, 0].sum(), v, retain_graph=True, allow_unused=True)[0]
        if slopes is not None:
            found[row] = torch.nan_to_num(slopes).abs().amax((0, 1, 3)).float()
    return found


def _documented(case: SdpaCase) -> str:
    return str(getattr(case.case.target.kind_of, "__doc__", None) or "")


def _some_hidden(seen: Tensor) -> bool:
    later = torch.ones_like(seen, dtype=torch.bool).triu(1)
    return bool((seen[later] == 0).any())


def _shown(seen: Tensor) -> Sight:
    expected = triangle("right", *seen.shape)
    strength = seen / seen.max().clamp_min(1e-30)
    return Sight(expected.tolist(), (seen > 1e-12).tolist(), strength.tolist())


def _of_size(case: SdpaCase, base: Variant | None, T: int, S: int) -> Found:
    """What is seen with T queries and S keys."""
    with Attempt() as attempt:
        seen = sight(case, T, S) > 1e-12
        names = _named(case, base, T, S) if base is not None else ()
        if names is None or base is None:
            names = _by_sight(seen, T, S)
            certainty: Certainty = "consistent"
        else:
            certainty = "reproduced"
        if names == ("causal.top-left",) and re.search(
            UPPER, case.case.target.texts + _documented(case), re.IGNORECASE
        ):
            return Found((Check("causal.top-left", "skipped", say("sdpa.upper_left")),))
        if names:
            row, key = _example(seen, T, S)
            text = say(
                "sdpa.sees",
                queries=T,
                keys=S,
                row=row,
                first=key,
                found=int(seen[row].sum()),
                right=int(triangle("right", T, S)[row].sum()),
            )
            faults = tuple(_fault(name, text, certainty) for name in names)
            return Found(tuple(Check(each.id, "fail", text) for each in faults), faults)
        return Found(
            (
                Check(
                    "causal.future-leak" if T == S else "causal.top-left",
                    "pass",
                    say("sdpa.sees_right", queries=T, keys=S),
                ),
            )
        )
    return Found((Check("causal.top-left", "skipped", say("formula.failed", reason=attempt.reason)),))


def _fault(name: str, text: str, certainty: Certainty) -> Fault:
    return fault(name, text, "", certainty)


def _example(seen: Tensor, T: int, S: int) -> tuple[int, int]:
    """The first query and key where what is seen is not what should be."""
    wrong = (seen != triangle("right", T, S)).nonzero()
    return (int(wrong[0, 0]), int(wrong[0, 1])) if len(wrong) else (0, 0)


def _named(case: SdpaCase, base: Variant, T: int, S: int) -> tuple[str, ...] | None:
    """The causal faults of the formula that reproduces the output; None if none does."""
    qkv = drawn(3, 4, T, S, seed=4, dtype=case.case.dtype)
    with torch.no_grad():
        out = run(case, qkv, causal=True if case.causal else None).double()
    q, k, v = (t.double() for t in qkv)
    for after in (False, True):
        for name in ("right", "top-left", *TRIANGLES):
            if after and name == "all":
                continue
            variant = replace(base, triangle=name, after=after)
            if matches(out, attend(q, k, v, variant), 1e-4):
                leak = "causal.future-leak" if name == "all" and T > 1 else CAUSAL_FAULTS.get(name, "")
                return tuple(each for each in ("causal.after-softmax" if after else "", leak) if each)
    return None


def _by_sight(seen: Tensor, T: int, S: int) -> tuple[str, ...]:
    """The names that fit what is seen."""
    right = triangle("right", T, S)
    if T != S and bool((seen == triangle("top-left", T, S)).all()):
        return ("causal.top-left",)
    found = ["causal.future-leak"] if bool((seen & ~right).any()) else []
    last = torch.arange(T)
    if not bool(seen[last, last + S - T].all()):
        found.append("causal.self-masked")
    earlier = right.clone()
    earlier[last, last + S - T] = False
    if bool(earlier.any()) and not bool((seen & earlier).any()):
        found.append("causal.past-lost")
    return tuple(found)


def _windows(case: SdpaCase) -> Found:
    """A window that is asked for by an argument."""
    if not case.window:
        return Found()
    with Attempt() as attempt:
        q, k, v = drawn(1, 2, 6, 6, seed=5, dtype=case.case.dtype)
        v.requires_grad_(True)
        out = run(case, (q, k, v), causal=True if case.causal else None, extra={case.window: 3})
        slopes = torch.autograd.grad(out[0, 0, 5].sum(), v)[0]
        count = int((slopes[0, 0].abs().amax(-1) > 1e-12).sum())
        if count == 3:
            return Found((Check("window.off-by-one", "pass", say("sdpa.window", claimed=3, found=count)),))
        text = say("sdpa.window", claimed=3, found=count)
        return Found((Check("window.off-by-one", "fail", text),), (_fault("window.off-by-one", text, "consistent"),))
    return Found((Check("window.off-by-one", "skipped", say("formula.failed", reason=attempt.reason)),))


def _stressed(case: SdpaCase) -> Found:
    """Whether large scores beat what hides later keys."""
    moved = stressed(case, triangle("right", 6, 6)[None, None], None)
    if moved is None:
        return Found((Check("causal.finite-mask", "skipped", say("formula.unseen")),))
    if moved > 1e-9:
        text = say("sdpa.beaten", size=f"{STRESS:.0e}", moved=f"{moved:.2g}")
        return Found(
            (Check("causal.finite-mask", "fail", text, moved),), (_fault("causal.finite-mask", text, "consistent"),)
        )
    return Found((Check("causal.finite-mask", "pass", say("sdpa.not_beaten", size=f"{STRESS:.0e}")),))


def stressed(case: SdpaCase, visible: Tensor, keep: Tensor | None) -> float | None:
    """How far outputs move, relative to what was changed, with the values of hidden keys while scores are about 1e4; None if it cannot be told."""
    with Attempt(), torch.no_grad():
        T, S = visible.shape[-2:]
        q, k, v = drawn(3, 3, T, S, seed=6, dtype=case.case.dtype)
        q = q * STRESS
        largest = 0.0
        flag = True if case.causal and keep is None else None
        first = run(case, (q, k, v), keep, causal=flag)
        for key in range(S):
            other = v.clone()
            other[:, :, key] += 1
            change = (run(case, (q, k, other), keep, causal=flag) - first).abs().amax(-1)
            hidden = ~visible[..., key].expand(change.shape)
            if bool(hidden.any()) and bool(torch.isfinite(change[hidden]).all()):
                largest = max(largest, float(change[hidden].max()))
        return largest
    return None
