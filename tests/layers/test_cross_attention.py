"""Attention to another sequence: its equation with loops, PyTorch's layer, and itself where both sequences are one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.layers import Memory, MultiHeadAttention, RMSNorm
from clearhead.ops import EVERYTHING, Attend, Mask, Padding, attend_blockwise, attend_fused, attend_visible
from clearhead.tracing import Recorder
from tests.oracles import numpy_attention
from tests.oracles.compare import assert_finite, assert_same, assert_within
from tests.oracles.faulty_attention import name_of

B, T, M, D, H, K, d = 2, 3, 5, 14, 4, 2, 6
REAL = torch.tensor([[True, True, True, False, False], [False, True, True, True, True]])
KERNELS = [attend_visible, attend_fused, attend_blockwise]


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def layer_of(
    kind: type[MultiHeadAttention] = MultiHeadAttention,
    *,
    kv_heads: int = K,
    bias: bool = True,
    qk_norm: bool = True,
    attend: Attend = attend_visible,
    scale: float | None = None,
) -> MultiHeadAttention:
    """A layer with every weight random, in float64; H·d is not D."""
    norms = [RMSNorm(d) if qk_norm else None for _ in range(2)]
    layer = kind(
        D, H, kv_heads, d, bias=bias, output_bias=bias, attend=attend, scale=scale, q_norm=norms[0], k_norm=norms[1]
    )
    for parameter in layer.double().parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def asked(layer: MultiHeadAttention, x: Tensor, memory: Tensor, visible: Mask = EVERYTHING) -> Tensor:
    return layer.across(x, Memory(*layer.keys_values(memory), visible))


def normed(x: Tensor, norm: nn.Module) -> Tensor:
    if isinstance(norm, nn.Identity):
        return x
    return x / (x.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight


def with_loops(layer: MultiHeadAttention, x: Tensor, memory: Tensor, real: Tensor) -> Tensor:
    """Each head with its own rows of the projection, then one number at a time, then the rows of the output."""
    kv_heads, (W, b) = layer.kv_heads, (layer.qkv.weight, layer.qkv.bias)
    b = torch.zeros(len(W), dtype=W.dtype) if b is None else b

    def head(of: Tensor, index: int) -> Tensor:
        return of @ W[index * d : (index + 1) * d].T + b[index * d : (index + 1) * d]

    q = torch.stack([normed(head(x, h), layer.q_norm) for h in range(H)], 1)
    k = torch.stack([normed(head(memory, H + h), layer.k_norm) for h in range(kv_heads)], 1)
    v = torch.stack([head(memory, H + kv_heads + h) for h in range(kv_heads)], 1)
    allowed = np.broadcast_to(real.numpy()[:, None, None, :], (len(x), H, x.shape[1], memory.shape[1]))
    mixed = torch.from_numpy(
        numpy_attention.attention(*(part.detach().numpy() for part in (q, k, v)), allowed, scale=layer.scale)
    )
    output = sum(mixed[:, h] @ layer.output.weight[:, h * d : (h + 1) * d].T for h in range(H))
    assert isinstance(output, Tensor)
    return output if layer.output.bias is None else output + layer.output.bias


def check_loops(layer: MultiHeadAttention) -> None:
    x, memory = random(B, T, D), random(B, M, D)
    with torch.no_grad():
        assert_within(asked(layer, x, memory, Padding(REAL)), with_loops(layer, x, memory, REAL), 1e-12)


def check_itself(layer: MultiHeadAttention) -> None:
    """Asking oneself is self-attention without a mask, values and gradients."""
    x, weights = random(B, T, D).requires_grad_(), random(B, T, D)
    values, gradients = [], []
    for output in (asked(layer, x, x), layer(x, EVERYTHING)):
        values.append(output.detach())
        wanted = [x, *layer.parameters()]
        gradients.append(torch.autograd.grad((output * weights).sum(), wanted, materialize_grads=True))
    assert_within(values[0], values[1], 1e-12)
    for cross, own in zip(*gradients, strict=True):
        assert_within(cross, own, 1e-12)


@pytest.mark.parametrize("attend", KERNELS, ids=name_of)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("qk_norm", [False, True])
@pytest.mark.parametrize("kv_heads", [H, K, 1])
def test_it_is_its_equation(kv_heads: int, qk_norm: bool, bias: bool, attend: Attend) -> None:
    check_loops(layer_of(kv_heads=kv_heads, bias=bias, qk_norm=qk_norm, attend=attend))
    check_itself(layer_of(kv_heads=kv_heads, bias=bias, qk_norm=qk_norm, attend=attend))


def test_the_scale_is_the_layer_s_own() -> None:
    check_loops(layer_of(scale=0.7))
    assert not asked(layer_of(scale=0.7), *(x := (random(B, T, D), random(B, M, D)))).equal(asked(layer_of(), *x))


def test_one_query_and_one_position_of_the_memory() -> None:
    """The least: the weight is 1, the output is the value, projected."""
    layer = layer_of()
    x, memory = random(B, 1, D), random(B, 1, D)
    expected = layer.output(layer.keys_values(memory)[1].repeat_interleave(H // K, 1).transpose(1, 2).flatten(2))
    assert_within(asked(layer, x, memory), expected, 1e-12)


class KeysForValues(MultiHeadAttention):
    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        k, v = super().keys_values(memory)
        return v, k


class NoKeyNorm(MultiHeadAttention):
    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        k_norm, self.k_norm = self.k_norm, nn.Identity()
        found = super().keys_values(memory)
        self.k_norm = k_norm
        return found


class NoBiasOfTheMemory(MultiHeadAttention):
    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        k, v = F.linear(memory, self.qkv.weight[self.sizes[0] :]).split(self.sizes[1:], -1)
        return tuple(part.unflatten(-1, (self.kv_heads, -1)).transpose(1, 2) for part in (self.k_norm_of(k), v))

    def k_norm_of(self, k: Tensor) -> Tensor:
        return self.k_norm(k.unflatten(-1, (self.kv_heads, -1))).flatten(-2)


class NoQueryNorm(MultiHeadAttention):
    def across(self, x: Tensor, memory: Memory) -> Tensor:
        q_norm, self.q_norm = self.q_norm, nn.Identity()
        found = super().across(x, memory)
        self.q_norm = q_norm
        return found


class QueriesFromTheKeys(MultiHeadAttention):
    """The rows of the queries are taken behind the others."""

    def across(self, x: Tensor, memory: Memory) -> Tensor:
        rows = self.sizes[0]
        q = F.linear(x, self.qkv.weight[-rows:], self.qkv.bias[-rows:]).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return self._mixed(self.q_norm(q), memory.k, memory.v, memory.visible, tap=Recorder())


FAULTS = [KeysForValues, NoKeyNorm, NoBiasOfTheMemory, NoQueryNorm, QueriesFromTheKeys]


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("check", [check_loops, check_itself])
def test_a_faulty_layer_is_caught(kind: type[MultiHeadAttention], check: Callable[[MultiHeadAttention], None]) -> None:
    with pytest.raises(AssertionError):
        check(layer_of(kind))


class IgnoresPadding(MultiHeadAttention):
    def across(self, x: Tensor, memory: Memory) -> Tensor:
        return super().across(x, memory._replace(visible=EVERYTHING))


def test_a_memory_whose_padding_is_seen_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_loops(layer_of(IgnoresPadding))


# PyTorch's layer


def check_pytorch(layer: MultiHeadAttention) -> None:
    """Values, weights of each head, gradients of queries, memory and every weight, with padding on either side."""
    theirs = nn.MultiheadAttention(H * d, H, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(layer.qkv.weight)
        theirs.in_proj_bias.copy_(layer.qkv.bias)
        theirs.out_proj.load_state_dict(layer.output.state_dict())
    x, memory, given = random(B, T, H * d), random(B, M, H * d), random(B, T, H * d)
    sides = []
    for ours in (True, False):
        inputs = [tensor.clone().requires_grad_() for tensor in (x, memory)]
        if ours:
            recorder = Recorder("weights")
            output = layer.across(inputs[0], Memory(*layer.keys_values(inputs[1]), Padding(REAL)), tap=recorder)
            weights, parameters = recorder.tensors["weights"], [layer.qkv, layer.output]
            wanted = [p for part in parameters for p in (part.weight, part.bias)]
        else:
            output, weights = theirs(
                inputs[0], inputs[1], inputs[1], key_padding_mask=~REAL, average_attn_weights=False
            )
            wanted = [theirs.in_proj_weight, theirs.in_proj_bias, theirs.out_proj.weight, theirs.out_proj.bias]
        gradients = torch.autograd.grad((output * given).sum(), [*inputs, *wanted], materialize_grads=True)
        sides.append([output.detach(), weights.detach(), *gradients])
    assert sides[0][1].shape == (B, H, T, M)
    for found, expected in zip(*sides, strict=True):
        assert_within(found, expected, 1e-12)


def wide(kind: type[MultiHeadAttention] = MultiHeadAttention) -> MultiHeadAttention:
    """PyTorch's layer knows no head width of its own, no grouped heads and no norms of q and k."""
    layer = kind(H * d, H, H, d, attend=attend_visible).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def test_it_is_pytorch_s_own() -> None:
    check_pytorch(wide())


