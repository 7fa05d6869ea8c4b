"""A gradient is that of the loss: finite differences and the readable kernel say the same, and nothing stays on the model."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from clearhead.messages import UserError
from clearhead.models import choices as c
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.tap import Ran
from clearhead.tracing import Edit, Editor, Recorder
from clearhead.tracing import gradients as gradients_of
from clearhead.tracing.gradients import Watch
from clearhead.tracing.names import axes_of
from clearhead.tracing.trace import input_of, run
from tests.equalities.variants import VARIANTS, ids_of, model_of, redrawn
from tests.oracles.compare import assert_same, assert_within

# The module: its name in the package is that of the function.
MODULE = importlib.import_module("clearhead.tracing.gradients")
IDS = ids_of(1, 7)[0].tolist()
PAIR = EncoderDecoderConfig(
    vocab=11,
    source_vocab=13,
    layers=2,
    encoder_layers=2,
    heads=4,
    kv_heads=2,
    width=24,
    feedforward_width=20,
    context=9,
)
SOURCE, TARGET = [3, 1, 12, 5, 0], [2, 7, 7, 4]


def loss(logits: Tensor) -> Tensor:
    """Not linear, and of all positions."""
    return logits.log_softmax(-1)[..., 3].square().mean() + logits[:, 2, 5]


def pair(kernel: c.Kernel = PAIR.kernel) -> EncoderDecoder:
    model = redrawn(build(replace(PAIR, kernel=kernel), seed=1))
    assert isinstance(model, EncoderDecoder)
    return model


def by_definition(variant: str, names: str = "*") -> dict[str, Tensor]:
    """Autograd through the kernel that shows everything."""
    recorder = Recorder(names, detach=False)
    computed = loss(model_of(replace(VARIANTS[variant], kernel=c.Visible()))(torch.tensor([IDS]), tap=recorder))
    found = torch.autograd.grad(computed, list(recorder.tensors.values()))
    return dict(zip(recorder.tensors, found, strict=True))


def check_definition(variant: str, kernel: c.Kernel) -> None:
    model = model_of(replace(VARIANTS[variant], kernel=kernel))
    wanted, found = by_definition(variant), gradients_of(model, IDS, loss)
    assert list(found) == list(wanted)
    for name, gradient in wanted.items():
        assert_within(found[name], gradient, 1e-10)
        assert gradient.abs().max() > 1e-6, f"{name} reaches the loss"


def slope(model: Decoder | EncoderDecoder, name: str, direction: Tensor, target: list[int] | None = None) -> float:
    """How the loss changes along a direction of one tensor: (loss(x + εu) - loss(x - εu)) / 2ε."""
    step, found = 1e-5, []
    for sign in (1, -1):
        edit = Edit(name, lambda _, part, move=sign * step: part + move * direction)
        read = input_of(model, IDS if target is None else SOURCE, target)
        with torch.no_grad():
            found.append(float(loss(run(model, read, Editor(edit)))))
    return (found[0] - found[1]) / (2 * step)


def check_slopes(model: Decoder | EncoderDecoder, names: str = "*", target: list[int] | None = None) -> None:
    found = gradients_of(model, IDS if target is None else SOURCE, loss, names=names, target=target)
    generator = torch.Generator().manual_seed(11)
    for name, gradient in found.items():
        direction = torch.randn(gradient.shape, dtype=torch.float64, generator=generator)
        wanted = slope(model, name, direction, target)
        assert float((gradient * direction).sum()) == pytest.approx(wanted, rel=1e-5, abs=1e-7), name


@pytest.mark.parametrize("kernel", [c.Fused(), c.Blockwise(block=4)], ids=["fused", "blockwise"])
@pytest.mark.parametrize("variant", ["rotary, fused", "ALiBi", "cycle", "rotary partial, parallel", "free head width"])
def test_gradients_of_every_kernel_are_those_of_the_definition(variant: str, kernel: c.Kernel) -> None:
    check_definition(variant, kernel)


@pytest.mark.parametrize("variant", ["rotary, fused", "sinusoidal, post-norm", "soft-cap", "sinks", "around, QK-norm"])
def test_gradients_are_slopes(variant: str) -> None:
    check_slopes(model_of(variant))


def test_gradients_of_an_encoder_decoder_are_slopes() -> None:
    found = gradients_of(pair(), SOURCE, loss, target=TARGET)
    assert {name.split(".")[0] for name in found} == {"encoder", "decoder"}
    check_slopes(pair(), target=TARGET)


@pytest.mark.parametrize("variant", ["rotary, fused", "learned"])
def test_some_heads_and_positions_are_the_part_of_the_whole(variant: str) -> None:
    model = model_of(variant)
    whole = gradients_of(model, IDS, loss)
    part = gradients_of(model, IDS, loss, heads={1: [3, 1]}, positions=[-1, 2])
    assert part.places("logits") == [6, 2]
    assert "blocks.1.attention.weights" in part
    for name, gradient in part.items():
        axes, wanted = axes_of(name), whole[name]
        if "H" in axes:
            assert name.startswith("blocks.1.")
            wanted = wanted[:, [3, 1]]
        if "T" in axes:
            wanted = wanted.index_select(axes.index("T"), torch.tensor([6, 2]))
        assert_within(gradient, wanted, 1e-12)


def test_a_trace_of_gradients_knows_tokens_and_differences() -> None:
    found = gradients_of(model_of("rotary, fused"), IDS, loss, names="*.attention.weights", heads={1: [2]})
    assert list(found) == ["blocks.1.attention.weights"]
    assert found.tokens == list(map(str, IDS))
    assert found["blocks.1.attention.weights"].shape == (1, 1, 7, 7)
    assert 0 <= found.differences["blocks.1.attention.weights"] < 1e-12
    assert not any(gradient.requires_grad for gradient in found.values())


def test_nothing_flows_from_the_future() -> None:
    found = gradients_of(model_of("rotary, fused"), IDS, lambda logits: logits[0, 3, 1])
    for name, gradient in found.items():
        later = gradient.index_select(axes_of(name).index("T"), torch.tensor([4, 5, 6]))
        assert later.abs().max() == 0, name
        assert gradient.abs().max() > 0, name
    hidden = torch.ones(7, 7).triu(1).bool()
    assert found["blocks.0.attention.scores"][..., hidden].abs().max() == 0


# --- the caller's own switches, and what may not stay


@pytest.mark.parametrize("names", ["*", "*.attention.weights", "logits", ["*.v", "*.scores"]])
def test_a_frozen_model_has_the_same_gradients(names: str | list[str]) -> None:
    for variant in ("rotary, fused", "sinusoidal halves", "learned"):
        free, frozen = model_of(variant), model_of(variant).requires_grad_(False)
        wanted, found = (gradients_of(model, IDS, loss, names=names) for model in (free, frozen))
        assert list(found) == list(wanted)
        for name, gradient in wanted.items():
            assert_within(found[name], gradient, 1e-13)
        assert not any(tensor.requires_grad for tensor in [*frozen.parameters(), *frozen.buffers()])


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_a_caller_without_gradients_gets_them(off: Callable[[], torch.no_grad | torch.inference_mode]) -> None:
    model = model_of("rotary, fused")
    with off():
        found = gradients_of(model, IDS, loss)
        assert not torch.is_grad_enabled()
    for name, gradient in gradients_of(model, IDS, loss).items():
        assert_same(found[name].clone(), gradient)


def test_nothing_stays_on_the_model() -> None:
    model = model_of("rotary, fused").train()
    first, second = list(model.parameters())[:2]
    first.grad = torch.full_like(first, 7.0)
    second.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    switches = [parameter.requires_grad for parameter in model.parameters()]
    gradients_of(model, IDS, loss)
    assert model.training
    assert [parameter.requires_grad for parameter in model.parameters()] == switches
    assert_same(first.grad, torch.full_like(first, 7.0))
    assert all(parameter.grad is None for parameter in model.parameters() if parameter is not first)
    assert not any(module._forward_hooks or module._backward_hooks for module in model.modules())
    for name, tensor in model.state_dict().items():
        assert_same(tensor, before[name])


def test_what_has_no_gradient() -> None:
    model = model_of("rotary, fused")
    with pytest.raises(UserError, match=r"\(1, 7\)"):
        gradients_of(model, IDS, lambda logits: logits[..., 0])
    for constant in (lambda logits: logits.detach().sum(), lambda logits: torch.tensor(1.0)):
        with pytest.raises(UserError, match="depends on no tensor"):
            gradients_of(model, IDS, constant)
    with pytest.raises(UserError, match="nothing_like_it"):
        gradients_of(model, IDS, loss, names="nothing_like_it")
    with pytest.raises(UserError, match="target="):
        gradients_of(pair(), SOURCE, loss)


# --- planted faults


class Beside(Watch):
    """Parts are copied out of the forward before the loss is known: the way to the loss does not lead through them."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        Recorder.__call__(self, name, tensor)
        return tensor


