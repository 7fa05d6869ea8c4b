"""Masks against matrices written by hand; 1 = may look."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.ops import EVERYTHING, Allowed, Both, Causal, Padding, causal

BY_HAND: dict[tuple[int, int], list[list[int]]] = {
    (1, 1): [[1]],
    (3, 3): [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
    (3, 5): [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]],
    (2, 3): [[1, 1, 0], [1, 1, 1]],
    (1, 4): [[1, 1, 1, 1]],
}


def check_causal(matrix: Callable[[int, int], Tensor]) -> None:
    """T queries are the last of S positions, and each sees itself and what came before."""
    for (T, S), rows in BY_HAND.items():
        found = matrix(T, S)
        assert found.dtype == torch.bool
        assert found.int().tolist() == rows


def test_causal_by_hand() -> None:
    check_causal(lambda T, S: causal(T, S).matrix())


@pytest.mark.parametrize(
    "matrix",
    [
        lambda T, S: torch.ones(T, S, dtype=torch.bool).tril(),
        lambda T, S: torch.ones(T, S, dtype=torch.bool).tril(S - T - 1),
        lambda T, S: torch.ones(T, S, dtype=torch.bool).tril(S - T + 1),
        lambda T, S: torch.ones(T, S, dtype=torch.bool).triu(S - T),
        lambda T, S: ~causal(T, S).matrix(),
        lambda T, S: torch.ones(T, S).tril(S - T),
    ],
    ids=["top-left", "strict", "one ahead", "upper", "reversed", "numbers"],
)
def test_a_wrong_triangle_is_caught(matrix: Callable[[int, int], Tensor]) -> None:
    with pytest.raises(AssertionError):
        check_causal(matrix)


def test_one_number_means_as_many_keys_as_queries() -> None:
    assert causal(3) == causal(3, 3) == Causal(range(3), range(3))


def test_fewer_keys_than_queries_is_an_error_with_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"5 queries .* 3 keys"):
        causal(5, 3)


def test_positions_per_row() -> None:
    """Row 0 asks at 0 and 2, row 1 at 1 and 3; the keys stand at 0..3, and in row 1 at 1..4."""
    mask = Causal(torch.tensor([[0, 2], [1, 3]]), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    assert mask.matrix().shape == (2, 1, 2, 4)
    assert mask.matrix().int().squeeze(1).tolist() == [
        [[1, 0, 0, 0], [1, 1, 1, 0]],
        [[1, 0, 0, 0], [1, 1, 1, 0]],
    ]


def test_queries_per_row_against_a_range_of_keys() -> None:
    mask = Causal(torch.tensor([[0, 2], [1, 3]]), range(3))
    assert mask.matrix().int().squeeze(1).tolist() == [[[1, 0, 0], [1, 1, 1]], [[1, 1, 0], [1, 1, 1]]]


def test_a_range_that_does_not_begin_at_0() -> None:
    assert Causal(range(4, 6), range(3, 6)).matrix().int().tolist() == [[1, 1, 0], [1, 1, 1]]


def test_padding_hides_keys_from_every_query_and_head() -> None:
    matrix = Padding(torch.tensor([[True, True, False], [False, True, True]])).matrix()
    assert matrix.shape == (2, 1, 1, 3)
    assert matrix.expand(2, 4, 2, 3)[0].int().tolist() == [[[1, 1, 0]] * 2] * 4
    assert matrix.expand(2, 4, 2, 3)[1].int().tolist() == [[[0, 1, 1]] * 2] * 4


def test_and_allows_what_both_allow() -> None:
    left_padded = Padding(torch.tensor([[True, True, True], [False, True, True]]))
    for mask in (causal(3) & left_padded, left_padded & causal(3)):
        assert isinstance(mask, Both)
        assert mask.matrix().int().squeeze(1).tolist() == [
            [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
            [[0, 0, 0], [0, 1, 0], [0, 1, 1]],
        ]


def test_everything_adds_no_restriction_on_either_side() -> None:
    """The triangle stays recognisable as one, so that a kernel may take its shortcut."""
    assert EVERYTHING & causal(3) == causal(3)
    assert causal(3) & EVERYTHING == causal(3)
    assert EVERYTHING & EVERYTHING == EVERYTHING
    assert EVERYTHING.matrix().tolist() == [[True]]


def test_a_matrix_already_written_is_taken_as_it_is() -> None:
    allowed = torch.tensor([[True, False], [False, True]])
    assert Allowed(allowed).matrix().equal(allowed)
    assert (Allowed(allowed) & causal(2)).matrix().tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize(
    "mask",
    [
        causal(2, 3),
        Causal(torch.tensor([[0]]), torch.tensor([[0]])),
        Padding(torch.ones(1, 3, dtype=torch.bool)),
        Allowed(torch.ones(1, 1, dtype=torch.bool)),
        EVERYTHING,
        causal(3) & Padding(torch.ones(1, 3, dtype=torch.bool)),
    ],
    ids=repr,
)
def test_the_matrix_is_made_on_the_device_asked_for(mask: Causal) -> None:
    assert mask.matrix(torch.device("meta")).device.type == "meta"
    assert mask.matrix().device.type == "cpu"
