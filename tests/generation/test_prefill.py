"""A long prompt is read in chunks: the same logits, never more tokens at once than allowed, and whoever waits is told."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from clearhead.generation import rows
from clearhead.generation.generate import generate_batch
from clearhead.generation.request import Request
from clearhead.generation.rows import Group, Overflow, Reader, Row, Side
from clearhead.generation.stores import DoublingStore, FixedStore, GrowingStore
from clearhead.layers import Store
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from tests.generation.ready import CONTEXT, DECODERS, KINDS, PAIRS, reads, ready, replaced

loaded_of = cache(lambda kind: ready(KINDS[kind]))
# Of four rows, one fills the context and one is a single token.
LENGTHS = (CONTEXT, 1, 6, 3)
CHUNKS = (1, 2, 5)


def rows_of(kind: str, lengths: tuple[int, ...] = LENGTHS) -> list[Row]:
    """Rows of these lengths; for an encoder-decoder with sources of other lengths."""
    generator = torch.Generator().manual_seed(2)
    texts = [torch.randint(12, (length,), generator=generator).tolist() for length in lengths]
    sources = [tuple(torch.randint(12, (2 + length % 5,), generator=generator).tolist()) for length in lengths]
    return [Row(ids, source if kind in PAIRS else ()) for ids, source in zip(texts, sources, strict=True)]


def alone(kind: str, row: Row) -> Tensor:
    """The reference: one forward without a store, (V)."""
    model, ids = loaded_of(kind).model, torch.tensor([row.ids])
    with torch.no_grad():
        logits: Tensor = model(torch.tensor([row.source]), ids) if row.source else model(ids)
    return logits[0, -1]


def worst(kind: str, reader: Reader, given: list[Row], more: int = 3) -> float:
    """The largest difference from the rows' forwards alone, after reading them and after some tokens more."""
    group, largest = Group(reader, given), 0.0
    for token in range(more):
        logits = group.read()[:, -1]
        wanted = torch.stack([alone(kind, row) for row in given])
        largest = max(largest, float((logits - wanted).abs().amax()))
        for place, row in enumerate(given):
            row.ids.append((token + place) % 12)
    return largest


def reader_of(model: Decoder | EncoderDecoder, padding: Side) -> Reader:
    return (
        Reader(model, padding=padding) if padding == "left" else Reader(model, padding="right", new_store=DoublingStore)
    )


