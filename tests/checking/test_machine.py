"""The parity of a machine with float64, and a planted machine that computes wrong."""

from __future__ import annotations

import json

import pytest
import torch

from clearhead.checking import machine
from clearhead.models.decoder import Decoder
from tests.oracles.faulty_attention import NoMask, ScaledByLength, Sound

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_this_machine_computes_right(dtype: torch.dtype) -> None:
    found = machine.parity(CPU, dtype)
    assert found["ok"]
    assert found["difference"] <= found["allowed"]
    assert found["allowed"] < 16 * torch.finfo(dtype).eps * 10


def test_the_difference_is_measured_at_all() -> None:
    """float32 is not float64: a difference of 0 would mean that a model was compared with itself."""
    assert machine.parity(CPU, torch.float32)["difference"] > 0


@pytest.mark.parametrize(
    ("dtype", "fault"),
    [(torch.float32, ScaledByLength()), (torch.float16, NoMask()), (torch.bfloat16, NoMask())],
    ids=["float32", "float16", "bfloat16"],
)
def test_a_machine_that_computes_wrong_is_found(
    dtype: torch.dtype, fault: Sound, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: every model in this number type has a wrong kernel. 16 bits hide the smaller faults."""
    right = Decoder.forward

    def wrong(model: Decoder, ids: torch.Tensor) -> torch.Tensor:
        if next(model.parameters()).dtype == dtype:
            for block in model.blocks:
                block.attention.attend = fault
        return right(model, ids)

    monkeypatch.setattr(Decoder, "forward", wrong)
    assert not machine.parity(CPU, dtype)["ok"]


def test_a_result_that_is_no_number_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Decoder.forward

    def wrong(model: Decoder, ids: torch.Tensor) -> torch.Tensor:
        nan = next(model.parameters()).dtype == torch.float32
        return right(model, ids) * (float("nan") if nan else 1.0)

    monkeypatch.setattr(Decoder, "forward", wrong)
    assert not machine.parity(CPU, torch.float32)["ok"]


def test_the_facts_are_plain_data() -> None:
    facts = machine.examine(CPU, torch.float32)
    assert json.loads(json.dumps(facts)) == facts
    assert (facts["device"], facts["dtype"], facts["torch"]) == ("cpu", "float32", torch.__version__)
