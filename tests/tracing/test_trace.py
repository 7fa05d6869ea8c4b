"""A trace is what ran: of fused runs too, for some heads and positions, with a cache, and nothing stays on the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.generation.stores import DoublingStore
from clearhead.messages import UserError
from clearhead.models import choices as c
from clearhead.models.decoder import Decoder
from clearhead.ops.tap import Ran
from clearhead.text import CharacterTokenizer
from clearhead.tracing import Edit, Editor, Recorder, mean, noise, patch, trace, zero
from clearhead.tracing import replace as replaced
from clearhead.tracing.aliases import ALIASES, own_pattern
from clearhead.tracing.trace import Trace
from tests.equalities.variants import VARIANTS, ids_of, model_of
from tests.oracles.compare import assert_same, assert_within

FUSED = [name for name, config in VARIANTS.items() if config.softcap is None and not config.sinks]


def visible(variant: str) -> Decoder:
    """The variant with the kernel that shows everything, and the same weights."""
    return model_of(replace(VARIANTS[variant], kernel=c.Visible()))


def recorded(model: Decoder, recorder: Recorder, ids: Tensor | None = None) -> dict[str, Tensor]:
    with torch.no_grad():
        model(ids_of() if ids is None else ids, tap=recorder)
    return recorder.tensors


@pytest.mark.parametrize("kernel", [c.Fused(), c.Blockwise(block=4)], ids=["fused", "blockwise"])
@pytest.mark.parametrize("variant", FUSED)
def test_weights_of_a_run_that_held_none_are_those_of_the_definition(variant: str, kernel: c.Kernel) -> None:
    model = model_of(replace(VARIANTS[variant], kernel=kernel))
    again, shown = Recorder(), Recorder()
    found, wanted = recorded(model, again), recorded(visible(variant), shown)
    assert list(found) == list(wanted)
    for name, tensor in wanted.items():
        assert_within(found[name], tensor, 1e-12)
    assert again.differences.keys() == {name for name in wanted if name.endswith("weights")}
    assert max(again.differences.values()) < 1e-12


@pytest.mark.parametrize("variant", ["rotary, fused", "learned", "ALiBi", "window", "soft-cap", "sinks"])
def test_some_heads_and_positions_are_the_part_of_the_whole(variant: str) -> None:
    model = model_of(variant)
    whole = recorded(model, Recorder())
    part = recorded(model, Recorder(heads={1: [3, 1]}, positions=[-1, 2]))
    for name, tensor in part.items():
        axes, wanted = trace_axes(name), whole[name]
        if "H" in axes:
            assert name.startswith("blocks.1.")
            wanted = wanted[:, [3, 1]]
        if "T" in axes:
            wanted = wanted.index_select(axes.index("T"), torch.tensor([wanted.shape[axes.index("T")] - 1, 2]))
        assert_within(tensor, wanted, 1e-15)
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size(), "no more than asked is kept"


def trace_axes(name: str) -> tuple[str, ...]:
    return Trace({}).axes(name)


def test_with_a_cache_the_weights_reach_the_kept_keys() -> None:
    model, ids = model_of("rotary, fused"), ids_of()
    whole = recorded(model, Recorder("*.weights"))
    store = DoublingStore(model)
    with torch.no_grad():
        model(ids[:, :9], store=store)
        step = Recorder("*.weights")
        model(ids[:, 9:10], store=store, tap=step)
    for name, weights in step.tensors.items():
        assert_within(weights, whole[name][:, :, 9:10, :10], 1e-12)


class Forgetful(Recorder):
    """The planted fault: the weights of the keys that came last alone."""

    def attended(self, name: str, ran: Ran) -> Ran:
        return super().attended(name, ran._replace(k=ran.k.roll(1, -2)))


def test_weights_of_other_keys_are_found_by_the_stated_difference() -> None:
    fault = Forgetful("*.weights")
    recorded(model_of("rotary, fused"), fault)
    assert max(fault.differences.values()) > 1e-2


def test_a_long_text_and_one_head_keep_to_that_head() -> None:
    model = model_of(replace(VARIANTS["rotary, fused"], context=2048)).float()
    recorder = Recorder("blocks.1.attention.weights", heads=[2], positions=[2047, 5])
    recorded(model, recorder, ids_of(1, 2048))
    (weights,) = recorder.tensors.values()
    assert weights.shape == (1, 1, 2, 2048)
    assert_within(weights.sum(-1), torch.ones(1, 1, 2), 1e-5)


def test_gradients_reach_weights_that_were_computed_again() -> None:
    for variant in ("rotary, fused", "ALiBi"):
        gradients = []
        for model in (model_of(variant), visible(variant)):
            recorder = Recorder(["*.weights", "*.scores", "*.middle"], detach=False)
            loss = model(ids_of(), tap=recorder).square().sum()
            gradients.append(torch.autograd.grad(loss, list(recorder.tensors.values())))
        for ours, wanted in zip(*gradients, strict=True):
            assert_within(ours, wanted, 1e-9)
            assert wanted.abs().sum() > 0


# --- edits


def changed(model: Decoder, *edits: Edit) -> dict[str, Tensor]:
    editor, recorder = Editor(*edits), Recorder()
    with torch.no_grad():
        logits = model(ids_of())
        from clearhead.tracing import Chain  # noqa: PLC0415

        model(ids_of(), tap=Chain(editor, recorder))
        assert_same(model(ids_of()), logits)
    assert not editor.unused()
    return recorder.tensors


@pytest.mark.parametrize("name", ["weights", "scores", "mixed"])
def test_an_edit_of_a_head_is_the_same_for_every_kernel(name: str) -> None:
    edit = Edit(f"blocks.1.attention.{name}", zero, heads=[2], positions=[4, -1])
    fused, shown = changed(model_of("rotary, fused"), edit), changed(visible("rotary, fused"), edit)
    for key, tensor in shown.items():
        assert_within(fused[key], tensor, 1e-12)
    plain = recorded(visible("rotary, fused"), Recorder())
    assert_same(shown["blocks.0.output"], plain["blocks.0.output"])
    mixed, before = shown["blocks.1.attention.mixed"], plain["blocks.1.attention.mixed"]
    others = [head for head in range(4) if head != 2]
    assert_same(mixed[:, others], before[:, others])
    assert_same(mixed[:, 2, :4], before[:, 2, :4])
    assert (mixed[:, 2, 4] - before[:, 2, 4]).abs().max() > 1e-3


def test_each_change_is_what_it_says() -> None:
    model, ids = model_of("learned"), ids_of()
    plain = recorded(model, Recorder())
    other = recorded(model, Recorder(), (ids + 1) % 11)
    name = "blocks.0.feedforward.output"
    assert changed(model, Edit(name, zero))[name].abs().max() == 0
    assert_within(
        changed(model, Edit(name, mean))[name], plain[name].mean((0, 1), keepdim=True).expand(3, 13, -1), 1e-12
    )
    one, two, three = (changed(model, Edit(name, noise(0.5, seed)))[name] - plain[name] for seed in (1, 1, 2))
    assert_same(one, two)
    assert 0.4 < float(one.std()) < 0.6
    assert not torch.equal(one, three)
    assert_same(
        changed(model, Edit(name, replaced(torch.tensor(2.0)), positions=[3]))[name][:, 3],
        torch.full((3, 24), 2.0).double(),
    )
    assert_same(changed(model, Edit(name, patch(other)))[name], other[name])


def test_patching_everything_of_another_run_gives_its_logits() -> None:
    model = model_of("cycle")
    other = recorded(model, Recorder(), (ids_of() + 1) % 11)
    assert_same(changed(model, Edit("input", patch(other)))["logits"], other["logits"])


def test_an_edit_of_another_shape_is_refused() -> None:
    with pytest.raises(UserError, match=r"blocks\.0\.middle"):
        changed(model_of("learned"), Edit("blocks.0.middle", lambda name, part: part[:, :2]))


# --- what a trace knows


@pytest.fixture
def loaded() -> Loaded:
    return Loaded(
        model_of("rotary, fused"), CharacterTokenizer("abcdefgh小猫"), VARIANTS["rotary, fused"], Path("here")
    )


def test_a_trace_knows_tokens_axes_and_differences(loaded: Loaded, tmp_path: Path) -> None:
    made = trace(loaded, "小猫abc", names="*attention.weights", heads={1: [0, 2]}, positions=[4])
    assert list(made) == ["blocks.1.attention.weights"]
    assert made["blocks.1.attention.weights"].shape == (1, 2, 1, 5)
    assert (made.tokens, made.positions) == (list("小猫abc"), [4])
    assert made.axes("blocks.1.attn.hook_pattern") == ("B", "H", "T", "S")
    assert made["blocks.1.attn.hook_pattern"] is made["blocks.1.attention.weights"]
    assert "blocks.0.attn.hook_pattern" not in made
    assert made.axes("blocks.1.attention.weights") == ("B", "H", "T", "S")
    assert made.differences["blocks.1.attention.weights"] < 1e-12
    assert "1×2×1×5" in repr(made)
    assert "<td>1×2×1×5</td>" in made._repr_html_()
    made.save(tmp_path / "t.safetensors")
    with safe_open(tmp_path / "t.safetensors", "pt") as file:
        assert_same(file.get_tensor("blocks.1.attention.weights"), made["blocks.1.attention.weights"])
        assert "小" in file.metadata()["tokens"]


def test_a_tensor_of_a_part_of_ones_own_has_no_axes_and_is_kept_as_any_other(tmp_path: Path) -> None:
    made = Trace({"blocks.0.mine": torch.ones(2, 3), "again": torch.ones(2, 3)})
    assert made.axes("blocks.0.mine") == ()
    assert "2×3" in repr(made)
    assert "2×3" in made._repr_html_()
    made.save(tmp_path / "t.safetensors")
    with safe_open(tmp_path / "t.safetensors", "pt") as file:
        assert_same(file.get_tensor("blocks.0.mine"), made["blocks.0.mine"])


def test_what_passes_on_unchanged_is_saved_under_both_names(tmp_path: Path) -> None:
    made = trace(model_of("rotary, fused"), [1, 2, 3])
    assert made["embedding"].data_ptr() == made["input"].data_ptr()
    made.save(tmp_path / "t.safetensors")
    with safe_open(tmp_path / "t.safetensors", "pt") as file:
        assert set(file.keys()) == set(made)
        assert_same(file.get_tensor("input"), made["input"])


def test_what_cannot_be_traced(loaded: Loaded) -> None:
    with pytest.raises(UserError, match="nothing_like_it"):
        trace(loaded, "abc", names="nothing_like_it")
    with pytest.raises(UserError, match="tokenizer"):
        trace(loaded.model, "abc")
    with pytest.raises(IndexError, match="position 7"):
        trace(loaded, "abc", positions=[7])
    with pytest.raises(UserError, match="target"):
        trace(loaded, "abc", target="a")
    assert trace(loaded.model, [1, 2, 3]).tokens == ["1", "2", "3"]


def test_a_model_in_training_stays_in_training_and_drops(loaded: Loaded) -> None:
    model = model_of(replace(VARIANTS["rotary, fused"], dropout=0.5)).train()
    recorder = Recorder("*.weights")
    recorded(model, recorder)
    assert model.training
    assert not recorder.differences, "what was dropped at random cannot be compared"
    assert recorder.tensors


# --- TransformerLens' names


def test_every_name_of_transformer_lens_finds_its_tensor(loaded: Loaded) -> None:
    for theirs, ours in ALIASES.items():
        made = trace(loaded, "abc", names=theirs.replace("*", "1")) if "pos_embed" not in theirs else {}
        assert list(made) == ([] if "pos_embed" in theirs else [ours.replace("*", "1")])
    assert own_pattern("blocks.0.hook_resid_pre") == "input"
    assert own_pattern("blocks.2.hook_resid_pre") == "blocks.1.output"
    assert own_pattern("blocks.hook_q") == "blocks.hook_q"
    assert own_pattern("blocks.1.attn.hook_rot_q") == "blocks.1.attention.q"
    assert len(trace(loaded, "abc", names="blocks.*.attn.hook_pattern")) == 2
