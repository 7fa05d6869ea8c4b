"""Past the context: every setting is one forward over `ids[start:]`, where `start` is the rule's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, get_args

import pytest
import torch

from clearhead.formats.load import Loaded
from clearhead.generation import writing
from clearhead.generation.endings import Ends
from clearhead.generation.generate import generate, stream
from clearhead.generation.request import Request, ids_of
from clearhead.generation.rows import Group, Overflow, Reader
from clearhead.generation.writing import Generation
from clearhead.messages import UserError
from tests.generation.ready import (
    CONTEXT,
    DECODER,
    DECODERS,
    KINDS,
    MARKED,
    PAIRS,
    PLAIN,
    SOURCE_CONTEXT,
    logprobs_after,
    reads,
    ready,
    replaced,
    start_of,
)

SETTINGS = get_args(Overflow)
MOVING = ("window", "recompute")
loaded_of = cache(lambda kind: ready(KINDS[kind]))


def context_of(loaded: Loaded) -> int:
    return loaded.config.context


def prompt_of(length: int, vocab: int = PLAIN.size) -> list[int]:
    return torch.randint(vocab, (length,), generator=torch.Generator().manual_seed(length)).tolist()


def written(loaded: Loaded, prompt: list[int], overflow: Overflow, tokens: int) -> Generation:
    """A text, with the logprob of every token of the vocabulary at each place; nothing ends it before its time."""
    return generate(
        loaded, prompt, max_tokens=tokens, overflow=overflow, seed=4, eos=(), alternatives=loaded.config.vocab
    )


def worst(loaded: Loaded, prompt: list[int], overflow: Overflow, made: Generation) -> float:
    """The largest difference of any logprob from that of the one forward of the rule."""
    ids, source = ids_of(loaded, Request(prompt))
    given, largest = len(ids), 0.0
    for id, logprob, alternatives in zip(made.ids, made.logprobs, made.alternatives, strict=True):
        start = start_of(overflow, context_of(loaded), given, len(ids))
        wanted = logprobs_after(loaded, ids, source, start)
        found = torch.full_like(wanted, torch.nan)
        for other, value in alternatives:
            found[other] = value
        largest = max(largest, float((found - wanted).abs().amax()), abs(logprob - float(wanted[id])))
        ids.append(id)
    return largest


@pytest.mark.parametrize("overflow", SETTINGS)
@pytest.mark.parametrize("kind", DECODERS)
def test_every_logprob_is_that_of_one_forward_over_the_view(kind: str, overflow: Overflow) -> None:
    loaded = loaded_of(kind)
    context = context_of(loaded)
    # One token, one below the context, all of it; one more, and more than twice as many, which `stop` refuses.
    for length in (1, context - 1, context, context + 1, 2 * context + 3):
        if length > context and overflow == "stop":
            continue
        prompt = prompt_of(length)
        made = written(loaded, prompt, overflow, context + 5)
        assert worst(loaded, prompt, overflow, made) <= 1e-10
        ended = ("context", context - length + 1) if overflow == "stop" else ("length", context + 5)
        assert (made.finish_reason, len(made.ids)) == ended


@pytest.mark.parametrize("overflow", SETTINGS)
@pytest.mark.parametrize("kind", PAIRS)
def test_answers_too(kind: str, overflow: Overflow) -> None:
    """The source stays whole; the answer's own tokens, its begin mark first, are what is forgotten."""
    loaded, source = loaded_of(kind), prompt_of(7)
    made = written(loaded, source, overflow, 2 * CONTEXT + 5)
    assert worst(loaded, source, overflow, made) <= 1e-10
    ended = ("context", CONTEXT) if overflow == "stop" else ("length", 2 * CONTEXT + 5)
    assert (made.finish_reason, len(made.ids)) == ended


@pytest.mark.parametrize("context", [1, 2, 3])
@pytest.mark.parametrize("overflow", SETTINGS)
def test_the_smallest_contexts(context: int, overflow: Overflow) -> None:
    loaded, prompt = ready(replace(DECODER, context=context)), prompt_of(1)
    made = written(loaded, prompt, overflow, 7)
    assert worst(loaded, prompt, overflow, made) <= 1e-10
    assert len(made.ids) == (context if overflow == "stop" else 7)


def test_the_settings_differ_past_the_context_and_nowhere_before() -> None:
    """Or the tests above could not tell one from another."""
    loaded, prompt = loaded_of("learned"), prompt_of(1)
    stopped, window, recomputed = (written(loaded, prompt, overflow, 2 * CONTEXT).alternatives for overflow in SETTINGS)
    assert len(stopped) == CONTEXT
    assert stopped == window[:CONTEXT] == recomputed[:CONTEXT]
    assert window[CONTEXT:] != recomputed[CONTEXT:]


def test_without_a_setting_a_decoder_recomputes_and_an_answer_stops() -> None:
    for kind, overflow in (("learned", "recompute"), ("pair", "stop")):
        loaded = loaded_of(kind)
        usual = generate(loaded, prompt_of(3), max_tokens=2 * CONTEXT, eos=(), alternatives=loaded.config.vocab, seed=4)
        assert usual == written(loaded, prompt_of(3), overflow, 2 * CONTEXT)


