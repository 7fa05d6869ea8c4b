"""Heads in parallel equal a list of heads, one after the other, with the same weights; in float64.

Adding the same numbers in another order changes the last bit, and a matrix product chooses its order by the shapes: a
projection to 72 features need not round like three projections to 8. So "exactly equal" is asked where order plays no
role: with weights and inputs of few bits every product and every sum of the projections is exact, however it is
computed. What is left (scores, softmax, mixing, output) both forms then compute from the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.layers import MultiHeadAttention
from clearhead.ops import Attend, attend_fused, attend_visible, causal, merge_heads, split_heads
from clearhead.tracing import Recorder
from tests.oracles import faulty_attention as faulty
from tests.oracles.compare import assert_same, assert_within
from tests.oracles.faulty_attention import Sound, name_of
from tests.oracles.list_of_heads import list_of_heads

KERNELS = [attend_visible, attend_fused]
# (B, T, D, H, K): the two tables of the notes, and grouped heads.
NOTES = [(2, 5, 24, 3, 3), (2, 4, 8, 2, 2)]
GROUPED = [(2, 5, 24, 3, 1), (3, 7, 40, 4, 2)]
WIDE = [(2, 7, 256, 8, 8), (2, 33, 256, 8, 8), (2, 7, 256, 8, 2)]
Sizes = tuple[int, int, int, int, int]


def parallel(sizes: Sizes, *, bias: bool, attend: Attend = attend_visible) -> tuple[MultiHeadAttention, Tensor]:
    """A layer and an input for it, in float64."""
    B, T, D, H, K = sizes
    layer = MultiHeadAttention(D, H, K, D // H, bias=bias, output_bias=bias, attend=attend).double()
    return layer, torch.randn(B, T, D, dtype=torch.float64)


def few_bits(x: Tensor) -> Tensor:
    """The nearest multiple of 1/256: products and sums of a few hundred such numbers are exact in float64."""
    return (x * 256).round() / 256


def difference(layer: MultiHeadAttention, x: Tensor) -> float:
    """The largest difference between the layer and its list of heads."""
    T = x.shape[1]
    with torch.no_grad():
        ours, theirs = layer(x, causal(T)), list_of_heads(layer, T)(x)
    assert ours.shape == theirs.shape == x.shape
    return (ours - theirs).abs().max().item()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sizes", [*NOTES, *GROUPED, *WIDE], ids=str)
def test_parallel_heads_are_the_list_of_heads_exactly(sizes: Sizes, bias: bool) -> None:
    """Difference 0, not nearly 0."""
    for seed in range(10):
        torch.manual_seed(seed)
        layer, x = parallel(sizes, bias=bias)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(few_bits(parameter))
        assert difference(layer, few_bits(x)) == 0


@pytest.mark.parametrize("attend", KERNELS, ids=name_of)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("sizes", "within"), [*((s, 2e-15) for s in NOTES + GROUPED), *((s, 1e-14) for s in WIDE)])
def test_parallel_heads_are_the_list_of_heads_with_any_weights(
    sizes: Sizes, within: float, bias: bool, attend: Attend
) -> None:
    for seed in range(10):
        torch.manual_seed(seed)
        layer, x = parallel(sizes, bias=bias, attend=attend)
        assert difference(layer, x) <= within


@pytest.mark.parametrize("sizes", [*NOTES, *GROUPED, *WIDE], ids=str)
def test_heads_as_an_axis_are_heads_in_a_loop_exactly(sizes: Sizes) -> None:
    """The head axis is a second batch axis and nothing more: q and k of few bits (exact scores), any v."""
    B, T, D, H, K = sizes
    q, k = (few_bits(torch.randn(B, heads, T, D // H, dtype=torch.float64)) for heads in (H, K))
    v = torch.randn(B, K, T, D // H, dtype=torch.float64)
    shared = [h // (H // K) for h in range(H)]
    looped = [attend_visible(q[:, [h]], k[:, [shared[h]]], v[:, [shared[h]]], causal(T)) for h in range(H)]
    assert_same(torch.cat(looped, 1), attend_visible(q, k, v, causal(T)))


@pytest.mark.parametrize(
    "kind",
    [
        faulty.NoScale,
        faulty.ScaledByLength,
        faulty.MaskAfterSoftmax,
        faulty.NoMask,
        faulty.StrictTriangle,
        faulty.SelfOnly,
        faulty.SoftmaxOverQueries,
        faulty.HeadsTiled,
    ],
)
def test_the_list_of_heads_catches_a_faulty_kernel(kind: type[Sound]) -> None:
    assert difference(*parallel(GROUPED[1], bias=True, attend=Sound())) <= 2e-15
    assert difference(*parallel(GROUPED[1], bias=True, attend=kind())) > 1e-3


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        ("split_heads", lambda x, heads: x.reshape(x.shape[0], heads, x.shape[1], -1)),
        ("split_heads", lambda x, heads: x.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)),
        ("merge_heads", lambda x: x.reshape(x.shape[0], x.shape[2], -1)),
    ],
    ids=["split by view", "features interleaved", "merged by view"],
)
def test_the_list_of_heads_catches_axes_that_only_fit(
    monkeypatch: pytest.MonkeyPatch, function: str, fault: Callable[..., Tensor]
) -> None:
    monkeypatch.setattr(f"clearhead.layers.attention.{function}", fault)
    assert difference(*parallel(NOTES[0], bias=True)) > 1e-3


@pytest.mark.parametrize("part", ["qkv order", "no output projection", "output twice"])
def test_the_list_of_heads_catches_wrong_projections(part: str) -> None:
    class Faulty(MultiHeadAttention):
        def forward(self, x: Tensor, visible: object, **_: object) -> Tensor:
            q, k, v = self.qkv(x).split(self.sizes, dim=-1)
            q, k, v = (k, q, v) if part == "qkv order" else (q, k, v)
            q, k, v = split_heads(q, self.heads), split_heads(k, self.kv_heads), split_heads(v, self.kv_heads)
            mixed = merge_heads(self.attend(q, k, v, visible))
            times = {"qkv order": 1, "no output projection": 0, "output twice": 2}[part]
            for _ in range(times):
                mixed = self.output(mixed)
            return mixed

    B, T, D, H, K = NOTES[0]
    layer = Faulty(D, H, K, D // H, attend=attend_visible).double()
    assert difference(layer, torch.randn(B, T, D, dtype=torch.float64)) > 1e-3


@pytest.mark.parametrize("attend", KERNELS, ids=name_of)
@pytest.mark.parametrize("sizes", [*NOTES, *WIDE[:2]], ids=str)
def test_the_layer_equals_pytorch_s_kernel_on_its_own_weights(sizes: Sizes, attend: Attend) -> None:
    """As the manuals of `linear` and `scaled_dot_product_attention` say, with three separate projections."""
    layer, x = parallel(sizes, bias=True, attend=attend)
    B, T, D, H, _ = sizes
    q, k, v = (
        F.linear(x, w, b).view(B, T, H, D // H).transpose(1, 2)
        for w, b in zip(layer.qkv.weight.chunk(3), layer.qkv.bias.chunk(3), strict=True)
    )
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D)
    assert_within(layer(x, causal(T)), F.linear(mixed, layer.output.weight, layer.output.bias), 1e-12)


def test_the_layer_equals_pytorch_s_own_multi_head_attention() -> None:
    layer, x = parallel(NOTES[0], bias=True)
    _, T, D, H, _ = NOTES[0]
    theirs = torch.nn.MultiheadAttention(D, H, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(layer.qkv.weight)
        theirs.in_proj_bias.copy_(layer.qkv.bias)
        theirs.out_proj.load_state_dict(layer.output.state_dict())
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    expected, weights = theirs(x, x, x, attn_mask=future, average_attn_weights=False)
    recorder = Recorder()
    assert_within(layer(x, causal(T), tap=recorder), expected, 1e-12)
    assert_within(recorder.tensors["weights"], weights, 1e-12)


@pytest.mark.parametrize(("B", "T", "D", "H", "d"), [(2, 5, 24, 3, 8), (2, 4, 8, 2, 4)])
def test_the_shapes_of_the_notes_tables(B: int, T: int, D: int, H: int, d: int) -> None:
    """Projection, three parts, heads split and moved, scores, weights, mixture, output."""
    layer = MultiHeadAttention(D, H, H, d, attend=attend_visible)
    fused = []
    layer.qkv.register_forward_hook(lambda module, inputs, output: fused.append(output))
    joined = []
    layer.output.register_forward_hook(lambda module, inputs, output: joined.append(inputs[0]))
    recorder = Recorder()
    x = torch.randn(B, T, D)
    output = layer(x, causal(T), tap=recorder)
    assert fused[0].shape == (B, T, 3 * D)
    assert [tuple(part.shape) for part in fused[0].split(layer.sizes, -1)] == [(B, T, D)] * 3
    assert {name: tuple(tensor.shape) for name, tensor in recorder.tensors.items()} == {
        "q": (B, H, T, d),
        "k": (B, H, T, d),
        "v": (B, H, T, d),
        "scores": (B, H, T, T),
        "weights": (B, H, T, T),
        "mixed": (B, H, T, d),
        "output": (B, T, D),
    }
    assert joined[0].shape == output.shape == (B, T, D)


def test_what_a_tap_sees_is_what_the_layer_computes() -> None:
    """q, k and v are the features of the fused projection in that order; the mixture is the weights times v."""
    layer, x = parallel(GROUPED[1], bias=True)
    _, T, D, H, K = GROUPED[1]
    d = D // H
    recorder = Recorder()
    output = layer(x, causal(T), tap=recorder)
    seen = recorder.tensors
    projected = layer.qkv(x)
    assert_same(seen["q"][:, 1], projected[..., d : 2 * d].detach())
    assert_same(seen["k"][:, K - 1], projected[..., (H + K - 1) * d : (H + K) * d].detach())
    assert_same(seen["v"][:, 0], projected[..., (H + K) * d : (H + K + 1) * d].detach())
    assert_within(seen["mixed"][:, 3], (seen["weights"][:, 3] @ seen["v"][:, 1]), 1e-14)
    assert_same(seen["output"], output.detach())
