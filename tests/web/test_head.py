"""A head's picture holds the weights of a trace, its rows are measured as in tracing, and what ran is compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from clearhead.tracing.patterns import attention_distance, attention_entropy
from clearhead.tracing.trace import Trace
from clearhead.web import head, weighing
from clearhead.web.answer import unpacked
from tests.web.heads_opened import ALL, name_of, places, query, recorded, session_of
from tests.web.test_atlas import FAULTS, hidden_query


def check_head(kind: str, variant: str) -> None:
    of = session_of(kind, variant)
    kept = recorded(of, "*.weights")
    made = Trace({name: tensor for name, tensor in kept.items() if not name.endswith("cross_attention.weights")})
    entropy, distance = attention_entropy(made), attention_distance(made)
    for part, layer, number in places(of)[::3]:
        name = f"{name_of(part, layer)}.weights"
        weights = kept[name][0, number]
        header, arrays = unpacked(head.answer(of, query(part, layer, number)).body)
        most = weights.max()
        assert abs(header["most"] - float(most)) < 1e-12
        assert header["least"] == 0
        assert header["pooled"] == [1, 1]
        drawn = (255 * (weights / most).sqrt()).round()
        assert np.array_equal(arrays["weights"], drawn.to(torch.uint8).numpy())
        assert header["difference"] < 1e-12
        assert header["kv_head"] == number * of.ran[name_of(part, layer)].k.shape[-3] // 4
        wanted = {"sum": weights.sum(-1), "largest": weights.argmax(-1)}
        if not part.endswith("cross_attention"):
            wanted |= {"entropy": entropy[name][0, number], "distance": distance[name][0, number]}
        else:
            assert np.isnan(arrays["distance"]).all()
            wanted["entropy"] = torch.special.entr(weights / weights.sum(-1, keepdim=True)).sum(-1)
        for each, numbers in wanted.items():
            assert np.abs(arrays[each] - numbers.numpy()).max() < 1e-6, each


@pytest.mark.parametrize(("kind", "variant"), ALL)
def test_a_head_is_that_of_a_trace(kind: str, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Few weights at once, so that there are several blocks.
    monkeypatch.setattr(weighing, "AT_ONCE", 60)
    check_head(kind, variant)


@pytest.mark.parametrize(("kind", "variant", "fault"), FAULTS)
def test_what_is_left_out_is_found(
    kind: str, variant: str, fault: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head, "one_head", lambda ran, number: weighing.one_head(fault(ran), number))
    with pytest.raises(AssertionError):
        check_head(kind, variant)


def one_late(weights: Tensor, queries: range, keys: range, before: int) -> dict[str, Tensor]:
    return NUMBERS(weights, queries, keys, before + 1)


def from_the_block(weights: Tensor, queries: range, keys: range, before: int) -> dict[str, Tensor]:
    return NUMBERS(weights, queries, range(len(keys)), before)


def unshared(scores: Tensor, weights: Tensor) -> Tensor:
    return torch.special.entr(weights).sum(-1)


NUMBERS = head._numbers


@pytest.mark.parametrize(
    ("variant", "name", "fault"),
    [("learned", "_numbers", one_late), ("window", "_numbers", from_the_block), ("sinks", "entropies", unshared)],
)
def test_wrong_numbers_are_found(
    variant: str, name: str, fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighing, "AT_ONCE", 60)
    monkeypatch.setattr(head, name, fault)
    with pytest.raises(AssertionError):
        check_head("decoder", variant)


def check_pooled() -> None:
    of = session_of("pair", "T5")
    header, arrays = unpacked(head.answer(of, query("decoder.cross_attention", 1, 2)).body)
    weights = recorded(of, "decoder.blocks.1.cross_attention.weights").popitem()[1][0, 2]
    # 13 queries and 7 keys in at most 5 of each: fields of 3 by 2.
    assert header["pooled"] == [3, 2]
    fields = [[float(weights[r : r + 3, c : c + 2].max()) for c in range(0, 7, 2)] for r in range(0, 13, 3)]
    back = header["most"] * (arrays["weights"].astype(float) / 255) ** 2
    assert np.abs(back - np.array(fields)).max() < header["most"] / 255
    assert arrays["sum"].shape == (13,)


def test_a_large_head_is_drawn_by_the_largest_of_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head, "SIDE", 5)
    monkeypatch.setattr(weighing, "AT_ONCE", 50)
    check_pooled()
    monkeypatch.setattr(head, "pooled", lambda weights, field: weights[:, :: field[0], :: field[1]])
    with pytest.raises(AssertionError):
        check_pooled()


def test_a_query_that_sees_nothing() -> None:
    header, arrays = unpacked(head.answer(hidden_query(4), query("attention", 1, 2)).body)
    numbers = [float(arrays[name][4]) for name in ("entropy", "distance", "largest", "sum")]
    assert numbers == [0, 0, -1, 0]
    assert not arrays["weights"][4].any()
    assert header["difference"] > 0.01  # The kernel saw what is hidden here: said, not passed over.


def test_what_ran_is_compared() -> None:
    of = session_of("decoder", "rotary, fused")
    ran = of.ran["blocks.1.attention"]
    mixed = ran.mixed.clone()
    mixed[0, 3, 7, 2] += 0.25
    other = replace(of, ran={**of.ran, "blocks.1.attention": ran._replace(mixed=mixed)})
    found = [unpacked(head.answer(other, query("attention", 1, number)).body)[0]["difference"] for number in (2, 3)]
    assert found[0] < 1e-12
    assert abs(found[1] - 0.25) < 1e-12
    dropped = replace(of, ran={**of.ran, "blocks.1.attention": ran._replace(dropout=0.1)})
    assert unpacked(head.answer(dropped, query("attention", 1, 3)).body)[0]["difference"] is None
