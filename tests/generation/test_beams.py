"""Beam search: scores are the model's, enough beams find the best of all texts, one is greedy, and nothing depends on chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from clearhead.formats.load import Loaded
from clearhead.generation import beams as module
from clearhead.generation.beams import Beam, beam_search
from clearhead.generation.generate import generate
from clearhead.generation.request import Request, ids_of
from clearhead.generation.rows import Group, Overflow
from clearhead.generation.stores.counted import Counted
from clearhead.messages import UserError
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer
from tests.generation.ready import (
    CONTEXT,
    DECODER,
    KINDS,
    PAIR,
    Constant,
    logprobs_after,
    reads,
    ready,
    replaced,
    start_of,
)

loaded_of = cache(lambda kind: ready(KINDS[kind]))
OVERFLOWS = ("stop", "window", "recompute")


def score_of(loaded: Loaded, prompt: str, written: list[int], overflow: Overflow) -> float:
    """The reference: the sum of logprobs, each from a forward of its own over what the rule lets be seen."""
    ids, source = ids_of(loaded, Request(prompt))
    given, total = len(ids), 0.0
    for id in written:
        start = start_of(overflow, loaded.config.context, given, len(ids))
        total += float(logprobs_after(loaded, ids, source, start)[id])
        ids.append(id)
    return total


# --- scores


@pytest.mark.parametrize("overflow", OVERFLOWS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_the_log_probability_of_the_text(kind: str, overflow: Overflow) -> None:
    """Past the context too: as many tokens more as it takes to move the view twice."""
    loaded = loaded_of(kind)
    tokens = 14 if kind != "ring" else 27
    found = beam_search(loaded, "小猫ab", beams=3, max_tokens=tokens, overflow=overflow, eos=())
    assert len({tuple(beam.ids) for beam in found}) == 3
    for beam in found:
        assert beam.score == pytest.approx(score_of(loaded, "小猫ab", beam.ids, overflow), abs=1e-10)
    assert [beam.score for beam in found] == sorted((beam.score for beam in found), reverse=True)
    assert {beam.finish_reason for beam in found} == {"context" if overflow == "stop" else "length"}


def test_a_prompt_is_read_once_and_then_a_token_of_each_beam() -> None:
    with reads(loaded_of("rotary")) as shapes:
        beam_search(loaded_of("rotary"), "abc", beams=5, max_tokens=4)
    assert shapes == [(1, 3), (5, 1), (5, 1), (5, 1)]


# --- enough beams


SMALL = CharacterTokenizer("abc")
SMALL_MARKED = MarkedTokenizer(CharacterTokenizer("a"))
V, LONGEST = 4, 4


@cache
def small(kind: str) -> Loaded:
    """Models of four tokens: continuing a text of three characters, or answering in one and two marks."""
    if kind == "pair":
        return ready(replace(PAIR, vocab=V), SMALL_MARKED)
    return ready(replace(DECODER, vocab=V, context=3), SMALL)


def all_texts(eos: frozenset[int], longest: int) -> Iterator[list[int]]:
    """Every text: it ends with its first end id, or where it is longest."""
    open_ones: list[list[int]] = [[]]
    for _ in range(longest):
        longer = [[*text, token] for text in open_ones for token in range(V)]
        yield from (text for text in longer if text[-1] in eos)
        open_ones = [text for text in longer if text[-1] not in eos]
    yield from open_ones


@cache
def all_scores(kind: str, eos: frozenset[int]) -> dict[tuple[int, ...], float]:
    overflow = "stop" if kind == "pair" else "recompute"
    return {tuple(text): score_of(small(kind), "aa", text, overflow) for text in all_texts(eos, LONGEST)}


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("eos", [(), (3,), (0, 2)], ids=str)
@pytest.mark.parametrize("kind", ["decoder", "pair"])
def test_as_many_beams_as_texts_find_every_text_in_order(
    kind: str, eos: tuple[int, ...], length_penalty: float
) -> None:
    """By enumeration. The decoder's context of 3 is left on the way."""
    loaded, scored = small(kind), all_scores(kind, frozenset(eos))
    ranked = sorted(scored, key=lambda text: scored[text] / len(text) ** length_penalty, reverse=True)
    options: dict[str, Any] = {"max_tokens": LONGEST, "eos": eos, "length_penalty": length_penalty}
    found = beam_search(loaded, "aa", beams=len(ranked), **options)
    assert [tuple(beam.ids) for beam in found] == ranked
    assert [beam.score for beam in found] == pytest.approx([scored[text] for text in ranked], abs=1e-10)
    # All texts together are certain, and fewer beams find texts among them.
    assert math.fsum(map(math.exp, scored.values())) == pytest.approx(1, abs=1e-10)
    for beams in (1, 2, 3):
        some = beam_search(loaded, "aa", beams=beams, **options)
        assert len(some) == beams
        assert all(beam.score == pytest.approx(scored[tuple(beam.ids)], abs=1e-10) for beam in some)


