"""A head says which of its fields may be looked at, in few bytes, so that the page can tell a hidden one from a weight of 0."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from clearhead.ops.masks import Allowed
from clearhead.web import head
from clearhead.web.answer import unpacked
from tests.web.heads_opened import name_of, places, query, session, session_of
from tests.web.scripts import told
from tests.web.test_atlas import hidden_query

SOME = [
    ("decoder", "learned"),
    ("decoder", "window, ALiBi"),
    ("encoder", "relative"),
    ("pair", "T5"),
]


def whole(seen: NDArray[Any], columns: int) -> NDArray[np.bool_]:
    """What the bytes of an answer say, field by field."""
    if seen.dtype == np.uint8:
        return seen.astype(bool)
    place = np.arange(columns)
    return np.asarray((place >= seen[:, :1]) & (place < seen[:, 1:]))


def check_seen(of: Any, part: str, layer: int, number: int, field: tuple[int, int]) -> NDArray[Any]:
    """A field is seen if any cell of it is."""
    _, arrays = unpacked(head.answer(of, query(part, layer, number)).body)
    ran = of.ran[name_of(part, layer)]
    queries, keys = ran.q.shape[-2], ran.k.shape[-2]
    matrix = ran.visible.matrix(ran.q.device)
    seen = matrix.expand(1, ran.q.shape[1], queries, keys)[0, number]
    wanted = F.max_pool2d(seen[None, None].double(), field, ceil_mode=True)[0, 0] > 0
    assert np.array_equal(whole(arrays["seen"], wanted.shape[1]), wanted.numpy())
    return arrays["seen"]


@pytest.mark.parametrize(("kind", "variant"), SOME)
def test_what_is_seen_is_the_mask(kind: str, variant: str) -> None:
    of = session_of(kind, variant)
    for part, layer, number in places(of)[::5]:
        assert check_seen(of, part, layer, number, (1, 1)).dtype == np.float32, "no mask of the grid has gaps"


def test_fields_of_a_large_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head, "SIDE", 5)
    for variant in ("rotary, fused", "window"):
        assert check_seen(session_of("decoder", variant), "attention", 1, 2, (3, 3)).shape == (5, 2)


def test_a_mask_with_gaps_is_told_field_by_field() -> None:
    of = hidden_query(4)
    check_seen(of, "attention", 1, 2, (1, 1))
    name = "blocks.1.attention"
    ran = of.ran[name]
    allowed = ran.visible.matrix(ran.q.device).clone()
    allowed[..., 5, 2] = False
    gaps = session(of.loaded.model, torch.tensor([of.ids]))
    gaps.ran[name] = ran._replace(visible=Allowed(allowed))  # type: ignore[index]
    assert check_seen(gaps, "attention", 1, 2, (1, 1)).dtype == np.uint8


def test_a_wrong_range_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the end counted as seen; rows and columns swapped."""
    ranges = head.ranges
    for fault in (lambda seen: ranges(seen) + np.array([0, 1], np.float32), lambda seen: ranges(seen.T)):
        monkeypatch.setattr(head, "ranges", fault)
        with pytest.raises(AssertionError):
            check_seen(session_of("decoder", "rotary, fused"), "attention", 1, 2, (1, 1))


def hidden(seen: str, row: int, columns: int) -> Any:
    """The stretches that the page draws."""
    return told_hatch(f"page.hidden({seen}, {row}, {columns})")


def told_hatch(expression: str) -> Any:
    # The module without the one that it imports: nothing is drawn here.
    return told("hatch.js", expression, ('import { make } from "clearhead/dom.js";', ""))


def test_the_page_hatches_what_is_hidden() -> None:
    found = told_hatch(
        "[page.hidden(new Float32Array([0, 1, 1, 3, 0, 4, 2, 2]), 0, 4), page.hidden(new Float32Array([0, 1, 1, 3, 0, 4, 2, 2]), 1, 4),"
        " page.hidden(new Float32Array([0, 1, 1, 3, 0, 4, 2, 2]), 2, 4), page.hidden(new Float32Array([0, 1, 1, 3, 0, 4, 2, 2]), 3, 4),"
        " page.hidden(new Uint8Array([0, 0, 1, 0, 1, 1, 0, 0, 0, 0]), 0, 5), page.hidden(new Uint8Array([0, 0, 1, 0, 1, 1, 0, 0, 0, 0]), 1, 5)]"
    )
    assert found == [[[1, 4]], [[0, 1], [3, 4]], [], [[0, 4]], [[0, 2], [3, 4]], [[1, 5]]]
    seen = told_hatch(
        "[0, 1, 2, 3].map((column) => [page.isSeen(new Float32Array([0, 4, 1, 3]), 1, column, 4), page.isSeen(new Uint8Array([1, 1, 1, 1, 0, 1, 1, 0]), 1, column, 4), page.isSeen(null, 1, column, 4)])"
    )
    assert json.dumps(seen) == json.dumps(
        [[False, False, True], [True, True, True], [True, True, True], [False, False, True]]
    )
