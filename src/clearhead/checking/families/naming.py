"""From parts that differ and reasons to faults: one a change, named by block and component."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from clearhead.checking.common.trial import apart
from clearhead.checking.diff.report import Reason
from clearhead.checking.families.foreign import foreign
from clearhead.checking.families.known import Known
from clearhead.checking.families.parts import block_of, component, inside
from clearhead.checking.families.running import output_of
from clearhead.checking.families.walk import Gap, Walk
from clearhead.checking.report import Fault
from clearhead.messages import say

_Key = tuple[str, str, str, str, str]


def named(known: Known, walk: Walk, why: Sequence[Reason]) -> list[Fault]:
    """One fault for each change: the same one in several blocks is one.

    Args:
        known: the module.
        walk: ours beside theirs.
        why: a reason for each broken part.
    """
    groups: dict[_Key, list[tuple[Gap, Reason, str]]] = {}
    for gap, reason in zip(walk.broken, why, strict=True):
        path = walk.seen.paths.get(gap.stage, "")
        code, line = foreign(known.module, path, known.home)
        text = say("families.runs", text=reason.text, code=code) if code else reason.text
        key = (reason.id, component(gap.stage), _alike(gap.stage), text, line)
        around = path.rpartition(".")[0] if gap.stage in walk.seen.within else path
        groups.setdefault(key, []).append((gap, reason, around))
    effect = _effect(walk)
    return [_fault(known, text, line, found, effect) for (*_, text, line), found in groups.items()]


def _alike(stage: str) -> str:
    """The name within the block; one for queries and keys, which are turned and scaled alike."""
    own = inside(stage)
    return own[:-1] + "q" if own.endswith((".q", ".k")) else own


def _fault(known: Known, text: str, line: str, found: list[tuple[Gap, Reason, str]], effect: float | None) -> Fault:
    gap, reason, path = max(found, key=lambda each: each[0].largest)
    evidence = say(
        "families.found",
        place=place_word([each.stage for each, _, _ in found]),
        part=part_word(component(gap.stage)),
        stage=", ".join([each.stage for each, _, _ in found][:3]) + (" ..." if len(found) > 3 else ""),
        reason=text,
        gap=f"{gap.largest:.1e}",
        allowed=f"{gap.allowed:.1e}",
    )
    paths = ", ".join(dict.fromkeys(path or known.home.__name__ for _, _, path in found[:4]))
    where = f"{paths} ({line})" if line else paths
    fix = say("families.fix", family=known.family.name, path=path or known.home.__name__)
    return Fault(reason.id, reason.certainty, evidence, where, fix, effect)


def place_word(stages: Sequence[str]) -> str:
    """The blocks that stages are in: "block 0, 3", "block encoder 1"; or that they are outside of all."""
    blocks = [block_of(stage).replace("blocks.", "").replace(".", " ") for stage in stages]
    if not any(blocks):
        return say("families.outside")
    return say("families.blocks", blocks=", ".join(dict.fromkeys(each for each in blocks if each)))


def part_word(kind: str) -> str:
    """What a kind of component is called."""
    return say(f"families.part.{kind.replace('-', '_')}")


def _effect(walk: Walk) -> float | None:
    """How far their output is from what ours gives by itself, beside its size."""
    theirs = output_of(walk.seen.result)
    if theirs is None:
        return None
    with torch.no_grad():
        ours = walk.model(*walk.ids)
    if ours.shape != theirs.shape:
        return None
    gap = apart(ours, theirs)
    return gap if gap < float("inf") else None
