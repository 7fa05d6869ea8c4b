"""Rotary positions: against complex numbers, and by what they promise: kept norms, and scores of distances alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.ops import at_least_float32
from clearhead.ops.rotary import (
    Rotation,
    half_split_to_interleaved,
    interleaved_to_half_split,
    rotary_frequencies,
    rotation,
    turn_half_split,
    turn_interleaved,
    unrotated,
)
from tests.oracles.compare import assert_same, assert_within

B, H, T, d, D = 2, 3, 5, 8, 7
Turned = Callable[[Tensor, range | Tensor], Tensor]


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def turned(x: Tensor, positions: range | Tensor, *, n: int = d, interleaved: bool = False) -> Tensor:
    """`x` turned by the package, its first n features."""
    return rotation(positions, rotary_frequencies(n), x.dtype, interleaved=interleaved)(x)


def by_complex_numbers(x: Tensor, positions: list[list[int]], *, n: int, interleaved: bool) -> Tensor:
    """x_a + i x_b times exp(i t θ^(-2p/n)), one number at a time: pair p is (2p, 2p+1), or (p, p + n/2)."""
    result = x.clone()
    for row, head, place in ((b, h, t) for b in range(B) for h in range(H) for t in range(T)):
        for pair in range(n // 2):
            first, second = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + n // 2)
            angle = positions[row][place] * 10_000 ** (-2 * pair / n)
            number = complex(x[row, head, place, first], x[row, head, place, second])
            number *= complex(math.cos(angle), math.sin(angle))
            result[row, head, place, first], result[row, head, place, second] = number.real, number.imag
    return result


@pytest.mark.parametrize("interleaved", [False, True], ids=["half-split", "interleaved"])
@pytest.mark.parametrize("n", [2, 6, d])
@pytest.mark.parametrize("rows", [False, True], ids=["a range", "per row"])
def test_a_turn_is_a_product_of_complex_numbers(n: int, interleaved: bool, rows: bool) -> None:
    x = random(B, H, T, d)
    written = [[2, 3, 4, 5, 6]] * B if not rows else [[0, 1, 2, 3, 4], [9, 0, 40, 3, 3]]
    positions = torch.tensor(written) if rows else range(2, 7)
    expected = by_complex_numbers(x, written, n=n, interleaved=interleaved)
    assert_within(turned(x, positions, n=n, interleaved=interleaved), expected, 1e-12)
    other = by_complex_numbers(x, written, n=n, interleaved=not interleaved)
    assert (n == 2) == (torch.allclose(expected, other))


@pytest.mark.parametrize(
    "fault",
    [
        lambda x, cos, sin: turn_half_split(x, cos, -sin),
        lambda x, cos, sin: turn_half_split(x, sin, cos),
        turn_interleaved,
        lambda x, cos, sin: x * torch.cat([cos, cos], -1) + x.flip(-1) * torch.cat([-sin, sin], -1),
        lambda x, cos, sin: x * torch.cat([cos, cos], -1) + x.roll(d // 2, -1) * torch.cat([sin, sin], -1),
    ],
    ids=["backwards", "cos and sin", "other pairs", "mirrored", "no minus"],
)
def test_a_faulty_turn_is_caught(monkeypatch: pytest.MonkeyPatch, fault: Callable[..., Tensor]) -> None:
    x = random(B, H, T, d)
    expected = by_complex_numbers(x, [list(range(T))] * B, n=d, interleaved=False)
    monkeypatch.setattr("clearhead.ops.rotary.turn_half_split", fault)
    with pytest.raises(AssertionError):
        assert_within(turned(x, range(T)), expected, 1e-12)


def test_frequencies_by_hand() -> None:
    assert_within(rotary_frequencies(4, 100.0), torch.tensor([1.0, 0.1], dtype=torch.float64), 1e-16)
    assert rotary_frequencies(6).tolist() == pytest.approx([1.0, 10_000 ** (-1 / 3), 10_000 ** (-2 / 3)], abs=1e-15)
    assert rotary_frequencies(8).dtype == torch.float64


@pytest.mark.parametrize("interleaved", [False, True])
def test_norms_are_kept_and_position_0_turns_nothing(interleaved: bool) -> None:
    x = random(B, H, T, d)
    assert_within(turned(x, range(3, 8), interleaved=interleaved).norm(dim=-1), x.norm(dim=-1), 1e-13)
    assert_same(turned(x, torch.zeros(B, T, dtype=torch.long), interleaved=interleaved), x)


def check_distances(turn: Turned) -> None:
    """q at m and k at n: the score is that of q at m + s and k at n + s, and depends on m - n."""
    q, k = random(B, H, T, d), random(B, H, T, d)
    near, far = (turn(q, range(s, s + T)) @ turn(k, range(s, s + T)).mT for s in (0, 1000))
    assert_within(near, far, 1e-11)
    apart = turn(q, range(1, T + 1)) @ turn(k, range(T)).mT
    assert not torch.allclose(apart, near)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("n", [4, d])
def test_scores_depend_on_distances_alone(n: int, interleaved: bool) -> None:
    check_distances(lambda x, positions: turned(x, positions, n=n, interleaved=interleaved))


@pytest.mark.parametrize(
    "fault",
    [
        lambda x, positions: x + torch.arange(positions.start, positions.stop)[:, None] * 0.01,
        lambda x, positions: turned(x, torch.arange(positions.start, positions.stop)[None] ** 2),
        lambda x, positions: x,
    ],
    ids=["added", "squared", "nothing is turned"],
)
def test_scores_that_depend_on_more_or_less_are_caught(fault: Turned) -> None:
    with pytest.raises(AssertionError):
        check_distances(fault)


@pytest.mark.parametrize("interleaved", [False, True])
def test_what_is_not_turned_stays_as_it_is(interleaved: bool) -> None:
    x = random(B, H, T, d)
    y = turned(x, range(1, T + 1), n=6, interleaved=interleaved)
    assert_same(y[..., 6:], x[..., 6:])
    assert y[..., :6].ne(x[..., :6]).all()
    assert_same(y[..., :6], turned(x[..., :6], range(1, T + 1), n=6, interleaved=interleaved))


# The two layouts


@pytest.mark.parametrize("n", [None, 6, 4])
@pytest.mark.parametrize("biased", [False, True])
def test_reordered_weights_give_the_same_scores_in_the_other_layout(n: int | None, biased: bool) -> None:
    """q·k of interleaved turning with the weights given = q·k of half-split turning with the weights reordered."""
    x, weights, biases = random(B, T, D), [random(H * d, D) for _ in "qk"], [random(H * d) * biased for _ in "qk"]

    def scores(interleaved: bool, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
        q, k = (
            turned((x @ w.mT + b).unflatten(-1, (H, d)).transpose(1, 2), range(T), n=n or d, interleaved=interleaved)
            for w, b in zip(weights, biases, strict=True)
        )
        return q @ k.mT

    def reorder(parts: list[Tensor], turned: int | None = n) -> list[Tensor]:
        return [interleaved_to_half_split(part, H, turned) for part in parts]

    expected = scores(True, weights, biases)
    assert_within(scores(False, reorder(weights), reorder(biases)), expected, 1e-12)
    back = [half_split_to_interleaved(part, H, n) for part in weights]
    assert_within(
        scores(True, back, [half_split_to_interleaved(b, H, n) for b in biases]), scores(False, weights, biases), 1e-12
    )
    # The planted faults: as they are; biases forgotten; the whole head where a part is turned.
    assert not torch.allclose(scores(False, weights, biases), expected)
    if biased:
        assert not torch.allclose(scores(False, reorder(weights), biases), expected)
    if n is not None:
        assert not torch.allclose(scores(False, reorder(weights, None), reorder(biases, None)), expected)


@pytest.mark.parametrize("shape", [(H * d, D), (H * d,)])
@pytest.mark.parametrize("n", [None, 2, 6])
def test_there_and_back_is_exact(shape: tuple[int, ...], n: int | None) -> None:
    weight = random(*shape)
    there = interleaved_to_half_split(weight, H, n)
    assert_same(half_split_to_interleaved(there, H, n), weight)
    assert_same(interleaved_to_half_split(half_split_to_interleaved(weight, H, n), H, n), weight)
    assert (n == 2) == there.equal(weight)


def test_the_new_places_by_hand() -> None:
    """Features 0..7 of a head: the evens, then the odds; of the first 6 alone where only those are turned."""
    features = torch.arange(16)
    assert interleaved_to_half_split(features, 2).tolist() == [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]
    assert interleaved_to_half_split(features[:8], 1, 6).tolist() == [0, 2, 4, 1, 3, 5, 6, 7]
    assert half_split_to_interleaved(features[:8], 1, 6).tolist() == [0, 3, 1, 4, 2, 5, 6, 7]


# Precision


def rotation_in(dtype: torch.dtype) -> Callable[..., Rotation]:
    """The planted fault: angles in the type of the vectors."""

    def made(positions: range, frequencies: Tensor, of: torch.dtype) -> Rotation:
        places = torch.arange(positions.start, positions.stop).to(dtype)
        angles = places[:, None] * frequencies.to(dtype)
        return Rotation(angles.cos(), angles.sin())

    return made


def check_angles(make: Callable[..., Rotation]) -> None:
    """At position 5000 an angle in 16 bits is off by whole turns; cos and sin must be right to 1e-3."""
    frequencies = rotary_frequencies(d)
    exact = rotation(range(5000, 5003), frequencies, torch.float64)
    found = make(range(5000, 5003), frequencies, torch.bfloat16)
    assert found.cos.dtype == found.sin.dtype == torch.float32
    assert_within(found.cos.double(), exact.cos, 1e-3)
    assert_within(found.sin.double(), exact.sin, 1e-3)


def test_angles_are_float32_at_least() -> None:
    check_angles(rotation)
    with torch.autocast("cpu", torch.bfloat16):
        check_angles(rotation)
    assert rotation(range(3), rotary_frequencies(d), torch.float64).cos.dtype == torch.float64


def test_angles_in_16_bits_are_caught() -> None:
    with pytest.raises(AssertionError):
        check_angles(rotation_in(torch.bfloat16))


def test_angles_by_a_matrix_product_are_caught_under_autocast() -> None:
    def made(positions: range, frequencies: Tensor, of: torch.dtype) -> Rotation:
        places = torch.arange(positions.start, positions.stop).to(torch.float32)
        angles = places[:, None] @ frequencies.float()[None]
        return Rotation(angles.cos().float(), angles.sin().float())

    check_angles(made)
    with pytest.raises(AssertionError), torch.autocast("cpu", torch.bfloat16):
        check_angles(made)


@pytest.mark.parametrize(
    ("dtype", "autocast"),
    [(torch.float16, False), *((t, a) for t in (torch.bfloat16, torch.float32, torch.float64) for a in (False, True))],
    ids=str,
)
def test_vectors_are_turned_in_float32_at_least_and_keep_their_type(dtype: torch.dtype, autocast: bool) -> None:
    """One rounding of the exact result."""
    x = random(B, H, T, d).to(dtype)
    exact = turned(x.double(), range(900, 900 + T))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        found = turned(x, range(900, 900 + T))
    assert found.dtype == dtype
    within = {torch.bfloat16: 2**-6, torch.float16: 2**-9, torch.float32: 3e-4, torch.float64: 1e-12}[dtype]
    assert_within(found.double(), exact, within)
    assert rotation(range(T), rotary_frequencies(d), dtype).cos.dtype == at_least_float32(dtype)


def test_gradients_turn_back() -> None:
    """The turn is orthogonal: d(a·Rx)/dx = Rᵀa, the turn by the opposite angle."""
    x, a = random(B, H, T, d).requires_grad_(), random(B, H, T, d)
    (turned(x, range(T)) * a).sum().backward()
    there = rotation(range(T), rotary_frequencies(d), torch.float64)
    assert x.grad is not None
    assert_within(x.grad, Rotation(there.cos, -there.sin)(a), 1e-14)


def test_no_rotation_is_the_input_itself() -> None:
    x = random(1, 1, 1, 2)
    assert unrotated(x) is x


def test_an_attention_factor_multiplies_what_is_turned() -> None:
    x = random(B, H, T, d)
    made = rotation(range(T), rotary_frequencies(6), torch.float64, attention_factor=1.5)(x)
    plain = turned(x, range(T), n=6)
    assert_within(made[..., :6], 1.5 * plain[..., :6], 1e-14)
    assert_same(made[..., 6:], x[..., 6:])
