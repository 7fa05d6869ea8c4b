"""Quick numbers of a tensor are those of the exact summary, whole or in parts, wherever its mean lies and whatever its size."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead.tracing.trace import summary
from clearhead.web import summing
from clearhead.web.summing import Numbers, summed, summed_parts

TENSORS = {
    "around zero": (torch.randn, (3, 50, 40), 0.0),
    "far from zero": (torch.randn, (3, 50, 40), 100.0),
    "far from zero, its rows of several sizes": (torch.rand, (7, 1000), 3.0),
    "a vector": (torch.randn, (1000,), 5.0),
    "one number": (torch.randn, (), 2.0),
    "16 bits": (torch.randn, (30, 40), 1.0),
}


def made(name: str) -> Tensor:
    kind, shape, mean = TENSORS[name]
    tensor: Tensor = kind(shape) + mean
    return tensor.bfloat16() if name == "16 bits" else tensor


def differences(one: Numbers, other: Numbers) -> list[str]:
    """Where they differ beyond the rounding of float32."""
    return [name for name in other if one[name] != pytest.approx(other[name], rel=1e-5, abs=1e-6)]


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("at_once", [1, 700, summing.AT_ONCE])
def test_they_are_those_of_the_summary(monkeypatch: pytest.MonkeyPatch, name: str, at_once: int) -> None:
    monkeypatch.setattr(summing, "AT_ONCE", at_once)
    tensor = made(name)
    assert differences(summed(tensor), summary(tensor)) == []


@pytest.mark.parametrize("name", ["around zero", "far from zero", "a vector"])
def test_parts_are_the_whole(name: str) -> None:
    tensor = made(name)
    parts = torch.split(tensor, 2)
    assert differences(summed_parts(parts), summary(tensor)) == []
    assert "mean" in differences(summed_parts(parts[:1]), summary(tensor)), "planted: parts that are missing"


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_is_left_out(bad: float) -> None:
    tensor = made("far from zero")
    tensor[0, 0, 0] = bad
    assert differences(summed(tensor), summary(tensor)) == []


def test_the_largest_copy_is_a_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    plain = summing._squares

    def noted(rows: Tensor) -> float:
        seen.append(rows.numel())
        return plain(rows)

    monkeypatch.setattr(summing, "AT_ONCE", 400)
    monkeypatch.setattr(summing, "_squares", noted)
    tensor = made("far from zero")
    summed(tensor)
    whole, *parts = seen
    assert whole == tensor.numel() == sum(parts)
    assert max(parts) == 400
