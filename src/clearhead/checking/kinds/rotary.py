"""The kind `rotary`: q and k turned by their positions, so that their product depends on the distance alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.common.everything import everything
from clearhead.checking.kinds.kind import Found, Kind
from clearhead.checking.kinds.norm_claims import failed, passed, skipped, with_common
from clearhead.checking.kinds.rotary_calls import open_rotary
from clearhead.checking.kinds.rotary_case import HEADS, RotaryCase, matrices
from clearhead.checking.kinds.rotary_frequencies import frequencies
from clearhead.checking.kinds.rotary_pairs import Pairs, pairs_of, unequal
from clearhead.checking.kinds.rotary_places import place_of_turn
from clearhead.checking.kinds.rotary_words import said_pairs
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.watch import Record, watched
from clearhead.messages import say

LENGTH = 11
AFTER = ("rotary.not-relative", "rotary.pairing", "rotary.base", "rotary.low-precision", "position.offset")


def check_rotary(case: RotaryCase, settings: Settings) -> Found:
    """Turned along positions, both q and k, v not, by the distance alone, with the stated pairs, base and positions."""
    return with_common(_own(case), everything(case.case, settings))


def _own(case: RotaryCase) -> Found:
    record = _recorded(case)
    where = place_of_turn(record)
    found = _axis(case, where) + _values(case, where)
    if any(fault.id == "rotary.axis" for fault in found.faults):
        return found + skipped(AFTER, say("turn.after_axis"))
    tolerance = 1e-6 if case.case.dtype == torch.float64 else 1e-4
    q, k = matrices(case, LENGTH)
    side = _one_side(q, k, where)
    if side.faults:
        return found + side + skipped(AFTER, say("turn.after_axis"))
    relative = _relative(case, q, k, where, tolerance)
    found += side + relative
    if relative.faults:
        return found + skipped(("rotary.base", "position.offset"), say("turn.after_axis"))
    start = _start(case, q, k, where, tolerance)
    return found + _pairs(case, pairs_of(q), pairs_of(k), where) + start + frequencies(case, q, record)


def _recorded(case: RotaryCase) -> Record:
    module = case.case.ready()
    x = case.case.inputs(2, 7, 0, case.case.dtype)
    return watched(module if isinstance(module, nn.Module) else None, lambda: case.case.run(module, x))


@torch.no_grad()
def _axis(case: RotaryCase, where: str) -> Found:
    """Whether equal vectors turn apart along positions alone, not along heads or rows."""
    if case.tables:
        return skipped(("rotary.axis",), say("turn.tables"))
    if case.layout in ("BTd", "Td"):
        return skipped(("rotary.axis",), say("turn.no_heads"))
    drawn = torch.Generator().manual_seed(3)
    u = torch.randn(case.width, generator=drawn, dtype=torch.float64).to(case.case.dtype)
    same = u.expand(4, HEADS, 7, case.width).contiguous()
    size = float(u.abs().max())
    apart = {"tokens": 0.0, "heads": 0.0, "rows": 0.0}
    for turned in case.turn(case.case.ready(), same, same.clone(), None, None)[:2]:
        for name, axis in (("rows", 0), ("heads", 1), ("tokens", 2)):
            apart[name] = max(apart[name], float((turned - turned.narrow(axis, 0, 1)).abs().max()) / size)
    wrong = max(("heads", "rows"), key=lambda name: apart[name])
    if apart[wrong] < 1e-5:
        return passed("rotary.axis", say("turn.axis_pass", tokens=f"{apart['tokens']:.1e}"))
    evidence = say(
        "turn.axis", axis=wrong, moved=f"{apart[wrong]:.1e}", tokens=f"{apart['tokens']:.1e}", layout="(B,H,T,d)"
    )
    reproduced = apart["tokens"] < 1e-9
    fix = say("turn.axis_fix")
    return failed("rotary.axis", reproduced, evidence, where, fix=fix, effect=apart[wrong])


@torch.no_grad()
def _values(case: RotaryCase, where: str) -> Found:
    """Whether v passes unturned."""
    if not case.values:
        return Found()
    q, k = case.case.inputs(2, 6, 0, case.case.dtype)
    v = q - 0.5 * k
    turned = case.turn(case.case.ready(), q, k, v.clone(), None)[2]
    if turned is None or turned.shape != v.shape:
        return skipped(("rotary.values",), say("turn.no_values"))
    moved = float((turned - v).abs().max()) / float(v.abs().max())
    if moved < 1e-6:
        return passed("rotary.values", say("turn.values_pass"))
    t = int((turned - v).abs().amax((0, 1, 3)).gt(1e-6).int().argmax())
    evidence = say("turn.values", moved=f"{moved:.1e}", position=t)
    return failed("rotary.values", True, evidence, where, fix=say("turn.values_fix"), effect=moved)


def _one_side(q: Tensor, k: Tensor, where: str) -> Found:
    """Whether both are turned."""
    eye = torch.eye(q.shape[-1], dtype=torch.float64)
    turned = [float((each - each[:1]).abs().max()) for each in (q, k)]
    moved = [float((each - eye).abs().max()) for each in (q, k)]
    if max(turned) < 1e-9:
        evidence = say("turn.unused", moved=f"{max(moved):.1e}")
        return failed("position.unused", True, evidence, where, fix=say("turn.unused_fix"), effect=1.0)
    if min(turned) < 1e-9:
        still = "q" if turned[0] < 1e-9 else "k"
        evidence = say("turn.one_side", still=still, moved=f"{max(turned):.1e}")
        return failed(
            "rotary.one-side", True, evidence, where, fix=say("turn.one_side_fix", still=still), effect=max(turned)
        )
    return passed("rotary.one-side", say("turn.one_side_pass", q=f"{turned[0]:.1e}", k=f"{turned[1]:.1e}"))


def _relative(case: RotaryCase, q: Tensor, k: Tensor, where: str, tolerance: float) -> Found:
    """Whether R_m^T R_n depends on m - n alone."""
    products = torch.einsum("mij,nik->mnjk", q, k)
    worst, at = 0.0, (0, 0)
    for m in range(1, LENGTH):
        for n in range(1, LENGTH):
            apart = float((products[m, n] - products[m - 1, n - 1]).abs().max())
            if apart > worst:
                worst, at = apart, (m, n)
    if worst < tolerance:
        return passed("rotary.not-relative", say("turn.relative_pass", worst=f"{worst:.1e}"), worst)
    named = unequal(q, k, case.tables or ("fed" if case.fed else ""))
    evidence = say("turn.not_relative", m=at[0], n=at[1], m_less=at[0] - 1, n_less=at[1] - 1, apart=f"{worst:.1e}")
    if worst < 2e-2 and named is None:
        evidence = say("turn.narrow", apart=f"{worst:.1e}", m=at[0], n=at[1])
        return failed("rotary.low-precision", False, evidence, where, fix=say("turn.narrow_fix"), effect=worst)
    if named is not None and named[0] == "rotary.pairing":
        return failed(
            "rotary.pairing", True, named[1] + "; " + evidence, where, fix=say("turn.pairing_fix"), effect=worst
        )
    evidence = evidence if named is None else f"{named[1]}; {evidence}"
    return failed(
        "rotary.not-relative", named is not None, evidence, where, fix=say("turn.not_relative_fix"), effect=worst
    )


def _pairs(case: RotaryCase, q: Pairs | None, k: Pairs | None, where: str) -> Found:
    """Whether the pairs are those stated."""
    if q is None or k is None:
        return skipped(("rotary.pairing",), say("turn.no_pairs"))
    said = said_pairs(case.target)
    if case.tables or (case.fed and not said):
        return skipped(("rotary.pairing",), say("turn.tables"))
    if not said or q.style not in ("half-split", "interleaved"):
        return skipped(("rotary.pairing",), say("turn.pairs_unstated", found=q.style))
    if said == q.style:
        return passed("rotary.pairing", say("turn.pairs_pass", found=q.style))
    evidence = say("turn.pairs", found=q.style, said=said, one=q.partner(0))
    return failed("rotary.pairing", True, evidence, where, fix=say("turn.pairs_fix", said=said))


def _rearranges(matrix: Tensor) -> bool:
    """Whether a matrix does nothing but put features in another order."""
    whole = matrix.round()
    return bool((matrix - whole).abs().max() < 1e-6) and bool((whole.sum(-1) == 1).all()) and bool((whole >= 0).all())


def _start(case: RotaryCase, q: Tensor, k: Tensor, where: str, tolerance: float) -> Found:
    """Whether position 0 is position 0, and positions that are given count."""
    eye = torch.eye(case.width, dtype=torch.float64)
    own = torch.einsum("ij,ik->jk", q[0], k[0])
    scale = float(own.diagonal().abs().mean())
    apart = float((own / scale - eye).abs().max())
    fix = say("turn.offset_fix")
    if apart > tolerance:
        evidence = say("turn.offset_apart", apart=f"{apart:.1e}")
        return failed("position.offset", True, evidence, where, fix=fix, effect=apart)
    first = q[0] / scale**0.5
    turned = float((first - eye).abs().max())
    # Pairs may be written out in another order than they were read; q and k alike, no score knows of it.
    if turned > 1e-3 and not case.fed and not _rearranges(first):
        evidence = say("turn.offset_first", turned=f"{turned:.1e}")
        return failed("position.offset", False, evidence, where, fix=fix, effect=turned)
    if not case.places:
        return passed("position.offset", say("turn.offset_pass"))
    later: Any = None
    with Attempt():
        later = matrices(case, LENGTH - 3, 3)
    if later is None:
        return skipped(("position.offset",), say("turn.offset_raises"))
    for found, whole in zip(later, (q, k), strict=True):
        gap = float((found - whole[3:]).abs().max())
        if gap > max(tolerance, 1e-4):
            evidence = say("turn.offset_ignored", gap=f"{gap:.1e}")
            return failed("position.offset", True, evidence, where, fix=say("turn.offset_given_fix"), effect=gap)
    return passed("position.offset", say("turn.offset_given_pass"))


KIND = Kind("rotary", open_rotary, check_rotary)
"""Registered in the table of kinds."""
