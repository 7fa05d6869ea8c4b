"""A memory is computed once, sits beside any store, and each block finds its part of it there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.generation.stores import FixedStore, GrowingStore
from clearhead.layers import (
    NO_STORE,
    CrossStore,
    MultiHeadAttention,
)
from clearhead.layers.store import as_real
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops import Allowed, Padding
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_same, assert_within

B, T, M, D, H, K, d, V = 2, 7, 5, 12, 6, 2, 4, 11
REAL = torch.tensor([[True, True, True, True, True], [True, True, True, False, False]])
Store = GrowingStore | FixedStore
STORES = [GrowingStore, FixedStore]


def filled(part: Any) -> Any:
    """The part with every weight random, norms and biases included, in float64."""
    for parameter in part.double().parameters():
        nn.init.normal_(parameter, std=0.5)
    return part.eval()


def model_of(**choices: Any) -> EncoderDecoder:
    """Two blocks that read, three that write; 8 positions of a source, 15 of a target."""
    sizes = {"vocab": V, "layers": 3, "encoder_layers": 2, "heads": H, "kv_heads": K, "width": D, "head_width": d}
    config = EncoderDecoderConfig(**{**sizes, "context": 15, "source_context": 8, "qkv_bias": True, **choices})
    return filled(build(config, seed=0))


def pair() -> tuple[Tensor, Tensor]:
    return torch.randint(V, (B, M)), torch.randint(V, (B, T))


# Without a memory


@pytest.mark.parametrize("block", [kinds.PreNorm(), kinds.PostNorm(), kinds.AroundNorm()])
def test_a_decoder_that_is_given_no_memory_says_what_it_wants(block: kinds.Block) -> None:
    model = model_of(block=block)
    for store in (NO_STORE, GrowingStore(model.decoder), FixedStore(model.decoder)):
        with pytest.raises(ValueError, match=r"^these blocks ask a memory: give the decoder store=model\.remember\("):
            model.decoder(torch.zeros(1, 2, dtype=torch.long), store=store)


# Computed once


def count(model: EncoderDecoder, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often the encoder runs, and how often each kind of projection of a memory."""
    counts = {"encoder": 0, "keys_values": 0, "linear": 0}
    keys_values, linear = MultiHeadAttention.keys_values, torch.nn.functional.linear

    def counted(self: MultiHeadAttention, memory: Tensor, *, tap: Any) -> tuple[Tensor, Tensor]:
        counts["keys_values"] += 1
        return keys_values(self, memory, tap=tap)

    def counted_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        counts["linear"] += weight.shape[0] == 2 * K * d
        return linear(x, weight, bias)

    monkeypatch.setattr(MultiHeadAttention, "keys_values", counted)
    monkeypatch.setattr("torch.nn.functional.linear", counted_linear)
    model.encoder.register_forward_hook(lambda *_: counts.update(encoder=counts["encoder"] + 1))
    return counts


def check_once(model: EncoderDecoder, counts: dict[str, int], decode: Callable[[], None]) -> None:
    decode()
    assert counts == {"encoder": 1, "keys_values": 3, "linear": 3}


def steps(model: EncoderDecoder, memory: CrossStore, target: Tensor) -> Tensor:
    """The target token by token, through a growing store."""
    store = memory.beside(GrowingStore(model.decoder))
    return torch.cat([model.decoder(target[:, [t]], store=store) for t in range(target.shape[1])], 1)


def test_the_memory_is_computed_once_however_often_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (source, target) = model_of(), pair()
    counts = count(model, monkeypatch)
    check_once(model, counts, lambda: steps(model, model.remember(source), target))


def test_a_memory_that_is_computed_at_each_step_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (source, target) = model_of(), pair()
    counts = count(model, monkeypatch)

    def again_and_again() -> None:
        store = GrowingStore(model.decoder)
        for t in range(T):
            model.decoder(target[:, [t]], store=model.remember(source).beside(store))

    with pytest.raises(AssertionError):
        check_once(model, counts, again_and_again)


# Beside stores


def check_splits(model: EncoderDecoder, kind: type[Store], forward: Callable[..., Tensor]) -> None:
    """Prefill and step, at every split, equal the forward of the whole; with padding in source and target, and without."""
    source, target = pair()
    right = torch.arange(T) < torch.tensor([[T], [T - 2]])
    left = torch.arange(T) >= torch.tensor([[0], [2]])
    for source_real, target_real in ((None, None), (REAL, None), (REAL, left), (None, right)):
        with torch.no_grad():
            whole = model(source, target, source_real=source_real, target_real=target_real)
            memory = model.remember(source, real=source_real)
            for split in range(1, T):
                store = memory.beside(kind(model.decoder))
                halves = [
                    forward(target[:, a:b], real=None if target_real is None else target_real[:, a:b], store=store)
                    for a, b in ((0, split), (split, T))
                ]
                kept = torch.ones(B, T, dtype=torch.bool) if target_real is None else target_real
                assert_within(torch.cat(halves, 1)[kept], whole[kept], 1e-11)
            if target_real is None:
                assert_within(steps(model, memory, target), whole, 1e-11)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("block", [kinds.PreNorm(), kinds.PostNorm()])