@pytest.mark.parametrize("kind", ["learned", "ring"])
def test_a_window_reads_no_token_more_than_twice(kind: str) -> None:
    loaded = loaded_of(kind)
    tokens = 5 * context_of(loaded)
    with reads(loaded) as shapes:
        generate(loaded, prompt_of(3), max_tokens=tokens, overflow="window")
    read = sum(length for _, length in shapes)
    assert 3 + tokens < read < 2 * (3 + tokens)
    assert len(shapes) == tokens, "one forward for each token written"


def test_recompute_reads_the_context_anew_and_stop_reads_each_token_once() -> None:
    loaded = loaded_of("learned")
    with reads(loaded) as shapes:
        generate(loaded, prompt_of(CONTEXT - 2), max_tokens=6, overflow="recompute")
    assert shapes == [(1, CONTEXT - 2), (1, 1), (1, 1), *[(1, CONTEXT)] * 3]
    with reads(loaded) as shapes:
        generate(loaded, prompt_of(CONTEXT - 2), overflow="stop")
    assert shapes == [(1, CONTEXT - 2), (1, 1), (1, 1)]


# --- what cannot be continued


@pytest.mark.parametrize("begin", [generate, stream], ids=["generate", "stream"])
def test_stop_refuses_a_prompt_that_is_too_long_at_once_in_one_line(begin: type) -> None:
    with pytest.raises(UserError, match=f"{CONTEXT + 1} .*{CONTEXT}") as refused:
        begin(loaded_of("learned"), prompt_of(CONTEXT + 1), overflow="stop")
    assert "\n" not in str(refused.value)
    assert "window" in str(refused.value)


def test_a_source_that_is_too_long_is_refused_at_once() -> None:
    """Not with the first piece, when others may be written already."""
    with pytest.raises(UserError, match=f"{SOURCE_CONTEXT + 1} .*{SOURCE_CONTEXT}"):
        stream(loaded_of("pair"), prompt_of(SOURCE_CONTEXT))
    # With its end mark it just fits.
    assert len(generate(loaded_of("pair"), prompt_of(SOURCE_CONTEXT - 1), max_tokens=2, eos=()).ids) == 2


@pytest.mark.parametrize("options", [{"logit_bias": {14: 1.0}}, {"allowed": [3, 14]}, {"eos": [14]}], ids=str)
def test_ids_in_the_options_that_are_outside_the_vocabulary_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="14"):
        stream(loaded_of("pair"), "a", **options)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(UserError, match="crop"):
        stream(loaded_of("learned"), "a", overflow="crop")  # type: ignore[arg-type]


@pytest.mark.parametrize("empty", ["", []], ids=["text", "ids"])
def test_an_empty_prompt_begins_with_the_mark_if_there_is_one(empty: str | list[int]) -> None:
    with pytest.raises(UserError, match="prompt is empty"):
        stream(loaded_of("learned"), empty)
    with pytest.raises(UserError, match="source is empty"):
        stream(loaded_of("pair"), empty)
    marked = ready(replace(DECODER, vocab=MARKED.size), MARKED)
    made = generate(marked, empty, max_tokens=CONTEXT + 3, seed=1, eos=())
    assert made == generate(marked, [MARKED.begin], max_tokens=CONTEXT + 3, seed=1, eos=())
    assert made.logprobs[0] == pytest.approx(
        float(logprobs_after(marked, [MARKED.begin], (), 0)[made.ids[0]]), abs=1e-10
    )


# --- faults that the comparison must find


@pytest.mark.parametrize("overflow", MOVING)
@pytest.mark.parametrize("kind", ["learned", "ring", "pair"])
@pytest.mark.parametrize("late", [1, 2])
def test_a_view_that_begins_elsewhere_is_found(
    kind: str, overflow: Overflow, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: one or two tokens that should be seen are not."""
    loaded = loaded_of(kind)
    replaced(monkeypatch, Reader, "start", lambda right: lambda reader, length: right(reader, length) + late)
    made = written(loaded, prompt_of(3), overflow, 2 * context_of(loaded))
    assert worst(loaded, prompt_of(3), overflow, made) > 1e-6


@pytest.mark.parametrize("overflow", MOVING)
@pytest.mark.parametrize("kind", ["rotary", "ALiBi"])
def test_keys_that_stay_when_the_view_should_move_are_found(
    kind: str, overflow: Overflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: these positions have no end of their own, so nothing fails when more is seen than the context."""
    loaded = loaded_of(kind)
    monkeypatch.setattr(Group, "parts", lambda group: [group] if group.rows[0].open else [])
    made = written(loaded, prompt_of(3), overflow, CONTEXT)
    assert worst(loaded, prompt_of(3), overflow, made) > 1e-6


@pytest.mark.parametrize("kind", ["learned", "pair"])
@pytest.mark.parametrize("off", [-1, 1])
def test_a_text_that_stops_too_early_or_too_late_is_found(kind: str, off: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = loaded_of(kind)
    right = written(loaded, prompt_of(3), "stop", 2 * CONTEXT)

    def shifted(right_ends: Callable[..., Ends]) -> Callable[..., Ends]:
        return lambda *told: replace(right_ends(*told), context=CONTEXT + off)

    replaced(monkeypatch, writing, "ends_for", shifted)
    wrong = written(loaded, prompt_of(3), "stop", 2 * CONTEXT)
    assert (len(wrong.ids), wrong.finish_reason) != (len(right.ids), right.finish_reason)
