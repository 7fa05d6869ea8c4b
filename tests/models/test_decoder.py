"""The decoder: no output sees the future, every output sees the past, and what does not fit is said in one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers import MultiHeadAttention
from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.ops import Padding, causal
from clearhead.ops.tap import Tap
from clearhead.tracing import Recorder
from tests.oracles import faulty_attention as faulty
from tests.oracles.compare import assert_same, assert_within
from tests.oracles.faulty_attention import Sound

V, B, T = 11, 2, 7
FIRST_CHANGED = [1, 3, T - 1]
CONFIGS = {
    f"{type(kernel).__name__}, {kv_heads} of 4 heads": DecoderConfig(
        vocab=V, layers=2, heads=4, kv_heads=kv_heads, width=12, context=9, kernel=kernel
    )
    for kernel in (kinds.Visible(), kinds.Fused())
    for kv_heads in (4, 2, 1)
}


class Leaf(Tap):
    """A tap that makes the input of the blocks a tensor to differentiate to."""

    def __init__(self) -> None:
        self.input: Tensor

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        if name != "input":
            return tensor
        self.input = tensor.detach().requires_grad_()
        return self.input

    def within(self, scope: str) -> Leaf:
        return self


def model_of(config: DecoderConfig, kernel: Sound | None = None) -> Decoder:
    """A float64 model with weights large enough that attention is far from uniform."""
    model = build(config, seed=0).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    if kernel is not None:
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                module.attend = kernel
    return model


def check_future(model: Decoder) -> None:
    """Other tokens from position t on do not move a bit of what stands before t; and what stands at t moves."""
    ids = torch.randint(V, (B, T))
    logits = model(ids)
    for t in FIRST_CHANGED:
        changed = ids.clone()
        changed[:, t:] = (changed[:, t:] + 1) % V
        again = model(changed)
        assert_same(again[:, :t], logits[:, :t])
        assert bool((again[:, t:] != logits[:, t:]).any(-1).all())


def check_gradients(model: Decoder) -> None:
    """The gradient of position t to the input at s is exactly 0 for s > t, and not 0 for every s <= t."""
    leaf = Leaf()
    logits = model(torch.randint(V, (B, T)), tap=leaf)
    weights = torch.randn(B, V, dtype=torch.float64)
    for t in range(T):
        (gradient,) = torch.autograd.grad((logits[:, t] * weights).sum(), leaf.input, retain_graph=True)
        reached = (gradient != 0).any(-1)
        assert reached.tolist() == [[s <= t for s in range(T)]] * B


@pytest.mark.parametrize("name", CONFIGS)
def test_no_output_depends_on_the_future(name: str) -> None:
    check_future(model_of(CONFIGS[name]))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_output_depends_on_all_of_its_past_and_on_nothing_else(name: str) -> None:
    check_gradients(model_of(CONFIGS[name]))


@pytest.mark.parametrize("kind", [faulty.NoMask, faulty.MaskAfterSoftmax, faulty.MaskReversed])
def test_a_kernel_that_sees_the_future_is_caught(kind: type[Sound]) -> None:
    """A mask after the softmax leaks through the sum in the denominator."""
    with pytest.raises(AssertionError):
        check_future(model_of(CONFIGS["Visible, 2 of 4 heads"], kind()))


@pytest.mark.parametrize("kind", [faulty.SelfOnly, faulty.NoMask, faulty.MaskAfterSoftmax])
def test_a_kernel_that_sees_too_little_or_too_much_is_caught(kind: type[Sound]) -> None:
    check_gradients(model_of(CONFIGS["Visible, 2 of 4 heads"], Sound()))
    with pytest.raises(AssertionError):
        check_gradients(model_of(CONFIGS["Visible, 2 of 4 heads"], kind()))


def check_self(model: Decoder) -> None:
    """Each position gives its own key a weight; the residual hides from other probes if it does not."""
    recorder = Recorder("*.weights")
    model(torch.randint(V, (B, T)), tap=recorder)
    assert len(recorder.tensors) == len(model.blocks)
    for weights in recorder.tensors.values():
        assert bool((weights.diagonal(dim1=-2, dim2=-1) > 0).all())


def test_every_position_looks_at_itself() -> None:
    check_self(model_of(CONFIGS["Visible, 2 of 4 heads"]))


def test_a_position_that_does_not_look_at_itself_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_self(model_of(CONFIGS["Visible, 2 of 4 heads"], faulty.StrictTriangle()))


def test_both_kernels_give_the_same_logits_and_gradients() -> None:
    for kv_heads in (4, 2, 1):
        visible, fused = (model_of(CONFIGS[f"{kernel}, {kv_heads} of 4 heads"]) for kernel in ("Visible", "Fused"))
        fused.load_state_dict(visible.state_dict())
        ids = torch.randint(V, (B, T))
        results = []
        for model in (visible, fused):
            logits = model(ids)
            logits.logsumexp(-1).sum().backward()
            results.append((logits.detach(), {name: p.grad for name, p in model.named_parameters()}))
        assert_within(results[0][0], results[1][0], 1e-11)
        for name, gradient in results[0][1].items():
            assert gradient is not None
            other = results[1][1][name]
            assert other is not None
            assert_within(gradient, other, 1e-10)


def check_padding(forward: Callable[[Tensor, Padding], Tensor]) -> None:
    """The content of padded places moves no real position, wherever they stand; without padding it does."""
    ids = torch.randint(V, (B, T))
    for real in (torch.arange(T) < torch.tensor([[T], [4]]), torch.arange(T) >= torch.tensor([[2], [3]])):
        other = torch.where(real, ids, (ids + 1) % V)
        assert_same(forward(ids, Padding(real))[real], forward(other, Padding(real))[real])
    nothing_hidden = Padding(torch.ones_like(real))
    assert not forward(ids, nothing_hidden)[real].equal(forward(other, nothing_hidden)[real])


@pytest.mark.parametrize("name", CONFIGS)
def test_what_stands_in_padding_does_not_matter(name: str) -> None:
    model = model_of(CONFIGS[name])
    check_padding(lambda ids, padding: model(ids, visible=padding))
    ids = torch.randint(V, (B, T))
    padded = model(ids, visible=Padding(torch.arange(T) < torch.tensor([[T], [4]])))
    assert_within(padded[1:, :4], model(ids[1:, :4]), 1e-12)


@pytest.mark.parametrize("fault", ["ignored", "reversed"])
def test_padding_that_is_ignored_or_reversed_is_caught(fault: str) -> None:
    model = model_of(CONFIGS["Visible, 2 of 4 heads"])

    def forward(ids: Tensor, padding: Padding) -> Tensor:
        return model(ids) if fault == "ignored" else model(ids, visible=Padding(~padding.real))

    with pytest.raises(AssertionError):
        check_padding(forward)


def test_a_row_alone_is_the_row_in_a_batch() -> None:
    for config in CONFIGS.values():
        model = model_of(config)
        ids = torch.randint(V, (3, T))
        together = model(ids)
        for row in range(3):
            assert_within(model(ids[[row]]), together[[row]], 1e-12)


def test_a_shorter_input_is_a_prefix() -> None:
    for config in CONFIGS.values():
        model = model_of(config)
        ids = torch.randint(V, (B, T))
        for length in range(1, T):
            assert_within(model(ids[:, :length]), model(ids)[:, :length], 1e-12)


def test_the_model_is_its_equation() -> None:
    """head(norm(block₂(block₁(E[ids] + P)))), positions added once."""
    model = model_of(CONFIGS["Visible, 2 of 4 heads"])
    ids = torch.randint(V, (B, T))
    x = model.embedding.weight[ids] + model.positions.table[:T]
    for block in model.blocks:
        x = block(x, causal(T))
    assert_within(model(ids), model.norm(x) @ model.embedding.weight.T, 1e-12)


@pytest.mark.parametrize("wrong", [V, -1, 99])
def test_an_id_outside_the_vocabulary_is_one_line_with_both_numbers(wrong: int) -> None:
    with pytest.raises(UserError, match=rf"^token id {wrong} is outside the vocabulary of {V};[^\n]*$"):
        build(CONFIGS["Fused, 2 of 4 heads"])(torch.tensor([[0, wrong]]))


def test_more_positions_than_the_context_is_one_line_with_both_numbers() -> None:
    model = build(CONFIGS["Fused, 2 of 4 heads"])
    assert model(torch.zeros(1, 9, dtype=torch.long)).shape == (1, 9, V)
    with pytest.raises(UserError, match=r"^10 positions do not fit the model's context of 9;[^\n]*$"):
        model(torch.zeros(1, 10, dtype=torch.long))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_forward_on_meta_runs(name: str) -> None:
    """Nothing is made on a device of its own choice."""
    model = build(CONFIGS[name], device="meta")
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    logits = model(torch.zeros(B, T, dtype=torch.long, device="meta"))
    assert (logits.device.type, tuple(logits.shape)) == ("meta", (B, T, V))


@pytest.mark.parametrize("name", CONFIGS)
def test_evaluation_is_equal_to_the_bit_and_training_drops(name: str) -> None:
    config = CONFIGS[name]
    dropping = build(DecoderConfig(**{**vars(config), "dropout": 0.3}), seed=0)
    without = build(config, seed=0)
    ids = torch.randint(V, (B, T))
    assert not dropping.train()(ids).equal(dropping(ids))
    evaluated = dropping.eval()(ids)
    assert_same(dropping(ids), evaluated)
    assert_same(without.train()(ids), evaluated)


def test_the_sum_of_embedding_and_position_is_dropped_too() -> None:
    model = build(DecoderConfig(vocab=V, layers=1, heads=4, width=12, context=9, dropout=0.3), seed=0)
    recorder = Recorder()
    model(torch.randint(V, (B, T)), tap=recorder)
    seen = recorder.tensors
    kept = seen["input"] != 0
    assert not kept.all()
    torch.testing.assert_close(seen["input"][kept], ((seen["embedding"] + seen["positions"]) / 0.7)[kept])
