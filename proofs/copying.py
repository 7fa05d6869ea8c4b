"""Copy and reverse: cross-attention shows the diagonal and the anti-diagonal.

An encoder-decoder reads 12 random letters and writes them again, or from the last to the first. Every pair is new, so what is learnt
is the rule. While it writes letter t, it should look at the source where that letter stands: at t, or at 11 - t. How much of the
weight is there, on average over sources, letters and all heads of the last block, is measured.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from clearhead import EncoderDecoderConfig, build
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.tracing.record import Recorder
from clearhead.training.fit import evaluate
from clearhead.training.losses import exact_match, target_token
from clearhead.training.pairs import Drawn, IdPair, Marks, PairBatch
from proofs.claims import Picture, Report, Words, at_least
from proofs.pictures import curves, heat_maps
from proofs.training import train

LETTERS, LENGTH, LAYERS = 26, 12, 2
MARKS = Marks(begin=LETTERS, end=LETTERS + 1)
TITLE = Words("Copy and reverse", "复制与倒写")
ABOUT = Words(
    "An encoder-decoder (2 + 2 blocks, 4 heads, width 64) reads 12 random letters and writes them again, or from the last to the first. "
    "While it writes a letter, cross-attention should look where that letter stands in the source. The weight there is a mean over "
    "500 new sources, all letters and all heads of the last block.",
    "编码器-解码器（2 + 2 块，4 个头，宽 64）读 12 个随机字母，再原样或倒着写出来。写一个字母时，交叉注意力应当看源序列里这个字母所在的位置。"
    "那里的权重是对 500 个新的源序列、所有字母、最后一块所有头取的平均。",
)


def copy(generator: np.random.Generator) -> IdPair:
    """Letters, and the same letters."""
    letters = generator.integers(LETTERS, size=LENGTH)
    return IdPair(letters, letters)


def reverse(generator: np.random.Generator) -> IdPair:
    """Letters, and the same letters from the last to the first."""
    letters = generator.integers(LETTERS, size=LENGTH)
    return IdPair(letters, letters[::-1].copy())


def learnt(task: Callable[[np.random.Generator], IdPair], steps: int, seed: int) -> tuple[EncoderDecoder, list[float]]:
    """An encoder-decoder that was trained on the task, and its losses."""
    config = EncoderDecoderConfig(vocab=LETTERS + 2, layers=LAYERS, heads=4, width=64, context=LENGTH + 1)
    model = build(config, seed=seed)
    batches = Drawn(task, MARKS, batch=64, seed=seed)
    return model, train(model, batches, target_token, steps=steps, lr=3e-3)


def cross_weights(model: EncoderDecoder, batch: PairBatch) -> Tensor:
    """How much each written letter looks at each letter read, (12,12): means over rows and heads of the last block."""
    name = f"decoder.blocks.{LAYERS - 1}.cross_attention.weights"
    recorder = Recorder(name)
    with torch.no_grad():
        model(batch.source, batch.inputs, source_real=batch.source_real, tap=recorder)
    return recorder.tensors[name].mean((0, 1))[:LENGTH, :LENGTH]


def prove(*, steps: int = 150, seed: int = 0) -> Report:
    """Train one to copy and one to reverse."""
    claims, maps, losses = [], {}, {}
    for name, task, zh in (("copy", copy, "复制"), ("reverse", reverse, "倒写")):
        model, told = learnt(task, steps, seed)
        unseen = Drawn(task, MARKS, batch=500, seed=seed + 1)
        right = evaluate(model, (unseen(step) for step in range(2)), exact_match)
        weights = cross_weights(model, unseen(2))
        there = (weights if task is copy else weights.flip(1)).diagonal().mean().item()
        maps[name], losses[name] = weights, list(enumerate(told, 1))
        line, zh_line = ("diagonal", "对角线") if task is copy else ("anti-diagonal", "反对角线")
        claims += [
            at_least(f"{name}: new sources wholly right", f"{zh}：新的源序列整个正确", right, 0.99),
            at_least(f"{name}: weight on the {line}", f"{zh}：{zh_line}上的权重", there, 0.8, ".3f"),
        ]
    shown = Words("Cross-attention of the last block, mean over heads", "最后一块的交叉注意力，对各头取平均")
    return Report(
        claims,
        [],
        [
            Picture("copying-weights", shown, heat_maps(maps, x="read", y="written")),
            Picture("copying-loss", Words("The losses", "损失"), curves(losses, x="update", y="loss, nats")),
        ],
    )
