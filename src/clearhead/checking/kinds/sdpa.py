"""Attention of given q, k and v: held against the formula and each of its known mistakes, written out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from clearhead.checking.claims import size
from clearhead.checking.kinds.attention_references import Variant, attend, bases, matches
from clearhead.checking.kinds.cores import added_triangle
from clearhead.checking.kinds.cores import cores as hearts
from clearhead.checking.kinds.formula_graph import Graph
from clearhead.checking.kinds.formula_scaling import scaled
from clearhead.checking.kinds.formula_stages import NARROW, Scene, fault, stages
from clearhead.checking.kinds.kind import Found, Kind
from clearhead.checking.kinds.scores import cores
from clearhead.checking.kinds.sdpa_causal import causality
from clearhead.checking.kinds.sdpa_masks import masks
from clearhead.checking.kinds.sdpa_opening import DROPOUT, TRAINING, SdpaCase, drawn, open_sdpa, run
from clearhead.checking.report import Check, Fault
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.watch import watched
from clearhead.messages import say

ROWS, HEADS, LENGTH, WIDTH = 3, 4, 6, 8
"""Of what is compared: d, D, T and the number of rows are all different, and so are their roots."""
ROUNDING, ROUGH = 1e-5, 4e-2
"""A float32 island is closer than the first to the formula; 16 bits are closer than the second."""


class Base(NamedTuple):
    """What the code computes without a mask.

    Args:
        variant: whose formula reproduces it; None if none does.
        out: the output.
        narrow: the 16-bit type in which scores or weights were; "" for none.
    """

    variant: Variant | None
    out: Tensor
    narrow: str


def check_sdpa(case: SdpaCase, settings: Settings) -> Found:
    """Everything that is asked of attention of given q, k and v."""
    modes = _dropout(case)
    if modes.faults:
        return _placed(case, modes)
    window = _window(case, settings)
    base = _base(case, window)
    found = modes + _formula(case, base, window)
    found += causality(case, settings, base.variant)
    if any(each.id == "causal.future-leak" for each in found.faults):
        found = _triangle(case) + found
    found += _rows(case) + _grouped(case, base.variant)
    return _placed(case, found + masks(case, settings, base.variant))


SOFTENS = ("softmax", "exp", "scaled_dot_product_attention")
MULTIPLIES = ("matmul", "__matmul__", "bmm", "einsum", "baddbmm", "scaled_dot_product_attention")
HIDES = (
    "masked_fill",
    "masked_fill_",
    "where",
    "__setitem__",
    "add",
    "add_",
    "mul",
    "scaled_dot_product_attention",
    "softmax",
)
LINES = {
    "scale": MULTIPLIES,
    "softmax": SOFTENS,
    "scores": MULTIPLIES,
    "score": SOFTENS,
    "heads": MULTIPLIES,
    "dropout": MULTIPLIES,
}
"""By the first word of a fault, the operations at whose line it is looked for; others are where something is hidden."""


def _placed(case: SdpaCase, found: Found) -> Found:
    """The faults with the lines at which they are."""
    keep = torch.ones(ROWS, 1, LENGTH, LENGTH, dtype=torch.bool) if case.shape else None
    with Attempt() as attempt:
        record = watched(None, lambda: run(case, _inputs(case), keep, causal=True if case.causal else None))
    if attempt.error is not None:
        with Attempt() as attempt:
            record = watched(None, lambda: run(case, _inputs(case)))
    if attempt.error is not None or not found.faults:
        return found
    faults = []
    for each in found.faults:
        named = LINES.get(each.id.split(".")[0], HIDES)
        lines = [op.where for name in named for op in record.ops if op.name == name and op.where]
        faults.append(each if each.where or not lines else replace(each, where=lines[0]))
    return found._replace(faults=tuple(faults))


def _window(case: SdpaCase, settings: Settings) -> int:
    """How many keys are claimed to be seen, itself included; 0 for all."""
    parameter = case.case.target.signature.parameters.get(case.window)
    default = parameter.default if parameter is not None and isinstance(parameter.default, int) else 0
    return max(size(case.case.target, settings, "window") or default, 0)


def _inputs(case: SdpaCase, seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    return drawn(ROWS, HEADS, LENGTH, LENGTH, d=WIDTH, seed=seed, dtype=case.case.dtype)


def _plain(case: SdpaCase) -> bool | None:
    """What a flag of causality gets where nothing should be hidden."""
    return False if case.causal else None


def _dropout(case: SdpaCase) -> Found:
    """Whether two calls of one input are equal, whatever the rate of dropout is where nothing is trained."""
    qkv, made = _inputs(case), case.ready()
    rates = _rates(case, made)
    with torch.no_grad():
        for extra in ({}, *rates):
            first, second = (run(case, qkv, causal=_plain(case), extra=extra, made=made) for _ in range(2))
            if not torch.equal(torch.nan_to_num(first), torch.nan_to_num(second)):
                largest = float((first - second).abs().max())
                text = say("sdpa.two_calls", largest=f"{largest:.2g}")
                wrong = fault("dropout.active-in-eval", text, "", "consistent", largest)
                return Found((Check(wrong.id, "fail", text, largest),), (wrong,))
        if rates or isinstance(made, nn.Module):
            return Found((Check("dropout.active-in-eval", "pass", say("sdpa.same_calls")),))
    return Found((Check("dropout.active-in-eval", "pass", say("sdpa.same_calls")),))


def _rates(case: SdpaCase, made: object) -> list[dict[str, object]]:
    """Arguments with which dropout may be on although nothing is trained; attributes of a module are set to a rate."""
    parameters = case.case.target.signature.parameters
    rate = next((name for name in list(parameters)[3:] if re.fullmatch(DROPOUT, name)), None)
    training = next((name for name in parameters if re.fullmatch(TRAINING, name)), None)
    if isinstance(made, nn.Module):
        for each in made.modules():
            for name, value in vars(each).items():
                if re.fullmatch(DROPOUT, name) and isinstance(value, float) and not isinstance(each, nn.Dropout):
                    setattr(each, name, 0.5)
    return [{rate: 0.5, training: False}] if rate and training else []


def _base(case: SdpaCase, window: int) -> Base:
    """What the code computes without a mask, and the formula that reproduces it."""
    qkv = _inputs(case)
    with torch.no_grad():
        record = watched(None, lambda: run(case, qkv, causal=_plain(case)))
    out = record.result
    kinds = [t.dtype for op in record.ops for t in (op.result,) if isinstance(t, Tensor) and t.dim() >= 3]
    narrow = next((str(kind).removeprefix("torch.") for kind in kinds if kind in NARROW), "")
    tolerance = ROUGH if narrow else ROUNDING
    q, k, v = (t.to(torch.float64) for t in qkv)
    variant = next((each for each in bases(window) if matches(out.double(), attend(q, k, v, each), tolerance)), None)
    return Base(variant, out, narrow)


def _formula(case: SdpaCase, base: Base, window: int) -> Found:
    """The faults of the formula itself."""
    faults: list[Fault] = []
    if base.narrow:
        faults.append(fault("score.precision", say("formula.narrow", kind=base.narrow), "", "consistent"))
    if base.variant is None:
        found = _watched(case)
        checks = [Check("reference", "skipped", say("sdpa.no_reference"))]
        checks += [Check(each.id, "fail", each.evidence) for each in (*faults, *found)]
        return Found(tuple(checks), (*faults, *found))
    qkv = tuple(t.double() for t in _inputs(case))
    right = attend(qkv[0], qkv[1], qkv[2], Variant(triangle=base.variant.triangle, window=base.variant.window))
    effect = float(torch.nan_to_num(base.out.double() - right).norm() / torch.nan_to_num(right).norm())
    for name in base.variant.faults:
        if not name.startswith("causal."):
            faults.append(
                fault(name, say("sdpa.reproduced", name=name, effect=f"{effect:.2g}"), "", "reproduced", effect)
            )
    if window and base.variant.window not in (0, window):
        text = say("sdpa.window", claimed=window, found=base.variant.window)
        faults.append(fault("window.off-by-one", text, "", "reproduced", effect))
    if faults:
        return Found(tuple(Check(each.id, "fail", each.evidence, effect) for each in faults), tuple(faults))
    return Found((Check("reference", "pass", say("sdpa.equal")),))


def _watched(case: SdpaCase) -> list[Fault]:
    """What is wrong with the stages of something that no written-out formula reproduces, such as a soft-cap or a sink."""
    with Attempt():
        fed = [t.requires_grad_(True) for t in _inputs(case)]
        record = watched(None, lambda: run(case, (fed[0], fed[1], fed[2]), causal=_plain(case)), live=True)
        graph = Graph(record, fed)
        core = cores(graph, (LENGTH,))[0]
        source = case.case.target.source
        scene = Scene(graph, core, None, HEADS * WIDTH, fed[0], False, source, 1, (core.context,))
        wrong = [each for each in stages(scene)[0] if each.id in ("softmax.axis", "score.precision")]
        return [*wrong, *scaled(scene, bool(wrong))[0]]
    return []


def _triangle(case: SdpaCase) -> Found:
    """Whether a triangle of ones is added to the scores, or multiplies them, in place of selecting."""
    with Attempt(), torch.no_grad():
        record = watched(None, lambda: run(case, _inputs(case), causal=True if case.causal else None))
        added = added_triangle(record, hearts(record, LENGTH))
        if added is not None:
            text = say("sdpa.triangle")
            wrong = fault("mask.added-as-number", text, added[0].where)
            return Found((Check(wrong.id, "fail", text),), (wrong,))
    return Found()


@torch.no_grad()
def _rows(case: SdpaCase) -> Found:
    """Whether a row of the batch moves with another."""
    question, made = "batch.mixing", case.ready()
    qkv, others = _inputs(case), _inputs(case, 2)
    base = run(case, qkv, causal=_plain(case), made=made)
    q, k, v = (torch.cat([other[:1], one[1:]]) for one, other in zip(qkv, others, strict=True))
    moved = (run(case, (q, k, v), causal=_plain(case), made=made) - base).double().abs().flatten(1).amax(1)
    size = float(base.double().abs().max())
    own, seen = float(moved[0]) / size, int(moved[1:].argmax()) + 1
    gap = float(moved[seen]) / size
    text = say("common.rows", rows=ROWS, length=LENGTH, row=0, seen=seen, gap=f"{gap:.1e}", own=f"{own:.1e}")
    # In 16 bit, kernels may add up another way for another batch.
    if not gap > ROUGH if base.dtype in NARROW else not gap > ROUNDING:
        return Found((Check(question, "pass", text, 0.0),))
    wrong = Fault(question, "consistent", text, "", say("common.fix_mixing"), gap)
    return Found((Check(question, "fail", text, gap),), (wrong,))


def _grouped(case: SdpaCase, base: Variant | None) -> Found:
    """Whether shared keys and values go to the right query heads."""
    question = "heads.kv-tiled"
    if base is None or case.dims != 4:
        return Found((Check(question, "skipped", say("sdpa.no_reference")),))
    qkv = drawn(2, 6, 5, 5, kv_heads=3, d=WIDTH, seed=2, dtype=case.case.dtype)
    q, k, v = (t.double() for t in qkv)
    with Attempt() as attempt, torch.no_grad():
        out = run(case, qkv, causal=_plain(case)).double()
        for tiled in (False, True):
            variant = Variant(
                base.scale, base.axis, base.reshaped, base.triangle, base.after, tiled=tiled, window=base.window
            )
            if not matches(out, attend(q, k, v, variant), ROUGH if out.dtype in NARROW else 1e-4):
                continue
            if not tiled:
                return Found((Check(question, "pass", say("sdpa.grouped")),))
            text = say("formula.tiled", letter="k", used="0, 1, 2, 0, 1, 2", heads=6, kv_heads=3)
            return Found((Check(question, "fail", text),), (fault(question, text, ""),))
        if _summed(out, (q, k, v), base):
            wrong = fault("heads.grouped-summed", say("sdpa.summed", heads=6, kv_heads=3), "")
            return Found((Check(wrong.id, "fail", wrong.evidence),), (wrong,))
    return Found((Check(question, "skipped", say("sdpa.not_grouped", reason=attempt.reason or "?")),))


def _summed(out: Tensor, qkv: tuple[Tensor, Tensor, Tensor], base: Variant) -> bool:
    """Whether the query heads of a group were added up, or averaged, before attending, or what they gave was added up instead."""
    q, k, v = qkv
    B, K, size = q.shape[0], k.shape[1], q.shape[2:]
    times = q.shape[1] // K
    plain = Variant(base.scale, base.axis, base.reshaped, base.triangle, base.after, window=base.window)
    each = attend(q, k, v, plain)
    for by in (1.0, 1 / times):
        groups = (q.reshape(B, K, times, *size).sum(2), q.reshape(B, times, K, *size).sum(1))
        heads = [attend(group * by, k, v, plain) for group in groups]
        heads += [each.reshape(B, K, times, *each.shape[2:]).sum(2) * by]
        for one in heads:
            for whole in (one, one.repeat_interleave(times, 1), one.repeat(1, times, 1, 1)):
                if matches(out, whole, 1e-4):
                    return True
    return False


KIND = Kind("sdpa", open_sdpa, check_sdpa)
