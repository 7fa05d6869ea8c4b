"""Changes of a model of ours that the other side's own numbers suggest: its eps, its turns, a square matrix the wrong way round."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.diff.candidates import Candidate, candidate_of
from clearhead.checking.diff.formulas_norm import norms
from clearhead.checking.diff.formulas_rotary import turns
from clearhead.checking.diff.ours import ModelSide
from clearhead.checking.diff.reading import CLOSE, Reading
from clearhead.checking.diff.side import Walk
from clearhead.checking.diff.stages import PARTS, CodeStage
from clearhead.checking.diff.variation import Variation
from clearhead.messages import say
from clearhead.models.choices import Rotary
from clearhead.models.config_encoders import EncoderDecoderConfig

MOST = 90
"""How many stages of the other side are read: a block or two."""

ENDS = PARTS | frozenset(
    ("Linear", "linear", "matmul", "einsum", "Embedding", "embedding", "add", "__add__", "LayerNorm")
)
"""Operations that begin something new: what follows is a formula of their results."""


def suggested(side: ModelSide, other: Walk) -> Iterator[Candidate]:
    """The changes, the likeliest first.

    Args:
        side: ours.
        other: the forward of somebody's code; one of ours suggests nothing.
    """
    stages = other.stages[:MOST]
    if all(isinstance(stage, CodeStage) for stage in stages):
        near = CLOSE.get(other.narrowest, 2e-2)
        ends = {n: n for n, stage in enumerate(stages) if stage.made_by in ENDS}
        places = [n for n in range(len(stages)) if n not in ends]
        reading = Reading(Walk(stages, other.narrowest), ends, places, near)
        with torch.no_grad():
            yield from _of_turns(side, reading)
            yield from _of_norms(side, reading)
    yield from _transposed(side)


def _of_norms(side: ModelSide, reading: Reading) -> Iterator[Candidate]:
    """Its eps."""
    for place in reading.cone:
        found = norms(reading, place)
        if found:
            eps = float(str(found[0].key[5]))
            if eps > 0 and not math.isclose(eps, side.config.norm.eps, rel_tol=1e-2):
                # Every norm is a dataclass, its family is not.
                norm: Any = side.config.norm
                after = replace(side.config, norm=replace(norm, eps=eps))
                one, two = (say("variations.eps", value=f"{each:g}") for each in (norm.eps, eps))
                yield candidate_of(side, Variation("norm.eps-value", after, one, two))
            return


def _of_turns(side: ModelSide, reading: Reading) -> Iterator[Candidate]:
    """Its base and how many features it turns."""
    config = side.config
    if isinstance(config, EncoderDecoderConfig) or not isinstance(config.positions, Rotary):
        return
    own = config.positions
    for place in reading.cone:
        for found in turns(reading, place):
            _, pairing, turning, base, _, _ = found.key
            rounded = float(str(base))
            if not math.isfinite(rounded) or rounded <= 1:
                continue
            fraction = min(1.0, float(str(turning)) / config.width_of_head)
            other = replace(own, theta=rounded, fraction=fraction, interleaved=pairing == "interleaved")
            id = "rotary.base" if other == replace(own, theta=rounded) else "rotary.partial"
            if other != own:
                one, two = (
                    say("variations.base", value=f"{each.theta:g}")
                    if id == "rotary.base"
                    else say("variations.partial", value=f"{each.fraction:g}")
                    for each in (own, other)
                )
                yield candidate_of(side, Variation(id, replace(config, positions=other), one, two))
            return


def _transposed(side: ModelSide) -> Iterator[Candidate]:
    """A square matrix of every block the other way round; of q, k and v fused, one of the three."""
    kinds: dict[str, dict[str, Tensor]] = {}
    for name, tensor in side.tensors.items():
        if tensor.dim() != 2 or name not in side.weights:
            continue
        rows, columns = tensor.shape
        kind = re.sub(r"\d+", "*", name)
        if rows == columns:
            kinds.setdefault(kind, {})[name] = tensor.t()
        elif rows > columns and rows % columns == 0 and ".attention." in name and rows // columns <= 3:
            for part in range(rows // columns):
                turned = tensor.clone()
                turned[part * columns : (part + 1) * columns] = tensor[part * columns : (part + 1) * columns].t()
                kinds.setdefault(f"{kind} [{'qkv'[part]}]", {})[name] = turned
    for kind, tensors in kinds.items():
        one, two = (say("variations.square", name=kind, value=value) for value in ("x Wᵀ", "x W"))
        yield Candidate("load.transposed", one, two, partial(side.with_tensors, tensors))
