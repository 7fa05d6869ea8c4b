"""Patching: which parts of a forward carry what tells a clean text from a corrupted one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import torch
from torch import Tensor

from clearhead.messages import UserError, say
from clearhead.ops.tap import NO_TAP, Tap
from clearhead.tracing.edit import Edit, Editor, patch, replace
from clearhead.tracing.gradients import Watch, differentiable, watched
from clearhead.tracing.metrics import Metric
from clearhead.tracing.names import axes_of, known_axes
from clearhead.tracing.parts import Model, must_not_drop
from clearhead.tracing.patched import By, Patching
from clearhead.tracing.record import Recorder
from clearhead.tracing.trace import Input, input_of, run

Ids = str | Sequence[int]

AXES_OF: dict[By, tuple[str, ...]] = {"position": ("T", "M"), "head": ("H", "K"), "name": ()}
"""Along which axis a tensor is taken apart: the first of these that it has."""

NAMES_OF: dict[By, str] = {"position": "*blocks.*.output", "head": "*attention.mixed", "name": "*blocks.*.output"}
"""What is patched unless names are given: branches and the stream behind each block, or what each head mixed."""


@dataclass(frozen=True)
class Unit:
    """A part of a named tensor that is patched at a time.

    Args:
        name: of the tensor.
        axis: its letter; None for all of the tensor.
        index: along the axis.
    """

    name: str
    axis: str | None
    index: int

    def edit(self, clean: Mapping[str, Tensor]) -> Edit:
        """This part from the clean run. Only the heads or positions concerned are touched.

        Args:
            clean: the tensors of the clean run.
        """
        if self.axis is None:
            return Edit(self.name, patch(clean))
        place = axis_in(clean[self.name], self.name, self.axis)
        part = clean[self.name].narrow(place, self.index, 1)
        if self.axis == "K":
            # Edits choose among query heads; keys and values come whole.
            return Edit(self.name, lambda _, whole: whole.index_copy(place, _place(self.index, whole), part.to(whole)))
        if self.axis == "H":
            return Edit(self.name, replace(part), heads=[self.index])
        return Edit(self.name, replace(part), positions=[self.index])


def activation_patching(
    model: Model,
    clean: Ids,
    corrupted: Ids,
    metric: Metric,
    *,
    names: str | Sequence[str] | None = None,
    by: By = "position",
    target: Ids | None = None,
) -> Patching:
    """The share of a metric that comes back when one part of the corrupted run is that of the clean run, for every part.

        share = (metric(patched) - metric(corrupted)) / (metric(clean) - metric(corrupted))

        activation_patching(loaded, "小猫趴在", "小狗趴在", logit_difference("喵", "汪", tokenizer=loaded.tokenizer))

    A part that restores much carries, in this run, what the metric needs of the difference between the texts. It costs one forward a part.
    Weights and scores of a fused kernel are computed again for the part alone. Nothing is changed on the model.

    Args:
        model: what `load` gave, or a model, dropping nothing.
        clean: text or ids, (T) tokens; for an encoder-decoder the source.
        corrupted: as many tokens; those that differ are what is asked about.
        metric: from the logits (1,T,V) to one number.
        names: patterns of names; those without the axis asked are left out. By default what each block and branch puts out, or, by
            head, what each head mixed.
        by: "position" (of queries in scores and weights, of tokens elsewhere), "head" (key/value heads for keys and values), or
            "name", the whole tensor.
        target: for an encoder-decoder, what it has written so far in both runs.

    Raises:
        UserError: if the texts differ in length, the metric is the same for both or not one number, the model drops at random, or no
            tensor has such a name and axis.

    Source: Vig et al. 2020 (arXiv:2004.12265); Meng et al. 2022 (arXiv:2202.05262) §2.
    """
    pair = _pair(model, clean, corrupted, metric, names=names, by=by, target=target)
    rows = []
    for name, length in pair.sizes.items():
        units = [Unit(name, _axis(name, by), index) for index in range(length)]
        edited = [_metric(model, pair.corrupted, metric, Editor(unit.edit(pair.tensors))) for unit in units]
        rows.append(torch.tensor(edited, dtype=torch.float64) - pair.bad)
    return _patching(pair, rows, by, estimated=False)


def attribution_patching(
    model: Model,
    clean: Ids,
    corrupted: Ids,
    metric: Metric,
    *,
    names: str | Sequence[str] | None = None,
    by: By = "position",
    target: Ids | None = None,
) -> Patching:
    """The first-order estimate of `activation_patching`, for all parts at once: a few forwards and one backward.

        share ≈ Σ (clean - corrupted) · d metric / d tensor / (metric(clean) - metric(corrupted))

    the sum over the part, the gradient that of the corrupted run. It is exact where the metric is linear in the part, and wrong where a
    softmax or a norm bends between the two runs: look at the parts it names with `activation_patching`.

    Args:
        model: as there.
        clean: as there.
        corrupted: as there.
        metric: as there; it must be differentiable.
        names: as there.
        by: as there.
        target: as there.

    Raises:
        UserError: as there, and if the metric depends on no tensor.

    Source: Nanda 2023, "Attribution Patching"; Syed et al. 2023 (arXiv:2310.10348).
    """
    pair = _pair(model, clean, corrupted, metric, names=names, by=by, target=target)
    watch, rows = Watch(list(pair.sizes)), []
    with differentiable():
        read = input_of(model, corrupted, target)
        found = watch.derivatives(watched(model, read, metric, watch))
    for name, value in watch.values().items():
        change = (pair.tensors[name] - value).double() * found[name].double()
        axis = _axis(name, by)
        rows.append(change.sum().reshape(1) if axis is None else _summed(change, axis_in(change, name, axis)))
    return _patching(pair, rows, by, estimated=True)


@dataclass(frozen=True)
class _Pair:
    """A clean run, and what is known of the corrupted one."""

    clean: Input
    corrupted: Input
    tensors: dict[str, Tensor]
    """Of the clean run."""
    sizes: dict[str, int]
    """How many parts each of them has."""
    good: float
    bad: float


def _pair(
    model: Model,
    clean: Ids,
    corrupted: Ids,
    metric: Metric,
    *,
    names: str | Sequence[str] | None,
    by: By,
    target: Ids | None,
) -> _Pair:
    """The clean run, and the metric of both."""
    if by not in AXES_OF:
        raise UserError(say("tracing.by", by=by))
    must_not_drop(model)
    first, second = input_of(model, clean, target), input_of(model, corrupted, target)
    lengths = [len(read.tokens) + len(read.source_tokens) for read in (first, second)]
    if lengths[0] != lengths[1]:
        raise UserError(say("tracing.lengths", clean=_length(first), corrupted=_length(second)))
    recorder = Recorder(NAMES_OF[by] if names is None else names)
    good, bad = _metric(model, first, metric, recorder), _metric(model, second, metric)
    tensors = {name: tensor for name, tensor in recorder.tensors.items() if by == "name" or _axis(name, by)}
    if not tensors:
        raise UserError(say("tracing.no_part", names=recorder.selection.names, by=by))
    if good == bad or not math.isfinite(good - bad):
        raise UserError(say("tracing.nothing_to_restore", clean=good, corrupted=bad))
    return _Pair(first, second, tensors, {name: _count(name, each, by) for name, each in tensors.items()}, good, bad)


def _metric(model: Model, read: Input, metric: Metric, tap: Tap = NO_TAP) -> float:
    with torch.no_grad():
        found = metric(run(model, read, tap))
    if found.numel() != 1:
        raise UserError(say("tracing.loss_not_scalar", shape=tuple(found.shape)))
    return float(found)


def _patching(pair: _Pair, rows: Sequence[Tensor], by: By, *, estimated: bool) -> Patching:
    """Shares of the differences in the metric, a row a name."""
    whole = list(zip_longest(*(row.tolist() for row in rows), fillvalue=math.nan))
    shares = torch.tensor(whole, dtype=torch.float64).T / (pair.good - pair.bad)
    labels = [_labels(pair, name, by) for name in pair.sizes]
    return Patching(list(pair.sizes), labels, shares, by, pair.good, pair.bad, estimated)


def _labels(pair: _Pair, name: str, by: By) -> list[str]:
    if by != "position":
        return [""] if by == "name" else [str(head) for head in range(pair.sizes[name])]
    source = _axis(name, by) == "M"
    both = [read.source_tokens if source else read.tokens for read in (pair.clean, pair.corrupted)]
    return [ours if ours == theirs else f"{ours}→{theirs}" for ours, theirs in zip(*both, strict=True)]


def _axis(name: str, by: By) -> str | None:
    """The letter of the axis along which a tensor is taken apart; None if it has none, or is taken whole."""
    axes = known_axes(name)
    return next((axis for axis in AXES_OF[by] if axis in axes), None)


def axis_in(tensor: Tensor, name: str, axis: str) -> int:
    """Which axis of the tensor has this letter; axes in front that only some forwards have shift the others."""
    axes = axes_of(name)
    return tensor.dim() - len(axes) + axes.index(axis)


def _count(name: str, tensor: Tensor, by: By) -> int:
    axis = _axis(name, by)
    return 1 if axis is None else tensor.shape[axis_in(tensor, name, axis)]


def _summed(tensor: Tensor, axis: int) -> Tensor:
    """The sum over all other axes."""
    return tensor.movedim(axis, 0).flatten(1).sum(1)


def _place(index: int, tensor: Tensor) -> Tensor:
    return torch.tensor([index], device=tensor.device)


def _length(read: Input) -> int:
    """Of the text that was given: what an encoder read, or the whole."""
    return len(read.source_tokens or read.tokens)
