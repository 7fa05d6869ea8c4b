"""A text written with a draft ends where it would without, each request gets its own, and what does not fit is refused."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from clearhead.formats.load import Loaded
from clearhead.generation import loop
from clearhead.generation.generate import generate, generate_batch, stream
from clearhead.generation.request import Request
from clearhead.generation.sampling import SamplingSettings
from clearhead.generation.writing import Generation
from clearhead.messages import UserError
from clearhead.models.choices import Rotary
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer, CharacterTokenizer
from tests.generation.enumerated import Always, nearly, opinionated
from tests.generation.ready import DECODER, KINDS, MARKED, PAIR, PLAIN, close, ready

CONFIG = replace(DECODER, positions=Rotary(), context=300, width=32)
HEAVY = replace(CONFIG, layers=10, heads=8)
"""So many blocks that a draft of one block pays."""


def model(config: DecoderConfig, seed: int = 1) -> Loaded:
    return Loaded(opinionated(config, seed), PLAIN, config, ready(DECODER).source)


def agreeing(heavy: Loaded) -> Loaded:
    """A draft of one block that writes what the model writes: the model's other blocks add nothing."""
    light = model(replace(heavy.config, layers=1))
    light.model.load_state_dict(heavy.model.state_dict(), strict=False)
    for block in heavy.model.blocks[1:]:
        for parameter in (*block.attention.output.parameters(), *block.feedforward.down.parameters()):
            parameter.data.zero_()
    return light


@pytest.fixture
def fives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it costs, five tokens are proposed at a time."""
    monkeypatch.setattr("clearhead.generation.writing.Pace", lambda *costs: Always(5))


# --- ends in the middle of a block that was accepted ---


@pytest.fixture(scope="module")
def writer() -> Loaded:
    return model(CONFIG)


GREEDY = {"temperature": 0.0, "frequency_penalty": 2.0}
"""Penalised, so that the text has many tokens."""


def plain(writer: Loaded, **options: object) -> Generation:
    return generate(writer, "ab", **GREEDY, **options)  # type: ignore[arg-type]


def drafted(writer: Loaded, **options: object) -> Generation:
    """With a draft that agrees in almost everything."""
    return plain(writer, draft=replace(writer, model=nearly(writer.model, 0.01)), **options)


@pytest.mark.usefixtures("fives")
@pytest.mark.parametrize("count", range(15))
def test_the_limit_on_tokens_ends_it_exactly(writer: Loaded, count: int) -> None:
    made = drafted(writer, max_tokens=count)
    assert close(made, plain(writer, max_tokens=count))
    assert (len(made.ids), made.finish_reason) == (count, "length")


@pytest.mark.usefixtures("fives")
def test_an_end_id_and_a_stop_string_end_it_exactly(writer: Loaded) -> None:
    """Whichever token of the first twenty it is, and wherever within a block it stands."""
    free = plain(writer, max_tokens=20)
    assert len(set(free.ids)) > 3
    for id in sorted(set(free.ids)):
        made = drafted(writer, max_tokens=20, eos=[id])
        assert close(made, plain(writer, max_tokens=20, eos=[id]))
        assert (made.ids.index(id), made.finish_reason) == (len(made.ids) - 1, "eos")
    for begin, length in itertools.product(range(18), (1, 2, 3)):
        string = free.text[begin : begin + length]
        made = drafted(writer, max_tokens=20, stop=[string])
        assert close(made, plain(writer, max_tokens=20, stop=[string]))
        assert (made.text, made.finish_reason) == (free.text[: free.text.index(string)], "stop")


@pytest.mark.usefixtures("fives")
def test_a_full_context_ends_it_exactly() -> None:
    short = model(replace(CONFIG, context=13))
    made = drafted(short, overflow="stop")
    assert close(made, plain(short, overflow="stop"))
    assert (len(made.ids), made.finish_reason) == (12, "context")


def test_the_blocks_above_are_blocks(writer: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or they would prove nothing: most readings bring several tokens. And going on past the end would be seen."""
    monkeypatch.setattr("clearhead.generation.writing.Pace", lambda *costs: Always(5))
    readings, read = [], loop.Group.read
    monkeypatch.setattr(loop.Group, "read", lambda self, ids=(): readings.append(len(ids)) or read(self, ids))
    drafted(writer, max_tokens=31)
    assert readings.count(5) <= 7

    steps = loop._steps

    def heedless(row: loop.Writing, *rest: object) -> Iterator[loop.Step]:
        was_open = row.open
        for step in steps(row, *rest):  # type: ignore[arg-type]
            yield step
            row.open = was_open

    monkeypatch.setattr(loop, "_steps", heedless)
    with pytest.raises((AssertionError, IndexError)):
        assert len(list(itertools.islice(stream_ids(writer, 7), 40))) == 7


def stream_ids(writer: Loaded, count: int) -> Iterator[int]:
    draft = replace(writer, model=nearly(writer.model, 0.01))
    for piece in stream(writer, "ab", **GREEDY, max_tokens=count, draft=draft):
        if piece.step is not None:
            yield piece.step.id


# --- several at once ---


