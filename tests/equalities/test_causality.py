"""No output depends on a later input, exactly; and every output depends on all that it may see."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.layers import MultiHeadAttention
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.ops.tap import NO_TAP, Tap
from tests.equalities import faults as f
from tests.equalities.registry import claim
from tests.equalities.variants import VARIANTS, B, T, V, ids_of, model_of
from tests.oracles.compare import assert_same

LONG = 67
# 1, odd, the edges of blocks of 16, 32 and 64 and their neighbours, the last.
CHANGED_FROM = [1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, LONG - 1]
FUTURE = {
    f.no_mask: "learned",
    f.after_softmax: "rotary, MHA",
    f.reversed_mask: "sinusoidal halves",
    f.wrong_axis: "ALiBi",
    f.merged_by_view: "window",
}


class Leaf(Tap):
    """A tap that makes the input of the blocks a tensor to differentiate to."""

    def __init__(self) -> None:
        self.input: Tensor

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        if name == "input":
            self.input = tensor.detach().requires_grad_()
        return self.input if name == "input" else tensor

    def within(self, scope: str) -> Tap:
        return NO_TAP


def sides(length: int) -> list[Tensor | None]:
    """No padding; on the left; on the right. Row 0 always is full."""
    place = torch.arange(length)
    left, right = torch.tensor([[0], [2], [5]]), torch.tensor([[length], [length - 1], [length - 6]])
    return [None, place >= left, place < right]


def reach(config: DecoderConfig) -> int:
    """How far back the last block sees through all windows."""
    return sum((sight.window or LONG) - 1 for sight in config.sights)


def steepened(model: Decoder, factor: float) -> Decoder:
    """The model with its q and k weights multiplied; the rows of v stay."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            with torch.no_grad():
                module.qkv.weight[: -module.sizes[2]] *= factor
    return model


@torch.no_grad()
def assert_blind(model: Decoder) -> None:
    """Other tokens from t on change no bit before t, and do change what stands at t."""
    ids = ids_of(B, LONG)
    for real in sides(LONG):
        logits = model(ids, real=real)
        for t in CHANGED_FROM:
            changed = torch.where(torch.arange(LONG) >= t, (ids + 1) % V, ids)
            again = model(changed, real=real)
            # What stands at padding is nobody's output.
            kept = torch.arange(LONG) < t if real is None else (torch.arange(LONG) < t) & real
            assert_same(again[kept.expand(B, -1)], logits[kept.expand(B, -1)])
            assert bool((again[0, t] != logits[0, t]).any())


@claim(
    "Other tokens from t on change no bit before t: t = 1, odd, block edges ± 1, last; with and without padding (what stands at padding is no output)",
    "改变 t 及之后的词元，t 之前的输出一位都不变：t = 1、奇数、块边界 ± 1、最后；有无填充皆然（填充处不算输出）",
    over=VARIANTS,
    faults=FUTURE,
)
def test_no_bit_moves(variant: str) -> None:
    assert_blind(model_of(variant, context=LONG))


@claim(
    "The same with the weights of q and k times 10,000",
    "q、k 权重放大一万倍后仍然如此",
    over=VARIANTS,
    faults={f.weak_mask: "rotary, MHA"},
)
def test_no_bit_moves_under_stress(variant: str) -> None:
    assert_blind(steepened(model_of(variant, context=LONG), 1e4))


@claim(
    "The gradient of output t to input s is exactly 0 for s > t, and not 0 for every s that t may see",
    "输出 t 对输入 s 的梯度：s > t 时恰为 0，t 看得见的每个 s 都不为 0",
    over=VARIANTS,
    faults={**FUTURE, f.self_only: "learned", f.wide_window: "cycle of windows", f.padding_ignored: "ALiBi, MQA"},
)
def test_gradients_reach_what_may_be_seen(variant: str) -> None:
    model = model_of(variant)
    query, key = torch.arange(T)[:, None], torch.arange(T)
    seen = (key <= query) & (key >= query - reach(VARIANTS[variant]))
    for real in sides(T):
        leaf = Leaf()
        logits = model(ids_of(), real=real, tap=leaf)
        direction = torch.randn(B, V, dtype=torch.float64)
        whole = torch.ones(B, T, dtype=torch.bool) if real is None else real
        for t in range(T):
            (gradient,) = torch.autograd.grad((logits[:, t] * direction).sum(), leaf.input, retain_graph=True)
            reached = (gradient != 0).any(-1)
            rows = whole[:, t]
            assert reached[rows].equal((seen[t] & whole)[rows])


@claim(
    "A row does not depend on the other rows of its batch",
    "每一行都不依赖同批的其他行",
    over=VARIANTS,
    faults={f.rows_mixed: "learned"},
)
def test_rows_do_not_mix(variant: str) -> None:
    model, leaf = model_of(variant), Leaf()
    logits = model(ids_of(), tap=leaf)
    for row in range(B):
        (gradient,) = torch.autograd.grad(logits[row].square().sum(), leaf.input, retain_graph=True)
        assert (gradient != 0).any(-1).any(-1).tolist() == [other == row for other in range(B)]
