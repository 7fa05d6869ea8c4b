"""Where the tensors of decoders lie: each table reads backwards, and names what transformers names."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from clearhead.formats.assemble import assemble
from clearhead.formats.rows import Change, Row
from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError
from clearhead.models.build import build
from tests.formats.hugging_face.decoders import EACH, VARIANTS, theirs
from tests.formats.hugging_face.given import opened, same_names_and_shapes, saved_tensors
from tests.oracles.compare import assert_same


def check_round_trips(rows: tuple[Row, ...], ours: torch.nn.Module, named: dict[str, torch.Tensor]) -> None:
    """Ours to theirs and back, and theirs to ours and back: every bit."""
    state = ours.state_dict()
    for row in rows:
        drawn = torch.randn(state[row.ours].shape)
        parts = row.split(drawn)
        assert_same(row.join([parts[part.name] for part in row.parts]), drawn)
        given = {part.name: torch.randn(named[part.name].shape) for part in row.parts}
        for name, back in row.split(row.join(list(given.values()))).items():
            assert_same(back, given[name])


@pytest.mark.parametrize("variant", VARIANTS)
def test_tables_read_backwards_and_name_what_is_there(variant: str) -> None:
    model = theirs(variant)
    found = opened(model)
    ours = build(found.config, device="meta")
    check_round_trips(found.rows, ours, saved_tensors(model))
    same_names_and_shapes(found.rows, ours, model)
    first = [row.ours for row in found.rows if row.ours in own_tensors(ours)]
    assert sorted(first) == sorted(own_tensors(ours))
    assert {row.ours for row in found.rows} - set(first) == ({"head.weight"} if found.config.tied else set())


def test_a_change_that_is_not_undone_is_caught() -> None:
    model = theirs("llama")
    found = opened(model)
    turned = Change(lambda x: x.roll(1, 0), lambda x: x.roll(1, 0))
    rows = tuple(
        replace(row, parts=tuple(replace(part, change=turned) for part in row.parts)) if "qkv" in row.ours else row
        for row in found.rows
    )
    with pytest.raises(AssertionError, match=r"^differs by"):
        check_round_trips(rows, build(found.config, device="meta"), saved_tensors(model))


@pytest.mark.parametrize("variant", EACH)
def test_a_row_that_is_missing_or_misnamed_is_caught(variant: str) -> None:
    model = theirs(variant)
    found = opened(model)
    ours = build(found.config, device="meta")
    with pytest.raises(AssertionError):
        same_names_and_shapes(found.rows[:-2], ours, model)
    wrong = tuple(replace(row, parts=(replace(row.parts[0], name="another"), *row.parts[1:])) for row in found.rows)
    with pytest.raises(AssertionError):
        same_names_and_shapes(wrong, ours, model)


@pytest.mark.parametrize("variant", EACH)
def test_what_older_files_hold_beside_is_known(variant: str) -> None:
    """Saved masks and inverse frequencies are passed over; anything else is refused."""
    model = theirs(variant)
    found = opened(model)
    saved = saved_tensors(model)
    block = next(name for name in saved if ".0." in name).partition(".0.")[0]
    beside = {
        "GPT2": ("attn.bias", "attn.masked_bias"),
        "GPTNeoX": ("attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq"),
    }.get(VARIANTS[variant][0], ("self_attn.rotary_emb.inv_freq",))
    names = tuple(f"{block}.{index}.{name}" for index in range(2) for name in beside)
    held = {**saved, **{name: torch.ones(1) for name in names}}
    _, report = assemble(replace(found, tensors=replace(found.tensors, held=held)), torch.float32, "cpu")
    assert sorted(report.unused) == sorted(names)
    other = {**saved, f"{block}.0.another.weight": torch.ones(1)}
    with pytest.raises(UserError, match="another"):
        assemble(replace(found, tensors=replace(found.tensors, held=other)), torch.float32, "cpu")


@pytest.mark.parametrize("variant", ["gpt2", "llama, biases, wide heads, tied"])
def test_a_second_copy_of_a_tied_tensor_must_be_equal(variant: str) -> None:
    model = theirs(variant)
    found = opened(model)
    _, report = assemble(found, torch.float32, "cpu")
    assert report.retied.keys() == {"head.weight", "lm_head.weight"}
    held = saved_tensors(model)
    held["lm_head.weight"] = held["lm_head.weight"] + 1
    with pytest.raises(UserError, match="tied"):
        assemble(replace(found, tensors=replace(found.tensors, held=held)), torch.float32, "cpu")
