"""What is refused of weights is named as the file names it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.formats.assemble import assemble
from clearhead.formats.opened import Opened
from clearhead.formats.rows import Row, row, stacked
from clearhead.formats.tensors import HeldTensors, equal
from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer

CONFIG = DecoderConfig(layers=1, heads=3, kv_heads=1, width=6, context=5)
SIZES = {"q": 6, "k": 2, "v": 2}


def opened() -> Opened:
    """A model whose q, k and v lie apart."""
    held: dict[str, Tensor] = {}
    rows: list[Row] = []
    for name, tensor in own_tensors(build(CONFIG, seed=0)).items():
        if "qkv" in name:
            rows.append(stacked(name, SIZES))
            held |= dict(zip(SIZES, torch.split(tensor, [*SIZES.values()]), strict=True))
        else:
            rows.append(row(name, name))
            held[name] = tensor
    held = {name: tensor.clone() for name, tensor in held.items()}
    return Opened(CONFIG, ByteTokenizer(), HeldTensors(Path("there"), held), tuple(rows), Path("there"), "made")


@pytest.mark.parametrize("name", ["q", "k", "v", "embedding.weight"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_told_of_its_own_tensor(name: str, value: float) -> None:
    found = opened()
    found.tensors.held[name][-1, 0] = value  # type: ignore[attr-defined]
    with pytest.raises(UserError, match=f"there: {name} holds a number that is not finite"):
        assemble(found, torch.float32, "cpu")
    assemble(replace(found, finite=False), torch.float32, "cpu")


def test_without_one_nothing_is_told() -> None:
    assemble(opened(), torch.float32, "cpu")


def test_names_of_a_file_are_shown_on_a_line() -> None:
    found = opened()
    found.tensors.held["\x1b[2J"] = torch.zeros(3)  # type: ignore[attr-defined]
    with pytest.raises(UserError) as caught:
        assemble(found, torch.float32, "cpu")
    assert str(caught.value).isprintable()
    assert r"\x1b[2J" in str(caught.value)


def test_equal_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.formats.tensors.PIECE", 6)
    one = torch.randn(5, 3)
    other = one.clone()
    other[-1, -1] += 1
    tensors = HeldTensors(Path(), {"one": one, "same": one.clone(), "other": other, "short": one[:4]})
    assert [equal(tensors, "one", name) for name in ("same", "other", "short")] == [True, False, False]
