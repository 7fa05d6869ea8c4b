"""What is patched is what it says: everything restores all, nothing restores nothing, and what carries the difference is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from clearhead.layers.block import ParallelBlock, SequentialBlock
from clearhead.messages import UserError
from clearhead.models import choices as c
from clearhead.models.decoder import Decoder
from clearhead.tracing import (
    NAMES,
    Edit,
    Editor,
    Patching,
    activation_patching,
    attribution_patching,
    logit_difference,
    trace,
)
from clearhead.tracing import patching as module
from clearhead.tracing.names import axes_of
from clearhead.tracing.patched import By
from clearhead.tracing.patching import Unit
from clearhead.tracing.trace import input_of, run
from tests.equalities.variants import VARIANTS, model_of
from tests.oracles.compare import assert_same, assert_within
from tests.tracing.test_gradients import TARGET, pair

CLEAN, CORRUPTED = [3, 1, 4, 1, 5, 9], [3, 1, 8, 1, 5, 9]
AT = 2
METRIC = logit_difference(2, 7)
GRID = [
    "rotary, fused",
    "learned, fused, MHA",
    "sinusoidal, post-norm",
    "rotary partial, parallel",
    "soft-cap",
    "sinks",
]


def by_hand(model: Decoder, name: str, index: tuple[slice | int, ...]) -> float:
    """The metric of the corrupted run with a part of one tensor from the clean run, by an edit of our own."""
    clean = trace(model, CLEAN, names=name)[name]

    def change(_: str, part: Tensor) -> Tensor:
        part = part.clone()
        part[index] = clean[index]
        return part

    return measured(model, CORRUPTED, Editor(Edit(name, change)))


def measured(model: Decoder, ids: list[int], tap: Editor | None = None) -> float:
    with torch.no_grad():
        read = input_of(model, ids)
        return float(METRIC(run(model, read) if tap is None else run(model, read, tap)))


# --- activation patching


@pytest.mark.parametrize("by", ["position", "head", "name"])
@pytest.mark.parametrize("variant", GRID)
def test_every_share_is_what_its_edit_does(variant: str, by: By) -> None:
    model = model_of(variant)
    found = activation_patching(model, CLEAN, CORRUPTED, METRIC, names="blocks.1.*", by=by)
    good, bad = measured(model, CLEAN), measured(model, CORRUPTED)
    assert (found.clean, found.corrupted) == (good, bad)
    assert found.names, "something is patched"
    for part in found:
        axes = axes_of(part.name)
        letter = {"position": "T", "name": None, "head": "H" if "H" in axes else "K"}[by]
        index = tuple(part.index if axis == letter else slice(None) for axis in axes)
        wanted = (by_hand(model, part.name, index) - bad) / (good - bad)
        assert part.share == pytest.approx(wanted, rel=1e-9, abs=1e-9), part


@pytest.mark.parametrize("variant", GRID)
def test_everything_restores_all_and_nothing_restores_nothing(variant: str) -> None:
    model = model_of(variant)
    whole = activation_patching(
        model, CLEAN, CORRUPTED, METRIC, names=["input", "blocks.1.output", "logits"], by="name"
    )
    assert whole.shares.tolist() == [[1.0], [1.0], [1.0]]
    parts = activation_patching(model, CLEAN, CORRUPTED, METRIC, names=["input", "blocks.?.output", "logits"])
    assert parts.names[0] == "input"
    for part in parts:
        # Before the token that differs, both runs are the same; the metric reads the last position alone.
        if part.index < AT or (part.name.startswith(("blocks.1", "logits")) and part.index < 5):
            assert part.share == 0.0, part
    assert [part.share for part in parts if part.name == "input"] == [0, 0, 1.0, 0, 0, 0]
    assert parts.share("logits", 5) == 1.0
    positions = activation_patching(model, CLEAN, CORRUPTED, METRIC, names=["positions", "logits"], by="name")
    if "positions" in positions.names:
        assert positions.share("positions") == 0.0


def test_clean_and_corrupted_change_places() -> None:
    """Patching the other way round asks what breaks the clean run: all of it restores the corrupted metric."""
    model = model_of("cycle")
    there, back = (
        activation_patching(model, *texts, METRIC, names="blocks.0.output")
        for texts in ((CLEAN, CORRUPTED), (CORRUPTED, CLEAN))
    )
    assert (there.clean, there.corrupted) == (back.corrupted, back.clean)
    assert largest(there.shares - back.shares) > 1e-3


def largest(tensor: Tensor) -> float:
    return float(tensor.abs().max())


def one_way(kernel: c.Kernel, *, only: int = 2) -> Decoder:
    """One block whose last position learns of the others through one head alone: other heads and the feed-forward add nothing."""
    model = model_of("rotary, MHA", layers=1, kernel=kernel)
    (block,) = model.blocks
    assert isinstance(block, SequentialBlock)
    width = block.attention.output.in_features // 4
    with torch.no_grad():
        columns = torch.arange(4 * width) // width == only
        block.attention.output.weight[:, ~columns] = 0.0
        for parameter in block.feedforward.parameters():
            parameter.zero_()
    return model


@pytest.mark.parametrize(
    "kernel", [c.Visible(), c.Fused(), c.Blockwise(block=2)], ids=["visible", "fused", "blockwise"]
)
def test_the_one_head_and_the_one_position_that_carry_the_difference_are_found(kernel: c.Kernel) -> None:
    model = one_way(kernel)
    for patched in (activation_patching, attribution_patching):
        heads = patched(model, CLEAN, CORRUPTED, METRIC, by="head")
        assert heads.names == ["blocks.0.attention.mixed"]
        assert heads.shares[0, [0, 1, 3]].abs().max() == 0
        assert (best := heads.best(1)[0]).index == 2
        assert best.label == "2"
        places = patched(model, CLEAN, CORRUPTED, METRIC, names=["input", "blocks.0.attention.output"])
        assert [part.index for part in places.best(2)] == ([2, 5] if patched is activation_patching else [5, 2])
        assert places.shares[0, [0, 1, 3, 4, 5]].abs().max() == 0
        assert places.shares[1, :5].abs().max() == 0
    assert heads.estimated
    measured_heads = activation_patching(model, CLEAN, CORRUPTED, METRIC, by="head")
    assert measured_heads.share("blocks.0.attention.mixed", 2) == 1.0
    read = activation_patching(model, CLEAN, CORRUPTED, METRIC, names=["*.k", "*.v"])
    assert read.shares[:, [0, 1, 3, 4, 5]].abs().max() == 0, "only the key and value of the token that differs"
    assert read.shares[:, AT].abs().min() > 1e-3


def test_weights_of_a_head_are_patched_as_the_definition_says_whatever_the_kernel() -> None:
    for by in ("head", "position", "name"):
        wanted, fused = (
            activation_patching(
                model_of(replace(VARIANTS["rotary, fused"], kernel=kernel)), CLEAN, CORRUPTED, METRIC,
                names=["*.weights", "*.scores"], by=by,
            )
            for kernel in (c.Visible(), c.Fused())
        )  # fmt: skip
        assert fused.names == wanted.names
        assert len(fused.names) == 4
        assert_within(fused.shares, wanted.shares, 1e-10)


@pytest.mark.parametrize("patched", [activation_patching, attribution_patching])
def test_an_encoder_decoder(patched: Callable[..., Patching]) -> None:
    model, clean, corrupted = pair(), [3, 1, 12, 5, 0], [3, 9, 12, 5, 0]
    found = patched(model, clean, corrupted, METRIC, names=["*", "encoder.*"], target=TARGET)
    assert found.labels[found.names.index("encoder.input")] == ["3", "1→9", "12", "5", "0"]
    assert found.labels[found.names.index("decoder.blocks.0.cross_attention.v")][1] == "1→9"
    assert found.labels[found.names.index("decoder.blocks.0.cross_attention.weights")] == ["2", "7", "7", "4"]
    row = found.shares[found.names.index("decoder.input")]
    assert row[:4].abs().max() == 0
    assert row[4].isnan()
    if patched is activation_patching:
        assert found.share("encoder.input", 1) == 1.0
        assert found.share("encoder.input", 0) == 0.0
        assert found.share("decoder.logits", 3) == 1.0
    assert "1→9" in repr(found)
    assert "2 7" in repr(found)


# --- what cannot be patched, and what may not stay


def test_what_cannot_be_patched() -> None:
    model = model_of("rotary, fused")
    for patched in (activation_patching, attribution_patching):
        with pytest.raises(UserError, match=r"3 tokens and the corrupted 4"):
            patched(model, [1, 2, 3], [1, 2, 3, 4], METRIC)
        with pytest.raises(UserError, match=r"3 tokens and the corrupted 2"):
            patched(pair(), [1, 2, 3], [1, 2], METRIC, target=TARGET)
        with pytest.raises(UserError, match="differs between them"):
            patched(model, [1, 2, 3], [1, 2, 3], METRIC)
        with pytest.raises(UserError, match="nothing_like_it"):
            patched(model, [1, 2, 3], [1, 2, 4], METRIC, names="nothing_like_it")
        with pytest.raises(UserError, match="by head"):
            patched(model, [1, 2, 3], [1, 2, 4], METRIC, names="*.middle", by="head")
        with pytest.raises(UserError, match="by token"):
            patched(model, [1, 2, 3], [1, 2, 4], METRIC, by="token")
        with pytest.raises(UserError, match=r"\(1, 3\)"):
            patched(model, [1, 2, 3], [1, 2, 4], lambda logits: logits[..., 0])
        with pytest.raises(UserError, match="training mode"):
            patched(model_of("learned", dropout=0.1).train(), CLEAN, CORRUPTED, METRIC)
    with pytest.raises(UserError, match="depends on no tensor"):
        attribution_patching(model, [1, 2, 3], [1, 2, 4], lambda logits: logits.detach()[0, -1, 0])


@pytest.mark.parametrize("patched", [activation_patching, attribution_patching])
def test_nothing_stays_on_the_model(patched: Callable[..., Patching]) -> None:
    model = model_of("rotary, fused").train()
    before, logits = {name: tensor.clone() for name, tensor in model.state_dict().items()}, measured(model, CLEAN)
    patched(model, CLEAN, CORRUPTED, METRIC, names="*", by="head")
    assert model.training
    assert measured(model, CLEAN) == logits
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert not any(part._forward_hooks or part._backward_hooks for part in model.modules())
    for name, tensor in model.state_dict().items():
        assert_same(tensor, before[name])


def test_the_defaults_are_there_in_every_block() -> None:
    for block in (c.PreNorm(), c.PostNorm(), c.Parallel()):
        model = model_of("learned", block=block)
        assert isinstance(model.blocks[0], ParallelBlock) == isinstance(block, c.Parallel)
        branches = [
            f"blocks.{i}.{name}" for i in (0, 1) for name in ("attention.output", "feedforward.output", "output")
        ]
        for by in ("position", "name"):
            assert activation_patching(model, CLEAN, CORRUPTED, METRIC, by=by).names == branches
    assert {f"blocks.*.{name.split('.', 2)[2]}" for name in branches} <= set(NAMES)


# --- planted faults


class NextHead(Unit):
    """The head beside it."""

    def edit(self, clean: Mapping[str, Tensor]) -> Edit:
        count = clean[self.name].shape[-3]
        return Unit(self.name, self.axis, (self.index + 1) % count).edit(clean)


class Everywhere(Unit):
    """All of the tensor, whatever was asked."""

    def edit(self, clean: Mapping[str, Tensor]) -> Edit:
        return Unit(self.name, None, 0).edit(clean)


class WrongPart(Unit):
    """The place is right, what is put there is of the one before."""

    def edit(self, clean: Mapping[str, Tensor]) -> Edit:
        rolled = {name: tensor.roll(1, axes_of(name).index(self.axis or "B")) for name, tensor in clean.items()}
        return Unit(self.name, self.axis, self.index).edit(rolled)


@pytest.mark.parametrize(("fault", "by"), [(NextHead, "head"), (Everywhere, "position"), (WrongPart, "position")])
def test_a_wrong_part_is_found(monkeypatch: pytest.MonkeyPatch, fault: type[Unit], by: By) -> None:
    monkeypatch.setattr(module, "Unit", fault)
    with pytest.raises(AssertionError):
        test_every_share_is_what_its_edit_does("rotary, fused", by)
    with pytest.raises(AssertionError):
        test_the_one_head_and_the_one_position_that_carry_the_difference_are_found(c.Fused())
