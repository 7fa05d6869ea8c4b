"""Ours beside theirs, each part by itself: after every part, ours goes on from their tensor."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.checking.common.trial import apart
from clearhead.checking.families.parts import block_of, component, inside, is_outer
from clearhead.checking.families.theirs import Seen
from clearhead.checking.rounding import UNIT
from clearhead.formats.opened import Config
from clearhead.models.choices import Parallel
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.ops.tap import NO_TAP, Tap
from clearhead.tracing.edit import Chain, Edit, Editor

EXPLAINED = 2.0**-20
"""What float32 in a norm, in angles or in a softmax may do to one part, beside the size of its numbers: 16 roundings. Only where it was seen."""

GROWN = 4.0
"""How often what float32 does to ours may be what it does to theirs, whose order of operations is another."""

EXACT = 2.0**-42
"""Rounding of float64."""

PARTED = 2.0**-12
"""How much of a difference may remain, as far as float32 might explain that, where a change of ours is the reason for it."""

Ids = tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class Gap:
    """One part, ours beside theirs, made of the same tensors.

    Args:
        stage: our name.
        ours: what ours makes.
        theirs: what theirs made.
        largest: the largest difference beside the largest number.
        allowed: what rounding explains: of float32 where one was seen to run, otherwise of float64.
    """

    stage: str
    ours: Tensor
    theirs: Tensor
    largest: float
    allowed: float

    @property
    def differs(self) -> bool:
        """Whether rounding does not explain it."""
        return not self.largest <= self.allowed

    @property
    def reached(self) -> float:
        """What may remain where a reason is found: numbers that are sought are found to a few digits."""
        return max(self.allowed, min(EXPLAINED, PARTED * self.largest))


@dataclass(frozen=True, eq=False)
class Walk:
    """All parts.

    Args:
        model: ours, in float64.
        ids: what both read.
        seen: their forward.
        gaps: of every part at which one component hands on to the next, and of the inner parts of components that differ.
        broken: those that differ, each made of what theirs made before, in their order.
        rough: ours in the narrowest type that theirs may use inside.
    """

    model: nn.Module
    rough: nn.Module
    ids: Ids
    seen: Seen
    gaps: Mapping[str, Gap]
    broken: tuple[Gap, ...]


def walked(model: nn.Module, ids: Ids, seen: Seen, narrow: torch.dtype) -> Walk:
    """Both beside each other.

    Components first. What is inside of one, a kernel with scaled queries say, is its own affair as long as what it gives is
    right; only of one that differs the inner parts are looked at.

    Args:
        model: ours, in float64.
        ids: what theirs read in `seen`.
        seen: their forward.
        narrow: the narrowest type that theirs may use inside: float32, or that of its buffers.
    """
    outer = [stage for stage in seen.tensors if is_outer(stage)]
    rough = copy.deepcopy(model).to(narrow)
    gaps = _gaps(model, rough, ids, seen, outer)
    differing = {_group(stage) for stage, gap in gaps.items() if gap.differs}
    inner = [stage for stage in seen.tensors if not is_outer(stage) and _group(stage) in differing]
    broken = [gap for gap in gaps.values() if gap.differs]
    if inner:
        fine = _gaps(model, rough, ids, seen, [*outer, *inner])
        # A component that is right once its inner parts are given is broken inside, unless no part of it stands out.
        found = {stage: gap for stage, gap in fine.items() if gap.differs}
        groups = {_group(stage) for stage in found}
        broken = [*found.values(), *(gap for gap in broken if _group(gap.stage) not in groups)]
        gaps = {**fine, **{gap.stage: gap for gap in broken}}
        order = list(fine)
        broken.sort(key=lambda gap: order.index(gap.stage))
    return Walk(model, rough, ids, seen, gaps, tuple(broken))


def forced(
    model: nn.Module, ids: Ids, tensors: Mapping[str, Tensor], names: Iterable[str], *, after: Tap = NO_TAP
) -> dict[str, Tensor]:
    """What ours makes of their tensors, by name, in the order in which ours makes them.

    Args:
        model: ours.
        ids: what it reads.
        tensors: theirs.
        names: those that take the place of ours once ours has been kept.
        after: sees what ours goes on with.
    """
    kept: dict[str, Tensor] = {}

    def take(name: str, part: Tensor) -> Tensor:
        kept[name] = part
        given = fitted(tensors[name], part)
        return part if given is None else given.to(part)

    with torch.no_grad():
        model(*ids, tap=Chain(Editor(Edit(tuple(names), take)), after))
    return kept


def fitted(theirs: Tensor, ours: Tensor) -> Tensor | None:
    """Their tensor with the axes of ours: heads side by side become an axis, keys repeated for each query head are taken once.

    None if it cannot be the same tensor.
    """
    if theirs.shape == ours.shape:
        return theirs
    if ours.dim() == 4 and theirs.dim() == 3 and theirs.numel() == ours.numel():
        rows, heads, length, width = ours.shape
        return theirs.reshape(rows, length, heads, width).transpose(1, 2)
    if ours.dim() == 4 and theirs.dim() == 4 and theirs.shape[1] % ours.shape[1] == 0:
        taken = theirs[:, :: theirs.shape[1] // ours.shape[1]]
        return taken if taken.shape == ours.shape else None
    if theirs.dim() == ours.dim() + 1 and theirs.shape[1:] == ours.shape:
        return theirs[0]
    return None


def stream_before(walk: Walk, config: Config, stage: str) -> Tensor | None:
    """The stream that a norm takes, or that a branch was added to, as theirs had it; None if it was not seen.

    Args:
        walk: ours beside theirs.
        config: ours.
        stage: a norm ("blocks.1.feedforward_norm"), or a sum ("blocks.1.middle").
    """
    block, own = block_of(stage), inside(stage)
    if not block:
        stack, layers = stage.removesuffix("norm"), _layers(config, stage)
        before = f"{stack}blocks.{layers - 1}.output"
    else:
        stack, _, number = block.rpartition(".")
        first = f"{stack.removesuffix('blocks')}input" if number == "0" else f"{stack}.{int(number) - 1}.output"
        parallel = isinstance(config.block, Parallel)
        if parallel or own in ("attention_norm", "middle"):
            before = first
        elif own in ("cross_attention_norm", "crossed"):
            before = f"{block}.middle"
        else:
            before = f"{block}.crossed" if f"{block}.crossed" in walk.gaps else f"{block}.middle"
    found = walk.seen.tensors.get(before)
    return None if found is None else found.double()


def _layers(config: Config, stage: str) -> int:
    return (
        config.encoder.layers
        if isinstance(config, EncoderDecoderConfig) and stage.startswith("encoder")
        else config.layers
    )


def _gaps(model: nn.Module, rough: nn.Module, ids: Ids, seen: Seen, names: list[str]) -> dict[str, Gap]:
    ours = forced(model, ids, seen.tensors, names)
    rounded = forced(rough, ids, seen.tensors, names)
    found = {}
    exact = UNIT[torch.float64] / UNIT[next(rough.parameters()).dtype]
    for stage, tensor in ours.items():
        theirs = fitted(seen.tensors[stage], tensor)
        if theirs is None:
            if is_outer(stage):
                found[stage] = Gap(stage, tensor, seen.tensors[stage].double(), float("inf"), EXPLAINED)
            continue
        grown = GROWN * apart(rounded[stage], tensor)
        allowed = max(EXPLAINED, grown) if stage in seen.narrow else max(EXACT, exact * grown)
        found[stage] = Gap(stage, tensor, theirs.double(), apart(theirs, tensor), allowed)
    return found


def _group(stage: str) -> str:
    """The component in its block: "blocks.3 attention"."""
    return f"{block_of(stage)} {component(stage)}"
