"""Beam search: the most probable texts that a few rows side by side can find.

Source: Sutskever et al. 2014 §3.2 (arXiv:1409.3215); Wu et al. 2016 §7 (arXiv:1609.08144) for the length penalty.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from clearhead.formats.load import Loaded
from clearhead.generation.endings import Ends, FinishReason, ends_for
from clearhead.generation.request import Request, ids_of
from clearhead.generation.rows import Group, Overflow, Row
from clearhead.generation.transcript import Transcript
from clearhead.generation.writing import reader_for
from clearhead.messages import UserError, say
from clearhead.ops.softmax import at_least_float32

STRONGEST = 10
"""The largest α: beyond it only the longest texts count, and length^α soon leaves the range of numbers."""


@dataclass(frozen=True)
class Beam:
    """A text that was found."""

    text: str
    ids: list[int]
    """All tokens, an end id and those of a stop string among them."""
    score: float
    """ln of the model's probability of all ids after the prompt (nats): the sum of their logprobs."""
    finish_reason: FinishReason


@dataclass(eq=False)
class _Hypothesis(Row):
    """A row and what it has come to."""

    score: float = 0.0


def beam_search(
    loaded: Loaded,
    prompt: str | Sequence[int],
    *,
    beams: int = 4,
    max_tokens: int = 200,
    stop: Sequence[str] = (),
    eos: Collection[int] | None = None,
    length_penalty: float = 0.0,
    overflow: Overflow | None = None,
) -> list[Beam]:
    """The best texts found, the best first, at most `beams` of them. Nothing is drawn, so nothing depends on a seed.

    At each step every open text is continued by every token and the `beams` most probable continuations are kept; those that end
    are set aside. The search is over when none that is open can become better than those. With one beam it is greedy decoding; with
    as many as there are texts it is exhaustive.

    Args:
        loaded: what `load` gave.
        prompt: as in `generate`.
        beams: how many texts are kept at each step, at least 1.
        max_tokens: as in `generate`.
        stop: as in `generate`.
        eos: as in `generate`.
        length_penalty: α from 0 to 10; texts are ranked by score / length^α. 0 ranks by probability, 1 by the mean of the logprobs.
        overflow: as in `generate`.

    Raises:
        UserError: as `generate`.
    """
    request = Request(prompt, max_tokens, stop=stop, eos=eos)
    if beams < 1:
        raise UserError(say("generation.setting", name="beams", value=beams, wanted="≥ 1"))
    if not 0 <= length_penalty <= STRONGEST:
        wanted = f"0 ≤ α ≤ {STRONGEST}"
        raise UserError(say("generation.setting", name="length_penalty", value=length_penalty, wanted=wanted))
    reader = reader_for(loaded, overflow)
    ids, source = ids_of(loaded, request)
    ends = ends_for(loaded, reader, request, len(ids))
    search = _Search(loaded, request, ends, beams, length_penalty, len(ids))
    return search.run(Group(reader, [_Hypothesis(ids, source)]))


@dataclass
class _Search:
    """What stays the same during a search, and what has been found."""

    loaded: Loaded
    request: Request
    ends: Ends
    beams: int
    length_penalty: float
    prompt: int
    """How many ids the prompt has."""
    found: list[Beam] = field(default_factory=list)

    def run(self, group: Group[_Hypothesis]) -> list[Beam]:
        """All steps."""
        if not self.request.max_tokens:
            return [Beam("", [], 0.0, "length")]
        going: Group[_Hypothesis] | None = group
        while going is not None:
            going = self._step(going)
        return sorted(self.found, key=self._rank, reverse=True)[: self.beams]

    def _step(self, group: Group[_Hypothesis]) -> Group[_Hypothesis] | None:
        """Continue all open texts by a token; None if the search is over."""
        (group,) = group.parts()
        parents, rows = [], []
        for parent, grown in _continued(group):
            if ended := self._ended(grown):
                self.found.append(ended)
            else:
                parents.append(parent)
                rows.append(grown)
            if len(rows) == self.beams:
                break
        if not rows or self._decided(rows):
            return None
        group.keep(parents)
        group.rows = rows
        return group

    def _ended(self, row: _Hypothesis) -> Beam | None:
        """The text as it is found, if it ends here."""
        transcript, written = Transcript(self.loaded.tokenizer.stream(), self.request.stop), row.ids[self.prompt :]
        text = "".join(transcript.push(id) for id in written if id not in self.ends.ids)
        reason = self.ends.reason(row, stopped=transcript.stopped)
        if reason is None:
            return None
        return Beam(text + transcript.finish(whole=reason == "eos"), written, row.score, reason)

    def _rank(self, beam: Beam) -> float:
        return self._value(beam.score, len(beam.ids))

    def _value(self, score: float, length: int) -> float:
        return float(score / length**self.length_penalty)

    def _decided(self, rows: Sequence[_Hypothesis]) -> bool:
        """Whether enough texts are found and none that is open can become better than the last of them.

        A score only falls, and what it is divided by is largest at `max_tokens`.
        """
        if len(self.found) < self.beams:
            return False
        best = max(self._value(row.score, self.request.max_tokens) for row in rows)
        return best <= sorted(map(self._rank, self.found), reverse=True)[self.beams - 1]


def _continued(group: Group[_Hypothesis]) -> Iterator[tuple[int, _Hypothesis]]:
    """Every text continued by every token that can follow, the most probable first: (which row it comes from, the longer one).

    Of equals the first row and the first token come first.
    """
    logits = group.read()[:, -1]
    if not bool(logits.amax(-1).isfinite().all()):
        raise UserError(say("generation.not_a_number"))
    scores = logits.to(at_least_float32(logits.dtype)).log_softmax(-1).double().cpu()
    totals = (scores + scores.new_tensor([[row.score] for row in group.rows])).flatten()
    for place in totals.argsort(descending=True, stable=True):
        parent, token = divmod(int(place), logits.shape[-1])
        score = float(totals[place])
        if score == -math.inf:
            return
        row = group.rows[parent]
        yield parent, _Hypothesis([*row.ids, token], row.source, row.start, score=score)
