"""The decode loop: forward, distribution, draw, append."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.generation.sampling import SamplingSettings, probabilities
from clearhead.generation.stores import Cache, GrowingStore
from clearhead.layers.store import NO_STORE, Store
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder


class Step(NamedTuple):
    """One generated token."""

    id: int
    logprob: float
    """Log of the probability that the settings gave this token (nats)."""


def _itself(store: Store) -> Store:
    return store


def decode(
    model: Decoder,
    prompt: Sequence[int],
    settings: SamplingSettings,
    *,
    seed: int,
    new_store: Callable[[Decoder], Cache] = GrowingStore,
    around: Callable[[Store], Store] = _itself,
) -> Iterator[Step]:
    """Generate token after token, without end; the caller stops asking.

    Up to the model's context every token is read once and its keys and values are kept. Past it the oldest tokens fall
    out, every position changes with that, and the last `context` tokens are read anew at each step.

    Args:
        model: in evaluation mode.
        prompt: at least one token id.
        settings: how to choose.
        seed: of the draws; the same seed gives the same tokens on the same machine.
        new_store: makes the cache; `FixedStore` for a compiled model, whose shapes must not change.
        around: what the model is given in place of the cache; an encoder-decoder's decoder takes `memory.beside`.

    Raises:
        UserError: if the model's logits are not numbers.
    """
    generator = torch.Generator().manual_seed(seed % 2**64)
    ids, store = list(prompt), new_store(model)
    while True:
        with torch.inference_mode():
            logits = _next_logits(model, ids, store, around)
            chances = probabilities(logits, settings, _counts(ids, logits) if settings.penalises else None).cpu()
        if not logits.amax().isfinite():
            raise UserError(say("generation.not_a_number"))
        drawn = int(torch.multinomial(chances, 1, generator=generator))
        ids.append(drawn)
        yield Step(drawn, float(chances[drawn].log()))


def _counts(ids: Sequence[int], logits: Tensor) -> Tensor:
    """How often each token of the vocabulary stands in `ids`, prompt and all: (V)."""
    return torch.bincount(torch.tensor(ids), minlength=logits.shape[-1]).to(logits)


def _next_logits(model: Decoder, ids: Sequence[int], store: Cache, around: Callable[[Store], Store]) -> Tensor:
    """Logits (V) of the token after `ids`; only what the store has not kept yet is read, while the context lasts."""
    device = next(model.parameters()).device
    if len(ids) <= store.context:
        logits: Tensor = model(torch.tensor([ids[store.length :]], device=device), store=around(store))
    else:
        logits = model(torch.tensor([ids[-model.context :]], device=device), store=around(NO_STORE))
    return logits[0, -1]
