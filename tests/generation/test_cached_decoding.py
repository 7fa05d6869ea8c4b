"""The decode loop reads each token once, and writes what it would write if it read everything anew."""

from __future__ import annotations

from itertools import islice

import pytest
import torch

from clearhead.generation.rows import Reader
from clearhead.generation.sampling import SamplingSettings, probabilities
from clearhead.generation.stores import DoublingStore, FixedStore, GrowingStore
from clearhead.models.build import build
from clearhead.models.choices import ALiBi, Learned, Positions, Rotary
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from tests.generation.solo import solo

SETTINGS = SamplingSettings(temperature=0.9, top_k=7)
CONTEXT, TOKENS = 10, 25


def model_with(positions: Positions) -> Decoder:
    model = build(
        DecoderConfig(vocab=13, layers=2, heads=4, kv_heads=2, width=24, context=CONTEXT, positions=positions), seed=3
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.4, generator=torch.Generator().manual_seed(parameter.numel()))
    return model.double().eval()


def anew(model: Decoder, prompt: list[int], seed: int) -> list[int]:
    """The reference: every step reads the last `context` tokens from the beginning."""
    generator, ids = torch.Generator().manual_seed(seed), list(prompt)
    for _ in range(TOKENS):
        with torch.no_grad():
            logits = model(torch.tensor([ids[-CONTEXT:]]))[0, -1]
        ids.append(int(torch.multinomial(probabilities(logits, SETTINGS), 1, generator=generator)))
    return ids[len(prompt) :]


@pytest.mark.parametrize("positions", [Learned(), Rotary(), ALiBi()], ids=str)
@pytest.mark.parametrize("new_store", [GrowingStore, DoublingStore, FixedStore])
@pytest.mark.parametrize("prompt", [[4], [1, 2, 3, 4, 5], list(range(12))], ids=len)
def test_a_cached_text_is_the_text_read_anew(positions: Positions, new_store: type, prompt: list[int]) -> None:
    """Also across the border where the context is full."""
    model = model_with(positions)
    steps = islice(solo(Reader(model, new_store=new_store), prompt, SETTINGS, seed=5), TOKENS)
    assert [step.id for step in steps] == anew(model, prompt, seed=5)


class Forgetful(GrowingStore):
    """A fault: positions restart at every step."""

    def places(self, length, real, device):  # type: ignore[no-untyped-def]
        places = super().places(length, real, device)
        return places._replace(queries=range(length), keys=range(-self.length, length))


def test_a_store_that_loses_its_place_writes_another_text() -> None:
    model = model_with(Learned())
    faulty = islice(solo(Reader(model, new_store=Forgetful), [1, 2, 3], SETTINGS, seed=5), TOKENS)
    assert [step.id for step in faulty] != anew(model, [1, 2, 3], seed=5)


def test_each_token_is_read_once_while_the_context_lasts() -> None:
    model, read = model_with(Rotary()), []
    model.register_forward_pre_hook(lambda _, arguments: read.append(arguments[0].shape[-1]))
    list(islice(solo(model, [1, 2, 3], SETTINGS, seed=0), CONTEXT - 2))
    assert read == [3] + [1] * (CONTEXT - 3)


def test_penalties_know_what_has_been_written() -> None:
    model = model_with(Learned())
    plain, penalised = (
        [step.id for step in islice(solo(model, [1], SamplingSettings(temperature=0, presence_penalty=p), seed=0), 8)]
        for p in (0.0, 1e3)
    )
    assert len(set(penalised)) == 8
    assert 1 not in penalised
    assert len(set(plain)) < 8
