"""Twelve blocks without residuals do not train.

The same blocks, weights and rows twice; once each branch is added to what went in, once it takes its place. Without the sum, a block
hands on nothing but what attention mixed, a mean of the positions before: after some blocks all positions say the same, and no
gradient can tell them apart. So the loss stays where a model is that knows nothing but the vocabulary, ln V. Fresh weights of GPT-2 are
small; that this is not the reason is seen with weights that keep the size of what they are given (standard deviation 1/√n for n inputs).
"""

from __future__ import annotations

import math
from statistics import fmean

import torch
from torch import Tensor, nn

from clearhead import DecoderConfig, build
from clearhead.layers.block import SequentialBlock
from clearhead.layers.store import NO_STORE, LayerStore
from clearhead.models.decoder import Decoder
from clearhead.ops.masks import Mask
from clearhead.ops.rotary import Rotate, unrotated
from clearhead.ops.tap import NO_TAP, Tap
from clearhead.tracing.record import Recorder
from clearhead.training.losses import next_token
from proofs.claims import Picture, Report, Table, Words, at_least, at_most
from proofs.pictures import curves
from proofs.repeats import Repeats
from proofs.training import train

LAYERS = 12
TITLE = Words("Twelve blocks without residuals", "没有残差的十二个块")
ABOUT = Words(
    "The same blocks, weights and rows (random tokens that repeat, vocabulary 16); once each branch is added to what went in, once it "
    "takes its place. Without residuals the loss stays at ln 16 = 2.773, that of a model that knows nothing but the vocabulary, with the small "
    "fresh weights of GPT-2 and with weights that keep the size of what they are given. The cosine says why: after some blocks all positions "
    "hold nearly the same vector.",
    "同样的块、权重和数据（随机词元的重复，词表 16）；一次把分支加到输入上，一次用分支代替输入。没有残差时，损失停在 ln 16 = 2.773，"
    "即只知道词表的模型的损失；无论用 GPT-2 的小初始权重，还是用保持信号大小的权重，都是如此。余弦说明了原因：几个块之后，所有位置的向量几乎相同。",
)


class WithoutResiduals(SequentialBlock):
    """u = Attention(N₁(x)),  z = FFN(N₂(u))."""

    def forward(
        self,
        x: Tensor,
        visible: Mask,
        *,
        rotate: Rotate = unrotated,
        bias: Tensor | None = None,
        store: LayerStore = NO_STORE,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """(B,T,D) -> (B,T,D)."""
        normed = self.attention_norm(x)
        u = self.attention(normed, visible, rotate=rotate, bias=bias, store=store, tap=tap.within("attention"))
        return tap("output", self.feedforward(self.feedforward_norm(u), tap=tap.within("feedforward")))


def deep(rows: Repeats, *, residuals: bool, keeping: bool, seed: int) -> Decoder:
    """Twelve blocks; `keeping` draws the matrices of the blocks so that they keep the size of what they are given."""
    config = DecoderConfig(vocab=rows.vocab, layers=LAYERS, heads=4, width=64, context=rows.length)
    model = build(config, seed=seed)
    random = torch.Generator().manual_seed(seed)
    for layer in model.blocks.modules():
        if isinstance(layer, nn.Linear) and keeping:
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5, generator=random)
    if not residuals:
        for number, block in enumerate(model.blocks):
            assert isinstance(block, SequentialBlock)
            parts = (block.attention, block.feedforward, block.attention_norm, block.feedforward_norm)
            model.blocks[number] = WithoutResiduals(*parts)
    return model


def alike(model: Decoder, ids: Tensor) -> list[float]:
    """After each block: the mean cosine between the vectors of two positions of a row."""
    recorder = Recorder("blocks.*.output")
    with torch.no_grad():
        model(ids, tap=recorder)
    found = []
    for output in (each for name, each in recorder.tensors.items() if name.count(".") == 2):
        unit = nn.functional.normalize(output, dim=-1)
        length = unit.shape[1]
        cosines = unit @ unit.transpose(1, 2)
        found.append(((cosines.sum((1, 2)) - length) / (length * (length - 1))).mean().item())
    return found


def prove(*, steps: int = 160, seed: int = 0) -> Report:
    """Train with and without."""
    rows = Repeats(vocab=16, length=24, shortest=4, longest=10, seed=seed)
    variants = {
        "residuals": (True, False),
        "none": (False, False),
        "none, weights that keep the size": (False, True),
    }
    losses, cosines = {}, {}
    for name, (residuals, keeping) in variants.items():
        model = deep(rows, residuals=residuals, keeping=keeping, seed=seed)
        cosines[name] = alike(model, rows(0).inputs)
        losses[name] = train(model, rows, next_token, steps=steps, lr=2e-3)
    last = {name: fmean(told[-20:]) for name, told in losses.items()}
    with_them, *without = last.values()
    floor = math.log(rows.vocab) - 0.1
    claims = [
        at_most(
            "with residuals: loss of the last 20 updates, nats",
            "有残差：最后 20 步的损失（奈特）",
            with_them,
            1.9,
            ".3f",
        ),
        *(
            at_least(f"{en}: the same", f"{zh}：同上", loss, floor, ".3f")
            for (en, zh), loss in zip(
                (
                    ("without residuals", "没有残差"),
                    ("without, weights that keep the size of their input", "没有残差，保持信号大小的权重"),
                ),
                without,
                strict=True,
            )
        ),
        at_most(
            "with residuals: cosine between positions, fresh, after 12 blocks",
            "有残差：初始时 12 块之后各位置间的余弦",
            cosines["residuals"][-1],
            0.7,
            ".3f",
        ),
        at_least(
            "without: the same, the smaller of both",
            "没有残差：同上，两者中较小的",
            min(cosines[name][-1] for name in list(cosines)[1:]),
            0.95,
            ".3f",
        ),
    ]
    shown = (1, 2, 4, 8, LAYERS)
    table = Table(
        Words(
            "Mean cosine between the vectors of two positions before any training",
            "训练之前，两个位置的向量之间的平均余弦",
        ),
        [("blocks passed", "经过的块数"), *((str(number), str(number)) for number in shown)],
        [[name, *(f"{told[number - 1]:.3f}" for number in shown)] for name, told in cosines.items()],
    )
    drawn = {name: list(enumerate(told, 1)) for name, told in losses.items()}
    picture = curves(drawn, x="update", y="loss, nats")
    return Report(claims, [table], [Picture("residuals", Words("The losses", "损失"), picture)])
