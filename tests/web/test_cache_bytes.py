"""The bytes of a cache are 2 · L · K · d · S · b, and those that a store really keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from clearhead.generation.stores import GrowingStore
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, Sight
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.cost import cache_elements
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.web import cache_bytes
from clearhead.web.cache_bytes import memory_bytes, middle_divisor, sizes

CONFIG = DecoderConfig(vocab=11, layers=3, heads=6, kv_heads=2, width=30, context=64)
PAIR = EncoderDecoderConfig(
    vocab=11, layers=3, heads=6, kv_heads=2, width=30, context=64, encoder_layers=1, source_context=17
)
KINDS = {"float32": 4, "bfloat16": 2, "float64": 8}


def stored(config: DecoderConfig, kind: str, tokens: int) -> int:
    """Bytes of the keys and values of so many tokens in a store that has read them."""
    model = build(config, seed=0).eval().to(getattr(torch, kind))
    assert isinstance(model, Decoder)
    store = GrowingStore(model)
    with torch.no_grad():
        model(torch.zeros(1, tokens, dtype=torch.long), store=store)
    return sum(each.nbytes for layer in store.layers for each in layer.kept or ())


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_those_of_a_store(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> None:
        of = sizes(CONFIG, KINDS[kind], 7, None)
        assert of["own"]["prompt"] == stored(CONFIG, kind, 7) == 2 * 3 * 2 * 5 * 7 * KINDS[kind]
        for name, groups in (("multi_head", 6), ("grouped", 2), ("multi_query", 1)):
            assert (of[name]["kv_heads"], of[name]["prompt"]) == (
                groups,
                stored(replace(CONFIG, kv_heads=groups), kind, 7),
            )

    check()
    for broken in (_without_two, _of_queries):
        monkeypatch.setattr(cache_bytes, "cache_elements", broken)
        with pytest.raises(AssertionError):
            check()


def _without_two(*given: Any, **more: Any) -> int:
    """The planted fault: keys alone."""
    return cache_elements(*given, **more) // 2


def _of_queries(config: DecoderConfig, *given: Any, **more: Any) -> int:
    """The planted fault: as many heads as there are queries."""
    return cache_elements(replace(config, kv_heads=None), *given, **more)


def _with_a_full_source(*given: Any, source: int) -> int:
    """The planted fault: the memory is counted with each length."""
    return cache_elements(*given)


def test_all_lengths_and_windows() -> None:
    of = sizes(CONFIG, 4, 7, None)
    token = 2 * 3 * 2 * 5 * 4
    assert of["own"] == {"kv_heads": 2, "window": None, "token": token, "prompt": 7 * token, "context": 64 * token}
    assert of["window"] == {"kv_heads": 2, "window": 16, "token": token, "prompt": 7 * token, "context": 16 * token}
    # Layers that differ: 5 and 64 and 5 tokens.
    cycle = sizes(replace(CONFIG, cycle=(Sight(window=5), Sight())), 4, 7, None)
    assert cycle["own"]["context"] == 64 * token
    assert cycle["window"]["prompt"] == (5 + 7 + 5) * token // 3
    assert cycle["window"]["context"] == (5 + 64 + 5) * token // 3
    ring = sizes(replace(CONFIG, window=5), 4, 30, 21)
    assert [ring["own"][name] for name in ("token", "prompt", "context")] == [token, 21 * token, 21 * token]
    assert ring["window"]["window"] == 5


@pytest.mark.parametrize(
    ("heads", "groups", "grouped"),
    [(6, 6, 2), (6, 1, 2), (9, 9, 3), (12, 12, 3), (12, 6, 6), (5, 5, None), (1, 1, None), (32, 32, 4)],
)
def test_a_grouped_example_lies_between(heads: int, groups: int, grouped: int | None) -> None:
    of = sizes(DecoderConfig(vocab=11, layers=2, heads=heads, kv_heads=groups, width=5 * heads, context=16), 4, 3, None)
    assert of.get("grouped", {"kv_heads": None})["kv_heads"] == grouped
    assert middle_divisor(heads) in (None, *range(2, heads))


def test_a_memory_is_counted_once_and_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(PAIR, seed=0).eval()
    assert isinstance(model, EncoderDecoder)
    with torch.no_grad():
        memory = model.remember(torch.zeros(1, 9, dtype=torch.long))
    kept = sum(each.nbytes for layer in memory.memories for each in (layer.k, layer.v))
    assert memory_bytes(PAIR, 4, 9) == kept == 2 * 3 * 2 * 5 * 9 * 4
    assert sizes(PAIR, 4, 7, None) == sizes(PAIR.decoder, 4, 7, None)
    assert memory_bytes(CONFIG, 4, 0) == 0
    monkeypatch.setattr(cache_bytes, "cache_elements", _with_a_full_source)
    assert sizes(PAIR, 4, 7, None) != sizes(PAIR.decoder, 4, 7, None)
