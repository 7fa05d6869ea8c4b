"""At temperature 0 a draft changes nothing of a text but the time; and a draft's proposals are its own model's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.generation import loop
from clearhead.generation.drafts import LookupDraft, ModelDraft, Proposal
from clearhead.generation.draws import Draw, dice
from clearhead.generation.generate import generate
from clearhead.generation.loop import Writing, decode
from clearhead.generation.pace import Pace
from clearhead.generation.rows import Group, Overflow, Reader, Row
from clearhead.generation.sampling import SamplingSettings
from clearhead.generation.stores import WindowStore
from clearhead.layers import NO_STORE, Store
from clearhead.layers.look import Look
from clearhead.models.choices import ALiBi, NoPositions, Rotary, Sinusoidal
from clearhead.models.config import DecoderConfig, Sight
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.text import CharacterTokenizer, MarkedTokenizer
from tests.generation.enumerated import Always, after, nearly, opinionated

LETTERS = CharacterTokenizer.of("abcdefghijk小猫")
MARKED = MarkedTokenizer(LETTERS)
PLAIN = SamplingSettings()
GREEDY = SamplingSettings(temperature=0)

BASE = DecoderConfig(vocab=LETTERS.size, layers=1, heads=2, width=16, context=24)
KINDS = {
    "learned": BASE,
    "rotary, grouped": replace(BASE, kv_heads=1, positions=Rotary()),
    "alibi": replace(BASE, positions=ALiBi()),
    "sinusoidal": replace(BASE, positions=Sinusoidal()),
    "no positions": replace(BASE, layers=2, positions=NoPositions()),
    "ring": replace(BASE, layers=2, window=3, context=40, positions=Rotary()),
    "window and all": replace(BASE, layers=2, cycle=(Sight(window=4), Sight()), positions=Rotary()),
}


def loaded(config: DecoderConfig, seed: int) -> Loaded:
    return Loaded(opinionated(config, seed), LETTERS, config, Path("here"))


def drafts(model: Loaded) -> dict[str, Loaded | str]:
    """One that mostly agrees, one that never does, one that sees less, and the text itself."""
    less = replace(model.config, context=7, window=None, cycle=())
    return {
        "good": replace(model, model=nearly(model.model, 0.02)),
        "hostile": loaded(model.config, 99),
        "short": loaded(less, 98),
        "lookup": "lookup",
    }


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts as large as the model, as if they cost little: blocks of all lengths are tried, and given up."""
    monkeypatch.setattr("clearhead.generation.writing.Pace", lambda *costs: Pace(0.1))


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("overflow", ["stop", "window", "recompute"])
@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
def test_greedy_is_greedy_past_the_context_too(config: DecoderConfig, overflow: Overflow) -> None:
    model = loaded(config, 1)
    # What was full once is read anew for each token, without proposals: the slowest way, and the least to be seen.
    for seed, length in ((1, 5), (2, 1), (3, 19))[: 1 if overflow == "recompute" else 3 if overflow == "stop" else 2]:
        prompt = torch.randint(LETTERS.size, (length,), generator=torch.Generator().manual_seed(seed)).tolist()
        asked = {"max_tokens": config.context + 101, "temperature": 0.0, "overflow": overflow}
        plain = generate(model, prompt, **asked)
        assert overflow == "stop" or len(plain.ids) == config.context + 101
        for name, draft in drafts(model).items():
            made = generate(model, prompt, **asked, draft=draft)
            assert (made.ids, made.finish_reason) == (plain.ids, plain.finish_reason), name
            assert made.logprobs == pytest.approx(plain.logprobs, abs=1e-10)
            assert made.speculation is not None
            if name in ("good", "hostile") and length < 19:
                assert made.speculation.proposed > 0, "or nothing was tried"