class TilesHeads(MultiHeadAttention):
    """The heads of the memory in another order."""

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        k, v = super().keys_values(memory)
        return k.roll(1, 1), v


class Forgets(MultiHeadAttention):
    """No gradient reaches the memory."""

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return super().keys_values(memory.detach() + 0.0 * memory)


@pytest.mark.parametrize("kind", [TilesHeads, Forgets, KeysForValues])
def test_what_pytorch_would_not_do_is_caught(kind: type[MultiHeadAttention]) -> None:
    layer = wide(kind)
    original = layer.across
    layer.across = lambda x, memory, tap: original(x, memory, tap=tap)
    with pytest.raises(AssertionError):
        check_pytorch(layer)


# What is seen


def test_names_and_shapes() -> None:
    layer, recorder = layer_of(), Recorder()
    k, v = layer.keys_values(random(B, M, D), tap=recorder)
    layer.across(random(B, T, D), Memory(k, v, Padding(REAL)), tap=recorder)
    assert {name: tuple(tensor.shape) for name, tensor in recorder.tensors.items()} == {
        "k": (B, K, M, d),
        "v": (B, K, M, d),
        "q": (B, H, T, d),
        "scores": (B, H, T, M),
        "weights": (B, H, T, M),
        "mixed": (B, H, T, d),
        "output": (B, T, D),
    }
    weights = recorder.tensors["weights"]
    assert_within(weights.sum(-1), torch.ones(B, H, T, dtype=torch.float64), 1e-12)
    assert ((weights > 0) == REAL[:, None, None, :]).all()


@pytest.mark.parametrize("attend", KERNELS, ids=name_of)
def test_a_memory_without_a_real_position_gives_the_bias_alone(attend: Attend) -> None:
    layer, nobody = layer_of(attend=attend), Padding(torch.tensor([[True] * M, [False] * M]))
    x, memory = random(B, T, D).requires_grad_(), random(B, M, D).requires_grad_()
    output = asked(layer, x, memory, nobody)
    assert_same(output[1].detach(), layer.output.bias.detach().expand(T, D))
    gradients = torch.autograd.grad(output.square().sum(), [x, memory, *layer.parameters()])
    assert_finite(*gradients)
    assert_same(gradients[1][1], torch.zeros(M, D, dtype=torch.float64))
