"""Two models' weights in pairs: by name, by numbers, by what names mean, joined and split."""

from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor

from clearhead.checking.diff.report import State
from clearhead.checking.diff.weights import Match, Shapes, compared, matches, related, shapes_of
from clearhead.checking.diff.weights_roles import roles
from clearhead.formats.hugging_face.families import FAMILIES
from clearhead.formats.weights import own_tensors
from clearhead.models.build import build
from clearhead.models.choices import RMSNorm, Rotary, SwiGLU
from clearhead.models.config import DecoderConfig

GPT = DecoderConfig(
    vocab=23, layers=2, heads=3, width=12, feedforward_width=20, context=9, qkv_bias=True, bias=True, tied=False
)
LLAMA = DecoderConfig(
    vocab=23,
    layers=2,
    heads=6,
    kv_heads=2,
    width=12,
    feedforward_width=20,
    context=9,
    positions=Rotary(),
    norm=RMSNorm(),
    activation=SwiGLU(),
    tied=False,
)


def tensors(config: DecoderConfig, seed: int = 0) -> dict[str, Tensor]:
    """The weights of a model, no two of them alike."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {name: each.shape for name, each in own_tensors(build(config, device="meta")).items()}
    return {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()}


def theirs(config: DecoderConfig, family: str, own: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same weights as a family names and arranges them."""
    (found,) = (each for each in FAMILIES if each.name == family)
    rows = [row for row in found.rows(config) if row.ours in own]
    return {name: part for row in rows for name, part in row.split(own[row.ours]).items()}


def states(found: tuple[Match, ...]) -> dict[str, State]:
    return {match.b or match.a: match.state for match in found}


def by_b(found: tuple[Match, ...], name: str) -> Match:
    return next(match for match in found if match.b == name)


def test_equal_weights_are_the_same_in_the_order_of_a() -> None:
    own = tensors(GPT)
    rows = compared(own, {name: each.clone() for name, each in reversed(own.items())})
    assert [row.a for row in rows] == [row.b for row in rows] == list(own)
    assert {row.state for row in rows} == {"same"}


def test_one_changed_number_is_told_with_its_size() -> None:
    own = tensors(GPT)
    other = {name: each.clone() for name, each in own.items()}
    other["blocks.1.attention.qkv.weight"][2, 5] += 0.5
    found = matches(own, other)
    changed = by_b(found, "blocks.1.attention.qkv.weight")
    assert changed.state == "changed"
    assert "1 of 432 numbers differ, by up to 0.5" in changed.text
    assert sum(match.state != "same" for match in found) == 1


def test_wrappers_of_names_are_dropped() -> None:
    own = tensors(GPT)
    found = matches(own, {f"module._orig_mod.{name}": each for name, each in own.items()})
    assert {match.state for match in found} == {"same"}


def test_other_names_are_found_by_numbers() -> None:
    own = tensors(GPT)
    found = matches(own, {f"t{place}": each for place, each in enumerate(own.values())})
    assert {match.b: match.a for match in found} == {f"t{place}": name for place, name in enumerate(own)}
    assert {match.state for match in found} == {"same"}


def test_equal_numbers_in_several_tensors_go_by_their_names() -> None:
    own = {name: torch.ones_like(each) if "norm" in name else each for name, each in tensors(GPT).items()}
    found = matches(own, theirs(GPT, "gpt2", own))
    assert by_b(found, "transformer.h.1.ln_2.bias").a == "blocks.1.feedforward_norm.bias"
    assert by_b(found, "transformer.ln_f.weight").a == "norm.weight"


def test_gpt2_holds_ours_transposed() -> None:
    own = tensors(GPT)
    other = theirs(GPT, "gpt2", own)
    found = matches(own, other)
    assert {match.state for match in found} == {"same", "related"}
    assert {match.id for match in found if match.state == "related"} == {"weights.transposed"}
    made = related(own, other, found)
    assert made.keys() == other.keys()
    assert all(torch.equal(made[name], each) for name, each in other.items())


