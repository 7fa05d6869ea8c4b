"""A mask asked for some of its keys is the same columns of its matrix, and no more is made."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from clearhead.ops import (
    EVERYTHING,
    Allowed,
    Both,
    Causal,
    Documents,
    Mask,
    Padding,
    Prefix,
    Window,
    causal,
)
from tests.oracles.compare import assert_same

B, H, T, S = 2, 4, 3, 5
QUERIES, KEYS = range(S - T, S), range(S)
ROWS, RING = torch.tensor([[2, 3, 4], [0, 1, 2]]), torch.tensor([[5, 1, 2, 3, 4], [0, 1, 2, 8, 9]])
REAL = torch.tensor([[False, False, True, True, True], [True, True, True, True, False]])
NUMBERS = torch.tensor([[0, 0, 1, 1, 2], [3, 3, 3, 1, 1]])
MASKS: dict[str, Mask] = {
    "everything": EVERYTHING,
    "causal": causal(T, S),
    "causal, a range from 7": Causal(range(9, 12), range(7, 12)),
    "causal, positions per row": Causal(ROWS, RING),
    "causal, keys per row": Causal(QUERIES, RING),
    "window": Window(2, QUERIES, KEYS),
    "window, positions per row": Window(2, ROWS, RING),
    "prefix": Prefix(3, QUERIES, KEYS),
    "prefix, positions per row": Prefix(1, ROWS, RING),
    "documents": Documents(NUMBERS[:, -T:], NUMBERS),
    "padding": Padding(REAL),
    "allowed": Allowed(torch.rand(B, H, T, S, generator=torch.Generator().manual_seed(0)) < 0.5),
    "allowed, keys alone": Allowed(REAL[0]),
    "allowed, one column for all": Allowed(torch.tensor([[True], [False], [True]])),
    "both": causal(T, S) & Padding(REAL),
    "all": causal(T, S) & Window(2, QUERIES, KEYS) & Documents(NUMBERS[:, -T:], NUMBERS) & Padding(REAL),
}


def check(of_keys: Callable[[Mask, int, int], Mask]) -> None:
    for mask, (start, stop) in itertools.product(MASKS.values(), itertools.combinations(range(S + 1), 2)):
        matrix = mask.matrix()
        assert_same(of_keys(mask, start, stop).matrix(), matrix if matrix.shape[-1] == 1 else matrix[..., start:stop])


def test_some_keys_are_some_columns() -> None:
    check(lambda mask, start, stop: mask.of_keys(start, stop))


def from_0(mask: Mask, start: int, stop: int) -> Mask:
    """The planted fault: keys are numbered anew in each block."""
    return Causal(mask.queries, range(stop - start)) if isinstance(mask, Causal) else mask.of_keys(start, stop)


def queries_too(mask: Mask, start: int, stop: int) -> Mask:
    """The planted fault: as many queries as keys."""
    part = mask.of_keys(start, stop)
    return replace(part, queries=mask.queries[:, start:stop]) if isinstance(mask, Documents) else part


def first_alone(mask: Mask, start: int, stop: int) -> Mask:
    """The planted fault: half of a combination is lost."""
    return mask.first.of_keys(start, stop) if isinstance(mask, Both) else mask.of_keys(start, stop)


def always_sliced(mask: Mask, start: int, stop: int) -> Mask:
    """The planted fault: the one column that stands for all keys is cut away."""
    return Allowed(mask.allowed[..., start:stop]) if isinstance(mask, Allowed) else mask.of_keys(start, stop)


def one_further(mask: Mask, start: int, stop: int) -> Mask:
    """The planted fault: the block beside."""
    return Padding(mask.real.roll(-1, 1)[:, start:stop]) if isinstance(mask, Padding) else mask.of_keys(start, stop)


@pytest.mark.parametrize("fault", [from_0, queries_too, first_alone, always_sliced, one_further])
def test_a_faulty_selection_is_caught(fault: Callable[[Mask, int, int], Mask]) -> None:
    with pytest.raises(AssertionError):
        check(fault)


def test_selections_add_up_and_all_keys_are_the_mask() -> None:
    for mask in MASKS.values():
        assert_same(mask.of_keys(1, 5).of_keys(1, 3).matrix(), mask.of_keys(2, 4).matrix())
        assert_same(mask.of_keys(0, S).matrix(), mask.matrix())


def test_ranges_stay_ranges_and_values_stay_values() -> None:
    """So a kernel still recognises them, and no device is asked."""
    assert causal(T, S).of_keys(1, 3) == Causal(range(2, 5), range(1, 3))
    assert Window(2, QUERIES, KEYS).of_keys(1, 3) == Window(2, QUERIES, range(1, 3))
    assert Prefix(3, QUERIES, KEYS).of_keys(4, 5) == Prefix(3, QUERIES, range(4, 5))
    assert EVERYTHING.of_keys(1, 3) is EVERYTHING
    whole = causal(T, S) & Window(2, QUERIES, KEYS)
    assert whole.of_keys(1, 3) == causal(T, S).of_keys(1, 3) & Window(2, QUERIES, range(1, 3))


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_no_matrix_is_made_to_choose_from(mask: Mask, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Mask, device: torch.device | None = None) -> torch.Tensor:
        raise AssertionError("a matrix was built")

    for kind in {type(one) for one in MASKS.values()}:
        monkeypatch.setattr(kind, "matrix", refuse)
    mask.of_keys(1, 3)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_the_matrix_of_some_keys_is_made_on_the_device_asked_for(mask: Mask) -> None:
    assert mask.of_keys(1, 3).matrix(torch.device("meta")).device.type == "meta"
