"""Windows, prefixes and documents against matrices written by hand; 1 = may look."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.ops import EVERYTHING, Both, Padding, causal
from clearhead.ops.masks import Causal, Documents, Prefix, Window, document_positions
from tests.oracles.compare import assert_same

# Windows

# (width, queries, keys) -> causal & window.
BY_HAND: dict[tuple[int, range, range], list[list[int]]] = {
    (1, range(3), range(3)): [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    (2, range(4), range(4)): [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]],
    (3, range(3, 5), range(5)): [[0, 1, 1, 1, 0], [0, 0, 1, 1, 1]],
    (2, range(7, 9), range(5, 9)): [[0, 1, 1, 0], [0, 0, 1, 1]],
    (9, range(2), range(2)): [[1, 0], [1, 1]],
}
Matrix = Callable[[int, range, range], Tensor]


def check_window(matrix: Matrix) -> None:
    """Exactly W keys where there are as many, the query's own included."""
    for (width, queries, keys), rows in BY_HAND.items():
        assert matrix(width, queries, keys).int().tolist() == rows
    for width in (1, 2, 5):
        counts = matrix(width, range(9), range(9)).sum(-1).tolist()
        assert counts == [min(width, t + 1) for t in range(9)]


def test_a_window_by_hand() -> None:
    check_window(lambda W, queries, keys: (Causal(queries, keys) & Window(W, queries, keys)).matrix())


@pytest.mark.parametrize(
    "fault",
    [
        lambda W, queries, keys: (Causal(queries, keys) & Window(W + 1, queries, keys)).matrix(),
        lambda W, queries, keys: (Causal(queries, keys) & Window(max(W - 1, 1), queries, keys)).matrix(),
        lambda W, queries, keys: Window(W, queries, keys).matrix(),
        lambda W, queries, keys: (causal(len(queries), len(keys)) & Window(W, range(len(queries)), keys)).matrix(),
    ],
    ids=["itself besides", "one too few", "no causality", "queries from 0"],
)
def test_a_faulty_window_is_caught(fault: Matrix) -> None:
    with pytest.raises(AssertionError):
        check_window(fault)


def test_a_window_limits_the_past_alone() -> None:
    assert Window(2, range(3), range(3)).matrix().int().tolist() == [[1, 1, 1], [1, 1, 1], [0, 1, 1]]


def test_a_window_of_positions_per_row() -> None:
    """A ring that has turned: keys stand in any order."""
    mask = Window(2, torch.tensor([[3, 4], [9, 9]]), torch.tensor([[4, 1, 2, 3], [8, 7, 9, 0]]))
    assert mask.matrix().shape == (2, 1, 2, 4)
    assert mask.matrix().int().squeeze(1).tolist() == [[[1, 0, 1, 1], [1, 0, 0, 1]], [[1, 0, 1, 0], [1, 0, 1, 0]]]


@pytest.mark.parametrize("width", [0, -1])
def test_a_window_that_shows_nothing_is_an_error(width: int) -> None:
    with pytest.raises(ValueError, match=rf"window of {width} keys"):
        Window(width, range(3), range(3))


# Prefixes


def check_prefix(matrix: Callable[[int, range, range], Tensor]) -> None:
    assert matrix(2, range(4), range(4)).int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert matrix(3, range(2, 4), range(4)).int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert matrix(0, range(3), range(3)).equal(causal(3).matrix())
    assert matrix(3, range(3), range(3)).all()


def test_a_prefix_by_hand() -> None:
    check_prefix(lambda length, queries, keys: Prefix(length, queries, keys).matrix())


@pytest.mark.parametrize(
    "fault",
    [
        lambda n, queries, keys: Prefix(n + 1, queries, keys).matrix(),
        lambda n, queries, keys: (Prefix(n, queries, keys) & Causal(queries, keys)).matrix(),
        lambda n, queries, keys: Prefix(n, range(len(queries)), keys).matrix(),
    ],
    ids=["one more", "causal", "queries from 0"],
)
def test_a_faulty_prefix_is_caught(fault: Callable[[int, range, range], Tensor]) -> None:
    with pytest.raises(AssertionError):
        check_prefix(fault)


