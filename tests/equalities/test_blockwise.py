"""The blockwise kernel inside whole decoders: the definition's logits and gradients, whatever the block."""

from __future__ import annotations

import torch

from clearhead.models import choices as c
from tests.equalities import faults_blockwise as b
from tests.equalities.registry import claim, close
from tests.equalities.variants import VARIANTS, B, T, ids_of, model_of

BLOCKS = (1, 4, T, 64)
SIDES = (
    None,
    torch.arange(T) >= torch.tensor([[0], [2], [5]]),
    torch.zeros(B, T, dtype=torch.bool),
)


@claim(
    "A decoder whose kernel goes over the keys in blocks of 1, 4, all or more = the definition: logits, with padding and without, empty rows too",
    "按块（1、4、全部或更多个键）遍历的内核与定义的 logits 相等：有无填充、空行皆然",
    over=VARIANTS,
    faults={
        b.blocks_apart: "learned", b.tail_lost: "rotary, MHA", b.hidden_mean: "learned", b.unscaled: "linear",
        b.mask_of_the_first_block: "window", b.bias_of_the_first_block: "ALiBi", b.uncapped: "soft-cap",
        b.sinkless: "sinks",
    },
)  # fmt: skip
@torch.no_grad()
def test_logits_in_blocks(variant: str) -> None:
    config = VARIANTS[variant]
    plain = c.Auto() if config.sinks or config.softcap else c.Visible()
    model = model_of(variant, kernel=plain)
    for block in BLOCKS:
        blockwise = model_of(variant, kernel=c.Blockwise(block=block))
        for real in SIDES:
            close(blockwise(ids_of(), real=real), model(ids_of(), real=real))


@claim(
    "The same for the gradient of every parameter",
    "每个参数的梯度也是如此",
    over=VARIANTS,
    faults={b.grouped_gradient: "learned", b.tail_lost: "rotary, fused", b.mask_of_the_first_block: "cycle"},
)
def test_gradients_in_blocks(variant: str) -> None:
    config = VARIANTS[variant]
    kernels = (c.Auto() if config.sinks or config.softcap else c.Visible(), c.Blockwise(block=4))
    models = [model_of(variant, kernel=kernel) for kernel in kernels]
    for model in models:
        (model(ids_of(), real=SIDES[1]).log_softmax(-1).square().sum() / 100).backward()
    for (name, one), other in zip(models[1].named_parameters(), models[0].parameters(), strict=True):
        assert one.grad is not None, name
        assert other.grad is not None, name
        close(one.grad, other.grad)
