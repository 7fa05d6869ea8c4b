"""The best token at each step, with a cache: what `generate` of transformers writes, ours writes, in a batch with padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.generation.stores import FixedStore, GrowingStore
from clearhead.layers import NO_STORE
from clearhead.models.encoder_decoder import EncoderDecoder
from tests.oracles.hf_pairs import CONFIGS, ENDLESS, M, ids, our_pair, their_pair

STEPS = 9
START, PAD = ENDLESS["decoder_start_token_id"], ENDLESS["pad_token_id"]
REAL = torch.arange(M) < torch.tensor([[M], [6], [2]])
# By how much the best logit must be better, for rounding not to choose.
CLEAR = {torch.float64: 1e-9, torch.float32: 1e-4}
# A model that repeats itself tells little: models are drawn until one writes more tokens than this.
VARIED, MODELS = 5, 40
# Of matrices and tables, for texts that are not one token again and again.
WIDTHS = {"T5": (1.0, 1.0), "BART": (0.3, 1.0)}
Greedy = Callable[[EncoderDecoder, Tensor, int | None], tuple[Tensor, float]]


def greedy(
    model: EncoderDecoder, source: Tensor, end: int | None, *, store: type = GrowingStore
) -> tuple[Tensor, float]:
    """The tokens written, the start included, and by how much the best was better at least; rows that ended are padded."""
    memory = model.remember(source, real=REAL)
    kept = memory.beside(store(model.decoder))
    written, margin = [torch.full((len(source), 1), START)], torch.inf
    ended = torch.zeros(len(source), dtype=torch.bool)
    for _ in range(STEPS):
        logits = model.decoder(written[-1], store=kept)[:, -1]
        best = logits.topk(2).values[~ended]
        margin = min(margin, (best[:, 0] - best[:, 1]).min().item())
        token = torch.where(ended, PAD, logits.argmax(-1))
        written.append(token[:, None])
        ended |= token == end if end is not None else ended
        if bool(ended.all()):
            break
    return torch.cat(written, 1), margin


def without_a_cache(model: EncoderDecoder, source: Tensor, end: int | None) -> tuple[Tensor, float]:
    """A fault: each token is read alone, as if it were the first."""
    written = [torch.full((len(source), 1), START)]
    memory = model.remember(source, real=REAL).beside(NO_STORE)
    for _ in range(STEPS):
        written.append(model.decoder(written[-1], store=memory)[:, -1:].argmax(-1))
    return torch.cat(written, 1), torch.inf


def of_another_row(model: EncoderDecoder, source: Tensor, end: int | None) -> tuple[Tensor, float]:
    """A fault: the memory of each row is that of the row before."""
    return greedy(model, source.roll(1, 0), end)


def without_padding(model: EncoderDecoder, source: Tensor, end: int | None) -> tuple[Tensor, float]:
    """A fault: what stands at padding is read."""
    model.remember = lambda source, *, real: EncoderDecoder.remember(model, source)
    return greedy(model, source, end)


def drawn(name: str, dtype: torch.dtype = torch.float64) -> Iterator[tuple[EncoderDecoder, Any]]:
    """Ours and theirs with the same weights, again and again others."""
    for _ in range(MODELS):
        theirs = their_pair(name, *WIDTHS[name])
        yield our_pair(name, CONFIGS[name], theirs, dtype), theirs
    pytest.fail("too monotonous to tell anything")


@torch.no_grad()
def check(name: str, written: Greedy, dtype: torch.dtype = torch.float64) -> None:
    """Three batches of each model; then again with an end that some row writes early."""
    for ours, theirs in drawn(name, dtype):
        by_them = []
        for _ in range(3):
            source = ids(M)
            endless = check_batch(ours, theirs, written, source, None)
            by_them.append(endless)
            check_batch(ours, theirs, written, source, int(endless[0, 2]))
        if len(torch.cat(by_them).unique()) > VARIED:
            return


def check_batch(ours: EncoderDecoder, theirs: Any, written: Greedy, source: Tensor, end: int | None) -> Tensor:
    theirs.generation_config.eos_token_id = end
    expected = theirs.generate(source, attention_mask=REAL.long(), num_beams=1, do_sample=False, max_new_tokens=STEPS)
    found, margin = written(ours, source, end)
    assert found.tolist() == expected.tolist(), "other tokens"
    assert margin > CLEAR[ours.decoder.head.weight.dtype], "no clear choice"
    return expected


@pytest.mark.parametrize("name", WIDTHS)
def test_the_same_tokens_as_transformers(name: str) -> None:
    check(name, greedy)
    check(name, lambda model, source, end: greedy(model, source, end, store=FixedStore))


@pytest.mark.parametrize("name", WIDTHS)
def test_the_same_tokens_in_float32(name: str) -> None:
    check(name, greedy, torch.float32)


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("fault", [without_a_cache, of_another_row, without_padding])
def test_other_tokens_are_caught(fault: Greedy, name: str) -> None:
    with pytest.raises(AssertionError, match=r"^other tokens"):
        check(name, fault)


@torch.no_grad()
def test_what_is_written_depends_on_the_source() -> None:
    for ours, _ in drawn("BART"):
        rows = torch.cat([greedy(ours, ids(M), None)[0] for _ in range(5)])
        if len(rows.unique()) > VARIED and len({tuple(row) for row in rows.tolist()}) > VARIED:
            return
