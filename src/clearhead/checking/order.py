"""Which fault is named first: the cause, not what it brings about."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.checking.report import Fault

CONSEQUENCES: dict[str, tuple[str, ...]] = {
    "norm.axis": (
        "causal.future-leak",
        "batch.mixing",
        "feedforward.mixes-positions",
        "cache.mismatch",
        "shape.squeezed",
    ),
    "norm.unbiased-variance": ("norm.formula",),
    "softmax.axis": ("causal.future-leak", "causal.past-lost", "mask.ignored", "batch.mixing", "cache.mismatch"),
    "heads.merge-without-transpose": ("causal.future-leak", "causal.past-lost", "mask.ignored", "cache.mismatch"),
    "heads.split-without-transpose": ("causal.future-leak", "causal.past-lost", "mask.ignored", "cache.mismatch"),
    "scores.key-reshaped": ("causal.future-leak", "cache.mismatch"),
    "batch.mixing": ("causal.future-leak", "causal.past-lost"),
    "causal.self-masked": (
        "causal.past-lost",
        "causal.future-leak",
        "causal.finite-mask",
        "mask.ignored",
        "mask.empty-row",
    ),
    "causal.after-softmax": ("causal.future-leak", "causal.finite-mask", "mask.ignored"),
    "causal.top-left": ("cache.mismatch", "causal.past-lost"),
    "scale.length": ("causal.future-leak", "cache.mismatch", "mask.ignored"),
    "mask.polarity": ("mask.ignored", "causal.past-lost", "mask.empty-row"),
    "mask.added-as-number": ("mask.ignored", "causal.future-leak"),
    "mask.query-axis": ("mask.ignored", "mask.empty-row"),
    "mask.wrong-row": ("mask.ignored", "batch.mixing"),
    "cache.stale": ("dropout.active-in-eval", "noise.injected", "cache.mismatch", "batch.mixing", "causal.future-leak"),
    "cache.prefill-unmasked": ("cache.mismatch", "causal.future-leak"),
    "cache.shared-between-blocks": ("cache.mismatch", "causal.future-leak", "feedforward.mixes-positions"),
    "cache.overflow": ("cache.mismatch",),
    "position.offset": ("cache.mismatch",),
    "position.left-padding": ("mask.ignored",),
    "position.unused": ("parameter.unused",),
    "norm.final-missing": ("parameter.unused",),
    "causal.past-lost": ("parameter.unused",),
    "parameter.recreated": (
        "dropout.active-in-eval",
        "noise.injected",
        "batch.mixing",
        "causal.future-leak",
        "parameter.unused",
    ),
    "dropout.active-in-eval": (
        "noise.injected",
        "shape.squeezed",
        "batch.mixing",
        "causal.future-leak",
        "mask.ignored",
        "cache.mismatch",
    ),
    "noise.injected": ("shape.squeezed", "batch.mixing", "causal.future-leak", "mask.ignored", "cache.mismatch"),
    "weights.non-finite": ("causal.future-leak", "causal.past-lost", "batch.mixing", "mask.empty-row"),
    "weights.frozen": ("parameter.unused",),
    "weights.zero": ("parameter.unused", "causal.past-lost"),
    "feedforward.mixes-positions": ("causal.future-leak", "cache.mismatch"),
    "rotary.axis": ("rotary.not-relative", "cache.mismatch"),
    "rotary.one-side": ("rotary.not-relative",),
    # A constant that stands for -inf may be taken from the whole batch, and shows with one row already.
    "sampling.top-k-fill": ("sampling.double-softmax", "batch.mixing"),
    "sampling.empty-nucleus": ("sampling.nucleus-boundary",),
    "loss.unshifted": ("loss.pads-counted",),
    "loss.shifted-twice": ("loss.pads-counted", "loss.eos-masked"),
    "tying.lost": ("weights.heads-tied",),
    # What is wrong at each call stands before a mask that only some calls give.
    "parameter.unused": ("mask.ignored",),
    "device.hard-coded": ("mask.ignored",),
}
"""What each fault is seen to bring about; a name that stands on the right of another that was found comes after it."""


LATE = frozenset({"parameter.unused", "dropout.never-active", "device.hard-coded"})
"""What almost any other mistake may bring about, or what may stand beside it: named after all others."""


def ordered(faults: Sequence[Fault]) -> list[Fault]:
    """The faults, one a name, causes first, among them those that a formula reproduces, then in the order found."""
    first: dict[str, Fault] = {}
    for fault in faults:
        known = first.get(fault.id)
        if known is None or (known.certainty == "consistent" and fault.certainty == "reproduced"):
            first[fault.id] = fault
    brought = {name for fault in first.values() for name in CONSEQUENCES.get(fault.id, ())}
    return sorted(
        first.values(), key=lambda fault: (fault.id in brought, fault.id in LATE, fault.certainty != "reproduced")
    )
