"""Rollout, entropy and distance by hand, of any kernel, with sinks and with a cache."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.generation.stores import DoublingStore
from clearhead.messages import UserError, say
from clearhead.models import choices as c
from clearhead.tracing import (
    Recorder,
    Trace,
    attention_distance,
    attention_entropy,
    attention_patterns,
    attention_rollout,
    patterns,
    trace,
)
from clearhead.tracing.trace import Input, traced
from tests.equalities.variants import VARIANTS, ids_of, model_of
from tests.oracles.compare import assert_same, assert_within

IDS = ids_of(1)[0].tolist()
NAME = "blocks.0.attention.weights"


def wide(numbers: list[Any]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def of(*blocks: list[list[list[float]]], tokens: int = 0) -> Trace:
    """A trace of these weights, (H,T,S) each."""
    weights = {f"blocks.{i}.attention.weights": wide([each]) for i, each in enumerate(blocks)}
    return Trace(weights, tokens=["a"] * (tokens or len(blocks[0][0])))


# --- rollout


FIRST = [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
"""Two heads: one reads the first token, one reads itself. Their mean is ½ ½ in the second row."""
SECOND = [[[1.0, 0.0], [1.0, 0.0]]]


def check_rollout() -> None:
    # A_1 = ½ (1 0; ½ ½) + ½ I = (1 0; ¼ ¾); A_2 = ½ (1 0; 1 0) + ½ I = (1 0; ½ ½); A_2 A_1 = (1 0; ⅝ ⅜)
    found = attention_rollout(of(FIRST, SECOND))
    assert_within(found[0, 0], wide([[1.0, 0.0], [0.25, 0.75]]), 1e-15)
    assert_within(found[1, 0], wide([[1.0, 0.0], [0.625, 0.375]]), 1e-15)
    # These two commute; the next do not.
    three = [[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    last = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]]
    # A_1 = (1 0 0; ½ ½ 0; 0 ½ ½), A_2 = (1 0 0; 0 1 0; 0 ½ ½): the last row of A_2 A_1 is ½ (½ ½ 0) + ½ (0 ½ ½)
    found = attention_rollout(of(three, last))
    assert_within(found[1, 0, 2], wide([0.25, 0.5, 0.25]), 1e-15)


def test_rollout_by_hand() -> None:
    check_rollout()


def _without_residual(made: Trace) -> Tensor:
    rolled: list[Tensor] = []
    for each in made.values():
        rolled.append(each.mean(-3) @ rolled[-1] if rolled else each.mean(-3))
    return torch.stack(rolled)


def _other_way(made: Trace) -> Tensor:
    rolled: list[Tensor] = []
    for each in made.values():
        mixed = 0.5 * each.mean(-3) + 0.5 * torch.eye(each.shape[-1]).double()
        rolled.append(rolled[-1] @ mixed if rolled else mixed)
    return torch.stack(rolled)


def _sum_of_heads(made: Trace) -> Tensor:
    rolled: list[Tensor] = []
    for each in made.values():
        mixed = 0.5 * each.sum(-3) + 0.5 * torch.eye(each.shape[-1]).double()
        rolled.append(mixed @ rolled[-1] if rolled else mixed)
    return torch.stack(rolled)


@pytest.mark.parametrize("fault", [_without_residual, _other_way, _sum_of_heads])
def test_a_planted_fault_of_rollout_is_caught(fault: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "attention_rollout", fault)
    with pytest.raises(AssertionError):
        check_rollout()


@pytest.mark.parametrize("variant", ["learned", "rotary, fused", "window", "cycle", "ALiBi, MQA", "soft-cap"])
def test_rollout_of_a_model_is_a_distribution_over_the_past(variant: str) -> None:
    found = attention_rollout(trace(model_of(variant), IDS))
    assert found.shape == (VARIANTS[variant].layers, 1, 13, 13)
    assert_within(found.sum(-1), torch.ones(found.shape[:-1]).double(), 1e-12)
    assert_same(found, found.tril())
    assert found[..., range(13), range(13)].min() >= 0.5 ** VARIANTS[variant].layers


def test_rollout_with_sinks_sums_to_less() -> None:
    sums = attention_rollout(trace(model_of("sinks"), IDS)).sum(-1)
    assert 0.25 < float(sums.min()) < float(sums.max()) < 1.0


def test_rollout_of_a_part_is_refused() -> None:
    model = model_of("rotary, fused")
    for made in (
        trace(model, IDS, names="*.weights", heads=[0]),
        trace(model, IDS, names="*.weights", positions=[3]),
        trace(model, IDS, names="blocks.1.attention.weights"),
        of([[[0.5, 0.5]]]),
    ):
        with pytest.raises(UserError, match="rollout"):
            attention_rollout(made)
    for function in (attention_rollout, attention_entropy, attention_distance):
        with pytest.raises(UserError, match="weights"):
            function(trace(model, IDS, names="logits"))


# --- entropy and distance


ROWS = [[[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.25, 0.25, 0.5, 0.0], [0.25, 0.25, 0.25, 0.25]]]


def check_entropy() -> None:
    (found,) = attention_entropy(of(ROWS)).values()
    assert_within(found, wide([[[0.0, log(2), 1.5 * log(2), log(4)]]]), 1e-15)


def check_distance() -> None:
    (found,) = attention_distance(of(ROWS)).values()
    assert_within(found, wide([[[0.0, 0.5, 0.75, 1.5]]]), 1e-15)


def test_entropy_and_distance_by_hand() -> None:
    check_entropy()
    check_distance()


def test_planted_faults_of_entropy_and_distance_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(torch.special, "entr", lambda p: torch.nan_to_num(-p * p.log2()))  # bits
        with pytest.raises(AssertionError):
            check_entropy()
    places = patterns._places
    monkeypatch.setattr(patterns, "_places", lambda made, name, weights: places(made, name, weights) + 1)
    with pytest.raises(AssertionError):
        check_distance()


def test_a_sink_and_a_row_that_looks_at_nothing() -> None:
    made = of([[[0.0, 0.0], [0.2, 0.2]]])
    assert_within(attention_entropy(made)[NAME], wide([[[0.0, log(2)]]]), 1e-15)
    assert_within(attention_distance(made)[NAME], wide([[[0.0, 0.5]]]), 1e-15)


def test_some_heads_and_positions_are_the_part_of_the_whole() -> None:
    model = model_of("rotary, fused")
    whole, part = trace(model, IDS), trace(model, IDS, names="*.weights", heads={1: [3, 0]}, positions=[-1, 4])
    for function in (attention_entropy, attention_distance):
        wanted = function(whole)["blocks.1.attention.weights"][:, [3, 0]][..., [12, 4]]
        assert_within(function(part)["blocks.1.attention.weights"], wanted, 1e-12)


@pytest.mark.parametrize("positions", [None, [-1], [0, 2]])
def test_with_a_cache_distances_count_all_keys(positions: list[int] | None) -> None:
    model, ids = model_of("rotary, fused"), ids_of(1)
    whole = attention_distance(trace(model, ids[0].tolist()))
    store, recorder = DoublingStore(model), Recorder("*.weights", positions=positions)
    with torch.no_grad():
        model(ids[:, :9], store=store)
        model(ids[:, 9:12], store=store, tap=recorder)
    step = traced(recorder, Input(ids[:, 9:12], None, ["a", "b", "c"], []))
    queries = {None: [9, 10, 11], (-1,): [11], (0, 2): [9, 11]}[None if positions is None else tuple(positions)]
    for name, found in attention_distance(step).items():
        assert_within(found, whole[name][..., queries], 1e-12)


# --- all of them, of a model


@pytest.mark.parametrize(
    "kernel", [c.Visible(), c.Fused(), c.Blockwise(block=4)], ids=["visible", "fused", "blockwise"]
)
def test_patterns_are_the_same_for_every_kernel(kernel: c.Kernel) -> None:
    model = model_of(replace(VARIANTS["rotary, fused"], kernel=kernel))
    made, found = (
        trace(model_of(replace(VARIANTS["rotary, fused"], kernel=c.Visible())), IDS),
        attention_patterns(model, IDS),
    )
    assert found.entropy.shape == found.distance.shape == (2, 4, 13)
    for block in range(2):
        name = f"blocks.{block}.attention.weights"
        assert_within(found.entropy[block], attention_entropy(made)[name][0], 1e-12)
        assert_within(found.distance[block], attention_distance(made)[name][0], 1e-12)
    assert_within(found.rollout, attention_rollout(made)[:, 0], 1e-12)
    assert found.tokens == [str(id) for id in IDS]
    assert bool(found.differences) == (not isinstance(kernel, c.Visible))


def test_patterns_are_printed_with_the_warning() -> None:
    lines = repr(attention_patterns(model_of("learned"), IDS)).splitlines()
    assert len(lines) == 1 + 8 + 1
    assert lines[1].startswith("blocks.0.attention.heads.0 ")
    assert lines[-1] == say("tracing.not_a_cause")
