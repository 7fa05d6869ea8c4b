"""Speculative decoding writes texts with exactly the chances that the model gives them: every path of every draw is walked.

The code that runs is given a `draw` that enumerates; nothing is sampled and no bound is statistical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from clearhead.generation import loop
from clearhead.generation.drafts import Draft, LookupDraft, ModelDraft, Proposal
from clearhead.generation.draws import Draw
from clearhead.generation.loop import Step, Writing
from clearhead.generation.pace import Pace
from clearhead.generation.rows import Overflow, Reader, Row
from clearhead.generation.sampling import SamplingSettings
from clearhead.generation.stores import DoublingStore, WindowStore
from clearhead.models.choices import Learned, Rotary
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from tests.generation.enumerated import Always, chain, enumerated, farthest, nearly, opinionated, written

EXACT = 1e-12
PLAIN = SamplingSettings()
NO = float("-inf")
SETTINGS = {
    "plain": PLAIN,
    "cold": SamplingSettings(temperature=0.6),
    "greedy": SamplingSettings(temperature=0),
    "greedy, penalised": SamplingSettings(temperature=0, repetition_penalty=2, frequency_penalty=0.5),
    "top_k": SamplingSettings(top_k=2),
    "top_p": SamplingSettings(top_p=0.7),
    "min_p": SamplingSettings(min_p=0.33),
    "repetition": SamplingSettings(repetition_penalty=1.8),
    "presence": SamplingSettings(presence_penalty=0.9),
    "frequency": SamplingSettings(frequency_penalty=0.7),
    "bias": SamplingSettings(logit_bias={0: 1.5, 1: NO}),
    "allowed": SamplingSettings(allowed=frozenset([0, 2])),
    "all": SamplingSettings(1.3, 3, 0.97, 0.02, 1.2, 0.1, 0.2, {0: 0.5}, frozenset([0, 1, 2])),
    "other order": SamplingSettings(0.8, 2, frequency_penalty=0.6, order=("top_k", "penalties", "temperature")),
}
SMALL = DecoderConfig(vocab=3, layers=1, heads=2, kv_heads=1, width=8, context=9, positions=Rotary(), head_bias=True)
PROMPT = [0, 2, 1, 0, 2]
"""Look-up finds how it goes on."""

GOOD = 3
"""A seed of weights whose chances depend on every token seen and are all well above 0."""

NewDraft = Callable[[], Draft]


def model_draft(config: DecoderConfig, kind: str, k: int, prompt: Sequence[int] = PROMPT) -> NewDraft:
    """A fresh draft for each path, of one smaller model."""
    model = nearly(opinionated(config, GOOD)) if kind == "good" else opinionated(config, 7, std=1.0)
    if kind == "blind":
        # The model's best token has no chance at all: exp(-10000) is 0.
        with torch.no_grad():
            model.head.bias[-1] = -1e4
    reader = Reader(model, "window")
    return lambda: ModelDraft(reader, Row(list(prompt)), Always(k))


def lookup(vocab: int, k: int) -> NewDraft:
    return lambda: LookupDraft(vocab, Always(k))


def error(
    reader: Reader, new_draft: NewDraft, count: int, settings: SamplingSettings = PLAIN, prompt: Sequence[int] = PROMPT
) -> float:
    """How far the chance of any text is from what it should be."""

    def run(draw: Draw) -> tuple[int, ...]:
        return written(reader, Writing(list(prompt), sampling=settings, draw=draw, draft=new_draft()), count)

    wanted = chain(reader, prompt, settings, count)
    assert sum(wanted.values()) == pytest.approx(1, abs=EXACT)
    return farthest(enumerated(run), wanted)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_whatever_the_settings(settings: SamplingSettings) -> None:
    """One token is proposed at a time, in three rounds after the first reading."""
    assert error(Reader(opinionated(SMALL, GOOD)), model_draft(SMALL, "good", 1), 4, settings) < EXACT


@pytest.mark.parametrize("settings", ["plain", "cold", "greedy", "min_p", "presence", "all"])
@pytest.mark.parametrize("kind", ["hostile", "blind"])
def test_whatever_the_draft(settings: str, kind: str) -> None:
    assert error(Reader(opinionated(SMALL, GOOD)), model_draft(SMALL, kind, 1), 3, SETTINGS[settings]) < EXACT


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_what_the_text_itself_proposes(settings: SamplingSettings) -> None:
    assert error(Reader(opinionated(SMALL, GOOD)), lookup(3, 2), 4, settings) < EXACT


@pytest.mark.parametrize("settings", ["plain", "top_p", "all", "other order"])
@pytest.mark.parametrize("kind", ["good", "blind"])
def test_blocks_of_two_with_settings(settings: str, kind: str) -> None:
    assert error(Reader(opinionated(SMALL, GOOD)), model_draft(SMALL, kind, 2), 3, SETTINGS[settings]) < EXACT


@pytest.mark.parametrize("kind", ["good", "hostile"])
def test_four_tokens_to_choose_from(kind: str) -> None:
    wide = replace(SMALL, vocab=4)
    assert error(Reader(opinionated(wide, GOOD)), model_draft(wide, kind, 1), 3, SamplingSettings(top_k=3)) < EXACT


@pytest.mark.parametrize(("k", "count"), [(2, 4), (3, 3), pytest.param(4, 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["good", "hostile"])
def test_longer_blocks(k: int, count: int, kind: str) -> None:
    two, prompt = replace(SMALL, vocab=2), [0, 1, 1]
    assert error(Reader(opinionated(two, GOOD)), model_draft(two, kind, k, prompt), count, prompt=prompt) < EXACT


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("kind", ["good", "hostile", "blind"])
def test_blocks_of_two_over_more_rounds(settings: SamplingSettings, kind: str) -> None:
    assert error(Reader(opinionated(SMALL, GOOD)), model_draft(SMALL, kind, 2), 4, settings) < EXACT


@pytest.mark.parametrize("cost", [0.05, 0.6, 1.05])
def test_the_length_that_the_pace_chooses(cost: float) -> None:
    """It goes by what was accepted, so it differs from path to path, and must not matter."""
    two, prompt, lengths = replace(SMALL, vocab=2, context=8), [0, 1, 1], set()

    class Watched(Pace):
        def next(self, most: int) -> int:
            lengths.add(chosen := super().next(most))
            return chosen

    reader = Reader(nearly(opinionated(two, GOOD)), "window")
    draft = lambda: ModelDraft(reader, Row(list(prompt)), Watched(cost))  # noqa: E731
    assert error(Reader(opinionated(two, GOOD), "stop"), draft, 6, prompt=prompt) < EXACT
    assert lengths == {0} if cost > 1 else len(lengths) > 2


@pytest.mark.parametrize("context", [1, 2, 3])
def test_a_draft_that_sees_less(context: int) -> None:
    two, prompt = replace(SMALL, vocab=2), [0, 1, 1, 0]
    short = model_draft(replace(two, context=context), "good", 3, prompt)
    assert error(Reader(opinionated(two, GOOD)), short, 4, prompt=prompt) < EXACT


@pytest.mark.parametrize("overflow", ["stop", "window", "recompute"])
@pytest.mark.parametrize("positions", [Learned(), Rotary()], ids=str)
def test_a_context_that_is_full_in_the_middle(overflow: Overflow, positions: Learned | Rotary) -> None:
    """Of the model and of the draft, at different places."""
    two, prompt = replace(SMALL, vocab=2, context=5, positions=positions), [0, 1, 0]
    reader = Reader(opinionated(two, GOOD), overflow)
    assert error(reader, model_draft(replace(two, context=4), "good", 2, prompt), 4, prompt=prompt) < EXACT
    assert error(reader, lookup(2, 2), 6, prompt=prompt) < EXACT


def ring(spare: int) -> Callable[..., WindowStore]:
    return lambda decoder, capacity: WindowStore(decoder, spare, capacity)


WINDOWED = replace(SMALL, vocab=2, window=2, layers=2, context=40)
LONG = [0, 1, 1, 0, 1, 1, 1, 0]


@pytest.mark.parametrize("spare", [2, 3, 16])
def test_a_ring_goes_back(spare: int) -> None:
    """The prompt has gone round it; two spare places are the fewest that blocks of two need."""
    reader = Reader(opinionated(WINDOWED, 4), new_store=ring(spare))
    assert error(reader, model_draft(WINDOWED, "hostile", 2, LONG), 4, prompt=LONG) < EXACT
    assert error(reader, lookup(2, 2), 4, prompt=LONG) < EXACT


def test_a_source_to_look_at() -> None:
    config = EncoderDecoderConfig(vocab=3, layers=1, heads=2, width=4, context=8, source_context=6)
    source = (0, 2, 1, 2)
    reader, other = Reader(opinionated(config, 0), "stop"), Reader(opinionated(config, 1), "window")

    def run(draw: Draw, draft: Draft) -> tuple[int, ...]:
        return written(reader, Writing([0], source, draw=draw, draft=draft), 4)

    wanted = chain(reader, [0], PLAIN, 4, source)
    for new in (lambda: ModelDraft(other, Row([0], source), Always(1)), lookup(3, 2)):
        assert farthest(enumerated(lambda draw, new=new: run(draw, new())), wanted) < EXACT


# --- planted faults: each must be seen by the same number, in a situation that is exact without it ---


def accepts_always(target: Tensor, proposal: Proposal, draw: Draw) -> int:
    return proposal.id


def redraws_from_p(target: Tensor, proposal: Proposal, draw: Draw) -> int:
    kept = min(1.0, float(target[proposal.id] / proposal.chances[proposal.id]))
    return proposal.id if draw(torch.tensor([kept, 1 - kept])) == 0 else draw(target)


def redraws_from_the_difference(target: Tensor, proposal: Proposal, draw: Draw) -> int:
    kept = min(1.0, float(target[proposal.id] / proposal.chances[proposal.id]))
    rest = (target - proposal.chances).abs()
    return proposal.id if draw(torch.tensor([kept, 1 - kept])) == 0 else draw(rest)


@pytest.mark.parametrize("fault", [accepts_always, redraws_from_p, redraws_from_the_difference])
@pytest.mark.parametrize("kind", ["good", "hostile"])
def test_a_faulty_rule_is_seen(monkeypatch: pytest.MonkeyPatch, fault: Callable[..., int], kind: str) -> None:
    monkeypatch.setattr(loop, "accepted_or_redrawn", fault)
    assert error(Reader(opinionated(SMALL, GOOD)), model_draft(SMALL, kind, 1), 3) > 1e-3


@pytest.mark.parametrize("settings", ["cold", "top_k", "top_p", "min_p", "repetition", "bias"])
def test_a_draft_that_states_its_chances_without_the_settings_is_seen(settings: str) -> None:
    class Misstating(ModelDraft):
        def propose(self, row: Row, sampling: SamplingSettings, draw: Draw, most: int) -> list[Proposal]:
            self.mirror.ids = list(row.ids)
            stated = super().propose(row, PLAIN, lambda chances: int(chances.argmax()), most)
            drawn = super().propose(row, sampling, draw, most)
            return [Proposal(one.id, other.chances) for one, other in zip(drawn, stated, strict=True)]

    other = Reader(opinionated(SMALL, GOOD), "window")
    draft = lambda: Misstating(other, Row(list(PROMPT)), Always(1))  # noqa: E731
    assert error(Reader(nearly(opinionated(SMALL, GOOD))), draft, 3, SETTINGS[settings]) > 1e-3


class NoWayBack(DoublingStore):
    def truncate(self, length: int) -> None:
        """What was rejected stays."""


class NoWayBackInTheRing(WindowStore):
    def truncate(self, length: int) -> None:
        """What was rejected stays."""


def test_a_store_that_keeps_what_was_rejected_is_seen() -> None:
    two, prompt = replace(SMALL, vocab=2, context=12), [0, 1, 1]
    reader = Reader(opinionated(two, GOOD), new_store=NoWayBack)
    assert error(reader, model_draft(two, "hostile", 2, prompt), 4, prompt=prompt) > 1e-3
    round_ = Reader(opinionated(WINDOWED, 4), new_store=lambda decoder, room: NoWayBackInTheRing(decoder, 2, room))
    assert error(round_, model_draft(WINDOWED, "hostile", 2, LONG), 4, prompt=LONG) > 1e-3


def test_penalties_that_do_not_count_what_was_accepted_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, chances, before = loop._steps, loop.chances_after, list[int]()

    def noting(row: Writing, logits: Tensor, proposals: Sequence[Proposal]) -> Iterator[Step]:
        before[:] = row.ids
        return steps(row, logits, proposals)

    monkeypatch.setattr(loop, "_steps", noting)
    reader, draft = Reader(opinionated(SMALL, GOOD)), model_draft(SMALL, "good", 1)
    assert error(reader, draft, 4, SETTINGS["frequency"]) < EXACT
    monkeypatch.setattr(loop, "chances_after", lambda ids, logits, settings: chances(before, logits, settings))
    assert error(reader, draft, 4, SETTINGS["frequency"]) > 1e-3


def test_a_last_token_that_is_the_drafts_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = loop._steps

    def from_draft(row: Writing, logits: Tensor, proposals: Sequence[Proposal]) -> Iterator[Step]:
        last = [proposals[-1].chances.log()[None]] if proposals else [logits[-1:]]
        return steps(row, torch.cat([logits[:-1], *last]), proposals)

    monkeypatch.setattr(loop, "_steps", from_draft)
    assert error(Reader(opinionated(SMALL, GOOD)), model_draft(SMALL, "good", 1), 3) > 1e-3