def test_a_ring_serves_the_windowed_model_above(monkeypatch: pytest.MonkeyPatch) -> None:
    made, init = [], WindowStore.__init__
    monkeypatch.setattr(WindowStore, "__init__", lambda self, *args: made.append(init(self, *args)))
    model = loaded(KINDS["ring"], 1)
    generate(model, [1, 2], max_tokens=30, draft="lookup")
    assert made == [None]


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize(
    "penalties", [{}, {"frequency_penalty": 0.3, "repetition_penalty": 1.2}], ids=["", "penalties"]
)
@pytest.mark.parametrize("overflow", ["stop", "window", "recompute"])
def test_greedy_answers_are_greedy(overflow: Overflow, penalties: dict[str, float]) -> None:
    config = EncoderDecoderConfig(vocab=MARKED.size, layers=1, heads=2, width=16, context=20, source_context=12)
    # It sees less of its own answer, and of the source as much.
    less = replace(config, context=8)
    first = opinionated(config, 1)
    model = Loaded(first, MARKED, config, Path("here"))
    helpers = [replace(model, model=each) for each in (nearly(first, 0.02), opinionated(config, 9))]
    helpers.append(Loaded(opinionated(less, 8), MARKED, less, Path("here")))
    for source in ("ab", "小猫abcabcabc", "kkkkkkkk"):
        asked = {"max_tokens": 121, "temperature": 0.0, "overflow": overflow, "eos": (), **penalties}
        plain = generate(model, source, **asked)
        assert len(plain.ids) == (20 if overflow == "stop" else 121)
        for draft in (*helpers, "lookup"):
            assert generate(model, source, **asked, draft=draft).ids == plain.ids


# --- what is proposed ---


def test_look_up_goes_on_as_the_text_or_its_source_did() -> None:
    def guesses(ids: list[int], source: tuple[int, ...] = (), most: int = 16, k: int = 4) -> list[int]:
        draft = LookupDraft(10, Always(k))
        return [each.id for each in draft.propose(Row(ids, source), PLAIN, dice(0), most)]

    assert guesses([1, 2, 3, 4, 5, 1, 2]) == [3, 4, 5, 1]
    assert guesses([1, 2, 3, 4, 5, 1, 2], most=2) == [3, 4]
    assert guesses([0, 5, 6], source=(4, 5, 6, 7, 8, 9)) == [7, 8, 9, 0]
    assert guesses([1, 2, 3, 9, 9, 1, 2, 7, 2, 3]) == [9, 9, 1, 2], "what the source said first is behind newer text"
    assert guesses([1, 2, 3, 0, 2, 3, 1, 2, 3]) == [0, 2, 3, 1], "the longest n-gram counts, not the newest"
    assert guesses([1, 2, 0, 1, 2, 5, 1, 2]) == [5, 1, 2, 5], "of equally long ones the newest; past its end it repeats"
    assert guesses([7, 7, 7]) == [7, 7, 7, 7]
    assert guesses([1, 2, 3]) == guesses([1]) == []


def test_look_up_does_not_propose_what_the_model_cannot_write() -> None:
    """A source may have a larger vocabulary of its own."""
    draft = LookupDraft(6, Always(4))
    assert [each.id for each in draft.propose(Row([3, 5], (3, 5, 1, 8, 2)), PLAIN, dice(0), 9)] == [1]


class NowAndThen(Always):
    """Blocks with rests between them."""

    rounds = 0

    def next(self, most: int) -> int:
        self.rounds += 1
        return 0 if self.rounds % 6 else super().next(most)


class Watched(ModelDraft):
    """Notes how far the stated chances are from those of the draft's own forward."""

    error, checked = 0.0, 0

    def propose(self, row: Row, sampling: SamplingSettings, draw: Draw, most: int) -> list[Proposal]:
        proposals = super().propose(row, sampling, draw, most)
        ids = list(row.ids)
        for proposal in proposals:
            own = Reader(self.reader.model, "stop")
            wanted = after(own, ids[self.mirror.start :], PLAIN)
            self.error, self.checked = max(self.error, float((proposal.chances - wanted).abs().max())), self.checked + 1
            ids.append(proposal.id)
        return proposals