@pytest.mark.parametrize("kind", ["rotary", "ring", "pair"])
def test_several_requests_get_what_each_gets_alone(kind: str) -> None:
    loaded = ready(KINDS[kind])
    warm, cold = SamplingSettings(0.9, 5, frequency_penalty=0.2), SamplingSettings(temperature=0)
    requests = [
        Request("abab", 30, warm, seed=1),
        Request("abab", 30, warm, seed=2),
        Request("小猫小", 9, cold),
        Request("h", 25, SamplingSettings(), seed=3, stop=["a", "猫"]),
        Request("gfedgfed", 0),
    ]
    for draft in ("lookup", replace(loaded, model=nearly(loaded.model, 0.05))):
        together = generate_batch(loaded, requests, draft=draft)
        for made, request in zip(together, requests, strict=True):
            (alone,) = generate_batch(loaded, [request], draft=draft)
            assert close(made, alone)
    assert together[0].ids != together[1].ids


# --- the pace, in texts ---


def clocks() -> dict[str, Callable[[], float]]:
    """One that runs, one that stands, one that goes back, one that jumps."""
    counts = itertools.count()
    jumps = itertools.cycle([0.0, 1e6, 3.0, 2e-9])
    return {
        "real": time.perf_counter,
        "still": lambda: 5.0,
        "back": lambda: -next(counts),
        "jumps": lambda: next(jumps),
    }


def test_a_text_does_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    heavy = model(HEAVY)
    light = agreeing(heavy)
    written = []
    for clock in clocks().values():
        monkeypatch.setattr(time, "perf_counter", clock)
        for draft in (light, "lookup"):
            written.append([generate(heavy, "ab", max_tokens=40, seed=4, draft=draft).ids for _ in range(2)])
    assert all(pair == written[i % 2] for i, pair in enumerate(written))
    assert written[0][0] == written[0][1]


def test_a_good_light_draft_is_used_and_what_it_did_is_told() -> None:
    heavy = model(HEAVY)
    made = generate(heavy, "ab", max_tokens=60, draft=agreeing(heavy))
    told = made.speculation
    assert told is not None
    assert told.proposed >= told.accepted > 40
    assert told.accepted / told.proposed > 0.9
    assert told.speed_up is not None
    assert told.speed_up > 0
    assert generate(heavy, "ab", max_tokens=60).speculation is None


@pytest.mark.parametrize("count", range(5, 26))
def test_what_is_told_counts_the_block_in_which_the_text_ends(count: int) -> None:
    """Of a draft that is always right all that was written after the first three readings was accepted or the model's own."""
    heavy = model(HEAVY)
    forwards = []
    heavy.model.register_forward_pre_hook(lambda _, inputs: forwards.append(inputs[0].shape[1]))
    told = generate(heavy, "ab", max_tokens=count, temperature=0, draft=agreeing(heavy)).speculation
    assert told is not None
    blocks = [length - 1 for length in forwards[3:]]
    assert told.proposed == sum(blocks)
    # Each block but the last brings one token more than was proposed.
    assert told.accepted == min(told.proposed, count - 3 - (len(blocks) - 1))


def test_a_draft_that_costs_as_much_is_not_used(writer: Loaded) -> None:
    twin = replace(writer, model=nearly(writer.model, 0))
    told = generate(writer, "ab", max_tokens=60, temperature=0, draft=twin).speculation
    assert told is not None
    assert (told.proposed, told.accepted, told.speed_up) == (0, 0, None)


def test_a_bad_light_draft_is_given_up(writer: Loaded) -> None:
    heavy = model(HEAVY)
    told = generate(heavy, "ab", max_tokens=250, temperature=0, draft=model(replace(HEAVY, layers=1), 77)).speculation
    assert told is not None
    assert 0 < told.proposed < 60


# --- refusals ---


@pytest.mark.parametrize("helper", ["other letters", "bytes", "pair"])
def test_a_draft_of_another_kind_or_tokenizer_is_refused_in_one_line(writer: Loaded, helper: str) -> None:
    letters = CharacterTokenizer.of("hgfedcba小猫😀".replace("h", "z"))
    draft = {
        "other letters": replace(writer, tokenizer=letters),
        "bytes": replace(writer, tokenizer=ByteTokenizer()),
        "pair": ready(PAIR),
    }[helper]
    with pytest.raises(UserError, match="same kind with the same tokenizer") as found:
        stream(writer, "ab", draft=draft)
    assert "\n" not in str(found.value)
    with pytest.raises(UserError, match="same kind with the same tokenizer"):
        stream(ready(PAIR), "ab", draft=replace(writer, tokenizer=MARKED))


def test_a_draft_that_is_nothing_is_refused_in_one_line(writer: Loaded) -> None:
    for wrong in ("look-up", 7):
        with pytest.raises(UserError, match=r"loaded model or .lookup.") as found:
            stream(writer, "ab", draft=wrong)  # type: ignore[arg-type]
        assert "\n" not in str(found.value)


def test_a_draft_that_cannot_read_the_source_is_refused_before_anything_is_written() -> None:
    pair, less = ready(PAIR), ready(replace(PAIR, source_context=4))
    with pytest.raises(UserError, match=r"9 tokens .* 4 at most") as found:
        stream(pair, "abcdefgh", draft=less)
    assert "\n" not in str(found.value)
    assert len(generate(pair, "abc", max_tokens=5, eos=(), draft=less).ids) == 5
