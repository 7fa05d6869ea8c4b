"""Weights held against those of an original: of a module, of a folder; and what a folder's own code is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from clearhead.checking.check import check
from clearhead.checking.families.library import of_model
from clearhead.checking.model import model_report
from clearhead.checking.settings import Settings
from clearhead.formats.load import load
from clearhead.messages import UserError
from tests.checking.families.models import bert, decoder, found_in, made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("original")
    made(decoder("llama")).save_pretrained(path)
    return path


def test_the_same_weights_are_said_to_be_so(folder: Path) -> None:
    found = found_in(made(decoder("llama")), folder)
    assert [each.verdict for each in found.checks if each.id == "weights.changed"] == ["pass"]
    assert not found.faults


def test_each_changed_tensor_is_named_by_its_block_and_component(folder: Path) -> None:
    module = made(decoder("llama"))
    with torch.no_grad():
        module.model.layers[1].self_attn.k_proj.weight.mul_(1.5)
        module.model.layers[2].mlp.up_proj.weight[3] += 0.1
        module.model.layers[0].self_attn.o_proj.weight.copy_(module.model.layers[0].self_attn.o_proj.weight.t().clone())
    faults = found_in(module, folder).faults
    assert {fault.id for fault in faults} == {"weights.changed"}
    by_name = {fault.where: fault.evidence for fault in faults}
    assert set(by_name) == {
        "blocks.0.attention.output.weight",
        "blocks.1.attention.qkv.weight (k)",
        "blocks.2.feedforward.up.weight",
    }
    assert "transposed" in by_name["blocks.0.attention.output.weight"]
    assert "1.5" in by_name["blocks.1.attention.qkv.weight (k)"]
    assert "block 1, attention" in by_name["blocks.1.attention.qkv.weight (k)"]
    assert "1 of 14 rows" in by_name["blocks.2.feedforward.up.weight"]


def test_weights_that_were_only_rounded_are_a_note(folder: Path) -> None:
    found = found_in(made(decoder("llama")).to(torch.bfloat16), folder)
    assert not found.faults
    assert any("rounded to bfloat16" in note for note in found.notes)


def test_another_size_and_a_tensor_that_only_one_has_are_named(folder: Path) -> None:
    found = found_in(made(decoder("llama, biases of feed-forward")), folder)
    texts = [fault.evidence for fault in found.faults]
    assert any("sizes" in text for text in texts)
    assert any("only the code under check has it" in text for text in texts)
    assert any("differs in" in note for note in found.notes)


def test_an_original_for_what_is_of_no_family_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match="--against"):
        check(nn.Linear(3, 5), against=folder)


def test_a_folder_is_held_against_an_original_and_its_own_code_is_run(folder: Path, tmp_path: Path) -> None:
    module = made(decoder("llama"))
    with torch.no_grad():
        module.model.norm.weight.mul_(2)
    module.save_pretrained(tmp_path)
    report = model_report("here", load(tmp_path), Settings(against=folder))
    assert [(fault.id, fault.where) for fault in report.faults] == [("weights.changed", "norm.weight")]
    assert {each.id: each.verdict for each in report.checks}["family.attention"] == "pass"
    assert not report.ok


def test_an_encoders_folder_has_its_familys_checks(tmp_path: Path) -> None:
    made(lambda: bert("BertModel")).save_pretrained(tmp_path)
    report = model_report("here", load(tmp_path), Settings())
    assert (report.kind, report.ok) == ("encoder", True)
    assert {each.id for each in report.checks} >= {"family.attention", "family.head"}


def test_without_their_library_the_reason_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.checking.families.library.LIBRARY", "no_such_library_here")
    (only,) = of_model(load(folder), Settings()).checks
    assert (only.id, only.verdict) == ("family.code", "skipped")
    assert "no_such_library_here" in only.evidence
    # An encoder of which nothing could be asked is no pass.
    loaded = load(folder)
    assert model_report("here", loaded, Settings()).ok
