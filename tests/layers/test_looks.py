"""How a block looks at positions, and what is added to the token embedding."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers import (
    NO_STORE,
    Alibi,
    LearnedPositions,
    Look,
    NoPositions,
    Places,
    RotaryTurn,
    ScaledTokenEmbedding,
    SinusoidalPositions,
)
from clearhead.layers.store import ragged_positions
from clearhead.messages import UserError
from clearhead.ops import EVERYTHING, Allowed, Causal, Padding, causal
from clearhead.ops.masks import Documents, Window
from clearhead.ops.positions import alibi_bias, alibi_slopes, sinusoids, sinusoids_in_halves
from clearhead.ops.rotary import Rotation, linear_scaled, rotary_frequencies, rotation, unrotated
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_same, assert_within

B, T, D, H, d = 2, 5, 6, 3, 8
REAL = torch.tensor([[True] * 5, [False, False, True, True, True]])
X = torch.zeros(B, T, D, dtype=torch.float64)


def unchanged(frequencies: Tensor) -> Tensor:
    return frequencies


def places(real: Tensor | None = None, length: int = T) -> Places:
    return NO_STORE.places(length, real, torch.device("cpu"))


# What is seen


def test_a_plain_look_keeps_the_triangle_that_a_kernel_knows() -> None:
    visible, rotate, bias = Look()(places(), EVERYTHING, X)
    assert visible == causal(T)
    assert rotate is unrotated
    assert bias is None


@pytest.mark.parametrize("width", [T, T + 1])
def test_a_window_that_hides_nothing_keeps_the_triangle(width: int) -> None:
    assert Look(window=width)(places(), EVERYTHING, X).visible == causal(T)


@pytest.mark.parametrize("width", [1, 2, T - 1])
def test_a_window_is_a_window(width: int) -> None:
    visible = Look(window=width)(places(), EVERYTHING, X).visible
    expected = causal(T) & Window(width, range(T), range(T))
    assert isinstance(visible, Allowed)
    assert visible.matrix().equal(expected.matrix())
    assert not visible.matrix().equal(causal(T).matrix())


def test_padding_and_the_caller_s_limits_are_all_kept() -> None:
    documents = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]])
    limit = Documents(documents, documents)
    positions = ragged_positions(REAL)
    visible = Look(window=2)(places(REAL), limit, X).visible
    expected = Causal(positions, positions) & Window(2, positions, positions) & Padding(REAL) & limit
    assert isinstance(visible, Allowed)
    assert visible.matrix().equal(expected.matrix())
    for fewer in (
        Look()(places(REAL), limit, X),
        Look(window=2)(places(), limit, X),
        Look(window=2)(places(REAL), EVERYTHING, X),
    ):
        assert not fewer.visible.matrix().expand(B, 1, T, T).equal(expected.matrix())


def test_a_matrix_is_made_once_for_all_blocks() -> None:
    """What a look hands out is settled: the blocks that share it build nothing."""
    visible = Look(window=2)(places(REAL), EVERYTHING, X).visible
    assert visible.matrix().data_ptr() == visible.matrix().data_ptr()


def test_looks_that_look_alike_are_equal() -> None:
    def made(theta: float) -> Look:
        return Look(window=3, turn=RotaryTurn(d, theta, unchanged), bias=Alibi(H))

    assert made(10.0) == made(10.0)
    assert hash(made(10.0)) == hash(made(10.0))
    assert made(10.0) != made(11.0)


# How q and k are turned, and what is added to the scores


@pytest.mark.parametrize("interleaved", [False, True])
def test_a_rotary_turn_is_the_rotation_of_its_numbers(interleaved: bool) -> None:
    turn = RotaryTurn(4, 100.0, lambda w: linear_scaled(w, 2.0), interleaved, 1.25)
    found = Look(turn=turn)(places(REAL), EVERYTHING, X).rotate
    expected = rotation(
        ragged_positions(REAL),
        rotary_frequencies(4, 100.0) / 2,
        torch.float64,
        interleaved=interleaved,
        attention_factor=1.25,
    )
    assert isinstance(found, Rotation)
    x = torch.randn(B, H, T, d, dtype=torch.float64)
    assert_same(found(x), expected(x))
    plain = RotaryTurn(4, 100.0, unchanged, interleaved)(range(T), torch.float64, X.device)
    assert_same(plain(x), rotation(range(T), rotary_frequencies(4, 100.0), torch.float64, interleaved=interleaved)(x))
    assert not torch.allclose(plain(x), found(x))


@pytest.mark.parametrize("real", [None, REAL], ids=["a range", "per row"])
def test_alibi_is_the_bias_of_its_positions(real: Tensor | None) -> None:
    found = Look(bias=Alibi(H))(places(real), EVERYTHING, X).bias
    positions = torch.arange(T) if real is None else ragged_positions(real)
    assert found is not None
    assert_same(found, alibi_bias(alibi_slopes(H), positions, positions))
    assert found.dtype == X.dtype


def test_positions_of_rows_count_their_real_tokens() -> None:
    assert ragged_positions(REAL).tolist() == [[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]]
    assert ragged_positions(~REAL).tolist() == [[0, 0, 0, 0, 0], [0, 1, 1, 1, 1]]
    assert places() == Places(range(T), range(T), EVERYTHING)


# What is added to the embedding


def test_no_positions_add_nothing() -> None:
    x = torch.randn(B, T, D)
    assert NoPositions()(x, range(T)) is x


@pytest.mark.parametrize("formula", [sinusoids, sinusoids_in_halves])
def test_sinusoids_are_added(formula: object) -> None:
    assert callable(formula)
    part = SinusoidalPositions(D, formula, 100.0)
    x, rows = torch.randn(B, T, D, dtype=torch.float64), torch.tensor([[0, 1, 2, 3, 4], [7, 7, 8, 9, 0]])
    assert_same(part(x, range(2, 2 + T)), x + formula(range(2, 2 + T), D, base=100.0))
    assert_same(part(x, rows), x + formula(rows, D, base=100.0))
    assert list(part.parameters()) == []
    assert not torch.allclose(part(x, range(T)), part(x, range(1, T + 1)))


def test_sinusoids_keep_16_bit_types_and_are_rounded_once() -> None:
    part = SinusoidalPositions(D, sinusoids, 1e4)
    x = torch.zeros(1, 3, D, dtype=torch.bfloat16)
    assert_same(part(x, range(5000, 5003)), sinusoids(range(5000, 5003), D)[None].bfloat16())


def test_a_tap_sees_what_is_added_and_may_replace_it() -> None:
    table = LearnedPositions(9, D).double()
    x, recorder = torch.randn(B, T, D, dtype=torch.float64), Recorder()
    table(x, range(T), tap=recorder)
    assert_same(recorder.tensors["positions"], table.table[:T].detach())

    class Nothing(Recorder):
        def __call__(self, name: str, tensor: Tensor) -> Tensor:
            return tensor * 0

    assert_same(table(x, range(T), tap=Nothing()).detach(), x)
    sinusoidal = SinusoidalPositions(D, sinusoids, 1e4)
    assert_same(sinusoidal(x, range(T), tap=Nothing()), x)


def test_a_position_behind_the_table_is_an_error_with_both_numbers() -> None:
    with pytest.raises(UserError, match=r"^12 positions do not fit the model's context of 9;"):
        LearnedPositions(9, D)(torch.zeros(1, 3, D), range(9, 12))


def test_a_scaled_embedding_is_the_root_of_the_width_times_a_row() -> None:
    embedding = ScaledTokenEmbedding(7, D).double()
    ids = torch.tensor([[0, 6, 3]])
    assert_within(embedding(ids), embedding.weight[ids] * D**0.5, 1e-15)
    with pytest.raises(UserError, match="token id 7 is outside the vocabulary of 7"):
        embedding(torch.tensor([[7]]))
    assert isinstance(embedding, nn.Embedding)
