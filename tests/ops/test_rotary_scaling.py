"""Stretched rotary frequencies: by hand, and as transformers computes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.ops.rotary import (
    linear_scaled,
    llama3_scaled,
    rotary_frequencies,
    yarn_attention_factor,
    yarn_scaled,
)
from tests.oracles.compare import assert_same, assert_within

d, THETA = 16, 500_000.0


def theirs(kind: str, theta: float = THETA, width: int = d, **settings: float) -> tuple[Tensor, float]:
    """Frequencies and attention factor of transformers' own function, float32."""
    ropes = pytest.importorskip("transformers.modeling_rope_utils", reason="transformers is not installed")
    from transformers import LlamaConfig  # noqa: PLC0415 - slow to import

    parameters: dict[str, Any] = {"rope_type": kind, "rope_theta": theta, **settings}
    config = LlamaConfig(
        hidden_size=2 * width, num_attention_heads=2, max_position_embeddings=4096, rope_parameters=parameters
    )
    frequencies, factor = ropes.ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"))
    return frequencies, factor


def check(found: Tensor, expected: Tensor) -> None:
    """Equal to the rounding of their float32."""
    assert found.dtype == torch.float64
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected.double(), rtol=2e-6, atol=0)


LLAMA = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
OTHER = {"factor": 32.0, "low_freq_factor": 2.0, "high_freq_factor": 7.0, "original_max_position_embeddings": 1024}


@pytest.mark.parametrize("width", [d, 64])
@pytest.mark.parametrize("settings", [LLAMA, OTHER], ids=["Llama 3.1", "others"])
def test_llama_3_is_transformers(settings: dict[str, float], width: int) -> None:
    found = llama3_scaled(
        rotary_frequencies(width, THETA),
        settings["factor"],
        low=settings["low_freq_factor"],
        high=settings["high_freq_factor"],
        original_context=int(settings["original_max_position_embeddings"]),
    )
    expected, factor = theirs("llama3", width=width, **settings)
    check(found, expected)
    assert factor == 1.0


@pytest.mark.parametrize("width", [d, 64])
@pytest.mark.parametrize("theta", [10_000.0, 1_000_000.0])
@pytest.mark.parametrize(("factor", "context"), [(4.0, 4096), (40.0, 512)])
def test_yarn_is_transformers(factor: float, context: int, theta: float, width: int) -> None:
    found = yarn_scaled(rotary_frequencies(width, theta), factor, theta=theta, original_context=context)
    expected, attention = theirs("yarn", theta, width, factor=factor, original_max_position_embeddings=context)
    check(found, expected)
    assert yarn_attention_factor(factor) == pytest.approx(attention, abs=1e-15)


def test_yarn_with_other_borders_is_transformers() -> None:
    found = yarn_scaled(rotary_frequencies(d, 1e4), 4.0, theta=1e4, original_context=2048, fast=16.0, slow=2.0)
    expected, _ = theirs("yarn", 1e4, factor=4.0, original_max_position_embeddings=2048, beta_fast=16.0, beta_slow=2.0)
    check(found, expected)
    assert not torch.allclose(found, yarn_scaled(rotary_frequencies(d, 1e4), 4.0, theta=1e4, original_context=2048))


def test_linear_is_transformers() -> None:
    expected, factor = theirs("linear", factor=4.0)
    check(linear_scaled(rotary_frequencies(d, THETA), 4.0), expected)
    assert factor == 1.0


@pytest.mark.parametrize(
    "fault",
    [
        lambda w: w,
        lambda w: w / 8,
        lambda w: llama3_scaled(w, 8.0, low=1.0, high=3.9),
        lambda w: llama3_scaled(w, 8.0, original_context=4096),
        lambda w: torch.where(w > 2 * math.pi / 8192, w, w / 8),
    ],
    ids=["unscaled", "linear", "border", "context", "no mixture"],
)
def test_a_faulty_scaling_is_caught(fault: Callable[[Tensor], Tensor]) -> None:
    expected, _ = theirs("llama3", width=64, **LLAMA)
    with pytest.raises(AssertionError):
        check(fault(rotary_frequencies(64, THETA)), expected)


def test_llama_3_by_hand() -> None:
    """Turns within the original context: 5 are kept, 0.5 are divided, 2.5 are mixed half and half."""
    w = 2 * math.pi * torch.tensor([5.0, 4.0, 2.5, 1.0, 0.5], dtype=torch.float64) / 8192
    shares = torch.tensor([1.0, 1.0, 0.5 + 0.5 / 8, 1 / 8, 1 / 8], dtype=torch.float64)
    assert_within(llama3_scaled(w, 8.0), w * shares, 1e-16)


def test_yarn_by_hand() -> None:
    """d = 8, θ = 10⁴, C = 2π·1000: pair i turns 1000·10^(-i) times, so 100 times at 1 and 1 time at 3."""
    context = round(2 * math.pi * 1000)
    w = rotary_frequencies(8)
    found = yarn_scaled(w, 4.0, theta=10_000.0, original_context=context, fast=99.0, slow=1.01)
    # floor(1.004) = 1 is kept, ceil(2.996) = 3 is divided, the one between is mixed half and half.
    assert_within(found, w * torch.tensor([1.0, 1.0, (1 + 1 / 4) / 2, 1 / 4], dtype=torch.float64), 1e-16)


def test_factors_of_1_change_nothing() -> None:
    w = rotary_frequencies(d)
    assert_same(linear_scaled(w, 1.0), w)
    assert_within(llama3_scaled(w, 1.0), w, 1e-16)
    assert_within(yarn_scaled(w, 1.0, theta=10_000.0, original_context=2048), w, 1e-16)


def test_the_attention_factor_by_hand() -> None:
    assert yarn_attention_factor(math.e) == pytest.approx(1.1, abs=1e-15)
    assert yarn_attention_factor(1.0) == 1.0
    assert yarn_attention_factor(0.5) == 1.0
