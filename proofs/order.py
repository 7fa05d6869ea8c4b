"""Without positions and without a mask, order is invisible; with the causal mask alone some of it is seen.

Attention is a sum over a set. Exchange two tokens, and without positions the outputs are exchanged and nothing else: that is exact and
is checked on a model with random weights. So an encoder without positions cannot tell which of eight different tokens stands, say,
third: whatever it answers, it answers the same for every order of the same tokens, and is right for one order in eight. This
too is exact, after any training. A causal mask breaks the symmetry: the first token sees only itself, the second two, and blocks above
can count. How much of the order comes through is measured for each place that is asked: the first is always found; what lies behind it
comes later, and from some initial weights not within this training.
"""

from __future__ import annotations

from functools import partial
from statistics import fmean

import torch
from torch import Tensor, nn

from clearhead import DecoderConfig, EncoderConfig, build
from clearhead.models.choices import Learned, NoPositions
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch
from clearhead.training.losses import next_token
from proofs.claims import Picture, Report, Words, at_least, at_most
from proofs.pictures import curves
from proofs.training import generator, train

PLACES = 8
TOKENS = 16
VOCAB = TOKENS + PLACES
TITLE = Words("What order is without positions", "没有位置信息时的顺序")
ABOUT = Words(
    f"Rows hold {PLACES} different tokens and then a question: which one stands at place i? Two blocks, 4 heads, width 64. An encoder without "
    f"positions gives every order of the same tokens the same answer, so over all {PLACES} turns of a row it is right exactly once: chance, "
    "whatever it has learnt. A decoder without positions has its causal mask: the first token sees only itself, the second two.",
    f"每行有 {PLACES} 个不同的词元，然后是一个问题：第 i 位是哪一个？两个块，4 个头，宽 64。没有位置的编码器对同样词元的任何顺序都给同一个答案，"
    f"所以在一行的全部 {PLACES} 个轮换里恰好对一次：无论学到什么都是碰运气。没有位置的解码器还有因果掩码：第一个词元只看见自己，第二个看见两个。",
)


class Questions:
    """Different tokens, then a token that asks for one of their places; the answer is the target of the last position."""

    def __init__(self, batch: int, seed: int) -> None:
        self.batch, self.seed = batch, seed

    def __call__(self, step: int) -> Batch:
        random = generator(self.seed, step)
        tokens = torch.rand(self.batch, TOKENS, generator=random).argsort(-1)[:, :PLACES]
        return asked(tokens, torch.randint(PLACES, (self.batch,), generator=random))


def asked(tokens: Tensor, places: Tensor) -> Batch:
    """The rows (B,8) with their questions, each a place (B)."""
    targets = torch.full((len(tokens), PLACES + 1), IGNORED)
    targets[:, -1] = tokens.gather(1, places[:, None]).squeeze(1)
    return Batch(torch.cat([tokens, (TOKENS + places)[:, None]], dim=1), targets)


def right_at(model: nn.Module, place: int, *, rows: int, seed: int) -> float:
    """The share of right answers when this place is asked, over all turns of every row: each token stands there once.

    The answer is the likeliest token among those of the row.
    """
    random = generator(seed, place)
    tokens = torch.rand(rows, TOKENS, generator=random).argsort(-1)[:, :PLACES]
    turned = torch.cat([tokens.roll(turn, 1) for turn in range(PLACES)])
    batch = asked(turned, torch.full((len(turned),), place))
    with torch.no_grad():
        logits = model(batch.inputs)[:, -1]
    answers = turned.gather(1, logits.gather(1, turned).argmax(-1, keepdim=True)).squeeze(1)
    return (answers == batch.targets[:, -1]).double().mean().item()


def unmoved(config: DecoderConfig | EncoderConfig, seed: int) -> float:
    """How far, at most, the outputs of exchanged tokens are from the exchanged outputs; random weights, float64."""
    model = build(config, seed=seed).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # larger than fresh weights, so that attention is far from a plain mean
            parameter.mul_(5)
        random = generator(seed)
        ids = torch.randint(VOCAB, (16, PLACES), generator=random)
        order = torch.randperm(PLACES, generator=random)
        return float((model(ids[:, order]) - model(ids)[:, order]).abs().max())


def prove(*, steps: int = 800, seed: int = 0) -> Report:
    """Exchange tokens; then train four models to answer, those with positions half as long."""
    encoder = partial(EncoderConfig, vocab=VOCAB, layers=2, heads=4, width=64, context=PLACES + 1)
    decoder = partial(DecoderConfig, vocab=VOCAB, layers=2, heads=4, width=64, context=PLACES + 1)
    blind, masked = encoder(positions=NoPositions()), decoder(positions=NoPositions())
    models: dict[str, DecoderConfig | EncoderConfig] = {
        "encoder, no positions": blind,
        "decoder, no positions": masked,
        "encoder, learned positions": encoder(positions=Learned()),
        "decoder, learned positions": decoder(positions=Learned()),
    }
    shares = {}
    for name, config in models.items():
        model = build(config, seed=seed)
        train(model, Questions(64, seed), next_token, steps=steps if config is masked else steps // 3, lr=3e-3)
        shares[name] = [right_at(model.double(), place, rows=100, seed=seed + 1) for place in range(PLACES)]
    none_encoder, none_decoder, *positioned = shares.values()
    off = max(abs(share - 1 / PLACES) for share in none_encoder)
    first, mean = none_decoder[0], fmean(none_decoder)
    claims = [
        at_most(
            "encoder, no positions: outputs of exchanged tokens are exchanged, off by",
            "没有位置的编码器：交换词元即交换输出，相差",
            unmoved(blind, seed),
            1e-12,
            ".1e",
        ),
        at_least(
            "decoder, no positions: the same, off by",
            "没有位置的解码器：同上，相差",
            unmoved(masked, seed),
            0.01,
            ".1e",
        ),
        at_most(
            "encoder, no positions: distance from chance, 1/8, after training",
            "没有位置的编码器：训练后与碰运气（1/8）之差",
            off,
            0.0,
            ".1e",
        ),
        at_least("decoder, no positions: right at the first place", "没有位置的解码器：第一位答对", first, 0.99),
        at_least("decoder, no positions: right at all places, mean", "没有位置的解码器：所有位平均答对", mean, 0.18),
        at_most("and no more than", "而且不超过", mean, 0.6),
        at_least(
            "with learned positions: right at the worst place",
            "有学习的位置：最差的一位答对",
            min(min(each) for each in positioned),
            0.99,
        ),
    ]
    drawn = {name: list(enumerate(share, 1)) for name, share in shares.items()}
    drawn["chance"] = [(1, 1 / PLACES), (PLACES, 1 / PLACES)]
    caption = Words("Right answers for each place that is asked", "问到每个位置时答对的比例")
    picture = curves(drawn, x="place asked", y="share of right answers", top=1, marks=True)
    return Report(claims, [], [Picture("order", caption, picture)])
