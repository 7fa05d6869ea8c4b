"""The loss that a language model computes itself, held against the right one and against each known mistake."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.checking.claims import stated
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_calling import Given
from clearhead.checking.kinds.lm_case import LmCase, logits_of, raw
from clearhead.checking.kinds.lm_finding import failed, passed, skipped
from clearhead.checking.strangers import Attempt
from clearhead.messages import say

INSIDE = r"shift(s|ed|ing)?\s+(them\s+|it\s+|is\s+done\s+|happens\s+)?(inside|internally|here|by the model|in here)|not (yet )?shifted|unshifted"
OUTSIDE = r"(already|pre-?)[ -]?shifted|shifted (by|outside)|(shift|shifting) (is|happens|done) (outside|by the caller|in the data)"
LENGTH = 8


class Reference(NamedTuple):
    """One way to a loss."""

    shift: int
    """How far the target lies ahead of its logits in what was given."""
    twice: bool
    """Whether a softmax comes before that of the cross-entropy."""
    mean: str
    """real: over what counts; rows: of the rows' means; all: over all positions; sum."""


def own_loss(case: LmCase) -> Found:
    """The loss on random targets, on targets of which some do not count, with pads and with ends of text."""
    name = case.style.name("labels", "targets")
    if name is None or case.call is not None or name not in case.case.target.signature.parameters:
        return Found()
    shift = _claimed_shift(case, name)
    length = case.length(LENGTH)
    ids, targets = case.ids(3, length, 4), case.ids(3, length, 5)
    avoid = _special(case)
    for token in avoid:
        targets[targets == token] = _other(case, avoid)
    with Attempt() as attempt:
        loss = _loss(case, ids, targets)
        if loss is None:
            return skipped("loss.unshifted", say("lm.no_loss", name=name))
        first = _held(case, (ids, targets), loss, shift, ignored=None)
        if first.faults or not first.checks:
            return first
        return first + _uneven(case, (ids, targets), shift) + _marked(case, (ids, targets), shift)
    return skipped("loss.unshifted", say("lm.mask_raises", reason=attempt.reason))


def _claimed_shift(case: LmCase, name: str) -> int:
    """1 if labels are the ids themselves, 0 if the caller has shifted them: by the name, unless the words say otherwise."""
    text = case.case.target.source
    if re.search(OUTSIDE, text, re.IGNORECASE):
        return 0
    if re.search(INSIDE, text, re.IGNORECASE):
        return 1
    return 1 if dict(case.style.roles)[name] == "labels" else 0


def _special(case: LmCase) -> list[int]:
    """The ids that the model gives a meaning of their own."""
    names = (
        "pad_id",
        "pad_token_id",
        "pad_idx",
        "padding_idx",
        "ignore_index",
        "eos_id",
        "eos_token_id",
        "eos",
        "eot",
        "eos_idx",
        "pad",
    )
    found = [stated(case.case.target, name) for name in names]
    return [value for value in found if isinstance(value, int) and 0 <= value < case.vocab]


def _other(case: LmCase, avoid: list[int]) -> int:
    return next(token for token in range(case.vocab) if token not in avoid)


def _loss(case: LmCase, ids: Tensor, targets: Tensor) -> Tensor | None:
    """The loss of the model in evaluation mode, a number."""
    with torch.no_grad():
        return raw(case, case.case.ready(), ids, Given(targets=targets)).loss


def references(logits: Tensor, targets: Tensor, counts: Tensor) -> dict[Reference, float]:
    """Every way to the loss of logits (B,T,V) and targets (B,T); `counts` (B,T) says which targets count."""
    out: dict[Reference, float] = {}
    for shift, twice in product((0, 1, 2), (False, True)):
        length = logits.shape[1] - shift
        scores = logits[:, :length].softmax(-1) if twice else logits[:, :length]
        goals, real = targets[:, shift:], counts[:, shift:]
        each = F.cross_entropy(scores.transpose(1, 2), goals.clamp(min=0, max=logits.shape[2] - 1), reduction="none")
        kept = each * real
        rows = kept.sum(1) / real.sum(1).clamp(min=1)
        ways = {
            "real": kept.sum() / real.sum(),
            "sum": kept.sum(),
            "rows": rows.mean(),
            "all": kept.sum() / real.numel(),
            "pads": each.mean(),
        }
        out |= {Reference(shift, twice, mean): value.item() for mean, value in ways.items()}
    return out


Pair = tuple[Tensor, Tensor]


def _held(case: LmCase, pair: Pair, loss: Tensor, shift: int, *, ignored: int | None) -> Found:
    """The loss against all references; those that are right come first."""
    ids, targets = pair
    logits = logits_of(case, case.case.ready(), ids) if not case.with_targets else _logits(case, ids, targets)
    counts = torch.ones_like(targets, dtype=torch.bool) if ignored is None else targets != ignored
    value = loss.item()
    near = [
        reference
        for reference, wanted in references(logits.detach(), targets, counts).items()
        if abs(wanted - value) <= 2e-6 * max(1.0, abs(wanted))
    ]
    right = [each for each in near if each.shift == shift and not each.twice and each.mean in ("real", "sum")]
    if right:
        return passed(
            "loss.unshifted" if shift else "loss.shifted-twice", say("lm.loss_right", value=f"{value:.6g}", shift=shift)
        )
    if not near:
        # Penalties, smoothing, auxiliary terms: not told apart here.
        return Found(notes=(say("lm.loss_own", value=f"{value:.6g}"),))
    found = min(near, key=lambda each: (each.twice, abs(each.shift - shift), each.mean != "real"))
    name = _name(found, shift)
    return failed(
        name, say("lm.loss_found", value=f"{value:.6g}", shift=found.shift, wanted=shift), certainty="reproduced"
    )


