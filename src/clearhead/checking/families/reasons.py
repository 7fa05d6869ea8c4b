"""Why a part differs: what its numbers are to ours, who sees whom, or a change of ours that gives what theirs gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from clearhead.checking.common.trial import apart
from clearhead.checking.diff.report import Reason
from clearhead.checking.diff.variation import Variation, made
from clearhead.checking.diff.variations import variations
from clearhead.checking.families import algebra, fitting
from clearhead.checking.families.parts import block_of, component, inside
from clearhead.checking.families.sums import of_sum, taken_by_norm
from clearhead.checking.families.walk import Gap, Walk, fitted, forced
from clearhead.checking.report import Certainty
from clearhead.checking.strangers import Attempt
from clearhead.formats.opened import Config
from clearhead.formats.weights import own_tensors
from clearhead.messages import say
from clearhead.models.choices import Rotary
from clearhead.ops.heads import repeat_heads
from clearhead.tracing.record import Recorder

CHANGED = "family.changed"
"""The id where the dictionary has no name for what was done."""

BETTER = 8.0
"""How much nearer a change must bring ours to theirs to be the reason."""

CONCERNED = {
    "embedding": ("embedding", "position", "positions", "norm", "sinusoid"),
    "norm": ("norm", "embedding"),
    "attention": ("scale", "attention", "window", "rotary", "position", "positions", "projection", "causal", "softmax"),
    "cross-attention": ("scale", "attention", "projection", "position", "positions", "softmax"),
    "feedforward": ("activation", "projection", "feedforward"),
    "residual": ("norm", "residual"),
    "head": ("head", "logits", "norm", "projection", "activation", "tying"),
}
"""The first words of ids of changes that a component may show."""


def reasons(walk: Walk, config: Config) -> list[Reason]:
    """One for each broken part, in their order.

    Args:
        walk: ours beside theirs.
        config: ours.
    """
    found = {gap.stage: _of_numbers(walk, config, gap) for gap in walk.broken}
    left = [gap for gap in walk.broken if found[gap.stage] is None]
    found.update(_of_variations(walk, config, left))
    found |= {gap.stage: _of_scale(walk, config, gap) for gap in left if found[gap.stage] is None}
    return [found[gap.stage] or _unknown(gap) for gap in walk.broken]


def _reason(gap: Gap, id: str, text: str, after: float | None) -> Reason:
    certainty: Certainty = "consistent" if after is None else "reproduced"
    return Reason(id, certainty, gap.stage, text, gap.largest, gap.largest if after is None else after)


def _unknown(gap: Gap) -> Reason:
    return _reason(gap, CHANGED, say("families.unknown"), None)


def _of_numbers(walk: Walk, config: Config, gap: Gap) -> Reason | None:
    """What the two tensors are to each other."""
    theirs = fitted(gap.theirs, gap.ours)
    if theirs is None:
        return _reason(gap, CHANGED, say("families.shape", ours=_sizes(gap.ours), theirs=_sizes(gap.theirs)), None)
    if not bool(theirs.isfinite().all()):
        return _reason(gap, "weights.non-finite", say("families.not_finite"), None)
    if not bool(theirs.any()):
        return _reason(gap, CHANGED, say("families.zero"), 0.0)
    found = _simple(walk, config, gap, theirs)
    return next((each for each in found if each.certainty == "consistent" or BETTER * each.after <= gap.largest), None)


def _simple(walk: Walk, config: Config, gap: Gap, theirs: Tensor) -> Iterator[Reason]:
    kind = component(gap.stage)
    yield from _of_eps(walk, config, gap, theirs)
    if gap.stage == "positions" and theirs.dim() > 1:
        yield from _of_places(gap, theirs)
    if kind in ("residual", "norm"):
        yield from (_reason(gap, *each) for each in of_sum(walk, config, gap, theirs))
    factor = algebra.multiple(gap.ours, theirs, gap.reached)
    if factor is not None:
        text, after = say("families.scaled", factor=f"{factor:.6g}"), apart(factor * gap.ours, theirs)
        yield _reason(gap, _scaled_id(gap.stage), text, after)
    if gap.ours.dim() == 4:
        yield from _of_attention(walk, config, gap, theirs)
    added = algebra.shift(gap.ours, theirs, gap.reached)
    if added is not None:
        text, id = say("families.shifted", size=f"{float(added.abs().max()):.3g}"), "projection.bias"
        yield _reason(gap, "norm.shift" if kind == "norm" else id, text, apart(gap.ours + added, theirs))


def _of_places(gap: Gap, theirs: Tensor) -> Iterator[Reason]:
    """One position read for all, (..., T, D)."""
    for position in range(theirs.shape[-2]):
        after = apart(gap.ours[..., position : position + 1, :].expand_as(theirs), theirs)
        if after <= gap.reached:
            yield _reason(gap, "position.unused", say("families.one_position", position=position), after)


def _of_attention(walk: Walk, config: Config, gap: Gap, theirs: Tensor) -> Iterator[Reason]:
    """What has heads: queries, keys, values, what is mixed of them."""
    yield from _of_heads(gap, theirs)
    if gap.stage.endswith((".q", ".k")):
        yield from _of_angles(config, gap, theirs)
    if gap.stage.endswith(".mixed"):
        yield from _of_mask(walk, gap)


def _of_angles(config: Config, gap: Gap, theirs: Tensor) -> Iterator[Reason]:
    """Another base of rotary positions, or other positions."""
    number = int(block_of(gap.stage).rpartition(".")[2])
    rotary = config.positions_of(config.sights[number])
    found = fitting.other_angles(rotary, gap.ours, theirs, gap.reached) if isinstance(rotary, Rotary) else None
    if found is not None:
        kind, value, back = found
        own = f"{getattr(rotary, 'theta', 0):g}"
        text = (
            say("families.base", ours=own, theirs=f"{value:g}")
            if kind == "base"
            else say("families.offset", shift=f"{value:+g}")
        )
        yield _reason(gap, "rotary.base" if kind == "base" else "position.offset", text, apart(back, theirs))


def _of_scale(walk: Walk, config: Config, gap: Gap) -> Reason | None:
    """Scores multiplied by another number, whatever it is."""
    prefix, theirs = gap.stage.removesuffix(".mixed"), fitted(gap.theirs, gap.ours)
    parts = [walk.gaps[name] for word in "qkv" if (name := f"{prefix}.{word}") in walk.gaps]
    if not gap.stage.endswith(".mixed") or theirs is None or len(parts) < 3 or any(each.differs for each in parts):
        return None
    recorder = Recorder((f"{prefix}.scores", f"{prefix}.weights"))
    forced(walk.model, walk.ids, walk.seen.tensors, walk.gaps, after=recorder)
    scores, weights = (recorder.tensors[f"{prefix}.{word}"] for word in ("scores", "weights"))
    before = config.width_of_head**-0.5 if config.attention_scale is None else config.attention_scale
    q, k, v = (each.theirs for each in parts)
    products = q @ repeat_heads(k, q.shape[-3]).transpose(-2, -1)
    rest = (scores - before * products).masked_fill(weights == 0, -torch.inf)
    found = fitting.other_scale(products, rest, repeat_heads(v, q.shape[-3]), theirs, before)
    if found is None or found[1] > gap.reached:
        return None
    text = say("families.scale", ours=f"{before:.6g}", theirs=f"{found[0]:.6g}")
    return _reason(gap, "scale.value", text, found[1])


def _of_eps(walk: Walk, config: Config, gap: Gap, theirs: Tensor) -> Iterator[Reason]:
    """Another eps, whatever it is."""
    norm, taken = taken_by_norm(walk, config, gap.stage)
    bias = own_tensors(walk.model).get(f"{norm}.bias", torch.zeros(()))
    eps = (
        None
        if taken is None or taken.shape != theirs.shape
        else fitting.other_eps(config.norm, taken, gap.ours - bias, theirs - bias)
    )
    if eps is None:
        return
    changed = replace(config, norm=replace(config.norm, eps=eps))  # type: ignore[type-var]  # norms are dataclasses
    model = made(Variation("norm.eps-value", changed, "", ""), own_tensors(walk.model))
    after = apart(forced(model, walk.ids, walk.seen.tensors, walk.gaps)[gap.stage], theirs)
    if after <= gap.reached:
        text = say("families.eps", ours=f"{config.norm.eps:g}", theirs=f"{eps:g}")
        yield _reason(gap, "norm.eps-value", text, after)


def _of_heads(gap: Gap, theirs: Tensor) -> Iterator[Reason]:
    factors = algebra.head_factors(gap.ours, theirs, gap.reached)
    if factors is not None:
        none = [head for head, factor in enumerate(factors) if factor == 0]
        others = [f"{head}: {factor:.4g}" for head, factor in enumerate(factors) if factor not in (0, 1)]
        text = say("families.heads_zero", heads=_list(none)) if none else ""
        more = say("families.heads_scaled", heads=", ".join(others)) if others else ""
        scaled = gap.ours * torch.tensor(factors, dtype=gap.ours.dtype)[:, None, None]
        yield _reason(gap, CHANGED, "; ".join(each for each in (text, more) if each), apart(scaled, theirs))
    order = algebra.head_order(gap.ours, theirs, gap.reached)
    if order is not None:
        yield _reason(
            gap, "qkv.layout", say("families.heads_order", heads=_list(order)), apart(gap.ours[:, order], theirs)
        )


def _of_mask(walk: Walk, gap: Gap) -> Iterator[Reason]:
    """Which queries see other keys than in ours."""
    prefix = gap.stage.removesuffix(".mixed")
    theirs, recorder = walk.seen.visible.get(prefix), Recorder(f"{prefix}.weights")
    if theirs is None:
        return
    with torch.no_grad():
        walk.model(*walk.ids, tap=recorder)
    ours = recorder.tensors[f"{prefix}.weights"] > 0
    if theirs.shape[-2:] != ours.shape[-2:]:
        return
    more, fewer = ((one & ~other).flatten(0, -3).any(dim=0) for one, other in ((theirs, ours), (ours, theirs)))
    texts = [_pairs(more, seen=True), _pairs(fewer, seen=False)]
    texts = [text for text in texts if text]
    if texts:
        ahead = bool(more.triu(1).any()) and not bool(ours.flatten(0, -3).any(dim=0).triu(1).any())
        yield _reason(gap, "causal.future-leak" if ahead else CHANGED, "; ".join(texts), None)


def _pairs(pairs: Tensor, *, seen: bool) -> str:
    """The first query of those pairs with its keys, and how many pairs there are; "" if there is none."""
    if not bool(pairs.any()):
        return ""
    query, keys = next((q, row.nonzero()[:, 0].tolist()) for q, row in enumerate(pairs) if bool(row.any()))
    return say("families.sees" if seen else "families.misses", query=query, keys=_list(keys), pairs=int(pairs.sum()))


def _of_variations(walk: Walk, config: Config, left: Sequence[Gap]) -> dict[str, Reason]:
    """The first change of ours, the commonest first, that gives what theirs gives at each of these parts."""
    found: dict[str, Reason] = {}
    wanted = {gap.stage: gap for gap in left}
    weights = own_tensors(walk.model)
    names = list(walk.gaps)
    for variation in variations(config, walk.ids[-1].shape[-1]) if wanted else ():
        some = [stage for stage in wanted if _may_show(variation, stage)]
        if not some:
            continue
        ours: dict[str, Tensor] = {}
        with Attempt():
            ours = forced(made(variation, weights), walk.ids, walk.seen.tensors, names)
        for stage in some:
            gap, theirs = wanted[stage], fitted(wanted[stage].theirs, wanted[stage].ours)
            after = apart(ours[stage], theirs) if stage in ours and theirs is not None else float("inf")
            if after <= gap.reached and BETTER * after <= gap.largest:
                text = say("families.instead", ours=variation.text_a, theirs=variation.text_b)
                found[stage] = _reason(gap, variation.id, text, after)
                del wanted[stage]
        if not wanted:
            break
    return found


def _may_show(variation: Variation, stage: str) -> bool:
    return variation.id.partition(".")[0] in CONCERNED[component(stage)]


def _scaled_id(stage: str) -> str:
    kind = component(stage)
    if kind in ("embedding", "head"):
        return f"{kind}.scale"
    return "residual.scale" if inside(stage).endswith("output") else CHANGED


def _list(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:6]))
    return f"{shown}, ..." if len(numbers) > 6 else shown


def _sizes(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape))
