"""The matmul ceiling, and what an update asks of a machine."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from clearhead.models.build import build
from clearhead.models.choices import Visible
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.training import ceiling as module
from clearhead.training.ceiling import Ceiling, forward_flops, matmul_ceiling, update_flops
from clearhead.training.fit import Update
from clearhead.training.losses import next_token, target_token
from clearhead.training.objective import Objective
from clearhead.training.pairs import IdPair, Marks, PairBatch, Shuffled
from tests.training.toy import CPU, TINY, objective

PLAIN = replace(TINY, dropout=0.0, kernel=Visible())
PAIRS = EncoderDecoderConfig(vocab=23, layers=2, heads=2, width=12, context=9, source_context=9, kernel=Visible())


def pairs() -> Objective[PairBatch]:
    drawn = np.random.default_rng(0)
    train = [IdPair(drawn.integers(0, 20, 3 + n % 5), drawn.integers(0, 20, 2 + n % 4)) for n in range(30)]
    return Objective(Shuffled(train, Marks(21, 22), 4, 0), lambda: [], target_token)


def test_the_ceiling_is_that_of_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that a product moves on by n³ / 10⁹ seconds sees 2 GFLOP/s, whatever n was taken."""
    now, sides = [0.0], set[int]()

    def product(left: torch.Tensor, right: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        sides.add(len(left))
        now[0] += len(left) ** 3 / 1e9
        return out

    monkeypatch.setattr(torch, "mm", product)
    monkeypatch.setattr("clearhead.training.ceiling.time.perf_counter", lambda: now[0])
    assert matmul_ceiling(CPU) == pytest.approx(2e9)
    # Five products of the next size would take more than a quarter of a second.
    assert max(sides) == 256
    assert now[0] < 0.5


def test_measuring_it_is_soon_done_and_draws_nothing() -> None:
    state, began = torch.get_rng_state(), time.process_time()
    found = matmul_ceiling(CPU, torch.float32)
    assert time.process_time() - began < 0.5 * torch.get_num_threads()
    assert 1e8 < found < 1e15
    assert torch.equal(torch.get_rng_state(), state)


def test_an_update_asks_three_times_a_forward_as_pytorch_counts_it() -> None:
    """Forward and backward of a decoder, counted by PyTorch; its first layer alone wants no gradient of its input."""
    asked, model = objective(), build(PLAIN, seed=0)
    with FlopCounterMode(display=False) as counter:
        total, _ = next_token(model, asked.batches(0))
        total.backward()  # type: ignore[no-untyped-call]
    assert update_flops(PLAIN, asked) == pytest.approx(counter.get_total_flops(), rel=1e-12)
    assert update_flops(PLAIN, asked, low_rank=True) * 3 == update_flops(PLAIN, asked) * 2
    assert 2 * forward_flops(PLAIN, asked.batches(0)) != pytest.approx(counter.get_total_flops(), rel=0.1)


def test_a_forward_of_pairs_counts_sources_and_targets() -> None:
    asked, model = pairs(), build(PAIRS, seed=0)
    for step in range(3):
        batch = asked.batches(step)
        with FlopCounterMode(display=False) as counter:
            target_token(model, batch)
        assert forward_flops(PAIRS, batch) == counter.get_total_flops()
    forwards = [forward_flops(PAIRS, asked.batches(step)) for step in range(module.BATCHES)]
    assert len(set(forwards)) > 1
    assert update_flops(PAIRS, asked) == pytest.approx(3 * sum(forwards) / len(forwards))


def test_the_share_is_arithmetic_over_time_over_the_ceiling() -> None:
    update = Update(1, loss=2.0, lr=0.1, grad_norm=1.0, terms=30, seconds=0.5)
    assert Ceiling(flops_per_second=8e9, flops_per_update=1e9).share(update) == 0.25


def test_what_nothing_counts_is_refused() -> None:
    with pytest.raises(TypeError, match="nothing counts"):
        update_flops(object(), objective())  # type: ignore[arg-type]


def test_rows_shorter_than_the_context_cost_less() -> None:
    longer = DecoderConfig(vocab=256, layers=1, heads=2, width=8, context=60)
    assert update_flops(longer, objective()) == update_flops(replace(longer, context=6), objective())