def watched(context: int) -> Watched:
    """A hostile draft, through rejections and rests."""
    config = KINDS["rotary, grouped"]
    draft = Watched(Reader(opinionated(replace(config, context=context), 99), "window"), Row([1, 2]), NowAndThen(3))
    row = Writing([1, 2], draw=dice(3), draft=draft)
    reader = Reader(opinionated(replace(config, context=400), 1))
    for _ in islice(decode(reader, [row]), 70):
        pass
    return draft


@pytest.mark.parametrize("context", [3, 10, 400])
def test_a_draft_reads_what_was_written_not_what_was_rejected(context: int) -> None:
    draft = watched(context)
    assert draft.error < 1e-12
    assert draft.checked > 5


def test_a_draft_that_kept_what_was_rejected_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: going back is put off until the next reading, when the text has grown past it."""
    rewind, read = Group.rewind, Group.read

    def reading(self: Group[Row], proposed: tuple[int, ...] = ()) -> Tensor:
        rewind(self)
        return read(self, proposed)

    monkeypatch.setattr(Group, "rewind", lambda self: None)
    monkeypatch.setattr(Group, "read", reading)
    assert watched(400).error > 1e-3


# --- at scale ---


class Fixed(nn.Module):
    """A model that always has the same logits: what it writes are independent draws."""

    context, blocks, looks = 10**6, (), (Look(),)

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits, requires_grad=False)

    def forward(
        self, ids: Tensor, *, real: Tensor | None = None, store: Store = NO_STORE, tap: object = None
    ) -> Tensor:
        store.advance(ids.shape[1])
        return self.logits.expand(*ids.shape, -1)


SETTINGS = SamplingSettings(temperature=0.8, top_k=4)
LOGITS, OTHERS = torch.tensor([0.5, 1.0, -0.5, 0.0, -2.0]), torch.tensor([0.9, 0.1, 0.3, -0.4, 1.0])


def sample(seeds: range) -> Iterator[int]:
    """Texts of 1000 tokens each."""
    for seed in seeds:
        draft = ModelDraft(Reader(Fixed(OTHERS), "window"), Row([0]), Always(3))  # type: ignore[arg-type]
        row = Writing([0], sampling=SETTINGS, draw=dice(seed), draft=draft)
        reader = Reader(Fixed(LOGITS))  # type: ignore[arg-type]
        yield from (step.id for _, step in islice(decode(reader, [row]), 1000))


def chi_square(drawn: list[int]) -> float:
    """Over pairs of neighbours that do not overlap, so that independence is asked too: 15 degrees of freedom."""
    chances = loop.chances_after([], LOGITS, SETTINGS).tolist()
    pairs = list(zip(drawn[::2], drawn[1::2], strict=True))
    wanted = {(a, b): len(pairs) * chances[a] * chances[b] for a in range(4) for b in range(4)}
    if not set(pairs) <= wanted.keys():
        return float("inf")
    return sum((pairs.count(pair) - expected) ** 2 / expected for pair, expected in wanted.items())


BOUND = 37.7
"""χ² with 15 degrees of freedom is below it in 999 of 1000 samples; the seeds are fixed."""


@pytest.mark.parametrize("texts", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_thousands_of_tokens_are_distributed_as_the_model_says(monkeypatch: pytest.MonkeyPatch, texts: int) -> None:
    assert chi_square(list(sample(range(texts)))) < BOUND
    # Planted faults, seen by the same number.
    monkeypatch.setattr(loop, "accepted_or_redrawn", lambda target, proposal, draw: proposal.id)
    assert chi_square(list(sample(range(1)))) > BOUND
    monkeypatch.setattr(loop, "accepted_or_redrawn", redraws_from_p)
    assert BOUND < chi_square(list(sample(range(texts)))) < float("inf")


def redraws_from_p(target: Tensor, proposal: Proposal, draw: Draw) -> int:
    kept = min(1.0, float(target[proposal.id] / proposal.chances[proposal.id]))
    return proposal.id if draw(torch.tensor([kept, 1 - kept])) == 0 else draw(target)
