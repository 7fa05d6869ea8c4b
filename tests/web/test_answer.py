"""Packed numbers come out as they went in, each array where a browser can read it in place."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from clearhead.web.answer import as_json, finite, packed, unpacked


def test_arrays_and_header_come_back() -> None:
    weights = np.arange(15, dtype=np.float32).reshape(3, 5)
    picture = np.arange(7, dtype=np.uint8)
    header, arrays = unpacked(packed({"token": "小猫"}, [("picture", picture), ("weights", weights)]).body)
    assert header["token"] == "小猫"
    assert np.array_equal(arrays["weights"], weights)
    assert np.array_equal(arrays["picture"], picture)


def test_each_array_begins_at_a_multiple_of_four() -> None:
    body = packed({"a": "b"}, [("odd", np.zeros(5, np.uint8)), ("next", np.ones(1, np.float32))]).body
    assert len(body) % 4 == 0
    assert body[-4:] == np.ones(1, "<f4").tobytes()


def test_what_a_browser_cannot_read_is_refused() -> None:
    with pytest.raises(ValueError, match="float64"):
        packed({}, [("wide", np.zeros(2))])
    with pytest.raises(ValueError, match="JSON"):
        as_json({"number": float("nan")})


def test_a_number_that_is_none_is_null() -> None:
    assert [finite(each) for each in (None, math.nan, math.inf, -math.inf, 0.25, 3)] == [None] * 4 + [0.25, 3.0]
    assert [finite(torch.tensor(each)) for each in (math.nan, 0.5)] == [None, 0.5]
    with pytest.raises(ValueError, match="JSON"):
        as_json({"number": float(torch.tensor(math.nan))})