@pytest.mark.parametrize("positions", [kinds.Learned(), kinds.Rotary(), kinds.Relative(buckets=8, farthest=6)])
def test_a_store_beside_the_memory_equals_the_whole_at_every_split(
    kind: type[Store], block: kinds.Block, positions: kinds.Positions
) -> None:
    model = model_of(block=block, positions=positions)
    check_splits(model, kind, model.decoder)


@pytest.mark.parametrize("kind", STORES)
def test_a_store_that_is_not_moved_on_once_is_caught(kind: type[Store], monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of()
    for times in (0, 2):
        monkeypatch.setattr(CrossStore, "advance", lambda self, length, n=times: self.own.advance(n * length))
        with pytest.raises((AssertionError, IndexError, RuntimeError, ValueError)):
            check_splits(model, kind, model.decoder)


def test_a_store_that_forgets_the_own_tokens_is_caught() -> None:
    model = model_of()
    with pytest.raises(AssertionError):
        check_splits(
            model, GrowingStore, lambda ids, real, store: model.decoder(ids, real=real, store=store.beside(NO_STORE))
        )


def test_one_advance_a_forward() -> None:
    model, (source, target) = model_of(), pair()
    own = GrowingStore(model.decoder)
    store = model.remember(source).beside(own)
    for length in (1, 3, 4):
        model.decoder(target[:, own.length : length], store=store)
        assert own.length == length


def check_two(model: EncoderDecoder, beside: Callable[[CrossStore, Store], CrossStore]) -> None:
    """Two continuations of one memory, step by step in turn, are each what it is alone."""
    source, first = pair()
    second = (first + 1 + torch.arange(T) % (V - 1)) % V
    with torch.no_grad():
        alone = [model(source, target) for target in (first, second)]
        memory = model.remember(source)
        before = [(each.k.clone(), each.v.clone()) for each in memory.memories]
        stores = [beside(memory, GrowingStore(model.decoder)), beside(memory, FixedStore(model.decoder, T))]
        found: list[list[Tensor]] = [[], []]
        for t in range(T):
            for target, store, logits in zip((first, second), stores, found, strict=True):
                logits.append(model.decoder(target[:, [t]], store=store))
    for logits, expected in zip(found, alone, strict=True):
        assert_within(torch.cat(logits, 1), expected, 1e-11)
    for each, (k, v) in zip(memory.memories, before, strict=True):
        assert_same(each.k, k)
        assert_same(each.v, v)
        assert all(store.memories[0].k.data_ptr() == memory.memories[0].k.data_ptr() for store in stores)


def test_two_continuations_share_a_memory_and_do_not_disturb_each_other() -> None:
    check_two(model_of(), CrossStore.beside)


def test_continuations_that_share_a_store_are_caught() -> None:
    kept: list[CrossStore] = []

    def one_for_all(memory: CrossStore, own: Store) -> CrossStore:
        kept.append(memory.beside(own))
        return kept[0]

    with pytest.raises(AssertionError):
        check_two(model_of(), one_for_all)


def test_what_remember_keeps() -> None:
    """One memory a block, K heads of keys and values each, as its cross-attention projects the encoder's features."""
    model, (source, _) = model_of(), pair()
    recorder = Recorder()
    with torch.no_grad():
        store = model.remember(source, real=REAL, tap=recorder)
        features = model.encoder(source, real=REAL)
        assert store.own is NO_STORE
        assert len(store.memories) == 3
        for index, (memory, block) in enumerate(zip(store.memories, model.decoder.blocks, strict=True)):
            k, v = block.cross_attention.keys_values(features)
            assert memory.k.shape == memory.v.shape == (B, K, M, d)
            assert_same(memory.k, k)
            assert_same(memory.v, v)
            assert_same(recorder.tensors[f"decoder.blocks.{index}.cross_attention.v"], v)
            assert isinstance(memory.visible, Allowed)
            assert memory.visible.matrix().equal(Padding(REAL).matrix())


def test_which_tokens_are_real_is_not_said_in_floats() -> None:
    """An additive mask, 0 for "look" and a large negative number for padding, would mean the opposite."""
    device = torch.device("cpu")
    assert as_real(torch.tensor([[1, 0]]), device).tolist() == [[True, False]]
    with pytest.raises(ValueError, match="booleans"):
        as_real(torch.tensor([[0.0, -1e9]]), device)
