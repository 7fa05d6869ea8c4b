"""Post-norm needs a warm-up, pre-norm does not.

Eight blocks, Xavier's weights as in the original Transformer, AdamW at 0.003. With the norm of the sum (post-norm) and the full rate from the
first update on, the loss goes to ln V and stays there: the model forgets its input. The same model learns when the rate rises
over the first half of the training. With the norm before each branch (pre-norm) nothing has to be waited for. What post-norm
reaches behind its warm-up is no worse: the warm-up is the price, not the norm.

Source: Xiong et al. 2020 (arXiv:2002.04745).
"""

from __future__ import annotations

import math
from statistics import fmean

import torch
from torch import nn

from clearhead import DecoderConfig, build
from clearhead.models.choices import Block, PostNorm, PreNorm
from clearhead.models.decoder import Decoder
from clearhead.training.losses import next_token
from proofs.claims import Picture, Report, Words, at_least, at_most
from proofs.pictures import curves
from proofs.repeats import Repeats
from proofs.training import train

TITLE = Words("Post-norm and warm-up", "后归一化与预热")
ABOUT = Words(
    "Eight blocks, matrices of variance 1/n for n inputs (much as in the original Transformer), AdamW at 0.003, random tokens that repeat, "
    "vocabulary 16. With post-norm and the full rate from the first update on, the loss goes to ln 16 = 2.773 and stays there. The same model learns "
    "when the rate rises over the first half of the training; pre-norm learns without.",
    "八个块，矩阵方差为 1/n（n 为输入数，与最初的 Transformer 相近），AdamW，学习率 0.003，随机词元的重复，词表 16。后归一化从第一步就用全部学习率时，损失走到 "
    "ln 16 = 2.773 就停住了。同一个模型，若学习率在训练的前一半逐渐升高，就能学会；前归一化不用预热也能学。",
)


def fresh(block: Block, rows: Repeats, seed: int) -> Decoder:
    """Eight blocks whose matrices keep the size of what they are given."""
    config = DecoderConfig(vocab=rows.vocab, layers=8, heads=4, width=64, context=rows.length, block=block)
    model, random = build(config, seed=seed), torch.Generator().manual_seed(seed)
    for layer in model.blocks.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5, generator=random)
    return model


def prove(*, steps: int = 220, seed: int = 0) -> Report:
    """Train three times."""
    rows = Repeats(vocab=16, length=24, shortest=4, longest=10, seed=seed)
    variants: dict[str, tuple[Block, int]] = {
        "post-norm, no warm-up": (PostNorm(), 0),
        "post-norm, warm-up": (PostNorm(), steps // 2),
        "pre-norm, no warm-up": (PreNorm(), 0),
    }
    losses = {
        name: train(fresh(block, rows, seed), rows, next_token, steps=steps, lr=3e-3, warmup=warmup)
        for name, (block, warmup) in variants.items()
    }
    without, warmed, before = (fmean(told[-20:]) for told in losses.values())
    claims = [
        at_least(
            "post-norm, no warm-up: loss of the last 20 updates, nats",
            "后归一化，无预热：最后 20 步的损失（奈特）",
            without,
            math.log(rows.vocab) - 0.1,
            ".3f",
        ),
        at_most("post-norm, warm-up: the same", "后归一化，有预热：同上", warmed, 2.0, ".3f"),
        at_most("pre-norm, no warm-up: the same", "前归一化，无预热：同上", before, 2.0, ".3f"),
    ]
    drawn = {name: list(enumerate(told, 1)) for name, told in losses.items()}
    return Report(
        claims,
        [],
        [Picture("norms", Words("The losses", "损失"), curves(drawn, x="update", y="loss, nats"))],
    )