class Unmixed(Watch):
    """The weights that were computed again do not mix what the forward goes on with."""

    def attended(self, name: str, ran: Ran) -> Ran:
        super().attended(name, ran)
        return ran


class Shifted(Watch):
    """The next position's gradient."""

    def derivatives(self, loss: Tensor) -> dict[str, Tensor]:
        return {name: gradient.roll(1, -2) for name, gradient in super().derivatives(loss).items()}


def test_parts_beside_the_way_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "Watch", Beside)
    with pytest.raises(AssertionError):
        test_some_heads_and_positions_are_the_part_of_the_whole("learned")


@pytest.mark.parametrize("fault", [Unmixed, Shifted])
def test_wrong_gradients_are_found(monkeypatch: pytest.MonkeyPatch, fault: type[Watch]) -> None:
    monkeypatch.setattr(MODULE, "Watch", fault)
    with pytest.raises(AssertionError):
        check_definition("rotary, fused", c.Fused())
    with pytest.raises(AssertionError):
        check_slopes(model_of("rotary, fused"))


def test_a_model_that_drops_is_refused() -> None:
    """What is computed again drops nothing, so that the gradient would be of another forward."""
    model = model_of(replace(VARIANTS["rotary, fused"], dropout=0.5)).train()
    with pytest.raises(UserError, match="drops"):
        gradients_of(model, [1, 2, 3], lambda logits: logits.sum())
