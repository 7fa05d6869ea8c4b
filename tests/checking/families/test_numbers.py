"""What one tensor is to another, and numbers found from what they did; each with a tensor that is not so."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.checking.families import algebra, fitting
from clearhead.models.choices import LayerNorm, Linear, RMSNorm, Rotary
from clearhead.ops.norm import rms_norm

B, H, T, S, D, d = 2, 3, 5, 7, 11, 8
ALLOWED = 1e-9


def drawn(*sizes: int, seed: int = 0) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_multiple_is_found_and_a_mixture_is_none() -> None:
    x, y = drawn(B, T, D), drawn(B, T, D, seed=1)
    factor = algebra.multiple(x, 1.5 * x, ALLOWED)
    assert factor is not None
    assert abs(factor - 1.5) < 1e-12
    assert algebra.multiple(x, x, ALLOWED) is None
    assert algebra.multiple(x, 1.5 * x + 1e-6 * y, ALLOWED) is None
    mixed = algebra.mixture(x, y, 2 * x - 0.25 * y, ALLOWED)
    assert mixed is not None
    assert max(abs(mixed[0] - 2), abs(mixed[1] + 0.25)) < 1e-12
    assert algebra.mixture(x, y, x * y, ALLOWED) is None


def test_one_vector_at_all_positions_is_a_shift() -> None:
    x, vector = drawn(B, T, D), drawn(D, seed=1)
    found = algebra.shift(x, x + vector, ALLOWED)
    assert found is not None
    assert torch.allclose(found, vector, atol=1e-12)
    assert algebra.shift(x, x + drawn(B, T, D, seed=2), ALLOWED) is None


def test_heads_are_held_against_each_other() -> None:
    x = drawn(B, H, T, d)
    assert algebra.head_factors(x, x * torch.tensor([1.0, 0.0, 2.0])[:, None, None], ALLOWED) == [1.0, 0.0, 2.0]
    assert algebra.head_factors(x, 2 * x, ALLOWED) is None
    assert algebra.head_order(x, x[:, [2, 0, 1]], ALLOWED) == [2, 0, 1]
    assert algebra.head_order(x, x, ALLOWED) is None
    assert algebra.head_order(x, drawn(B, H, T, d, seed=1), ALLOWED) is None


def test_an_eps_is_found_from_what_it_did() -> None:
    x, weight = 0.1 * drawn(B, T, D) * (1 + torch.arange(T)[:, None]), drawn(D, seed=1)
    ours, theirs = rms_norm(x, weight, 1e-6), rms_norm(x, weight, 3e-3)
    assert fitting.other_eps(RMSNorm(eps=1e-6), x, ours, theirs) == 3e-3
    assert fitting.other_eps(RMSNorm(eps=1e-6), x, ours, 1.1 * ours) is None
    one, other = (torch.nn.functional.layer_norm(x, (D,), weight, None, eps) for eps in (1e-5, 0.02))
    assert fitting.other_eps(LayerNorm(eps=1e-5), x, one, other) == 0.02


def turned(x: Tensor, base: float, first: int = 0) -> Tensor:
    angles = (torch.arange(T) + first)[:, None] * base ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1)


def test_another_base_and_other_positions_are_found() -> None:
    x, rotary = drawn(B, H, T, d), Rotary(theta=10_000.0)
    ours = turned(x, 10_000.0)
    found = fitting.other_angles(rotary, ours, turned(x, 700.0), ALLOWED)
    assert found is not None
    assert found[:2] == ("base", 700.0)
    found = fitting.other_angles(rotary, ours, turned(x, 10_000.0, first=2), ALLOWED)
    assert found is not None
    assert found[:2] == ("offset", 2.0)
    assert fitting.other_angles(rotary, ours, drawn(B, H, T, d, seed=1), ALLOWED) is None
    assert fitting.other_angles(Rotary(scaling=Linear(factor=2.0)), ours, turned(x, 700.0), ALLOWED) is None


def test_a_scale_of_scores_is_found() -> None:
    q, k, v, bias = drawn(B, H, T, d), drawn(B, H, S, d, seed=1), drawn(B, H, S, d, seed=2), drawn(H, T, S, seed=3)
    products = q @ k.transpose(-2, -1)
    rest = bias.masked_fill(torch.ones(T, S).triu(3).bool(), -torch.inf)
    theirs = (0.21 * products + rest).softmax(dim=-1) @ v
    found = fitting.other_scale(products, rest, v, theirs, d**-0.5)
    assert found is not None
    assert abs(found[0] - 0.21) < 1e-6
    assert found[1] < 1e-6
    other = fitting.other_scale(products, rest, v, drawn(B, H, T, d, seed=4), d**-0.5)
    assert other is None or other[1] > 1e-2