def test_greedy_misses_what_two_beams_find() -> None:
    """Or all this would be for nothing: the best first token does not begin the best text."""
    missed = 0
    for prompt in ("a", "b", "c", "ab", "ba", "ca"):
        greedy, best = (
            beam_search(small("decoder"), prompt, beams=beams, max_tokens=4, eos=())[0] for beams in (1, 256)
        )
        assert best.score >= greedy.score - 1e-10
        missed += best.ids[0] != greedy.ids[0]
    assert missed


# --- one beam


@pytest.mark.parametrize("overflow", OVERFLOWS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_beam_is_greedy(kind: str, overflow: Overflow) -> None:
    loaded = loaded_of(kind)
    for prompt in ("a", "小猫a", "hgfedcb"):
        (beam,) = beam_search(loaded, prompt, beams=1, max_tokens=12, overflow=overflow)
        made = generate(loaded, prompt, max_tokens=12, temperature=0, overflow=overflow)
        assert (beam.ids, beam.text, beam.finish_reason) == (made.ids, made.text, made.finish_reason)
        assert beam.score == pytest.approx(sum(made.logprobs), abs=1e-10)


# --- ends


def test_each_beam_ends_by_itself() -> None:
    """With an end id that is likely, texts of several lengths are found; the id is in the ids and not in the text."""
    loaded = loaded_of("learned")
    end = generate(loaded, "ab", max_tokens=2, temperature=0).ids[-1]
    found = beam_search(loaded, "ab", beams=6, max_tokens=7, eos=[end])
    lengths = {len(beam.ids) for beam in found if beam.finish_reason == "eos"}
    assert len(lengths) > 1
    for beam in found:
        assert (beam.ids[-1] == end) == (beam.finish_reason == "eos")
        assert end not in beam.ids[:-1]
        assert beam.text == loaded.tokenizer.decode([id for id in beam.ids if id != end])
        assert beam.score == pytest.approx(score_of(loaded, "ab", beam.ids, "recompute"), abs=1e-10)


def test_a_stop_string_ends_a_beam_and_is_not_in_its_text() -> None:
    """Every text over four tokens: with "ab" as a stop string no text has it, and those that came to it are shorter."""
    found = beam_search(small("decoder"), "c", beams=V**LONGEST, max_tokens=LONGEST, stop=["ab"], eos=())
    stopped = [beam for beam in found if beam.finish_reason == "stop"]
    assert {len(beam.ids) for beam in stopped} == {2, 3, 4}
    for beam in found:
        whole = SMALL.decode(beam.ids)
        assert beam.text == (whole.removesuffix("ab") if beam in stopped else whole)
        assert whole.endswith("ab") == (beam in stopped)
        assert "ab" not in beam.text
    assert math.fsum(math.exp(beam.score) for beam in found) == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("beams", [1, 4])
def test_no_tokens_are_no_text(beams: int) -> None:
    assert beam_search(loaded_of("pair"), "ab", beams=beams, max_tokens=0) == [Beam("", [], 0.0, "length")]


def constant(logits: list[float]) -> Loaded:
    return replace(small("decoder"), model=Constant(logits))  # type: ignore[arg-type]


def test_a_cut_character_is_no_text() -> None:
    logits = [0.0] * 256
    logits[0xE7] = 9.0
    loaded = replace(constant(logits), tokenizer=ByteTokenizer(), config=replace(DECODER, vocab=256))
    (beam,) = beam_search(loaded, "a", beams=1, max_tokens=1)
    assert (beam.text, beam.ids, beam.finish_reason) == ("", [0xE7], "length")
    (ended,) = beam_search(loaded, "a", beams=1, max_tokens=2, eos=[0xE7])
    assert (ended.text, ended.finish_reason) == ("", "eos")


# --- ties, and texts that cannot be


def test_of_equals_the_first_tokens_come_first() -> None:
    found = beam_search(constant([0.0] * 4), "a", beams=6, max_tokens=2, eos=())
    assert [beam.ids for beam in found] == [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1]]
    assert found == beam_search(constant([0.0] * 4), "a", beams=6, max_tokens=2, eos=())


