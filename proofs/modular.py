"""Modular addition: memorised first, understood later, and only under weight decay.

One block reads `a b =` and answers (a + b) mod 31. There are 496 unordered pairs; a draw puts 70% of them, in both orders, into training,
and the others are never seen in either order, so an answer to them cannot be looked up. All training pairs make one batch. Within
50 to 85 updates (seven seeds) every training pair is right while the others are still guessed. Then, when nothing seems left to learn, the
others become right: 95% of them after 160 to 450 updates. The same training without weight decay stops at the first. The learning rate is
high for this optimiser: now and then a step goes too far, the loss jumps, and the curves fall for some updates.

What was understood can be seen in the table of embeddings. Read as functions of the number, its columns are sums of waves: 15 frequencies
fit on 31 numbers. After understanding a few carry nearly all of the power, and waves are what addition asks for, since
cos w(a + b) = cos wa cos wb - sin wa sin wb. Whether the answers hang on those few is asked by keeping only them, or all but them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead import DecoderConfig, build, fit
from clearhead.models.decoder import Decoder
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch
from clearhead.training.fit import evaluate
from clearhead.training.losses import next_token
from clearhead.training.optimizer import adamw
from clearhead.training.schedules import warmup_cosine
from proofs.claims import Picture, Report, Table, Words, at_least, at_most
from proofs.pictures import curves
from proofs.repeats import right_tokens
from proofs.training import generator

P, EQUALS = 31, 31
SHARE, DECAY, STRONGEST = 0.7, 2.0, 6
EVERY = 5
"""A look every so many updates."""
TITLE = Words("Modular addition: memorised, then understood", "模加法：先记住，后理解")
ABOUT = Words(
    f"One block (4 heads, width 64) reads a b = and answers (a + b) mod {P}. {SHARE:.0%} of the unordered pairs are trained on, all in one batch, "
    f"learning rate 0.01, weight decay {DECAY:.0f}; the others are never seen, in neither order. Chance is 3.2%. The same training without weight decay "
    "memorises and stays there. The columns of the embedding, as functions of the number, are sums of 15 frequencies; the answers "
    f"are asked again with only the {STRONGEST} strongest of them left in the embedding, and with all but these.",
    f"一个块（4 个头，宽 64）读 a b =，回答 (a + b) mod {P}。训练用 {SHARE:.0%} 的无序数对，全部放在一个批里，学习率 0.01，权重衰减 {DECAY:.0f}；"
    "其余数对两种顺序都从未见过。碰运气是 3.2%。同样的训练去掉权重衰减，就停在死记上。把嵌入的每一列看作数的函数，它是 15 个频率之和；"
    f"再让模型只留嵌入里最强的 {STRONGEST} 个频率作答，或者只去掉这几个。",
)


def pairs(seed: int) -> tuple[Batch, Batch]:
    """The pairs to train on and the pairs never seen; whoever is in one is there in both orders."""
    low, high = torch.triu_indices(P, P)
    order = torch.randperm(len(low), generator=generator(seed))
    trained = round(SHARE * len(low))
    first, second = (_both_orders(low[which], high[which]) for which in (order[:trained], order[trained:]))
    return first, second


def _both_orders(low: Tensor, high: Tensor) -> Batch:
    differ = low != high
    a, b = torch.cat([low, high[differ]]), torch.cat([high, low[differ]])
    inputs = torch.stack([a, b, torch.full_like(a, EQUALS)], dim=1)
    targets = torch.full_like(inputs, IGNORED)
    targets[:, -1] = (a + b) % P
    return Batch(inputs, targets)


@dataclass
class Learning:
    """A model, and on the way to it the share of right answers after every few updates."""

    model: Decoder
    trained: list[float] = field(default_factory=list)
    unseen: list[float] = field(default_factory=list)


def known(shares: list[float]) -> int | None:
    """The look at which the share was first 99% or more."""
    return next((look for look, share in enumerate(shares) if share >= 0.99), None)


def fresh(seed: int) -> Decoder:
    """One block, nothing learnt."""
    return build(DecoderConfig(vocab=P + 1, layers=1, heads=4, width=64, context=3, tied=False), seed=seed)


def learnt(weight_decay: float, *, steps: int, seed: int) -> Learning:
    """Train on all training pairs at once; ask both kinds of pairs every few updates."""
    trained, unseen = pairs(seed)
    learning = Learning(fresh(seed))
    updates = fit(
        learning.model,
        lambda step: trained,
        next_token,
        optimizer=adamw(learning.model, lr=0.01, weight_decay=weight_decay),
        schedule=lambda step: warmup_cosine(step, lr=0.01, steps=steps, warmup=20, final=0.0),
        steps=steps,
    )
    for update in updates:
        if update.step % EVERY == 0:
            for asked, told in ((trained, learning.trained), (unseen, learning.unseen)):
                told.append(evaluate(learning.model, [asked], right_tokens))
    learning.model.eval()
    return learning


def power(model: Decoder) -> Tensor:
    """Power of each frequency 1 to 15 over the numbers, summed over the embedding's columns; shares of their sum."""
    waves = torch.fft.rfft(model.embedding.weight[:P].detach().double(), dim=0)[1:]
    total = waves.abs().square().sum(1)
    shares: Tensor = total / total.sum()
    return shares


