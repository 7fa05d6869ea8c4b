"""What a narrower type explains, it explains only where one was seen to run."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.checking.families.walk import EXACT
from tests.checking.families.models import bert, decoder, found_in, made
from tests.checking.families.plants import hooked


@pytest.mark.parametrize("eps", [1e-6, 1e-5, 0.02])
@pytest.mark.parametrize(
    ("path", "stage"),
    [("bert.encoder.layer.1.output.LayerNorm", "blocks.1.output"), ("bert.embeddings.LayerNorm", "input")],
)
def test_a_small_eps_is_named_as_one(eps: float, path: str, stage: str) -> None:
    module = made(bert)
    module.get_submodule(path).eps = eps
    (fault,) = found_in(module).faults
    assert fault.id == "norm.eps-value"
    assert fault.certainty == "reproduced"
    assert stage in fault.evidence
    assert f"eps {eps:g}, in the family 1e-12" in fault.evidence


def test_what_is_float32_in_one_part_excuses_that_part_alone() -> None:
    def narrow(x: Any) -> Any:
        return x.float().to(x.dtype)

    module = made(bert)
    hooked("bert.encoder.layer.1.intermediate", narrow)(module)
    found = found_in(module)
    assert not found.faults
    assert [note for note in found.notes if "island" in note] == [
        note for note in found.notes if note.startswith("feed-forward")
    ]
    assert any("island" in note for note in found.notes)
    hooked("bert.encoder.layer.0.intermediate", lambda x: x * (1 + 1e-8))(module)
    (fault,) = found_in(module).faults
    assert "blocks.0.feedforward" in fault.evidence


@pytest.mark.parametrize("make", [bert, decoder("gpt2")])
def test_nothing_is_excused_where_all_is_float64(make: Any) -> None:
    found = found_in(made(make))
    assert max(check.largest for check in found.checks if check.id != "family.cache") < EXACT
    assert not found.notes


def test_buffers_of_a_narrower_type_are_seen() -> None:
    module = made(decoder("llama"))
    assert not found_in(module).faults
    module.model.layers[1].self_attn.scaling *= 1 + 1e-4
    (fault,) = found_in(module).faults
    assert "blocks.1.attention" in fault.evidence
    assert next(module.buffers()).dtype is torch.float32
