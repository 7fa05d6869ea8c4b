"""Texts written side by side: each what it would be alone, whoever else is written, and read no longer than it lasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.generation import loop, rows, writing
from clearhead.generation.draws import dice
from clearhead.generation.generate import generate_batch
from clearhead.generation.loop import Writing, decode
from clearhead.generation.request import Request
from clearhead.generation.rows import Group, Overflow, Reader, Side
from clearhead.generation.sampling import SamplingSettings
from clearhead.generation.stores.counted import Counted
from clearhead.generation.writing import Generation
from clearhead.layers.memory import CrossStore
from clearhead.models.encoder import Encoder
from tests.equalities.faults_parts import counted_from_the_pad
from tests.generation.ready import KINDS, PAIRS, close, reads, ready, replaced

loaded_of = cache(lambda kind: ready(KINDS[kind]))
TOKENS = 13
SETTINGS = (
    SamplingSettings(temperature=0),
    SamplingSettings(temperature=1.3),
    SamplingSettings(top_k=4, min_p=0.02),
    SamplingSettings(top_p=0.8, repetition_penalty=1.3, presence_penalty=0.2, frequency_penalty=0.1),
    SamplingSettings(logit_bias={3: -torch.inf, 5: 1.5}, allowed=frozenset(range(2, 11))),
)


def asked(loaded: Loaded, overflow: Overflow | None = None) -> list[Request]:
    """Requests that differ in everything: prompts of one token, of some, of the whole context and of more, and settings."""
    context = loaded.config.context
    lengths = [
        4,
        1,
        context if not hasattr(loaded.model, "encoder") else 11,
        6,
        *([] if overflow == "stop" else [context + 3]),
    ]
    generator = torch.Generator().manual_seed(6)
    texts = [torch.randint(12, (length,), generator=generator).tolist() for length in lengths]
    return [
        Request(text, TOKENS - place, SETTINGS[place], seed=10 + place, eos=(), alternatives=3)
        for place, text in enumerate(texts)
    ]


def alone(loaded: Loaded, requests: Sequence[Request], overflow: Overflow | None = None) -> list[Generation]:
    return [generate_batch(loaded, [request], overflow=overflow)[0] for request in requests]


def all_close(made: Sequence[Generation], wanted: Sequence[Generation]) -> bool:
    return all(close(ours, theirs) for ours, theirs in zip(made, wanted, strict=True))


# --- each row is its solo run


@pytest.mark.parametrize("overflow", ["stop", "window", "recompute"])
@pytest.mark.parametrize("padding", ["left", "right"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_its_solo_run(kind: str, padding: Side, overflow: Overflow) -> None:
    """Ids, reasons and texts are equal, logprobs, chances and alternatives within 1e-10."""
    loaded = loaded_of(kind)
    requests = asked(loaded, overflow)
    made = generate_batch(loaded, requests, overflow=overflow, padding=padding)
    assert all_close(made, alone(loaded, requests, overflow))
    # The order of the rows makes no difference either.
    assert all_close(generate_batch(loaded, requests[::-1], overflow=overflow, padding=padding), made[::-1])


def test_the_rows_are_ragged_and_differ() -> None:
    """Or the test above would prove nothing."""
    for kind, config in KINDS.items():
        requests = asked(loaded_of(kind))
        made = generate_batch(loaded_of(kind), requests, overflow="recompute")
        assert len({len(request.prompt) for request in requests}) == 5
        assert max(len(request.prompt) for request in requests) > config.context or kind in PAIRS
        assert len({tuple(each.ids[:9]) for each in made}) == 5


def test_no_requests_are_no_texts() -> None:
    assert generate_batch(loaded_of("learned"), []) == []


def test_a_request_for_no_tokens_disturbs_nobody() -> None:
    loaded = loaded_of("rotary")
    requests = [replace(request, max_tokens=0 if place in (0, 3) else 5) for place, request in enumerate(asked(loaded))]
    made = generate_batch(loaded, requests)
    assert [len(each.ids) for each in made] == [0, 5, 5, 0, 5]
    assert all_close(made, alone(loaded, requests))


# --- seeds


@pytest.mark.parametrize("kind", ["rotary", "pair"])
def test_a_seed_writes_the_same_text_whatever_is_written_beside_it(kind: str) -> None:
    loaded = loaded_of(kind)
    others, request = asked(loaded), Request("abc小", TOKENS, SamplingSettings(temperature=2.0), seed=3, eos=())
    (wanted,) = alone(loaded, [request])
    for beside in range(4):
        for place in range(beside + 1):
            mixed = [*others[:place], request, *others[place:beside]]
            assert close(generate_batch(loaded, mixed)[place], wanted)
    assert generate_batch(loaded, [request, replace(request, seed=4)])[1].ids != wanted.ids


def test_one_source_of_randomness_for_all_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, shared = loaded_of("rotary"), dice(3)
    requests = [Request(text, TOKENS, seed=3) for text in ("ab", "小猫abc")]
    wanted = alone(loaded, requests)
    monkeypatch.setattr(writing, "dice", lambda seed: shared)
    assert not all_close(generate_batch(loaded, requests), wanted)


# --- n samples of one prompt


@pytest.mark.parametrize("kind", ["learned", "ring", "pair"])
def test_equal_prompts_are_read_once_and_written_each_its_own_way(kind: str) -> None:
    loaded = loaded_of(kind)
    texts = ["abc小", "de", "abc小", "abc小", "de", "fgh猫a😀"]
    requests = [Request(text, 3, SamplingSettings(1.5), seed=seed, eos=()) for seed, text in enumerate(texts)]
    sources: list[int] = []
    with pytest.MonkeyPatch.context() as patch, reads(loaded) as shapes:
        replaced(patch, Encoder, "forward", lambda right: lambda self, ids, real=None, tap=None: (
            sources.append(len(ids)) or right(self, ids, real=real)
        ))  # fmt: skip
        made = generate_batch(loaded, requests)
    # Three prompts, the longest of 6 tokens; then six rows, a token each. An answer's own prompt is its begin mark.
    assert shapes == [(3, 6 if kind not in PAIRS else 1), (6, 1), (6, 1)]
    assert sources == ([3] if kind in PAIRS else [])
    assert all_close(made, alone(loaded, requests))
    assert len({tuple(each.ids) for each in made}) > 3


# --- each row ends by itself


def endings(loaded: Loaded) -> list[Request]:
    """The same requests, with ends put where the texts come by: one for each reason, far apart."""
    requests = [replace(request, sampling=SETTINGS[1], max_tokens=40) for request in asked(loaded, "stop")]
    free = alone(loaded, requests, "stop")
    return [
        replace(requests[0], max_tokens=4),
        replace(requests[1], eos=[free[1].ids[5]]),
        requests[2],
        replace(requests[3], stop=[loaded.tokenizer.decode(free[3].ids[1:3])]),
    ]


@pytest.mark.parametrize("padding", ["left", "right"])
@pytest.mark.parametrize("kind", ["learned", "rotary", "ALiBi", "ring"])
def test_rows_end_separately_and_are_read_no_more(kind: str, padding: Side) -> None:
    loaded = loaded_of(kind)
    requests = endings(loaded)
    with reads(loaded) as shapes:
        made = generate_batch(loaded, requests, overflow="stop", padding=padding)
    assert [each.finish_reason for each in made] == ["length", "eos", "context", "stop"]
    lengths = [len(each.ids) for each in made]
    assert len(set(lengths)) == 4
    assert all_close(made, alone(loaded, requests, "stop"))
    # After the prompts every forward reads one token of every text that goes on after it, and of no other.
    going = [sum(length > token for length in lengths) for token in range(1, max(lengths))]
    assert shapes[1:] == [(rows, 1) for rows in going]


def closed_at(last: Sequence[int], closer: int | None = None) -> list[list[int]]:
    """What rows have when each is closed after so many tokens, by its own step or by that of row `closer`."""
    loaded = loaded_of("ring")
    given = [Writing([1] * length, draw=dice(length)) for length in (4, 1, 9, 6)]
    prompts, frozen = [len(row.ids) for row in given], {}
    written = [0] * len(given)
    for row, _ in decode(Reader(loaded.model), given):
        place = given.index(row)
        written[place] += 1
        for other in [place] if closer is None else range(len(given)) if place == closer else []:
            if written[place] == last[other]:
                given[other].open = False
                frozen[other] = list(given[other].ids)
        if sum(written) > 40:
            break
    assert frozen == {place: row.ids for place, row in enumerate(given)}, "nothing changes after a row is closed"
    return [row.ids[prompt:] for row, prompt in zip(given, prompts, strict=True)]


def test_a_closed_row_is_frozen() -> None:
    assert [len(ids) for ids in closed_at([2, 5, 1, 8])] == [2, 5, 1, 8]


@pytest.mark.parametrize("closer", range(4))
def test_a_row_may_be_closed_while_another_is_written(closer: int) -> None:
    """As when somebody no longer wants an answer; rows before the closer have had their token of the round, those behind not."""
    last = [3, 3, 3, 3]
    last[(closer + 1) % 4] = 2
    made = closed_at(last, closer)
    wanted = [last[row] - (row > closer) for row in range(4)]
    assert [len(ids) for ids in made] == wanted


# --- faults that the comparison must find


@pytest.mark.parametrize("kind", ["learned", "ring"])
def test_rows_that_are_read_after_their_end_are_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """generate.finished-rows: the group keeps them and fills them up with pads."""
    loaded = loaded_of(kind)
    requests = endings(loaded)[:2]

    def kept(group: Group[Writing]) -> list[Group[Writing]]:
        for row, read in zip(group.rows, group._covered, strict=True):
            row.ids += [0] if read == len(row.ids) else []
        return [group] if any(row.open for row in group.rows) else []

    monkeypatch.setattr(Group, "parts", kept)
    with reads(loaded) as shapes:
        made = generate_batch(loaded, requests, overflow="stop")
    lengths = [len(each.ids) for each in made]
    assert [count for count, _ in shapes] == [2] * max(lengths)
    assert min(lengths) < max(lengths), "the shorter text is read along, which the count of rows shows"


def test_rows_that_are_written_after_their_end_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """generate.finished-rows: nobody looks whether a row is closed."""
    monkeypatch.setattr(Writing, "open", property(lambda row: True, lambda row, value: None))
    with pytest.raises(AssertionError, match="nothing changes"):
        closed_at([2, 5, 1, 8])


def other_rows(patch: pytest.MonkeyPatch) -> None:
    """A row goes on with the keys of another."""
    replaced(patch, Counted, "select", lambda right: lambda store, chosen: right(store, [*chosen[1:], chosen[0]]))


def other_sources(patch: pytest.MonkeyPatch) -> None:
    """A row goes on with the source of another."""
    replaced(patch, CrossStore, "select", lambda right: lambda memory, chosen: right(memory, [*chosen[1:], chosen[0]]))


def read_at_a_pad(patch: pytest.MonkeyPatch) -> None:
    """generate.pad-read: prompts are padded on the right and the last column is taken for what comes next."""
    replaced(patch, rows, "padded", lambda right: lambda texts, side, device: right(texts, "right", device))


def pads_are_real(patch: pytest.MonkeyPatch) -> None:
    """Nobody is told which tokens are padding."""
    replaced(patch, rows, "padded", lambda right: lambda *told: (right(*told)[0], None))


def steps_of_another(patch: pytest.MonkeyPatch) -> None:
    """Logits come in the order of the prompts' lengths, not of the rows."""

    def turned(right: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *told: right(*told).flip(0)

    replaced(patch, rows, "_last_logits", turned)


def settings_of_the_first(patch: pytest.MonkeyPatch) -> None:
    """All rows are drawn with one row's settings."""
    first = SETTINGS[0]
    replaced(patch, loop, "chances_after", lambda right: lambda ids, logits, settings: right(ids, logits, first))


Plant = Callable[[pytest.MonkeyPatch], None]
FAULTS: list[tuple[Plant, str]] = [
    *((plant, kind) for plant in (other_rows, pads_are_real) for kind in ("learned", "rotary", "ALiBi", "ring")),
    *((read_at_a_pad, kind) for kind in ("learned", "rotary", "ALiBi")),
    *((counted_from_the_pad.plant, kind) for kind in ("learned", "ring")),
    *((plant, "pair") for plant in (other_rows, other_sources, pads_are_real)),
    (steps_of_another, "learned"),
    (settings_of_the_first, "rotary"),
]


@pytest.mark.parametrize(("plant", "kind"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_planted_fault_makes_rows_differ_from_their_solo_runs(
    plant: Plant, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few tokens: with padding they fit the context, so that nothing but a comparison finds the fault."""
    loaded = loaded_of(kind)
    requests = [
        Request(text, tokens, SETTINGS[1], seed=tokens, eos=())
        for text, tokens in (("abc", 2), ("d", 4), ("小猫efg", 3))
    ]
    wanted = alone(loaded, requests)
    plant(monkeypatch)
    assert not all_close(generate_batch(loaded, requests), wanted)
