"""The kind `positions`: order is added to the stream, or given as a table."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import torch
from torch import Tensor, nn

from clearhead.checking.claims import stated
from clearhead.checking.common.everything import everything
from clearhead.checking.kinds.kind import Found, Kind
from clearhead.checking.kinds.norm_claims import failed, passed, skipped, with_common
from clearhead.checking.kinds.norm_words import words
from clearhead.checking.kinds.positions_calls import PositionsCase, fitting, open_positions
from clearhead.checking.kinds.positions_sinusoids import BASE, Waves, known_mistake, squares_off, waves
from clearhead.checking.kinds.positions_words import (
    bases,
    file_counts_rows_first,
    says_batch_first,
    says_other_start,
    says_random,
    says_seq_first,
    says_sinusoids,
)
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.watch import Record, watched
from clearhead.messages import say

IDS = ("position.unused", "position.offset", "sinusoid.frequency")
OF_ROWS = ("batch.mixing", "shape.squeezed")


def check_positions(case: PositionsCase, settings: Settings) -> Found:
    """Each position has a vector of its own, the same in every row, counted from 0, and sinusoids keep their frequencies."""
    where = _where(_recorded(case))
    with torch.no_grad():
        turned = _by_row(case, where)
    if turned is not None and turned.faults:
        return with_common(turned + skipped(IDS, say("place.after_rows")), everything(case.case, settings))
    if turned is not None:
        case = fitting(replace(case, seq_first=True))
        case = replace(case, case=replace(case.case, run=lambda module, given: case(module, given[0])))
    with torch.no_grad():
        found = (turned or Found()) + _own(case, where)
    common = everything(case.case, settings)
    if not case.adds:
        # A table has no rows that could be mixed.
        common = common._replace(checks=tuple(check for check in common.checks if check.id not in OF_ROWS))
        common = common._replace(faults=tuple(fault for fault in common.faults if fault.id not in OF_ROWS))
    return with_common(found, common)


def _own(case: PositionsCase, where: str) -> Found:
    table = case.table(case.ready(), case.limit)[0]
    found = _used(case, table, where)
    if found.faults:
        return found + skipped(IDS[1:], say("place.after_unused"))
    found += _start_of_learnt(case, table, where) if _learnt(case) else _sinusoids(case, table, where)
    return found + _given_start(case, table, where)


def _recorded(case: PositionsCase) -> Record:
    module = case.case.ready()
    x = case.case.inputs(case.rows, case.limit, 0, case.case.dtype)[0]
    with Attempt():
        return watched(module if isinstance(module, nn.Module) else None, lambda: case(module, x))
    return Record()


def _where(record: Record) -> str:
    """Where positions are added, or last touched."""
    for names in (
        ("add", "__add__", "__radd__", "add_", "__iadd__"),
        ("embedding", "__getitem__"),
        ("cat", "stack", "__setitem__"),
    ):
        found = [op.where for op in record.named(*names) if op.where]
        if found:
            return found[-1]
    return next((op.where for op in reversed(record.ops) if op.where), "")


def _by_row(case: PositionsCase, where: str) -> Found | None:
    """What is added follows the first axis: legal where x is (T,B,D), a mistake where it is (B,T,D). None if it does not."""
    if case.rows == 1 or not case.adds:
        return None
    table = case.table(case.ready(), case.limit)
    across = float((table - table[:1]).abs().max())
    along = float((table - table[:, :1]).abs().max())
    if across < 1e-9:
        return None
    said = says_batch_first(case.target) or file_counts_rows_first(case.target)
    if along < 1e-9 and (says_seq_first(case.target) or not said):
        return Found(notes=(say("place.seq_first"),))
    evidence = say("place.by_row", across=f"{across:.1e}", along=f"{along:.1e}")
    return failed("batch.mixing", along < 1e-9, evidence, where, fix=say("place.by_row_fix"), effect=across)


def _used(case: PositionsCase, table: Tensor, where: str) -> Found:
    """Whether positions differ."""
    if not bool(table.isfinite().all()):
        return Found()
    apart = float((table - table[:1]).abs().max())
    if apart > 1e-9:
        same = [(s, t) for t in range(len(table)) for s in range(t) if bool((table[s] - table[t]).abs().max() < 1e-12)]
        if same:
            s, t = same[0]
            evidence = say("place.same", one=s, other=t)
            return failed("position.unused", False, evidence, where, fix=say("place.unused_fix"))
        return passed("position.unused", say("place.used", apart=f"{apart:.1e}", length=len(table)))
    evidence = say("place.unused", length=len(table), rows=case.rows)
    return failed("position.unused", True, evidence, where, fix=say("place.unused_fix"), effect=1.0)


def _learnt(case: PositionsCase) -> bool:
    """Whether the table is made of weights."""
    made = case.target.make()
    if not isinstance(made, nn.Module):
        return False
    return any(p.requires_grad and p.dim() >= 2 and p.shape[-1] == case.width for p in made.parameters())


def _start_of_learnt(case: PositionsCase, table: Tensor, where: str) -> Found:
    """Whether row t of a trained table is for position t."""
    module = case.ready()
    for weight in module.parameters():
        if weight.dim() < 2 or weight.shape[-1] != case.width:
            continue
        held = weight.detach().double().flatten(0, -2)
        if len(held) < len(table):
            continue
        near = torch.cdist(table, held, p=float("inf")) < 1e-6
        if not bool(near.any(1).all()):
            continue
        found = near.int().argmax(1)
        right = torch.arange(len(table))
        if bool((found == right).all()):
            return passed("position.offset", say("place.learnt_pass", length=len(table)))
        if says_other_start(case.target):
            return Found(notes=(say("place.other_start", first=int(found[0])),))
        evidence = say("place.learnt", first=int(found[0]), second=int(found[1]))
        return failed("position.offset", True, evidence, where, fix=say("place.start_fix"))
    return skipped(("position.offset",), say("place.learnt_unseen"))


def _given_start(case: PositionsCase, table: Tensor, where: str) -> Found:
    """Whether positions that are given count."""
    if not case.places or case.limit < 7:
        return Found()
    later = None
    with Attempt():
        # Half as long: what counts too far must still find a row.
        later = case.table(case.ready(), case.limit // 2 - 1, 3)[0]
    if later is None:
        return skipped(("position.offset",), say("place.start_raises"))
    apart = float((later - table[3 : 3 + len(later)]).abs().max())
    if apart < 1e-4:
        return passed("position.offset", say("place.start_pass"))
    evidence = say("place.start", apart=f"{apart:.1e}")
    return failed("position.offset", True, evidence, where, fix=say("place.given_fix"), effect=apart)


def _sinusoids(case: PositionsCase, table: Tensor, where: str) -> Found:
    """Whether pairs of columns are waves of one frequency, and the frequencies a falling series."""
    fix = say("place.frequency_fix")
    near = 1e-5
    size = float(table[table.isfinite()].abs().max()) if bool(table.isfinite().any()) else 1.0
    claimed = says_sinusoids(case.target)
    said, literal = bases(case.target, stated)
    # With another base a faulty power of 10000 may be a right one.
    usual = said == BASE or (said is None and literal is not None)
    plain = table / _amplitude(table, size)
    seen = waves(table, near) if bool(table.isfinite().all()) else None
    mistake = known_mistake(plain, 1e-4) if claimed and usual else None
    if mistake is None and claimed and usual and (seen is None or not seen.steady):
        # Angles that grow fast are rounded by float32 far out; the first rows tell.
        mistake = known_mistake(plain[:6], 3e-3)
    if mistake is not None and case.width > 2:
        evidence = say("place.known", found=mistake)
        return failed("sinusoid.frequency", True, evidence, where, fix=fix)
    if not bool(table.isfinite().all()):
        evidence = say("place.not_finite", count=int((~table.isfinite()).sum()))
        return failed("sinusoid.frequency", False, evidence, where, fix=fix)
    if seen is None or not seen.steady:
        if not claimed or says_random(case.target):
            return skipped(("sinusoid.frequency", "position.offset"), say("place.no_sinusoids"))
        off = min(squares_off(table).values(), key=lambda each: float(each.max()))
        pair = int(off.argmax())
        evidence = say("place.squares", pair=pair, off=f"{float(off.max()):.1e}")
        return failed("sinusoid.frequency", False, evidence, where, fix=fix, effect=float(off.max()))
    return _frequencies(case, seen, where, fix) + _start(case, seen, where)


def _amplitude(table: Tensor, size: float) -> float:
    """The size of the waves: 1 where a cosine of 0 stands in the first row, or nothing is known."""
    return size if abs(size - 1) > 0.2 and bool(table.isfinite().all()) else 1.0


def _no_series(case: PositionsCase, speeds: Tensor, where: str, fix: str) -> Found | None:
    """Why the frequencies are no falling series; None if they are one."""
    n, shown, free = len(speeds), _shown(speeds), says_random(case.target)
    still = int((speeds.abs() < 1e-7).sum())
    if n > 3 and 3 * still > n and says_sinusoids(case.target) and not free:
        evidence = say("place.still", still=still, count=n, length=case.limit)
        return failed("sinusoid.frequency", False, evidence, where, fix=fix)
    if n < 2 or free or bool((speeds <= 0).any()):
        return skipped(("sinusoid.frequency",), say("place.own_speeds", speeds=shown))
    logs, index = speeds.log(), torch.arange(n, dtype=torch.float64)
    slope = float((logs[-1] - logs[0]) / (n - 1))
    if float((logs - logs[0] - slope * index).abs().max()) > 1e-2 * max(1.0, abs(slope) * n):
        evidence = say("place.bent", speeds=shown)
        return failed("sinusoid.frequency", False, evidence, where, fix=fix)
    if slope > -1e-9:
        evidence = say("place.growing", speeds=shown)
        return failed("sinusoid.frequency", True, evidence, where, fix=fix)
    return None


def _shown(speeds: Tensor) -> str:
    return ", ".join(f"{float(s):.3g}" for s in speeds[:4])


def _frequencies(case: PositionsCase, seen: Waves, where: str, fix: str) -> Found:
    """The base of a falling series against the one that is stated."""
    speeds = seen.speeds
    n = len(speeds)
    none = _no_series(case, speeds, where, fix)
    if none is not None:
        return none
    shown, slope = _shown(speeds), float(speeds[-1].log() - speeds[0].log()) / (n - 1)
    found, other = math.exp(-slope * case.width / 2), math.exp(-slope * (n - 1)) if n > 1 else 0.0
    said, literal = bases(case.target, stated)
    base = said or literal
    if base is not None and any(abs(math.log(each) / math.log(base) - 1) < 3e-3 for each in (found, other)):
        return passed("sinusoid.frequency", say("place.frequency_pass", base=f"{base:g}", layout=seen.layout))
    if said is not None:
        evidence = say("place.base", found=f"{found:.6g}", said=f"{said:g}", speeds=shown)
        return failed("sinusoid.frequency", True, evidence, where, fix=fix, effect=abs(math.log(found / said)))
    return skipped(("sinusoid.frequency",), say("place.base_unstated", found=f"{found:.6g}"))


def _start(case: PositionsCase, seen: Waves, where: str) -> Found:
    """Whether the first row is that of position 0."""
    if seen.start is None:
        return skipped(("position.offset",), say("place.no_start"))
    if abs(seen.start) < 1e-3:
        return passed("position.offset", say("place.zero_first"))
    if says_other_start(case.target) or re.search(r"shift|phase", words(case.target), re.IGNORECASE):
        return Found(notes=(say("place.other_start", first=f"{seen.start:.3g}"),))
    evidence = say("place.first", first=f"{seen.start:.3g}")
    return failed("position.offset", True, evidence, where, fix=say("place.start_fix"))


KIND = Kind("positions", open_positions, check_positions)
