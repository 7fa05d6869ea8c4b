"""Which linear layers learn at low rank: nothing changes at the start, the rest stays as it is, and folded it is the plain model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers.lora import LowRankLinear
from clearhead.messages import UserError
from clearhead.models.adapt import adapt, fold, frozen_tensors, targets_of
from clearhead.models.build import build
from clearhead.models.choices import Mean, Parallel, Pooled, PostNorm, RMSNorm, Rotary, SwiGLU
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.low_rank import TARGETS, LowRank, low_rank_of
from clearhead.tracing import Recorder
from clearhead.tracing.parts import head_shares
from tests.oracles.compare import assert_same, assert_within

B, T, M = 2, 5, 7
DECODER = DecoderConfig(vocab=11, layers=2, heads=4, width=12, context=9)
LLAMA = replace(
    DECODER, kv_heads=2, activation=SwiGLU(), norm=RMSNorm(), positions=Rotary(), tied=False, bias=True, qkv_bias=True
)
CONFIGS: dict[str, ModelConfig] = {
    "gpt-2": DECODER,
    "llama": LLAMA,
    "parallel": replace(DECODER, block=Parallel(shared=True), sinks=True),
    "masked tokens": EncoderConfig(vocab=11, layers=2, heads=4, width=12, context=9),
    "sentences": EncoderConfig(vocab=11, layers=1, heads=2, width=12, context=9, head=Pooled(Mean(), dense=True)),
    "encoder-decoder": EncoderDecoderConfig(vocab=11, layers=2, heads=4, width=12, context=9, block=PostNorm()),
}
LOW_RANK = LowRank(3, 6.0)
IN_BLOCK = ["attention.qkv", "attention.output", "feedforward.up", "feedforward.down"]


def model_of(config: ModelConfig) -> nn.Module:
    return build(config, seed=1).double().eval()


def moved(model: nn.Module) -> nn.Module:
    """The adapted model as after some training."""
    torch.manual_seed(2)
    for name, parameter in model.named_parameters():
        if name.endswith("lora_b"):
            nn.init.normal_(parameter, std=0.3)
    return model


def output(model: nn.Module, config: ModelConfig) -> Tensor:
    torch.manual_seed(3)
    ids, source = torch.randint(11, (B, T)), torch.randint(11, (B, M))
    made: Tensor = model(source, ids) if isinstance(config, EncoderDecoderConfig) else model(ids)
    return made.detach()


def adapted(config: ModelConfig, low_rank: LowRank = LOW_RANK) -> nn.Module:
    model = model_of(config)
    adapt(model, low_rank, seed=0)
    return model


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_nothing_changes_at_the_start(config: ModelConfig) -> None:
    model = adapted(config)
    assert_same(output(model, config), output(model_of(config), config))
    with pytest.raises(AssertionError):
        assert_same(output(moved(model), config), output(model_of(config), config))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_folded_it_is_the_plain_model_with_the_same_outputs(config: ModelConfig) -> None:
    model = moved(adapted(config))
    wanted, plain = output(model, config), model_of(config)
    fold(model)
    assert list(model.state_dict()) == list(plain.state_dict())
    assert [str(each) for each in model.modules()] == [str(each) for each in plain.modules()]
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert not any(module.training for module in model.modules())
    assert_within(output(model, config), wanted, 1e-12)


def test_a_change_that_is_scaled_wrongly_would_be_found() -> None:
    """The planted fault: folding forgets α/r."""
    model = moved(adapted(DECODER))
    wanted = output(model, DECODER)
    for module in model.modules():
        if isinstance(module, LowRankLinear):
            module.scale = 1.0
    fold(model)
    with pytest.raises(AssertionError):
        assert_within(output(model, DECODER), wanted, 1e-12)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_changes_alone_have_a_gradient(config: ModelConfig) -> None:
    model = moved(adapted(config))
    torch.manual_seed(3)
    ids = torch.randint(11, (B, T))
    made = model(ids, ids) if isinstance(config, EncoderDecoderConfig) else model(ids)
    (made * torch.randn_like(made)).sum().backward()
    with_gradient = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert with_gradient == {name for name, _ in model.named_parameters() if "lora_" in name}
    assert with_gradient
    assert all(bool(p.grad.abs().sum() > 0) for p in model.parameters() if p.grad is not None)


def test_the_usual_targets_are_all_linear_layers_of_the_blocks() -> None:
    for config in CONFIGS.values():
        model = build(config)
        linear = {name for name, each in model.named_modules() if isinstance(each, nn.Linear)}
        assert set(targets_of(model, LOW_RANK)) == {name for name in linear if "blocks." in name}
    assert list(targets_of(build(DECODER), LOW_RANK)) == [
        f"blocks.{block}.{name}" for block in range(2) for name in IN_BLOCK
    ]


@pytest.mark.parametrize(
    ("targets", "wanted"),
    [
        (("*attention.qkv",), ["blocks.0.attention.qkv", "blocks.1.attention.qkv"]),
        (("blocks.1.*",), [f"blocks.1.{name}" for name in IN_BLOCK]),
        (("blocks.1.*.up", "blocks.0.*.output"), ["blocks.0.attention.output", "blocks.1.feedforward.up"]),
        (("*qkv", "*.attention.qkv"), ["blocks.0.attention.qkv", "blocks.1.attention.qkv"]),
    ],
)
def test_targets_are_patterns(targets: tuple[str, ...], wanted: list[str]) -> None:
    model = adapted(DECODER, LowRank(2, targets=targets))
    assert [name for name, each in model.named_modules() if isinstance(each, LowRankLinear)] == wanted
    sizes = [tuple(parameter.shape) for parameter in model.parameters() if parameter.requires_grad]
    assert len(sizes) == 2 * len(wanted)
    assert all(2 in size for size in sizes)


@pytest.mark.parametrize("pattern", ["*.query", "attention", "blocks.2.*", "embedding", "norm"])
def test_a_pattern_without_a_layer_is_refused(pattern: str) -> None:
    with pytest.raises(UserError) as error:
        adapt(model_of(DECODER), LowRank(2, targets=(TARGETS[0], pattern)))
    line = str(error.value)
    assert pattern in line
    assert line.endswith(
        "there are blocks.*.attention.qkv blocks.*.attention.output blocks.*.feedforward.up blocks.*.feedforward.down head"
    )


@pytest.mark.parametrize("pattern", ["head", "*"])
def test_a_tied_head_is_refused_and_an_untied_one_is_not(pattern: str) -> None:
    model = model_of(DECODER)
    with pytest.raises(UserError, match="head shares its weight"):
        adapt(model, LowRank(2, targets=(pattern,)))
    assert all(parameter.requires_grad for parameter in model.parameters()), "refused before anything is changed"
    assert "head" in dict(adapted(LLAMA, LowRank(2, targets=(pattern,))).named_modules())
    assert_within(output(adapted(LLAMA, LowRank(2, targets=(pattern,))), LLAMA), output(model_of(LLAMA), LLAMA), 0.0)


def test_dropout_where_parts_of_a_weight_are_read_is_refused() -> None:
    config = CONFIGS["encoder-decoder"]
    with pytest.raises(UserError, match=r"decoder\.blocks\.0\.cross_attention\.qkv"):
        adapt(model_of(config), replace(LOW_RANK, dropout=0.1))
    others = ("*.attention.*", "*cross_attention.output", "*feedforward.*")
    model = adapted(config, replace(LOW_RANK, dropout=0.1, targets=others))
    assert {each.dropout.p for each in model.modules() if isinstance(each, LowRankLinear)} == {0.1}


def test_what_is_frozen_has_its_plain_name() -> None:
    for config in CONFIGS.values():
        plain = dict(model_of(config).named_parameters())
        frozen = frozen_tensors(adapted(config))
        assert frozen.keys() == plain.keys()
        assert all(torch.equal(frozen[name], plain[name]) for name in plain)
    assert frozen_tensors(model_of(DECODER)) == {}


def test_a_part_called_base_keeps_its_name() -> None:
    model = nn.ModuleDict({"base": nn.Linear(3, 5), "attention": nn.ModuleDict({"base": nn.Linear(5, 2)})})
    adapt(model, LowRank(2, targets=("attention.*",)))
    assert list(frozen_tensors(model)) == ["base.weight", "base.bias", "attention.base.weight", "attention.base.bias"]


def test_the_seed_is_the_matrices_a_and_leaves_the_process_as_it_was() -> None:
    before = torch.get_rng_state()
    first, second, other = adapted(DECODER), adapted(DECODER), model_of(DECODER)
    adapt(other, LOW_RANK, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    name = "blocks.1.attention.qkv.lora_a"
    assert torch.equal(first.get_parameter(name), second.get_parameter(name))
    assert not torch.equal(first.get_parameter(name), other.get_parameter(name))
    drawn = [p for n, p in first.named_parameters() if n.endswith("qkv.lora_a")]
    assert not torch.equal(drawn[0], drawn[1])


def test_a_change_of_a_changed_layer_folds_too() -> None:
    model = moved(adapted(DECODER))
    adapt(model, LowRank(2, targets=("*.qkv.base",)), seed=4)
    wanted = output(moved(model), DECODER)
    fold(model)
    assert list(model.state_dict()) == list(model_of(DECODER).state_dict())
    assert_within(output(model, DECODER), wanted, 1e-12)


def kept(model: nn.Module) -> dict[str, Tensor]:
    recorder = Recorder("*")
    with torch.no_grad():
        model(torch.arange(T)[None], tap=recorder)
    return recorder.tensors


def test_a_tap_sees_the_same_names_and_the_heads_add_up() -> None:
    """What reads the weights of attention reads the changed ones."""
    model = moved(adapted(DECODER))
    seen = kept(model)
    attention: Any = model.get_submodule("blocks.0.attention")
    shares = head_shares(attention, seen["blocks.0.attention.mixed"]).sum(1)
    assert_within(shares.detach(), seen["blocks.0.attention.output"], 1e-12)
    fold(model)
    plain = kept(model)
    assert seen.keys() == plain.keys()
    for name, tensor in seen.items():
        assert_within(tensor, plain[name], 1e-12)


# --- the value itself


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: LowRank(0), "lora.rank = 0"),
        (lambda: LowRank(2.5), "LowRank.rank = 2.5"),  # type: ignore[arg-type]
        (lambda: LowRank(True), "LowRank.rank = True"),
        (lambda: LowRank(2, 0.0), "lora.alpha = 0.0"),
        (lambda: LowRank(2, float("nan")), "lora.alpha = nan"),
        (lambda: LowRank(2, dropout=1.0), "lora.dropout = 1.0"),
        (lambda: LowRank(2, dropout=-0.1), "lora.dropout = -0.1"),
        (lambda: LowRank(2, targets=()), "lora.targets is empty"),
        (lambda: LowRank(2, targets=("",)), "lora.targets is empty"),
        (lambda: LowRank(2, targets="*.qkv,"), "lora.targets is empty"),
        (lambda: LowRank(2, targets=3), "LowRank.targets = 3"),  # type: ignore[arg-type]
    ],
)
def test_a_value_out_of_range_is_one_line(make: Callable[[], LowRank], named: str) -> None:
    with pytest.raises(UserError) as error:
        make()
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_without_alpha_the_change_is_not_scaled() -> None:
    assert LowRank(8).scaled_by == 8.0
    assert LowRank(8, 2).scaled_by == 2
    scales = {each.scale for each in adapted(DECODER, LowRank(4)).modules() if isinstance(each, LowRankLinear)}
    assert scales == {1.0}
    assert {each.scale for each in adapted(DECODER).modules() if isinstance(each, LowRankLinear)} == {2.0}


def test_plain_data_and_back() -> None:
    value = LowRank(3, 6.0, ("*qkv",), 0.1)
    assert value.to_plain() == {"rank": 3, "alpha": 6.0, "targets": ["*qkv"], "dropout": 0.1}
    assert low_rank_of(value.to_plain()) == value
    assert low_rank_of(LowRank(3).to_plain()) == LowRank(3, 3.0)


@pytest.mark.parametrize(
    "plain",
    [
        None,
        7,
        [],
        {},
        {"rank": 3},
        {"rank": 3, "targets": "*"},
        {"targets": ["*"]},
        {"rank": 3, "targets": ["*"], "r": 1},
    ],
)
def test_what_is_no_such_value_is_one_line(plain: object) -> None:
    with pytest.raises(UserError, match=r"config\.json") as error:
        low_rank_of(plain)
    assert "\n" not in str(error.value)


def test_the_value_needs_no_torch() -> None:
    code = "import sys; from clearhead.models.low_rank import LowRank; LowRank(2); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_patterns_may_be_written_with_commas_between_them() -> None:
    assert LowRank(2, targets="*.qkv, *.up").patterns == LowRank(2, targets=("*.qkv", "*.up")).patterns
    assert low_rank_of(LowRank(2, targets="[*.qkv]").to_plain()).patterns == ("*.qkv",)