def test_a_prefix_of_positions_per_row() -> None:
    """Row 0 is not padded; row 1 begins with two places of padding, which count as position 0 and are hidden."""
    positions = torch.tensor([[0, 1, 2, 3], [0, 0, 0, 1]])
    real = torch.tensor([[True] * 4, [False, False, True, True]])
    mask = Prefix(1, positions, positions) & Padding(real)
    assert mask.matrix().int().squeeze(1).tolist() == [
        [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]],
        [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 1, 1]],
    ]


# Documents


def test_documents_by_hand() -> None:
    documents = torch.tensor([[0, 0, 1, 1, 1], [5, 2, 2, 5, 5]])
    mask = causal(5) & Documents(documents, documents)
    assert mask.matrix().int().squeeze(1).tolist() == [
        [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]],
        [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 0, 1, 1]],
    ]


def test_documents_of_fewer_queries_than_keys() -> None:
    mask = Documents(torch.tensor([[1, 2]]), torch.tensor([[0, 1, 2, 2]]))
    assert mask.matrix().shape == (1, 1, 2, 4)
    assert mask.matrix().int().tolist() == [[[[0, 1, 0, 0], [0, 0, 1, 1]]]]


def check_document_positions(function: Callable[[Tensor], Tensor]) -> None:
    documents = torch.tensor([[0, 0, 1, 1, 1, 2], [2, 7, 7, 7, 3, 3], [1, 2, 3, 4, 5, 6]])
    expected = torch.tensor([[0, 1, 0, 1, 2, 0], [0, 0, 1, 2, 0, 1], [0, 0, 0, 0, 0, 0]])
    assert_same(function(documents), expected)


def test_positions_begin_anew_in_each_document() -> None:
    check_document_positions(document_positions)
    assert_same(document_positions(torch.tensor([[4], [5]])), torch.tensor([[0], [0]]))


@pytest.mark.parametrize(
    "fault",
    [
        lambda x: torch.arange(x.shape[1]).expand_as(x),
        lambda x: document_positions(x) + 1,
        lambda x: document_positions(x.flatten()[None]).view_as(x),
    ],
    ids=["one after the other", "from 1", "across rows"],
)
def test_faulty_document_positions_are_caught(fault: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(AssertionError):
        check_document_positions(fault)


# All of them together


def test_and_of_all_is_the_product_of_their_matrices() -> None:
    T = 5
    documents = torch.tensor([[0, 0, 0, 1, 1], [0, 1, 1, 1, 1]])
    real = torch.tensor([[True, True, False, True, True], [True, True, True, True, False]])
    parts = [causal(T), Window(2, range(T), range(T)), Documents(documents, documents), Padding(real)]
    product = torch.ones(2, 1, T, T)
    mask = EVERYTHING
    for part in parts:
        mask, product = mask & part, product * part.matrix()
    assert isinstance(mask, Both)
    assert mask.matrix().equal(product.bool())
    backwards = parts[3] & (parts[2] & (parts[1] & parts[0]))
    assert backwards.matrix().equal(product.bool())


@pytest.mark.parametrize(
    "mask",
    [
        Window(2, range(3), range(3)),
        Prefix(1, range(3), range(3)),
        Documents(torch.zeros(1, 3), torch.zeros(1, 3)),
        Window(2, torch.zeros(1, 3), range(3)),
    ],
    ids=repr,
)
def test_the_matrix_is_made_on_the_device_asked_for(mask: Window) -> None:
    assert mask.matrix(torch.device("meta")).device.type == "meta"
    assert (mask & causal(3)).matrix(torch.device("meta")).device.type == "meta"
