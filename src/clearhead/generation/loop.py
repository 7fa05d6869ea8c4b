"""The decode loop: read, distribution, draw, append. Plain, in batches and with a draft, it is this one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.generation.drafts import NO_DRAFT, Draft, Proposal
from clearhead.generation.draws import Draw, chances_after, dice
from clearhead.generation.pace import Round
from clearhead.generation.rows import Group, Reader, Row
from clearhead.generation.sampling import SamplingSettings
from clearhead.ops.softmax import at_least_float32


class Step(NamedTuple):
    """One generated token."""

    id: int
    logprob: float
    """ln of the model's own probability, before any setting (nats)."""
    chance: float
    """The probability that the settings gave it."""
    alternatives: tuple[tuple[int, float], ...] = ()
    """The model's best tokens at this place and their logprobs, best first."""


@dataclass(eq=False)
class Writing(Row):
    """A row that is being written."""

    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    draw: Draw = field(default_factory=lambda: dice(0))
    """The row's own randomness, so that its text does not depend on who else is being written."""
    draft: Draft = NO_DRAFT
    """Who proposes tokens; a row with a draft is read by itself."""
    alternatives: int = 0
    """How many alternatives each step names."""


def decode(reader: Reader, rows: Sequence[Writing]) -> Iterator[tuple[Writing, Step]]:
    """Write token after token to all rows, until each has been closed by who asks for the steps.

    Every token is read once and its keys and values are kept, up to the context; past it by `reader.overflow`. Rows that are closed
    are not read any more.

    Args:
        reader: how to read.
        rows: with at least one id each, within the context where `overflow` is "stop".

    Raises:
        UserError: if the model's logits are not numbers.
    """
    together = [row for row in rows if row.draft is NO_DRAFT]
    groups = [Group(reader, [row]) for row in rows if row.draft is not NO_DRAFT]
    groups += [Group(reader, together)] if together else []
    while groups := [part for group in groups for part in group.parts()]:
        for group in groups:
            yield from _round(group)


def _round(group: Group[Writing]) -> Iterator[tuple[Writing, Step]]:
    """One reading of a group, and the tokens that come of it: one a row, or more where proposals were accepted."""
    began, row, room, before = time.perf_counter(), group.rows[0], group.room, len(group.rows[0].ids)
    proposals = row.draft.propose(row, row.sampling, row.draw, room)
    logits = group.read([proposal.id for proposal in proposals])
    seconds = time.perf_counter() - began
    for each, scores in zip(group.rows, logits, strict=True):
        began = time.perf_counter()
        # Whoever took the step of another row may have closed this one.
        for step in _steps(each, scores, proposals) if each.open else ():
            # Not what whoever takes the step does with it.
            seconds += time.perf_counter() - began
            yield each, step
            began = time.perf_counter()
    if room:
        written = row.ids[before:]
        accepted = sum(id == proposal.id for id, proposal in zip(written, proposals, strict=False))
        row.draft.learn(Round(len(proposals), accepted, len(written), seconds))


def _steps(row: Writing, logits: Tensor, proposals: Sequence[Proposal]) -> Iterator[Step]:
    """Draw a token at each place, as long as the proposal for it was accepted and the row is open.

    Args:
        row: grows by each token before its step is yielded.
        logits: (1+k,V).
        proposals: k.
    """
    for place, proposal in zip(logits, [*proposals, None], strict=True):
        step = _drawn(row, place, proposal)
        row.ids.append(step.id)
        yield step
        if not row.open or proposal is None or step.id != proposal.id:
            return


@torch.inference_mode()
def _drawn(row: Writing, logits: Tensor, proposal: Proposal | None) -> Step:
    chances = chances_after(row.ids, logits, row.sampling)
    drawn = row.draw(chances) if proposal is None else accepted_or_redrawn(chances, proposal, row.draw)
    logprobs = logits.to(at_least_float32(logits.dtype)).log_softmax(-1)
    best = _best(logprobs, row.alternatives) if row.alternatives else ()
    return Step(drawn, float(logprobs[drawn]), float(chances[drawn]), best)


def _best(logprobs: Tensor, most: int) -> tuple[tuple[int, float], ...]:
    best = logprobs.topk(min(most, len(logprobs)))
    return tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))


def accepted_or_redrawn(target: Tensor, proposal: Proposal, draw: Draw) -> int:
    """A token distributed as p, made from one distributed as q: x with chance min(1, p[x] / q[x]), else from max(0, p - q) / Σ.

    The chance of a token t is q[t] · min(1, p[t]/q[t]) + (1 - Σ min(p, q)) · max(0, p[t] - q[t]) / Σ max(0, p - q)
    = min(p[t], q[t]) + max(0, p[t] - q[t]) = p[t]. A token that is drawn anew is never x: its rest is 0.

    Args:
        target: p (V).
        proposal: x and q (V).
        draw: the randomness.

    Source: Leviathan et al. 2023 §2.3 and appendix A.1 (arXiv:2211.17192).
    """
    p, q = target.double(), proposal.chances.double()
    kept, rest = float(p[proposal.id] / q[proposal.id]), (p - q).clamp(min=0)
    # Where p and q differ by rounding alone there may be no rest to draw from.
    if kept >= 1 or not rest.any() or draw(torch.tensor([kept, 1 - kept], dtype=torch.float64)) == 0:
        return proposal.id
    return draw(rest)