def test_neox_holds_q_k_and_v_by_head() -> None:
    own = tensors(GPT)
    found = matches(own, theirs(GPT, "gpt_neox", own), shapes=Shapes(heads=3, kv_heads=3, head_width=4, width=12))
    fused = by_b(found, "gpt_neox.layers.0.attention.query_key_value.weight")
    assert (fused.a, fused.id) == ("blocks.0.attention.qkv.weight", "qkv.layout")
    assert "3 heads of 4" in fused.text


def test_llamas_separate_q_k_and_v_are_parts_of_our_fused_one_and_back() -> None:
    own = tensors(LLAMA)
    other = theirs(LLAMA, "llama", own)
    for one, two in ((own, other), (other, own)):
        found = matches(one, two)
        assert {match.state for match in found} == {"same"}
        made = related(one, two, found)
        assert made.keys() == two.keys()
        assert all(torch.equal(made[name], each) for name, each in two.items())
    fused = by_b(matches(other, own), "blocks.0.attention.qkv.weight")
    assert fused.a.split(", ") == [f"model.layers.0.self_attn.{part}_proj.weight" for part in "qkv"]
    assert "A's 3" in fused.text


def test_parts_are_found_by_their_rows_where_names_say_nothing() -> None:
    own = tensors(LLAMA)
    q, k, v = torch.split(own["blocks.0.attention.qkv.weight"], [12, 4, 4])
    found = matches({"x": own["blocks.0.attention.qkv.weight"]}, {"z1": v, "z2": q, "z3": k})
    assert {match.b: match.recipe and match.recipe.pieces[0][1:] for match in found} == {
        "z1": (16, 20),
        "z2": (0, 12),
        "z3": (12, 16),
    }
    assert {match.state for match in found} == {"same"}


def test_other_training_of_the_same_model_is_paired_by_what_names_mean_and_changed() -> None:
    own, other = tensors(LLAMA), theirs(LLAMA, "llama", tensors(LLAMA, seed=5))
    found = matches(own, other)
    assert {match.state for match in found} == {"changed"}
    assert by_b(found, "model.layers.1.mlp.gate_proj.weight").a == "blocks.1.feedforward.gate.weight"
    assert by_b(found, "model.layers.1.self_attn.k_proj.weight").a == "blocks.1.attention.qkv.weight"
    assert not related(own, other, found)


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        ("layers.0.feed_forward.w1.weight layers.0.feed_forward.w2.weight", "up down"),
        ("layers.0.ffn.w1.weight layers.0.ffn.w2.weight layers.0.ffn.w3.weight", "gate down up"),
        ("blocks.0.norm1.weight blocks.0.norm2.weight", "norm.attention norm.feedforward"),
        ("d.0.norm1.weight d.0.norm2.weight d.0.norm3.weight", "norm.attention norm.cross norm.feedforward"),
        ("bert.encoder.layer.0.attention.output.dense.weight", "attention.output"),
        ("bert.encoder.layer.0.attention.output.LayerNorm.weight", "norm.attention"),
        ("bert.encoder.layer.0.output.dense.weight", "down"),
        ("bert.encoder.layer.0.output.LayerNorm.weight", "norm.feedforward"),
        ("blocks.0.attn.W_Q blocks.0.attn.b_Q blocks.0.attn.W_O", "q q attention.output"),
        ("h.0.attn.c_attn.weight h.0.attn.c_proj.weight h.0.mlp.c_proj.weight", "qkv attention.output down"),
        ("self_attn.in_proj_weight self_attn.out_proj.weight", "qkv attention.output"),
        ("token_embedding_table.weight position_embedding_table.weight", "embedding positions"),
        ("wte.weight wpe.weight ln_f.weight lm_head.weight", "embedding positions norm head"),
    ],
)
def test_what_names_say_that_a_tensor_is_for(names: str, parts: str) -> None:
    found = roles(names.split())
    assert [found[name].part for name in names.split()] == parts.split()


