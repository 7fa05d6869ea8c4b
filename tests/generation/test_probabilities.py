"""The distribution that a token is drawn from, against one that is computed number by number."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch import Tensor

from clearhead.generation.sampling import STEPS, STRONGEST, SamplingSettings, probabilities
from clearhead.messages import UserError
from tests.oracles.compare import assert_same

LOGITS = torch.tensor([1.5, -0.5, 3.0, 0.25, 2.0, -2.0, 0.0], dtype=torch.float64)


def by_hand(logits: list[float], temperature: float, top_k: int | None) -> list[float]:
    """softmax(z / τ) over the k best tokens, the first of equals, one number at a time."""
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if temperature == 0:
        return [float(i == order[0]) for i in range(len(logits))]
    kept = order[:top_k]
    best = logits[order[0]]
    powers = [math.exp((z - best) / temperature) if i in kept else 0.0 for i, z in enumerate(logits)]
    return [power / sum(powers) for power in powers]


def found(logits: Tensor, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
    return probabilities(logits, SamplingSettings(temperature, top_k))


@pytest.mark.parametrize("temperature", [0.0, 0.1, 0.8, 1.0, 3.0])
@pytest.mark.parametrize("top_k", [None, 1, 2, 3, 6, 7, 8, 1000])
def test_temperature_and_top_k_are_the_formula(temperature: float, top_k: int | None) -> None:
    chances = found(LOGITS, temperature, top_k)
    assert chances.tolist() == pytest.approx(by_hand(LOGITS.tolist(), temperature, top_k), abs=1e-15)
    assert chances.sum().item() == pytest.approx(1, abs=1e-15)


@given(
    some.lists(some.integers(-3, 3).map(float) | some.just(-math.inf), min_size=1, max_size=9).filter(
        lambda z: max(z) > -math.inf
    ),
    some.sampled_from([0.0, 0.5, 1.0, 2.0]),
    some.none() | some.integers(1, 10),
)
def test_any_logits_ties_and_impossible_tokens_among_them(
    logits: list[float], temperature: float, top_k: int | None
) -> None:
    chances = found(torch.tensor(logits, dtype=torch.float64), temperature, top_k).tolist()
    assert chances == pytest.approx(by_hand(logits, temperature, top_k), abs=1e-15)


def test_of_ties_at_the_kth_place_the_lowest_ids_stay() -> None:
    logits = torch.tensor([0.0, 2.0, 1.0, 1.0, 1.0, 2.0], dtype=torch.float64)
    assert (found(logits, top_k=3) > 0).tolist() == [False, True, True, False, False, True]
    assert (found(logits, top_k=1) > 0).tolist() == [False, True, False, False, False, False]


def test_keeping_all_ties_would_be_found() -> None:
    """The planted fault: cut by the value of the k-th logit, as nanoGPT does."""

    def by_value(logits: Tensor, k: int) -> Tensor:
        return logits.masked_fill(logits < logits.topk(k).values[-1], -torch.inf).softmax(-1)

    logits = torch.tensor([0.0, 2.0, 1.0, 1.0], dtype=torch.float64)
    assert by_value(logits, 2).tolist() != pytest.approx(by_hand(logits.tolist(), 1.0, 2), abs=1e-3)
    assert by_value(LOGITS, 2).tolist() == pytest.approx(by_hand(LOGITS.tolist(), 1.0, 2), abs=1e-15)


def test_temperature_after_top_k_or_before_is_the_same_but_a_forgotten_one_is_not() -> None:
    assert found(LOGITS, 0.5, 3).tolist() != pytest.approx(by_hand(LOGITS.tolist(), 1.0, 3), abs=1e-3)


def test_temperature_0_is_one_hot_exactly() -> None:
    chances = found(LOGITS, 0.0, 3)
    assert chances.tolist() == [0, 0, 1, 0, 0, 0, 0]
    assert chances.log().max() == 0


def test_of_equals_temperature_0_takes_the_first() -> None:
    assert found(torch.tensor([1.0, 5.0, 5.0, 5.0]), 0.0).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-300, 5e-324])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_tiny_temperature_is_nearly_greedy_and_never_nan(temperature: float, dtype: torch.dtype) -> None:
    assert found(LOGITS.to(dtype), temperature).tolist() == pytest.approx([0, 0, 1, 0, 0, 0, 0], abs=1e-12)


@pytest.mark.parametrize("temperature", [1e-30, 5e-324])
def test_a_tiny_temperature_shares_among_equals(temperature: float) -> None:
    assert found(torch.tensor([4.0, 1.0, 4.0]), temperature).tolist() == [0.5, 0, 0.5]


def test_a_huge_temperature_is_uniform_over_the_k_best() -> None:
    assert found(LOGITS, 1e300, 4).tolist() == pytest.approx([0.25, 0, 0.25, 0.25, 0.25, 0, 0])


def test_huge_logits_do_not_overflow() -> None:
    assert found(torch.tensor([1e38, 1e38, -1e38])).tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_impossible_tokens_stay_impossible(temperature: float) -> None:
    chances = found(torch.tensor([-torch.inf, 1.0, -torch.inf, 2.0]), temperature, 3)
    assert chances[0] == chances[2] == 0
    assert chances.sum() == 1


@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_rows_do_not_know_each_other(temperature: float) -> None:
    logits = torch.randn(2, 3, 11, dtype=torch.float64)
    chances = found(logits, temperature, 4)
    assert chances.shape == (2, 3, 11)
    for b in range(2):
        for t in range(3):
            assert_same(chances[b, t], found(logits[b, t], temperature, 4))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    ("dtype", "wider"),
    [(torch.float64, torch.float64), (torch.float32, torch.float32), (torch.bfloat16, torch.float32)],
)
def test_it_is_computed_in_float32_at_least(temperature: float, dtype: torch.dtype, wider: torch.dtype) -> None:
    assert found(LOGITS.to(dtype), temperature).dtype == wider


def test_the_logits_are_not_touched() -> None:
    logits = LOGITS.clone()
    found(logits, 0.5, 2)
    assert_same(logits, LOGITS)


COUNTS = torch.tensor([2, 0, 1, 0, 0, 3, 1.0], dtype=torch.float64)


def test_penalties_by_hand() -> None:
    """ρ divides what is above 0 and multiplies what is below; α is taken off once, and once for each time."""
    settings = SamplingSettings(repetition_penalty=2.0, presence_penalty=0.25, frequency_penalty=0.125)
    moved = [0.75 - 0.25 - 0.25, -0.5, 1.5 - 0.25 - 0.125, 0.25, 2.0, -4.0 - 0.25 - 0.375, 0.0 - 0.25 - 0.125]
    assert probabilities(LOGITS, settings, COUNTS).tolist() == pytest.approx(by_hand(moved, 1.0, None), abs=1e-15)
    with pytest.raises(ValueError, match="counts"):
        probabilities(LOGITS, settings)


@pytest.mark.parametrize("p", [0.0, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0])
def test_top_p_is_the_smallest_set_that_reaches_p(p: float) -> None:
    chances = LOGITS.softmax(-1).tolist()
    order = sorted(range(7), key=lambda i: -chances[i])
    kept, total = [order[0]], chances[order[0]]
    for i in order[1:]:
        if total >= p:
            break
        kept.append(i)
        total += chances[i]
    found_set = probabilities(LOGITS, SamplingSettings(top_p=p)) > 0
    assert {i for i, stays in enumerate(found_set.tolist()) if stays} == set(kept if p < 1 else range(7))


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_min_p_keeps_what_is_near_the_best(p: float) -> None:
    chances = LOGITS.softmax(-1)
    wanted = chances >= p * chances.max()
    assert (probabilities(LOGITS, SamplingSettings(min_p=p)) > 0).tolist() == wanted.tolist()


def test_bias_and_allowed_tokens_come_first_and_are_checked() -> None:
    assert probabilities(LOGITS, SamplingSettings(temperature=0, logit_bias={1: 9.0})).argmax() == 1
    assert (probabilities(LOGITS, SamplingSettings(allowed=frozenset({1, 5}))) > 0).nonzero().flatten().tolist() == [
        1,
        5,
    ]
    for wrong in ({"allowed": frozenset({7})}, {"logit_bias": {-1: 1.0}}):
        with pytest.raises(UserError, match="vocabulary of 7"):
            probabilities(LOGITS, SamplingSettings(**wrong))
    with pytest.raises(UserError, match="forbidden"):
        probabilities(LOGITS, SamplingSettings(logit_bias=dict.fromkeys(range(7), -math.inf)))
    for wrong in (
        {"allowed": frozenset()},
        {"logit_bias": {0: math.inf}},
        {"logit_bias": {0: 0.0, 1: math.nan}},
        {"logit_bias": {0: 1e308}},
        {"allowed": []},
        {"presence_penalty": 1e308},
        {"frequency_penalty": 1e39},
        {"repetition_penalty": math.inf},
        {"top_p": 1.1},
        {"order": ("top_k", "top_k")},
    ):
        with pytest.raises(UserError):
            SamplingSettings(**wrong)


def test_nothing_that_can_be_drawn_is_an_error_whatever_forbade_it() -> None:
    with pytest.raises(UserError, match="forbidden"):
        probabilities(torch.full((2, 3), -math.inf), SamplingSettings(temperature=0))
    half = torch.tensor([[0.0, 1.0], [-math.inf, -math.inf]])
    with pytest.raises(UserError, match="forbidden"):
        probabilities(half, SamplingSettings())


@pytest.mark.parametrize("order", [STEPS, STEPS[::-1]])
@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1.0])
def test_the_strongest_settings_are_numbers_in_float32(order: tuple[str, ...], temperature: float) -> None:
    """A token that has occurred 100,000 times, one that never has, and logits of 0, which a factor of infinity would make NaN."""
    strongest = dict.fromkeys(("repetition_penalty", "presence_penalty", "frequency_penalty"), STRONGEST)
    settings = SamplingSettings(temperature, 3, 0.5, 0.5, **strongest, logit_bias={2: STRONGEST}, order=order)
    for counts in ([1e5, 0, 0, 0], [1e5, 1, 1, 2]):
        chances = probabilities(torch.tensor([9.0, 0.0, -3.0, 0.0]), settings, torch.tensor(counts))
        assert chances.isfinite().all()
        assert chances.sum().item() == pytest.approx(1)


def test_the_order_of_the_steps_is_the_settings_own() -> None:
    flat = {"temperature": 9.0, "top_p": 0.6}
    default, other = (
        SamplingSettings(**flat, order=order) for order in (("temperature", "top_p"), ("top_p", "temperature"))
    )
    assert (probabilities(LOGITS, default) > 0).sum() > (probabilities(LOGITS, other) > 0).sum()


@pytest.mark.parametrize("temperature", [-0.1, math.inf, -math.inf, math.nan])
def test_a_temperature_that_is_none(temperature: float) -> None:
    with pytest.raises(UserError, match="temperature"):
        SamplingSettings(temperature=temperature)


@pytest.mark.parametrize("top_k", [-1, -3])
def test_a_top_k_that_is_none(top_k: int) -> None:
    with pytest.raises(UserError, match=f"top_k = {top_k} "):
        SamplingSettings(top_k=top_k)
