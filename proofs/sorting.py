"""Sorting ten numbers, learnt from examples alone.

An encoder-decoder reads ten numbers from 0 to 49, in any order and with repetitions, and writes them from the smallest to the largest. There
are 50 to the 10th power lists, and each is drawn anew, so hardly any is ever met twice. Nothing tells the model that 50 tokens have an
order; it is learnt with the rest. How far the rule reaches is asked of lists that are drawn otherwise, too: all from a narrow range, or
two numbers again and again. It does not reach them: what was learnt is to sort lists such as those of the training.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from clearhead import EncoderDecoderConfig, build
from clearhead.training.fit import evaluate
from clearhead.training.losses import exact_match, target_token
from clearhead.training.pairs import Drawn, IdPair, Marks
from proofs.claims import Picture, Report, Table, Words, at_least
from proofs.pictures import curves
from proofs.training import train

NUMBERS, COUNT = 50, 10
MARKS = Marks(begin=NUMBERS, end=NUMBERS + 1)
TITLE = Words("Sorting ten numbers", "给十个数排序")
ABOUT = Words(
    f"An encoder-decoder (2 + 2 blocks, 4 heads, width 64) reads {COUNT} numbers from 0 to {NUMBERS - 1} and writes them in order. All lists are drawn "
    "anew. Lists of another kind are asked, too, without a bar: what was learnt is to sort lists such as those of the training.",
    f"编码器-解码器（2 + 2 块，4 个头，宽 64）读 {COUNT} 个 0 到 {NUMBERS - 1} 的数，再按从小到大写出来。所有列表都是新抽的。与训练不同类的列表也测了，不设界线：学到的是给训练那样的列表排序。",
)


def drawn(generator: np.random.Generator) -> IdPair:
    """Numbers, and the same in order."""
    return ordered(generator.integers(NUMBERS, size=COUNT))


def narrow(generator: np.random.Generator) -> IdPair:
    """All from a range of eight."""
    return ordered(generator.integers(NUMBERS - 8) + generator.integers(8, size=COUNT))


def few(generator: np.random.Generator) -> IdPair:
    """Two numbers, each several times."""
    return ordered(generator.choice(generator.integers(NUMBERS, size=2), size=COUNT))


def ordered(numbers: np.ndarray) -> IdPair:
    """The list, and what it should become."""
    return IdPair(numbers, np.sort(numbers))


def prove(*, steps: int = 750, hundreds: int = 20, seed: int = 0) -> Report:
    """Train one; ask it for so many hundreds of lists of each kind."""
    model = build(EncoderDecoderConfig(vocab=NUMBERS + 2, layers=2, heads=4, width=64, context=COUNT + 1), seed=seed)
    losses = train(model, Drawn(drawn, MARKS, batch=64, seed=seed), target_token, steps=steps, lr=3e-3, final=0.0)

    def right(draw: Callable[[np.random.Generator], IdPair]) -> float:
        unseen = Drawn(draw, MARKS, batch=100, seed=seed + 1)
        return evaluate(model, (unseen(step) for step in range(hundreds)), exact_match)

    claims = [at_least("lists never seen, wholly right", "从未见过的列表，整个正确", right(drawn), 0.99, ".2%")]
    table = Table(
        Words("Lists of other kinds, wholly right", "其他类的列表，整个正确"),
        [("lists", "列表"), ("right", "正确")],
        [[name, f"{right(draw):.1%}"] for name, draw in (("8 neighbours", narrow), ("2 different numbers", few))],
    )
    picture = curves({"loss": list(enumerate(losses, 1))}, x="update", y="loss, nats")
    return Report(claims, [table], [Picture("sorting", Words("The loss", "损失"), picture)])
