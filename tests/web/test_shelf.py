"""What is kept of a forward stands side by side in few large pieces, each number where it was put."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.web import shelf
from clearhead.web.keeper import kept_bytes
from clearhead.web.opening import opened
from clearhead.web.shelf import ALIGNED, Shelf
from tests.web.asking import small

KINDS = (torch.float32, torch.bfloat16, torch.float64, torch.bool)


def some() -> list[Tensor]:
    """Tensors of many sizes and kinds, transposed ones and one without numbers among them."""
    made = [torch.arange(size).to(kind) for size in (1, 7, 300) for kind in KINDS]
    return [*made, torch.randn(2, 5, 9).transpose(1, 2), torch.zeros(0, 3), torch.tensor(2.5)]


def check_kept(tensors: list[Tensor]) -> None:
    place = Shelf()
    kept = [place.put(each) for each in tensors]
    for copy, own in zip(kept, tensors, strict=True):
        assert (copy.dtype, copy.shape, copy.is_contiguous()) == (own.dtype, own.shape, True)
        assert torch.equal(copy, own)
        assert copy.data_ptr() % ALIGNED == 0 or not copy.numel()


def test_every_tensor_is_as_it_was_when_all_have_been_put() -> None:
    check_kept(some())


@pytest.mark.parametrize("fault", ["they stand on each other", "nothing is copied", "not aligned"])
def test_a_wrong_shelf_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Shelf.put

    def same_place(self: Shelf, tensor: Tensor) -> Tensor:
        free = self._free
        kept = put(self, tensor)
        self._free = free if len(free) else self._free.new_empty(shelf.PIECE)
        return kept

    faults: dict[str, Callable[[Shelf, Tensor], Tensor]] = {
        "they stand on each other": same_place,
        "nothing is copied": lambda self, tensor: torch.empty_like(tensor.contiguous()).fill_(1),
    }
    if fault in faults:
        monkeypatch.setattr(Shelf, "put", faults[fault])
    else:
        monkeypatch.setattr(shelf, "ALIGNED", 8)
    with pytest.raises(AssertionError):
        check_kept(some())


def test_a_piece_holds_many_and_what_is_larger_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "PIECE", 1000 * ALIGNED)
    place = Shelf()
    kept = [place.put(torch.zeros(16)) for _ in range(1000)]
    assert len({each.untyped_storage().data_ptr() for each in kept}) == 1
    large = place.put(torch.zeros(20 * ALIGNED * 1000))
    assert large.untyped_storage().nbytes() == large.nbytes


def test_a_session_counts_what_it_keeps_not_the_pieces() -> None:
    session = opened(small(), "abc")
    each = session.ran["blocks.0.attention"]
    assert session.size < 100_000 < shelf.PIECE
    assert kept_bytes([each]) >= sum(kept.nbytes for kept in (each.mixed, each.q, each.k, each.v))
    assert kept_bytes([each, each]) == kept_bytes([each])
    assert len({kept.untyped_storage().data_ptr() for kept in (each.mixed, each.q, each.k, each.v)}) == 1
