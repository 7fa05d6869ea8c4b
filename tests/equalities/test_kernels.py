"""The kernels compute one function, values and gradients; what a kernel cannot do is refused when the model is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

from clearhead.messages import UserError
from clearhead.models import choices as c
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, Sight
from clearhead.ops import attention as kernels
from clearhead.ops.attention_variants import attend_capped, attend_with_sinks
from clearhead.ops.masks import EVERYTHING, Causal, Documents, Mask, Padding, Prefix, Window, causal
from tests.equalities import faults as f
from tests.equalities import faults_use as h
from tests.equalities.registry import claim, close, differ
from tests.equalities.variants import BASE, VARIANTS, ids_of, model_of

B, H, T, S, D_QK, D_V = 2, 4, 3, 5, 6, 7
SQUARE = 5
MASKS: dict[str, tuple[int, Mask]] = {
    "everything": (T, EVERYTHING),
    "causal, square": (SQUARE, causal(SQUARE)),
    "causal, last queries": (T, causal(T, S)),
    "causal, one query": (1, causal(1, S)),
    "causal, positions per row": (T, Causal(torch.tensor([[0, 1, 2], [2, 3, 4]]), torch.tensor([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]))),
    "window": (SQUARE, causal(SQUARE) & Window(2, range(SQUARE), range(SQUARE))),
    "prefix": (SQUARE, Prefix(2, range(SQUARE), range(SQUARE))),
    "padding": (T, Padding(torch.tensor([[True] * 5, [False, True, True, False, False]]))),
    "a row sees nothing": (SQUARE, causal(SQUARE) & Padding(torch.tensor([[True] * 5, [False] * 3 + [True] * 2]))),
    "documents": (SQUARE, causal(SQUARE) & Documents(*2 * [torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 1, 2]])])),
}  # fmt: skip


def outcome(
    attend: Callable[..., Tensor], visible: Mask, K: int, queries: int, *, bias: bool, scale: float | None
) -> list[Tensor]:
    """The value, and the gradients to q, k, v (and bias) of a random sum of it."""
    generator = torch.Generator().manual_seed(K)
    draw = partial(torch.randn, dtype=torch.float64, generator=generator)
    inputs = [draw(B, H, queries, D_QK), draw(B, K, S, D_QK), draw(B, K, S, D_V)]
    term = draw(H, queries, S) if bias else None
    direction = draw(B, H, queries, D_V)
    leaves = [tensor.requires_grad_() for tensor in inputs if tensor is not None]
    value = attend(*leaves, visible, bias=term, scale=scale)
    return [value.detach(), *torch.autograd.grad((value * direction).sum(), leaves)]


@claim(
    "The fused kernel = the visible one, values and gradients, over every mask, 4, 2 and 1 key/value heads, bias and scale",
    "融合内核 = 可见内核：值与梯度，遍历各种掩码、4/2/1 个键值头、偏置与缩放",
    over=MASKS,
    faults={
        f.no_scale: "everything", f.model_scale: "everything", f.length_scale: "causal, square", f.no_mask: "causal, square",
        f.after_softmax: "window", f.strict: "causal, square", f.top_left: "causal, last queries", f.tiled: "everything",
        f.wrong_axis: "everything", f.reversed_mask: "padding", f.empty_row: "a row sees nothing", f.rows_mixed: "prefix",
    },
)  # fmt: skip
def test_kernels_are_one_function(mask: str) -> None:
    queries, visible = MASKS[mask]
    for K in (4, 2, 1):
        for bias, scale in ((False, None), (True, None), (False, 0.3), (True, 0.3)):
            expected = outcome(kernels.attend_visible, visible, K, queries, bias=bias, scale=scale)
            found = outcome(kernels.attend_fused, visible, K, queries, bias=bias, scale=scale)
            for one, other in zip(found, expected, strict=True):
                close(one, other)


@claim(
    "A very high cap and a very low sink change nothing; a cap and a sink that matter do",
    "很高的上限和很低的 sink 不改变结果；起作用的上限和 sink 则改变",
    over=MASKS,
    faults={f.uncapped: "everything", f.sink_ignored: "everything"},
)
def test_caps_and_sinks_have_the_visible_kernel_as_limit(mask: str) -> None:
    queries, visible = MASKS[mask]
    for K in (4, 2, 1):
        plain = outcome(kernels.attend_visible, visible, K, queries, bias=True, scale=None)
        for attend in (partial(attend_capped, cap=1e8), partial(attend_with_sinks, sinks=torch.full((H,), -800.0))):
            for one, other in zip(outcome(attend, visible, K, queries, bias=True, scale=None), plain, strict=True):
                close(one, other)
        for attend in (partial(attend_capped, cap=0.5), partial(attend_with_sinks, sinks=torch.ones(H))):
            differ(outcome(attend, visible, K, queries, bias=True, scale=None)[0], plain[0])


@claim(
    "A model with the fused kernel = the same with the visible one: logits and every parameter's gradient",
    "用融合内核的模型 = 用可见内核的同一模型：logits 与每个参数的梯度",
    over=[name for name, config in VARIANTS.items() if config.softcap is None and not config.sinks],
    faults={f.fused_unscaled: "learned", f.fused_unmasked: "rotary, fused", f.fused_tiled: "parallel, biases"},
)
def test_models_with_either_kernel(variant: str) -> None:
    results = []
    for kernel in (c.Visible(), c.Fused()):
        model = model_of(variant, kernel=kernel)
        logits = model(ids_of())
        direction = torch.randn(logits.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        (logits * direction).mean().backward()
        results.append({"logits": logits.detach()} | {name: p.grad for name, p in model.named_parameters()})
    assert results[0].keys() == results[1].keys()
    for name, expected in results[0].items():
        close(results[1][name], expected)


@claim(
    "What the fused kernel cannot do is refused when the model is described, naming both options; auto picks a kernel that can",
    "融合内核做不到的，在描述模型时就拒绝并指出冲突的两项；auto 选能做到的内核",
    faults={h.clashes_pass: ""},
)
def test_refusals() -> None:
    for first, changes in (
        ("softcap", {"kernel": c.Fused(), "softcap": 5.0}),
        ("sinks", {"kernel": c.Fused(), "sinks": True}),
        ("softcap", {"sinks": True, "softcap": 5.0}),
        ("window", {"window": 3, "cycle": (Sight(window=2),)}),
        ("Learned", {"positions": c.Learned(), "cycle": (Sight(positions=c.Rotary()),)}),
    ):
        with pytest.raises(UserError, match=first):
            DecoderConfig(**{**vars(BASE), **changes})
    for changes in ({"softcap": 5.0}, {"sinks": True}):
        logits = build(replace(BASE, kernel=c.Auto(), **changes), seed=0)(ids_of())
        assert bool(logits.isfinite().all())
