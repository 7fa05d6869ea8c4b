"""How fast each pair turns: the stated base, and angles that stay exact far out."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.norm_claims import failed, passed, skipped
from clearhead.checking.kinds.norm_places import HALF
from clearhead.checking.kinds.rotary_case import HEADS, RotaryCase
from clearhead.checking.kinds.rotary_pairs import Pairs, angles, pairs_of
from clearhead.checking.kinds.rotary_words import power_of, said_base, says_partial, says_scaled, says_sixteen
from clearhead.checking.strangers import Attempt
from clearhead.checking.watch import Record
from clearhead.messages import say

FAR = (4099, 2047, 1023, 511, 127, 63, 31)


def frequencies(case: RotaryCase, q: Tensor, record: Record) -> Found:
    """Whether the pairs turn as fast as stated, and as fast far out as near."""
    stored = _stored(case)
    if stored:
        evidence = say("turn.stored", name=stored)
        found = failed("rotary.low-precision", False, evidence, stored, fix=say("turn.narrow_fix"))
        return found + skipped(("rotary.base",), say("turn.after_axis"))
    pairs = pairs_of(q)
    if pairs is None or case.fed:
        return skipped(("rotary.base", "rotary.low-precision"), say("turn.fed" if case.fed else "turn.no_pairs"))
    speeds = (angles(q, pairs)[1] - angles(q, pairs)[0]).abs()
    narrow = _narrow(case, q, pairs, record)
    return narrow + (
        _base(case, speeds, pairs, record) if not narrow.faults else skipped(("rotary.base",), say("turn.after_axis"))
    )


def _base(case: RotaryCase, speeds: Tensor, pairs: Pairs, record: Record) -> Found:
    """ω_i against base^(-2i/n)."""
    n = len(speeds)
    where = _line(record, "pow", "__rpow__", "exp", "outer", "arange", "reciprocal")
    fix = say("turn.base_fix")
    mistake = _mistaken(case, speeds)
    if mistake is not None:
        return failed("rotary.base", True, say("turn.base_known", found=mistake), where, fix=fix)
    if n < 2 or (says_scaled(case.target) and said_base(case.target) is None):
        return skipped(("rotary.base",), say("turn.base_unstated"))
    logs, index = speeds.clamp(min=1e-300).log(), torch.arange(n, dtype=torch.float64)
    slope = float((logs[-1] - logs[0]) / (n - 1))
    bent = float((logs - logs[0] - slope * index).abs().max())
    if bent > 1e-3:
        if says_scaled(case.target) or _learnt(case):
            return skipped(("rotary.base",), say("turn.base_scaled"))
        evidence = say("turn.base_bent", speeds=", ".join(f"{float(s):.3g}" for s in speeds[:4]))
        return failed("rotary.base", False, evidence, where, fix=fix)
    return _against_stated(case, speeds, slope, where)


def _mistaken(case: RotaryCase, speeds: Tensor) -> str | None:
    """A known faulty formula of a base that is known; None where a part of the features alone is meant to turn, or there is none."""
    base, still = power_of(case.target), case.width // 2 - len(speeds)
    if base is None or says_scaled(case.target) or (still and says_partial(case.target)):
        return None
    if still and float((speeds[0].cos() - math.cos(1.0)).abs()) < 1e-4 and len(speeds) > 1:
        return None
    # Pairs that are too slow to be seen turning.
    return known_mistake(torch.cat([speeds, torch.zeros(still, dtype=speeds.dtype)]), base) if case.width > 4 else None


def known_mistake(speeds: Tensor, base: float) -> str | None:
    """The faulty formula that gives these speeds, as it is written; None if none does."""
    n = len(speeds)
    i, width = torch.arange(n, dtype=torch.float64), 2 * n
    formulas = {
        "ω = base^(-i/d)": base ** (-i / width),
        "ω = base^(-4i/d)": base ** (-4 * i / width),
        "ω = base^(-2i) / d, divided by d outside the power": base ** (-2 * i) / width,
        "ω = d · base^(-2i), divided by d outside the power": base ** (-2 * i) * width,
        "ω = base^(-i) / d, divided by d outside the power": base ** (-i) / width,
        "ω = d · base^(-i), divided by d outside the power": base ** (-i) * width,
        "ω = base^(-2i)": base ** (-2 * i),
        "ω = 1, without frequencies": torch.ones(n, dtype=torch.float64),
    }
    # Whole turns cannot be seen.
    return next((name for name, each in formulas.items() if bool((each.cos() - speeds.cos()).abs().max() < 1e-7)), None)


def _against_stated(case: RotaryCase, speeds: Tensor, slope: float, where: str) -> Found:
    """A geometric series against the base that is stated."""
    found, said, fix = math.exp(-slope * len(speeds)), said_base(case.target), say("turn.base_fix")
    if slope > -1e-9:
        evidence = say("turn.base_growing", speeds=", ".join(f"{float(s):.3g}" for s in speeds[:4]))
        return failed("rotary.base", True, evidence, where, fix=fix)
    if said is None or says_scaled(case.target):
        return skipped(("rotary.base",), say("turn.base_found", found=f"{found:.6g}"))
    if abs(found / said - 1) < 5e-3:
        return passed("rotary.base", say("turn.base_pass", found=f"{found:.6g}", said=f"{said:g}"))
    evidence = say("turn.base", found=f"{found:.6g}", said=f"{said:g}", second=f"{float(speeds[1]):.4g}")
    return failed("rotary.base", True, evidence, where, fix=fix, effect=abs(math.log(found / said)))


def _learnt(case: RotaryCase) -> bool:
    made = case.target.make()
    return hasattr(made, "parameters") and any(True for _ in made.parameters())


def _narrow(case: RotaryCase, q: Tensor, pairs: Pairs, record: Record) -> Found:
    """Whether angles far out are multiples of those near, in the type of the case and with 16-bit inputs."""
    length, far = 0, None
    for length in FAR:
        with Attempt():
            far = _waves(case, pairs, length)
            break
    if far is None or length < 16:
        return skipped(("rotary.low-precision",), say("turn.short"))
    exact, where = _multiples(q, pairs, length), _line(record, "cos", "polar", "outer", "arange")
    fix = say("turn.narrow_fix")
    size = float((q[0] ** 2).sum(0).mean()) ** 0.5
    apart = _apart(far, exact, size)
    worst = float(apart.max())
    limit = 2e-3 if length > 200 else 1e-4
    if worst > limit:
        t = int((apart > limit).int().argmax())
        evidence = say("turn.far", position=t, apart=f"{float(apart[t]):.1e}", worst=f"{worst:.1e}", length=length)
        return failed("rotary.low-precision", _half_ran(record), evidence, where, fix=fix, effect=worst)
    if length < 500 or case.tables:
        return passed("rotary.low-precision", say("turn.far_pass", length=length, worst=f"{worst:.1e}"), worst)
    return _sixteen(case, exact, pairs, size, where=where, own=worst)


def _sixteen(case: RotaryCase, exact: Tensor, pairs: Pairs, size: float, *, where: str, own: float) -> Found:
    """The same with bfloat16 vectors and the module as its author left it: only the vectors may be rounded.

    Code that makes its angles in the type of its input is right in float32 and wrong in 16 bits, so that it is at fault
    only if it says that it is for 16 bits.
    """
    length, turned = len(exact), None
    with Attempt():
        turned = _waves(case, pairs, length, torch.bfloat16, case.target.make())
    if turned is None:
        return passed("rotary.low-precision", say("turn.far_only", length=length))
    apart = _apart(turned, exact, size)
    worst = float(apart.max())
    if worst < 0.06:
        return passed("rotary.low-precision", say("turn.far_pass", length=length, worst=f"{worst:.1e}"), worst)
    t = int((apart > 0.06).int().argmax())
    evidence = say("turn.far_sixteen", position=t, apart=f"{float(apart[t]):.1e}", worst=f"{worst:.1e}", length=length)
    if not says_sixteen(case.target):
        right = passed("rotary.low-precision", say("turn.far_pass", length=length, worst=f"{own:.1e}"), own)
        return right + Found(notes=(f"{evidence}; {say('turn.far_follows')}",))
    return failed("rotary.low-precision", True, evidence, where, fix=say("turn.narrow_fix"), effect=worst)


def _multiples(q: Tensor, pairs: Pairs, length: int) -> Tensor:
    """(T,n) angles t ω from the angles of the first positions, wherever these start."""
    near = angles(q, pairs)
    step = near[1] - near[0]
    # A step of more than half a turn is told from its remainder only up to whole turns, which changes no cosine.
    return near[0] + torch.arange(length, dtype=torch.float64)[:, None] * step


@torch.no_grad()
def _waves(
    case: RotaryCase, pairs: Pairs, length: int, dtype: torch.dtype | None = None, module: Any = None
) -> tuple[Tensor, Tensor]:
    """(T,n) cos and sin of each pair at each position, in float64 whatever the type it ran in."""
    first, second = ([pair[side] for pair in pairs.pairs] for side in (0, 1))
    x = torch.zeros(2, HEADS, length, case.width, dtype=dtype or case.case.dtype)
    x[..., first] = 1
    turned = case.turn(case.case.ready() if module is None else module, x, x.clone(), None, None)[0][0, 0].double()
    return turned[:, first], turned[:, second]


def _apart(waves: tuple[Tensor, Tensor], exact: Tensor, size: float) -> Tensor:
    """(T): how far cos and sin of each position are from the exact ones, the size of the turn taken out."""
    cos, sin = waves
    return torch.maximum((cos / size - exact.cos()).abs(), (sin / size - exact.sin()).abs()).amax(-1)


def _stored(case: RotaryCase) -> str:
    """The name of a table or of frequencies that the author stored in 16 bits, "" if there are none."""
    made = case.target.make()
    held = dict(made.named_buffers()) | vars(made) if isinstance(made, nn.Module) else {}
    return next((name for name, value in held.items() if isinstance(value, Tensor) and value.dtype in HALF), "")


def _half_ran(record: Record) -> bool:
    items = [item for op in record.ops for item in (op.result if isinstance(op.result, tuple | list) else (op.result,))]
    return any(isinstance(item, Tensor) and item.dtype in HALF for item in items)


def _line(record: Record, *names: str) -> str:
    return next((op.where for op in record.named(*names) if op.where), "")