def test_exchanged_tensors_are_told() -> None:
    own = {"q.weight": torch.randn(4, 6), "k.weight": torch.randn(4, 6)}
    found = matches(own, {"q.weight": own["k.weight"], "k.weight": own["q.weight"]})
    assert [(match.state, match.id) for match in found] == [("related", "weights.exchanged")] * 2
    assert "k.weight" in by_b(found, "q.weight").text
    assert torch.equal(related(own, own, found)["q.weight"], own["k.weight"])


def test_missing_and_unexpected_and_what_is_tied() -> None:
    own = tensors(GPT)
    own["head.weight"] = own["embedding.weight"].clone()
    other = {name: each for name, each in own.items() if name not in ("head.weight", "norm.bias")}
    other["blocks.0.extra"] = torch.zeros(7, dtype=torch.float64)
    found = matches(own, other)
    rest = {match.a or match.b: (match.state, match.text) for match in found if match.state != "same"}
    assert rest.keys() == {"head.weight", "norm.bias", "blocks.0.extra"}
    assert rest["head.weight"][0] == "missing"
    assert "embedding.weight" in rest["head.weight"][1]
    assert rest["blocks.0.extra"] == ("unexpected", "all its numbers are 0")


def test_masks_and_tables_of_angles_are_told_from_weights() -> None:
    other = {
        "mask": torch.ones(5, 5).tril(),
        "bias": torch.full((1, 5, 5), -1e9).triu(1),
        "rotary.inv_freq": torch.rand(4),
    }
    texts = {match.b: match.text for match in matches({}, {**other, "weight": torch.rand(5, 5)})}
    assert "mask" in texts["mask"]
    assert "mask" in texts["bias"]
    assert "angles" in texts["rotary.inv_freq"]
    assert texts["weight"] == ""


def test_tensors_of_every_kind_and_size_are_taken() -> None:
    odd = {
        "empty": torch.zeros(0, 4),
        "none": torch.zeros(3, 0),
        "number": torch.tensor(3.0),
        "counted": torch.arange(5),
        "turns": torch.polar(torch.ones(3, 2), torch.rand(3, 2)),
        "seen": torch.ones(4, 4, dtype=torch.bool),
        "small": torch.randn(3, 4).bfloat16(),
        "broken": torch.full((2, 3), torch.nan),
    }
    found = matches(odd, {name: each.clone() for name, each in odd.items()})
    assert {match.a for match in found if match.state != "same"} <= {"broken"}
    others = {name: each.flip(0) if each.dim() else each + 1 for name, each in odd.items()}
    assert states(matches(odd, others))["counted"] == "changed"
    assert len(matches(odd, {})) == len(matches({}, odd)) == len(odd)


def test_names_that_are_given_come_first() -> None:
    own = {"x": torch.randn(5, 3), "y": torch.randn(5, 3)}
    found = matches(own, {"x": own["x"] + 1, "z": own["y"]}, names={"x": "z", "y": "x"})
    assert {match.b: match.recipe and match.recipe.names for match in found} != {}
    assert by_b(found, "z").id == "weights.exchanged"


def test_a_table_with_more_rows_is_the_same_one_padded() -> None:
    own = tensors(GPT)
    other = {**own, "embedding.weight": torch.cat([own["embedding.weight"], torch.zeros(9, 12, dtype=torch.float64)])}
    padded = by_b(matches(own, other), "embedding.weight")
    assert (padded.state, padded.id) == ("related", "weights.padded")


@pytest.mark.slow
def test_a_model_of_124_million_in_other_names_takes_seconds() -> None:
    config = DecoderConfig(vocab=50257, layers=12, heads=12, width=768, context=1024, qkv_bias=True, bias=True)
    model = own_tensors(build(config, seed=0))
    begun = time.perf_counter()
    found = matches(model, theirs(config, "gpt2", model), shapes=shapes_of(config))
    assert {match.state for match in found} == {"same", "related"}
    assert time.perf_counter() - begun < 60