def _name(found: Reference, shift: int) -> str:
    if found.twice:
        return "loss.double-softmax"
    if found.shift != shift:
        return "loss.unshifted" if found.shift < shift else "loss.shifted-twice"
    return {"rows": "loss.mean-of-means"}.get(found.mean, "loss.pads-counted")


def _logits(case: LmCase, ids: Tensor, targets: Tensor) -> Tensor:
    with torch.no_grad():
        return raw(case, case.case.ready(), ids, Given(targets=targets)).logits


def _uneven(case: LmCase, pair: Pair, shift: int) -> Found:
    """With unequal numbers of targets that count, as -100 or -1 says."""
    ids, targets = pair
    length = targets.shape[1]
    for ignored in (-100, -1):
        marked = targets.clone()
        marked[0, length // 2 :], marked[1, length - 1 :] = ignored, ignored
        with Attempt():
            loss = _loss(case, ids, marked)
            if loss is None or not torch.isfinite(loss):
                continue
            found = _held(case, (ids, marked), loss, shift, ignored=ignored)
            if found.faults:
                fault = found.faults[0]
                return failed(
                    fault.id, say("lm.loss_ignored", ignored=ignored, found=fault.evidence), certainty="reproduced"
                )
            if found.checks:
                return passed("loss.mean-of-means", say("lm.loss_uneven", ignored=ignored))
    return skipped("loss.mean-of-means", say("lm.loss_no_ignored"))


def _marked(case: LmCase, pair: Pair, shift: int) -> Found:
    """A stated pad must not count, a stated end of text must."""
    pad = _first(case, "pad_id", "pad_token_id", "pad_idx", "padding_idx", "pad")
    end = _first(case, "eos_id", "eos_token_id", "eos", "eot", "eot_id", "eos_idx", "end_id")
    out = Found()
    if end is not None:
        out += _ends(case, pair, end, shift)
    if pad is not None and pad != end:
        out += _pads(case, pair, pad, shift)
    return out


def _first(case: LmCase, *names: str) -> int | None:
    value = stated(case.case.target, *names)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < case.vocab else None


def _with(case: LmCase, pair: Pair, change: Callable[[Tensor], Any]) -> tuple[Pair, Tensor | None]:
    ids, targets = pair[0].clone(), pair[1].clone()
    change(targets)
    return (ids, targets), _loss(case, ids, targets)


def _ends(case: LmCase, pair: Pair, end: int, shift: int) -> Found:
    """One end of text within a row, and nothing after it that repeats it."""

    def change(targets: Tensor) -> None:
        targets[0, 3] = end

    (ids, targets), loss = _with(case, pair, change)
    if loss is None:
        return Found()
    if _right(case, (ids, targets), loss, shift, None):
        return passed("loss.eos-masked", say("lm.eos_counts", end=end))
    if _right(case, (ids, targets), loss, shift, end):
        return failed("loss.eos-masked", say("lm.eos_masked", end=end), certainty="reproduced")
    return Found()


def _text_of_loss(case: LmCase) -> str:
    """The source of a function for the loss that the model holds; "" if there is none to read."""
    made = case.case.target.sample
    for name in ("loss_function", "loss_fn", "loss_func", "criterion"):
        held = getattr(made, name, None)
        kind = held if inspect.isroutine(held) else type(held)
        # What PyTorch's own losses may ignore is no word of the author's.
        if held is not None and not str(getattr(kind, "__module__", "torch")).startswith("torch"):
            with Attempt():
                return inspect.getsource(kind)
    return ""


def _pads(case: LmCase, pair: Pair, pad: int, shift: int) -> Found:
    """Pads at the end of rows."""
    half = pair[1].shape[1] // 2

    def change(targets: Tensor) -> None:
        targets[0, half:] = pad

    (ids, targets), loss = _with(case, pair, change)
    if loss is None or _right(case, (ids, targets), loss, shift, pad):
        return Found() if loss is None else passed("loss.pads-counted", say("lm.pads_out", pad=pad))
    if _right(case, (ids, targets), loss, shift, None):
        # Only a model whose loss is told which id is the pad claims to leave it out.
        if re.search(r"ignore_index\W.{0,9}=\s*-|-100\b", case.case.target.source + _text_of_loss(case)):
            return skipped("loss.pads-counted", say("lm.pads_callers", pad=pad))
        return failed("loss.pads-counted", say("lm.pads_in", pad=pad), certainty="reproduced")
    found = _held(case, (ids, targets), loss, shift, ignored=pad)
    return found if found.faults else Found()


def _right(case: LmCase, pair: Pair, loss: Tensor, shift: int, ignored: int | None) -> bool:
    logits = _logits(case, *pair) if case.with_targets else logits_of(case, case.case.ready(), pair[0])
    counts = torch.ones_like(pair[1], dtype=torch.bool) if ignored is None else pair[1] != ignored
    found = references(logits.detach(), pair[1], counts)
    wanted = [found[Reference(shift, False, mean)] for mean in ("real", "sum")]
    return any(abs(each - loss.item()) <= 2e-6 * max(1.0, abs(each)) for each in wanted)
