"""Sinusoids and ALiBi: numbers by hand, and what each promises."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.ops.positions import alibi_bias, alibi_slopes, sinusoids, sinusoids_in_halves
from tests.oracles.compare import assert_same, assert_within

T, D = 7, 6
Sinusoids = Callable[..., Tensor]


def numbers(*values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


# Sinusoids


def check_sinusoids(function: Sinusoids) -> None:
    """The notes' example: D = 4, base 10000: ω = 1, 1/100; columns sin, cos, sin, cos."""
    expected = numbers(*([math.sin(t), math.cos(t), math.sin(t / 100), math.cos(t / 100)] for t in range(3)))
    assert_within(function(range(3), 4), expected, 1e-15)
    assert_within(
        function(range(2, 3), 4, base=16.0), numbers([math.sin(2), math.cos(2), math.sin(0.5), math.cos(0.5)]), 1e-15
    )


def test_sinusoids_by_hand() -> None:
    check_sinusoids(sinusoids)


@pytest.mark.parametrize(
    "fault",
    [
        lambda p, D, base=1e4: sinusoids_in_halves(p, D, base=base),
        lambda p, D, base=1e4: sinusoids(range(p.start + 1, p.stop + 1), D, base=base),
        lambda p, D, base=1e4: sinusoids(p, D, base=base * 1.01),
        lambda p, D, base=1e4: sinusoids(p, D, base=base).roll(1, -1),
        lambda p, D, base=1e4: sinusoids(p, D + 2, base=base)[:, :D],
    ],
    ids=["halves", "from 1", "base", "cos first", "wider"],
)
def test_faulty_sinusoids_are_caught(fault: Sinusoids) -> None:
    with pytest.raises(AssertionError):
        check_sinusoids(fault)


def test_halves_are_the_same_columns_in_another_order() -> None:
    interleaved, halves = sinusoids(range(T), D), sinusoids_in_halves(range(T), D)
    assert_same(halves, interleaved[:, [0, 2, 4, 1, 3, 5]])
    assert not halves.equal(interleaved)


@pytest.mark.parametrize("function", [sinusoids, sinusoids_in_halves])
def test_positions_per_row_are_rows_of_the_same_table(function: Sinusoids) -> None:
    table, rows = function(range(T), D), torch.tensor([[0, 3, 3], [6, 5, 1]])
    assert_same(function(rows, D), table[rows])
    assert_same(function(range(2, 5), D), table[2:5])
    assert function(rows, D).dtype == torch.float64


def pairs(table: Tensor) -> Tensor:
    """(T, D/2, 2): the sine and the cosine of each frequency."""
    return table.unflatten(-1, (-1, 2))


def test_sine_and_cosine_lie_on_a_circle() -> None:
    assert_within(pairs(sinusoids(range(T), D)).square().sum(-1), torch.ones(T, D // 2).double(), 1e-15)


def shift_by(steps: int) -> Tensor:
    """The matrix that takes (sin, cos) of t to that of t + s, pair by pair: the same for every t."""
    blocks = [
        numbers([math.cos(steps * w), math.sin(steps * w)], [-math.sin(steps * w), math.cos(steps * w)])
        for w in (10_000 ** (-2 * i / D) for i in range(D // 2))
    ]
    return torch.block_diag(*blocks)


@pytest.mark.parametrize("steps", [1, 3, 50])
def test_a_shift_is_one_rotation_for_all_positions(steps: int) -> None:
    table, later = sinusoids(range(T), D), sinusoids(range(steps, steps + T), D)
    assert_within(table @ shift_by(steps).mT, later, 1e-13)
    assert_within(shift_by(steps) @ shift_by(steps).mT, torch.eye(D).double(), 1e-15)
    # The planted faults: another shift, and the rotation the other way.
    assert not torch.allclose(table @ shift_by(steps + 1).mT, later)
    assert not torch.allclose(table @ shift_by(steps), later)


# ALiBi


SLOPES = {
    1: [2**-8],
    2: [2**-4, 2**-8],
    4: [2**-2, 2**-4, 2**-6, 2**-8],
    8: [2**-1, 2**-2, 2**-3, 2**-4, 2**-5, 2**-6, 2**-7, 2**-8],
    6: [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3],
    12: [*(2**-i for i in range(1, 9)), 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
}


def check_slopes(function: Callable[[int], Tensor]) -> None:
    for heads, slopes in SLOPES.items():
        assert_within(function(heads), numbers(*slopes), 2e-16)


def test_slopes_by_hand() -> None:
    check_slopes(alibi_slopes)


@pytest.mark.parametrize(
    "fault",
    [
        lambda H: torch.pow(2.0, -8 * torch.arange(1, H + 1).double() / H),
        lambda H: torch.pow(2.0, -8 * torch.arange(H).double() / H),
        lambda H: alibi_slopes(H).sort(descending=True).values,
        lambda H: alibi_slopes(2 * H)[:H],
    ],
    ids=["every number of heads", "from 0", "sorted", "of more heads"],
)
def test_faulty_slopes_are_caught(fault: Callable[[int], Tensor]) -> None:
    with pytest.raises(AssertionError):
        check_slopes(fault)


def test_the_bias_by_hand() -> None:
    """-m times the distance; queries at 2 and 3 of keys 0..3."""
    found = alibi_bias(numbers(0.5, 0.25), torch.tensor([2, 3]), torch.arange(4))
    distances = numbers([2, 1, 0, 1], [3, 2, 1, 0])
    assert_same(found, torch.stack([-0.5 * distances, -0.25 * distances]))
    assert not found.equal(alibi_bias(numbers(0.5, 0.25), torch.tensor([0, 1]), torch.arange(4)))


def test_the_bias_of_positions_per_row() -> None:
    """Each row its own (T,S), broadcast over neither heads nor rows."""
    queries, keys = torch.tensor([[0, 4, 5], [2, 2, 9]]), torch.tensor([[0, 1, 4, 5], [7, 2, 0, 1]])
    slopes = alibi_slopes(5)
    found = alibi_bias(slopes, queries, keys)
    assert found.shape == (2, 5, 3, 4)
    for row in range(2):
        assert_same(found[row], alibi_bias(slopes, queries[row], keys[row]))
