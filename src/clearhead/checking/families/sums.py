"""What became of the stream and of the branch that is added to it, and of the norm that follows or should."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from clearhead.checking.common.trial import apart
from clearhead.checking.families import algebra
from clearhead.checking.families.parts import block_of, component, inside
from clearhead.checking.families.walk import Gap, Walk, forced, stream_before
from clearhead.formats.opened import Config
from clearhead.messages import say
from clearhead.models.choices import PostNorm
from clearhead.models.encoder import Encoder

BRANCHES = {"middle": "attention", "crossed": "cross_attention", "output": "feedforward"}
"""Which branch each sum adds."""

Why = tuple[str, str, float]
"""The id, what is said, and what remains of the difference."""


def of_sum(walk: Walk, config: Config, gap: Gap, theirs: Tensor) -> Iterator[Why]:
    """Why a sum, or a norm, is not what it should be: the likeliest first.

    Args:
        walk: ours beside theirs.
        config: ours.
        gap: of the sum or the norm.
        theirs: their tensor, with the axes of ours.
    """
    before = stream_before(walk, config, gap.stage)
    if before is None or before.shape != theirs.shape:
        return
    if component(gap.stage) == "norm":
        if apart(before, theirs) <= gap.reached:
            yield _missing(gap), say("families.no_norm"), apart(before, theirs)
    elif isinstance(config.block, PostNorm):
        yield from _normed(walk, gap, theirs, before)
    else:
        yield from _mixed(gap, theirs, before)


def taken_by_norm(walk: Walk, config: Config, stage: str) -> tuple[str, Tensor | None]:
    """The path of our norm that gives this tensor, and what it takes; "" and None if no norm does, or that was not seen.

    Args:
        walk: ours beside theirs.
        config: ours.
        stage: a norm, a sum that is normalised ("blocks.1.output"), or what an embedding's norm gives ("input").
    """
    if component(stage) == "norm":
        return stage, stream_before(walk, config, stage)
    if stage == "input" and isinstance(walk.model, Encoder):
        return "embedding_norm", _entering(walk, "embedding_norm")
    if component(stage) != "residual" or not isinstance(config.block, PostNorm):
        return "", None
    name = BRANCHES[inside(stage)]
    before, branch = stream_before(walk, config, stage), walk.seen.tensors.get(f"{block_of(stage)}.{name}.output")
    taken = None if before is None or branch is None else before + branch.double()
    return f"{block_of(stage)}.{name}_norm", taken


def _entering(walk: Walk, path: str) -> Tensor | None:
    """What a module of ours takes, of the same ids."""
    taken: list[Tensor] = []
    handle = walk.model.get_submodule(path).register_forward_pre_hook(lambda _module, args: taken.append(args[0]))
    try:
        forced(walk.model, walk.ids, walk.seen.tensors, ("embedding",))
    finally:
        handle.remove()
    return next(iter(taken), None)


def _missing(gap: Gap) -> str:
    return "norm.placement" if block_of(gap.stage) else "norm.final-missing"


def _mixed(gap: Gap, theirs: Tensor, before: Tensor) -> Iterator[Why]:
    """Theirs as a mixture of stream and branch."""
    branch = gap.ours - before
    found = algebra.mixture(before, branch, theirs, gap.reached)
    if found is None:
        return
    stream, added = (round(each, 6) for each in found)
    after = apart(found[0] * before + found[1] * branch, theirs)
    if stream == 0:
        yield "residual.missing", say("families.dropped", factor=f"{added:.6g}"), after
    elif added == 0:
        yield "family.changed", say("families.branch_dropped", factor=f"{stream:.6g}"), after
    else:
        id = "residual.doubled" if (stream, added) == (2, 1) else "residual.scale"
        yield id, say("families.sum", stream=f"{stream:.6g}", branch=f"{added:.6g}"), after


def _normed(walk: Walk, gap: Gap, theirs: Tensor, before: Tensor) -> Iterator[Why]:
    """The same where the sum is normalised: what the norm of one of the two alone would be, and the sum without its norm."""
    name = BRANCHES[inside(gap.stage)]
    branch = walk.seen.tensors.get(f"{block_of(gap.stage)}.{name}.output")
    norm = walk.model.get_submodule(f"{block_of(gap.stage)}.{name}_norm")
    if branch is None:
        return
    branch = branch.double()
    with torch.no_grad():
        for id, text, sum_ in (
            ("residual.missing", say("families.dropped", factor="1"), branch),
            ("family.changed", say("families.branch_dropped", factor="1"), before),
            ("residual.doubled", say("families.sum", stream="2", branch="1"), 2 * before + branch),
        ):
            after = apart(norm(sum_), theirs)
            if after <= gap.reached:
                yield id, text, after
    bare = apart(before + branch, theirs)
    if bare <= gap.reached:
        yield "norm.placement", say("families.no_norm"), bare