@pytest.mark.parametrize("at_once", CHUNKS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_prompt_in_chunks_is_one_forward(kind: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "READ_AT_ONCE", at_once)
    loaded = loaded_of(kind)
    for length in (1, 4, 5, CONTEXT - 2):
        with reads(loaded) as shapes:
            assert worst(kind, Reader(loaded.model), rows_of(kind, (length,)), more=1) <= 1e-10
        # The reference itself reads everything at once, last.
        chunks = [shape for _, shape in shapes[:-1]]
        assert sum(chunks) == length
        assert chunks == [*[at_once] * (length // at_once), *([length % at_once] if length % at_once else [])]


@pytest.mark.parametrize("at_once", [4, 5, 11])
@pytest.mark.parametrize("padding", ["left", "right"])
@pytest.mark.parametrize("kind", KINDS)
def test_ragged_prompts_in_chunks_are_each_one_forward(
    kind: str, padding: Side, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one, one and two columns a chunk; short rows have chunks in which nothing of theirs is real."""
    monkeypatch.setattr(rows, "READ_AT_ONCE", at_once)
    lengths = tuple(length - 2 if length == CONTEXT else length for length in LENGTHS)
    assert worst(kind, reader_of(loaded_of(kind).model, padding), rows_of(kind, lengths)) <= 1e-10


@pytest.mark.parametrize("new_store", [GrowingStore, DoublingStore, FixedStore])
def test_every_store_can_be_filled_in_chunks(new_store: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "READ_AT_ONCE", 8)
    reader = Reader(loaded_of("learned").model, new_store=new_store)
    assert worst("learned", reader, rows_of("learned", (CONTEXT - 3, 2, 5))) <= 1e-10


@pytest.mark.parametrize("padding", ["left", "right"])
@pytest.mark.parametrize("at_once", [4, 7, 9, 35, 36, 1024])
def test_no_forward_reads_more_than_allowed_over_all_rows(
    at_once: int, padding: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "READ_AT_ONCE", at_once)
    loaded = loaded_of("rotary")
    with reads(loaded) as shapes:
        Group(reader_of(loaded.model, padding), rows_of("rotary")).read()
    assert all(count * length <= at_once for count, length in shapes)
    assert sum(length for _, length in shapes) == CONTEXT
    assert {count for count, _ in shapes} == {len(LENGTHS)}
    assert len(shapes) == -(-CONTEXT // (at_once // len(LENGTHS)))


def test_more_rows_than_allowed_tokens_are_read_a_column_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "READ_AT_ONCE", 3)
    loaded = loaded_of("rotary")
    with reads(loaded) as shapes:
        assert worst("rotary", Reader(loaded.model), rows_of("rotary"), more=1) <= 1e-10
    assert shapes[:CONTEXT] == [(len(LENGTHS), 1)] * CONTEXT


@pytest.mark.parametrize("overflow", ["stop", "window", "recompute"])
@pytest.mark.parametrize("kind", [*DECODERS, *PAIRS])
def test_texts_do_not_depend_on_the_chunks(kind: str, overflow: Overflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the context too, where views are read anew."""
    loaded = loaded_of(kind)
    asked = [Request("abc小猫d"[:length], 2 * CONTEXT, seed=length, eos=()) for length in (1, 4, 6)]
    whole = generate_batch(loaded, asked, overflow=overflow)
    for at_once in (2, 5):
        monkeypatch.setattr(rows, "READ_AT_ONCE", at_once)
        made = generate_batch(loaded, asked, overflow=overflow)
        assert [(each.ids, each.finish_reason) for each in made] == [(each.ids, each.finish_reason) for each in whole]
        for each, wanted in zip(made, whole, strict=True):
            assert each.logprobs == pytest.approx(wanted.logprobs, abs=1e-10)


# --- progress


@pytest.mark.parametrize("at_once", [1, 2, 5, 1024])
def test_progress_is_told_chunk_by_chunk_up_to_the_whole_prompt(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "READ_AT_ONCE", at_once)
    told: list[tuple[int, int]] = []
    asked = [Request("abcdefg", 2)]
    generate_batch(loaded_of("learned"), asked, progress=lambda done, total: told.append((done, total)))
    assert [total for _, total in told] == [7] * len(told)
    assert told[-1] == (7, 7)
    assert len(told) == -(-7 // at_once)
    assert all(before < after for (before, _), (after, _) in pairwise(told))


@pytest.mark.parametrize("overflow", ["window", "recompute"])
@pytest.mark.parametrize("kind", ["learned", "pair"])
def test_progress_is_of_the_prompts_alone(kind: str, overflow: Overflow) -> None:
    """What is read anew when the context is full is no prompt: whoever waited sees the text already."""
    told: list[tuple[int, int]] = []
    asked = [Request("abc", 2 * CONTEXT, eos=()), Request("abcdef", 2 * CONTEXT, eos=())]
    generate_batch(loaded_of(kind), asked, overflow=overflow, progress=lambda done, total: told.append((done, total)))
    # An answer begins with one mark, whatever the source.
    assert told == [(6, 6) if kind == "learned" else (1, 1)]


def test_a_prompt_longer_than_the_context_is_told_as_far_as_it_is_read() -> None:
    told: list[tuple[int, int]] = []
    asked = [Request("abcdefgh" * 3, 2)]
    generate_batch(loaded_of("learned"), asked, progress=lambda done, total: told.append((done, total)))
    assert told == [(CONTEXT, CONTEXT)]


# --- faults that the comparison must find


@pytest.mark.parametrize("padding", ["left", "right"])
@pytest.mark.parametrize("kind", ["learned", "rotary", "pair"])
def test_chunks_that_forget_the_one_before_are_found(kind: str, padding: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: each chunk begins a text of its own."""
    monkeypatch.setattr(rows, "READ_AT_ONCE", 8)

    def forgetful(right: object) -> object:
        def advance(store: DoublingStore, length: int) -> None:
            store.length, store.real = 0, None

        return advance

    replaced(monkeypatch, DoublingStore, "advance", forgetful)
    given = rows_of(kind, (CONTEXT - 2, 2, 5))
    assert worst(kind, reader_of(loaded_of(kind).model, padding), given, more=1) > 1e-6


@pytest.mark.parametrize("kind", ["learned", "ALiBi", "pair"])
def test_a_last_token_looked_for_in_the_last_chunk_alone_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: rows padded on the right end in earlier chunks, and what is taken is what follows a pad."""
    monkeypatch.setattr(rows, "READ_AT_ONCE", 8)
    replaced(monkeypatch, rows, "padded", lambda right: lambda texts, side, device: right(texts, "right", device))
    # The reader believes that the padding is on the left, where every row ends with the last column.
    given = rows_of(kind, (CONTEXT - 2, 2, 5))
    assert worst(kind, Reader(loaded_of(kind).model, new_store=DoublingStore), given, more=1) > 1e-6


def test_a_limit_on_columns_in_place_of_tokens_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: as many tokens as allowed, of every row."""
    at_once = 4

    def columns(right: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def last_logits(reader: Reader, texts: list[list[int]], store: Store) -> Tensor:
            monkeypatch.setattr(rows, "READ_AT_ONCE", at_once * len(texts))
            return right(reader, texts, store)

        return last_logits

    replaced(monkeypatch, rows, "_last_logits", columns)
    loaded = loaded_of("rotary")
    with reads(loaded) as shapes:
        Group(Reader(loaded.model), rows_of("rotary")).read()
    assert any(count * length > at_once for count, length in shapes)