def test_nothing_is_drawn() -> None:
    before = torch.get_rng_state()
    first = beam_search(loaded_of("ALiBi"), "ab", beams=3, max_tokens=6)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(77)
    assert beam_search(loaded_of("ALiBi"), "ab", beams=3, max_tokens=6) == first


def test_impossible_tokens_are_in_no_text() -> None:
    found = beam_search(constant([0.0, -math.inf, 1.0, -math.inf]), "a", beams=9, max_tokens=2, eos=())
    assert [beam.ids for beam in found] == [[2, 2], [2, 0], [0, 2], [0, 0]]


def test_the_length_penalty_decides_between_a_short_and_a_long_text() -> None:
    """ln p is -1.1 for the end and about -0.4 for the other token: three of these are less likely, and likelier a token."""
    loaded = constant([-0.405, -9.0, -9.0, -1.1])
    ranked = {
        penalty: [
            len(beam.ids) for beam in beam_search(loaded, "a", beams=2, max_tokens=3, eos=[3], length_penalty=penalty)
        ]
        for penalty in (0.0, 1.0)
    }
    assert ranked[0.0][0] == 1
    assert ranked[1.0][0] == 3


# --- what cannot be searched


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"beams": 0}, "beams = 0"),
        ({"beams": -3}, "beams = -3"),
        ({"length_penalty": -0.1}, "length_penalty"),
        ({"length_penalty": math.inf}, "length_penalty"),
        ({"length_penalty": math.nan}, "length_penalty"),
        ({"length_penalty": 1e6}, "length_penalty = 1000000.0"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"stop": "a"}, "stop"),
        ({"eos": [12]}, "12"),
        ({"overflow": "crop"}, "crop"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named):
        beam_search(loaded_of("learned"), "ab", **options)


def test_bad_prompts_and_models_are_refused() -> None:
    for prompt, named in (("", "empty"), ([1, 99], "99"), ([1] * (CONTEXT + 1), str(CONTEXT + 1))):
        with pytest.raises(UserError, match=named):
            beam_search(loaded_of("learned"), prompt, overflow="stop")
    with pytest.raises(UserError, match="not numbers"):
        beam_search(constant([math.nan] * 4), "a")


# --- faults that a second score must find


def stores_are_not_reordered(patch: pytest.MonkeyPatch) -> None:
    """Each beam goes on with the keys of the place that it came to, not of the text that it continues."""
    replaced(patch, Counted, "select", lambda right: lambda store, chosen: right(store, sorted(chosen)))


def scores_are_of_one_token(patch: pytest.MonkeyPatch) -> None:
    """What came before is forgotten."""

    def last(right: Callable[..., Any]) -> Callable[..., Any]:
        def continued(group: Group[Any]) -> Iterator[Any]:
            for row in group.rows:
                row.score = 0.0
            return right(group)

        return continued

    replaced(patch, module, "_continued", last)


@pytest.mark.parametrize("kind", ["learned", "rotary", "ring", "pair"])
@pytest.mark.parametrize("plant", [stores_are_not_reordered, scores_are_of_one_token])
def test_a_planted_fault_makes_a_score_wrong(
    plant: Callable[[pytest.MonkeyPatch], None], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = loaded_of(kind)
    plant(monkeypatch)
    found = beam_search(loaded, "小猫ab", beams=4, max_tokens=5, eos=())
    off = [abs(beam.score - score_of(loaded, "小猫ab", beam.ids, "recompute")) for beam in found]
    assert max(off) > 1e-3
