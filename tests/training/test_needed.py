"""What an update needs, against the tensors that autograd really keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clearhead.models.build import build
from clearhead.models.choices import Rotary
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.cost import parameters, training_memory
from clearhead.training.batches import Batch
from clearhead.training.losses import next_token
from clearhead.training.needed import HELD, LOADED, Needed, Thrift, needed_memory
from clearhead.training.recompute import recompute
from tests.models.test_cost import kept_bytes

DEEP = DecoderConfig(vocab=53, layers=5, heads=4, width=64, context=48, positions=Rotary())
PAIRS = EncoderDecoderConfig(vocab=53, layers=2, heads=4, width=32, context=11, source_context=17, dropout=0.1)


def really_kept(config: DecoderConfig, rows: int, *, again: bool = False) -> int:
    """Bytes of the tensors that a training forward keeps, its parameters not among them."""
    model = build(config, seed=0).train()
    if again:
        recompute(model)
    ids = torch.randint(config.vocab, (rows, config.context + 1), generator=torch.Generator().manual_seed(0))

    def loss() -> Tensor:
        return next_token(model, Batch(ids[:, :-1], ids[:, 1:]))[0]

    return sum(kept_bytes(model, loss).values())


def test_without_dropout_and_thrift_it_is_the_cost_model() -> None:
    needed, memory = needed_memory(DEEP, 3, evaluated=0), training_memory(DEEP, 3)
    assert needed[:4] == (memory.weights, memory.gradients, memory.optimizer, memory.activations)
    assert needed.logits == 2 * 4 * 3 * 48 * 53
    own = memory.weights + memory.optimizer + memory.gradients
    assert needed.peak == own + int(HELD * (memory.activations + needed.logits)) + LOADED


def test_an_evaluation_holds_its_widest_tensors() -> None:
    for config, widest in ((DEEP, 64 + 2 * 256), (replace(DEEP, vocab=9_000), 2 * 9_000 + 64)):
        needed, without = (needed_memory(config, 1, evaluated=tokens) for tokens in (8_000, 0))
        assert needed.evaluation == 4 * 8_000 * widest
        assert needed.peak - without.peak == int(HELD * needed.evaluation)
        elsewhere = needed_memory(config, 1, evaluated=8_000, on_cpu=False)
        own = elsewhere.weights + elsewhere.optimizer + elsewhere.gradients
        assert elsewhere.peak == own + max(elsewhere.evaluation, elsewhere.activations + elsewhere.logits)


@pytest.mark.parametrize("rows", [2, 7])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_activations_are_the_tensors_that_are_kept(rows: int, dropout: float) -> None:
    config = replace(DEEP, dropout=dropout)
    assert needed_memory(config, rows).activations == pytest.approx(really_kept(config, rows), rel=0.04)


def test_the_weights_of_attention_count_with_dropout() -> None:
    """The planted fault: without them the same comparison fails."""
    config = replace(DEEP, dropout=0.2)
    without = needed_memory(replace(config, dropout=0.0), 2).activations
    assert without != pytest.approx(really_kept(config, 2), rel=0.04)


def test_blocks_that_are_computed_again_keep_their_inputs() -> None:
    """Autograd keeps those alone; one block's own is needed on the way back."""
    outside = really_kept(DEEP, 3, again=True)
    block = (really_kept(DEEP, 3) - really_kept(replace(DEEP, layers=4), 3)) - 4 * 3 * 48 * 64
    needed = needed_memory(DEEP, 3, thrift=Thrift(recompute=True)).activations
    assert needed == pytest.approx(outside + block, rel=0.08)
    assert needed < needed_memory(DEEP, 3).activations / 2


def test_rows_that_go_through_together_count() -> None:
    parts = needed_memory(DEEP, 12, thrift=Thrift(micro_batch=3))
    assert parts == needed_memory(DEEP, 3)
    assert needed_memory(DEEP, 12, thrift=Thrift(micro_batch=99)) == needed_memory(DEEP, 12)


def test_logits_of_some_tokens_at_a_time_are_all_that_is_held() -> None:
    wide = replace(DEEP, vocab=50_000)
    usual, thrifty = (needed_memory(wide, 3, evaluated=0, thrift=each) for each in (None, Thrift(logits_at_once=16)))
    assert usual.activations - thrifty.activations == 4 * 3 * 48 * 50_000
    assert thrifty.logits == 3 * 4 * 16 * 50_000
    assert thrifty.peak - LOADED < (usual.peak - LOADED) / 2


@pytest.mark.parametrize(
    ("dtype", "weights", "gradients"), [("float32", 4, 4), ("bfloat16", 6, 4), ("bfloat16-weights", 6, 6)]
)
def test_bytes_of_a_number_in_each_precision(dtype: str, weights: int, gradients: int) -> None:
    count = sum(parameters(DEEP).values())
    needed = needed_memory(DEEP, 3, dtype=dtype)
    assert (needed.weights, needed.gradients, needed.optimizer) == (weights * count, gradients * count, 8 * count)
    assert (needed.activations < needed_memory(DEEP, 3).activations) == (dtype != "float32")


def test_frozen_weights_have_no_gradients_and_muon_one_mean_for_matrices() -> None:
    parts = parameters(DEEP)
    assert needed_memory(DEEP, 3, trained=70)[1:3] == (4 * 70, 8 * 70)
    matrices = parts["attention"] + parts["feedforward"]
    assert needed_memory(DEEP, 3, optimizer="muon").optimizer == 8 * sum(parts.values()) - 4 * matrices


def test_pairs_keep_weights_of_three_kinds_of_attention() -> None:
    plain = needed_memory(replace(PAIRS, dropout=0.0), 5)
    dropped = needed_memory(PAIRS, 5)
    weights = 4 * (2 * 17 * 17 + 2 * 11 * 11 + 2 * 11 * 17)
    features = 32 * (5 * 11 + 2 * 11 + 5 * 17)
    assert dropped.activations - plain.activations == 5 * (9 * weights + 4 * features)
    elsewhere = needed_memory(PAIRS, 5, on_cpu=False, evaluated=0)
    assert elsewhere.activations - plain.activations == 5 * features
    assert elsewhere.peak == sum(elsewhere[:5])


@given(
    rows=st.integers(1, 9),
    layers=st.integers(1, 6),
    window=st.integers(1, 48),
    dropout=st.sampled_from([0.0, 0.3]),
)
@settings(max_examples=30)
def test_less_is_never_more(rows: int, layers: int, window: int, dropout: float) -> None:
    config = replace(DEEP, layers=layers, dropout=dropout)

    def of(rows: int = rows, window: int = window, thrift: Thrift | None = None) -> Needed:
        return needed_memory(config, rows, window=window, thrift=thrift)

    assert of().peak <= of(rows=rows + 1).peak
    assert of().peak <= of(window=window + 1).peak
    assert of(thrift=Thrift(micro_batch=1)).peak <= of().peak
    assert of(thrift=Thrift(recompute=True)).activations <= of().activations + 4 * rows * layers * window * 64
    assert all(part >= 0 for part in of())
    assert of().peak >= of().weights + of().optimizer + of().gradients