@contextmanager
def with_waves(model: Decoder, frequencies: Tensor) -> Iterator[None]:
    """The model while its embedding of numbers has its mean and these frequencies only; afterwards as it was."""
    weight = model.embedding.weight
    before = weight.detach().clone()
    waves = torch.fft.rfft(before[:P].double(), dim=0)
    kept = torch.zeros_like(waves)
    kept[0], kept[frequencies] = waves[0], waves[frequencies]
    try:
        with torch.no_grad():
            weight[:P] = torch.fft.irfft(kept, n=P, dim=0).float()
        yield
    finally:
        with torch.no_grad():
            weight.copy_(before)


class Waves(NamedTuple):
    """What the strongest frequencies of an embedding are worth."""

    held: float
    """Their share of the power."""
    only: float
    """The share of unseen pairs that are right with no others."""
    left: float
    """The share of all pairs that are right without them."""


def looked_into(model: Decoder, trained: Batch, unseen: Batch) -> Waves:
    """Keep the strongest frequencies, then all the others."""
    shares = power(model)
    order = shares.argsort(descending=True) + 1
    strongest, others = order[:STRONGEST], order[STRONGEST:]
    with with_waves(model, strongest):
        only = evaluate(model, [unseen], right_tokens)
    with with_waves(model, others):
        left = evaluate(model, [trained, unseen], right_tokens)
    return Waves(shares[strongest - 1].sum().item(), only, left)


def prove(*, steps: int = 750, seed: int = 0) -> Report:
    """Train with and without weight decay; then look into both embeddings."""
    with_decay, without = (learnt(decay, steps=steps, seed=seed) for decay in (DECAY, 0.0))
    waves, waves_without = (looked_into(run.model, *pairs(seed)) for run in (with_decay, without))
    memorised = known(with_decay.trained)
    claims = [
        at_least("training pairs right", "训练数对答对", with_decay.trained[-1], 0.99),
        at_least("pairs never seen right", "从未见过的数对答对", with_decay.unseen[-1], 0.99),
        at_most(
            "the same when training pairs were first known",
            "刚记住训练数对时的同一比例",
            math.nan if memorised is None else with_decay.unseen[memorised],
            0.2,
        ),
        at_least("no weight decay: training pairs right", "没有权重衰减：训练数对答对", without.trained[-1], 0.99),
        at_most("no weight decay: pairs never seen right", "没有权重衰减：从未见过的答对", without.unseen[-1], 0.2),
        at_least(
            f"power in the {STRONGEST} strongest of 15 frequencies",
            f"15 个频率中最强 {STRONGEST} 个的功率",
            waves.held,
            0.7,
        ),
        at_least(
            f"with only these {STRONGEST}: pairs never seen right",
            f"只留这 {STRONGEST} 个：从未见过的答对",
            waves.only,
            0.8,
        ),
        at_most(
            f"with all but these {STRONGEST}: all pairs right", f"去掉这 {STRONGEST} 个：全部数对答对", waves.left, 0.2
        ),
    ]
    heads = [
        ("weight decay", "权重衰减"),
        ("99% of training pairs right at update", "训练数对 99% 答对的更新"),
        ("99% of the others", "其余 99% 答对的更新"),
        ("others right at the end", "最后其余答对"),
        (f"power of the {STRONGEST} strongest", f"最强 {STRONGEST} 个的功率"),
        ("others right with only these", "只留它们：其余答对"),
        ("all right without these", "去掉它们：全部答对"),
    ]
    rows = [
        [
            f"{decay:.0f}",
            *("never" if look is None else str(EVERY * (look + 1)) for look in (known(run.trained), known(run.unseen))),
            *(f"{share:.1%}" for share in (run.unseen[-1], *found)),
        ]
        for decay, run, found in ((DECAY, with_decay, waves), (0, without, waves_without))
    ]
    told = {"trained on": with_decay.trained, "never seen": with_decay.unseen, "never seen, no decay": without.unseen}
    drawn = {name: [(EVERY * (look + 1), share) for look, share in enumerate(shares)] for name, shares in told.items()}
    models = {f"weight decay {DECAY:.0f}": with_decay.model, "weight decay 0": without.model, "fresh": fresh(seed)}
    spectra = {name: list(enumerate(power(model).tolist(), 1)) for name, model in models.items()}
    return Report(
        claims,
        [Table(Words("With weight decay and without", "有权重衰减与没有权重衰减"), heads, rows)],
        [
            Picture(
                "modular-right",
                Words("Right answers", "答对的比例"),
                curves(drawn, x="update", y="share of right answers", top=1),
            ),
            Picture(
                "modular-waves",
                Words("Power of each frequency in the embedding", "嵌入中各频率的功率"),
                curves(spectra, x="frequency", y="share of the power", marks=True),
            ),
        ],
    )
