"""A prompt written on with a cache, as generation does it, and the same computed again from the beginning at each step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.generation.request import Request, ends_of
from clearhead.generation.rows import Group, Reader, Row, cache_for
from clearhead.generation.stores import Cache, WindowStore
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.cost import flops_per_token
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.training.fit import evaluating
from clearhead.web.session import Session

AGAIN = 1 << 35
"""Up to how many FLOPs the steps are computed again; the first one always is. A prompt of some dozens of tokens has all of its steps
compared in a model of 20 M parameters, else some of them: nobody should wait long, and others wait for the model."""


class Step(NamedTuple):
    """One token that was written, and what it cost to read it.

    Args:
        position: where it stands.
        id: the most probable one behind what was there.
        flops: of its forward alone.
        flops_without: of a forward over all tokens so far, the head at the last one alone.
        difference: the largest between the logits of the two; None where the second was not computed.
        largest: the largest magnitude among those logits; None likewise.
    """

    position: int
    id: int
    flops: int
    flops_without: int
    difference: float | None
    largest: float | None


class Grown(NamedTuple):
    """A cache that has grown.

    Args:
        prefill_flops: of the forward over the prompt.
        steps: one a token.
        keys: the norm of what was kept of each token's keys, (L,S).
        values: likewise.
        kind: the type of the numbers that are kept.
        ring: how many tokens are kept at most where older ones give way; None where all are.
        end: the mark with which the model ends its text behind the last step, as `generate` would; None where it goes on.
        source_flops: of reading the source; 0 where there is none.
    """

    prefill_flops: int
    steps: tuple[Step, ...]
    keys: Tensor
    values: Tensor
    kind: torch.dtype
    ring: int | None
    end: int | None
    source_flops: int


def grown(session: Session, steps: int) -> Grown:
    """The prompt read at once, then `steps` tokens, each the most probable one, read one by one.

    It is the reading of `generation`: its groups, its stores, its ends. Beside it, without a store, the whole model reads all tokens again.
    A mark that ends the text is not read: nothing is written behind it.

    Args:
        session: the prompt of a model that writes.
        steps: how many tokens, as far as the text and the context go.
    """
    model, row = session.loaded.model, Row(list(session.ids), session.source)
    assert isinstance(model, Decoder | EncoderDecoder)
    decoder = model.decoder if isinstance(model, EncoderDecoder) else model
    room = min(steps, decoder.context - len(row.ids))
    costs = Costs.of(session, len(row.ids) + room)
    ends, end = ends_of(session.loaded, Request(session.text)), None
    stores: list[Cache] = []
    taken: list[Step] = []

    def kept(of: Decoder, capacity: int) -> Cache:
        stores.append(cache_for(of, capacity))
        return stores[-1]

    with torch.no_grad(), evaluating(model):
        group = Group(Reader(model, "stop", new_store=kept), [row])
        logits = group.read()[0, -1]
        norms = logits.new_zeros(2, len(decoder.blocks), len(row.ids) + room, dtype=torch.float32)
        copy_norms(stores[0], norms)
        spent = 0
        for _ in range(room):
            # A head may have rows beyond the tokenizer's ids, which stand for nothing.
            best = int(logits[: session.loaded.tokenizer.size].argmax())
            if best in ends:
                end = best
                break
            row.ids.append(best)
            logits = group.read()[0, -1]
            copy_norms(stores[0], norms)
            length = len(row.ids)
            spent += costs.whole(length)
            apart = compared(logits, model, row) if spent <= AGAIN or not taken else (None, None)
            taken.append(Step(length - 1, best, costs.step(length), costs.whole(length), *apart))
    ring = stores[0].size if isinstance(stores[0], WindowStore) else None
    keys, values = norms[..., : len(row.ids)]
    first, kind = costs.whole(len(session.ids)), kept_kind(stores[0])
    return Grown(first, tuple(taken), keys, values, kind, ring, end, costs.source)


def compared(logits: Tensor, model: Decoder | EncoderDecoder, row: Row) -> tuple[float, float]:
    """The largest difference from the logits of a forward without a cache, and the largest of those."""
    again = recomputed(model, row.ids, row.source).double()
    return float((logits.double() - again).abs().amax()), float(again.abs().amax())


def recomputed(model: Decoder | EncoderDecoder, ids: Sequence[int], source: Sequence[int]) -> Tensor:
    """The logits (V) of what follows, by one forward over all ids, without a cache.

    Args:
        model: in evaluation mode.
        ids: of the prompt and what was written.
        source: of an encoder-decoder.
    """
    device = next(model.parameters()).device
    read = torch.tensor([ids], device=device)
    if isinstance(model, EncoderDecoder):
        features, head = model.features(torch.tensor([source], device=device), read), model.decoder.head
    else:
        features, head = model.features(read), model.head
    logits: Tensor = head(features[0, -1])
    return logits


def held(store: Cache) -> range:
    """The positions of the tokens whose keys and values a store keeps."""
    first = max(store.first, store.length - store.size) if isinstance(store, WindowStore) else 0
    return range(first, store.length)


def copy_norms(store: Cache, norms: Tensor) -> None:
    """Writes √(Σ x²) over all heads of the keys, and of the values, of each token that is kept now.

    Args:
        store: that has been read with.
        norms: (2,L,S). A token that was let go keeps the norm that it had; one that a long prompt pushed out while it was read, so
            that no store ever held it, keeps its 0. Which are kept now says `held`, and the header's `ring`.
    """
    places = held(store)
    slots = torch.tensor([place % store.size if isinstance(store, WindowStore) else place for place in places])
    for index, layer in enumerate(store.layers):
        assert layer.kept is not None
        for side, numbers in enumerate(layer.kept):
            # (1,K,·,d): one token's numbers are those of all its heads.
            some = numbers[0].index_select(-2, slots.to(numbers.device)).float()
            norms[side, index, places.start : places.stop] = some.square().sum((0, 2)).sqrt()


def kept_kind(store: Cache) -> torch.dtype:
    """The type of the numbers that a store keeps."""
    kept = store.layers[0].kept
    assert kept is not None
    return kept[0].dtype


class Costs:
    """The arithmetic of reading one token, or all of them.

    Args:
        parts: of the token at each length, 1 first, without head and encoder.
        head: of one token.
        source: of reading the whole source.
    """

    def __init__(self, parts: Sequence[int], head: int, source: int) -> None:
        self._parts, self._sums, self._head, self.source = parts, list(accumulate(parts)), head, source

    @classmethod
    def of(cls, session: Session, longest: int) -> Costs:
        """Those of a session's model.

        Args:
            session: the prompt.
            longest: how many tokens there may be.
        """
        config = session.loaded.config
        assert isinstance(config, DecoderConfig | EncoderDecoderConfig)
        source = len(session.source)
        each = [flops_per_token(config, length, source=source) for length in range(1, longest + 1)]
        parts = [sum(flops.values()) - flops["head"] - flops.get("encoder", 0) for flops in each]
        return cls(parts, each[0]["head"], source * each[0].get("encoder", 0))

    def step(self, length: int) -> int:
        """Of the last of `length` tokens, the others and the source being kept."""
        return self._parts[length - 1] + self._head

    def whole(self, length: int) -> int:
        """Of `length` tokens from the beginning, and the source; the head at the last one alone."""
        return self._sums[length - 1] + self._head + self.source
