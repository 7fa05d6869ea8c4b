"""Beyond the trained length: the same copying task with each way of knowing positions.

At every place the token from two places back is to be written again. The rule is local and knows no length, and rows of 32 teach it to every
scheme that says where a token stands; the causal mask alone (`NoPositions`) does not get there in this time. Then rows of 64 are read. A
causal model's answer at a place does not depend on what comes later, so one reading tells all lengths: each column of the table counts
the places behind those of the column before it, none of which was ever trained.

What becomes of the rule:
- Learned: the rows of the table behind the 32nd were never trained. Wrong at once.
- Sinusoidal: those places have vectors, but the model has never met them.
- Rotary: a score depends on the distance alone, yet nothing taught attention to stay away from distances that training never showed.
  With heads of 8 features (4 angles) the first block puts most of its weight there, and the rule is lost; with heads of 16 it holds.
- Relative, as T5 has it: distances from 32 on fall into ranges that training never met, whose bias stayed near 0. Where all distances from 16
  on share one range, far keys have a bias that was trained, but there are more of them. A bias grows by a learning rate
  an update at most, so 300 updates leave the weights soft; after 1,200 the two variants have 81% and 98% behind 1.5 times the length.
- ALiBi: what is farther weighs less, whatever the distance; nothing new appears.

This is one task and one small model: it says what can go wrong, not what must.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from clearhead import DecoderConfig, build
from clearhead.models.choices import ALiBi, Learned, NoPositions, Positions, Relative, Rotary, Sinusoidal
from clearhead.models.decoder import Decoder
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch
from clearhead.training.losses import next_token
from proofs.claims import Picture, Report, Table, Words, at_least, at_most
from proofs.pictures import curves
from proofs.training import generator, train

TOKENS, BACK, LENGTH = 16, 2, 32
ENDS = (LENGTH, LENGTH * 5 // 4, LENGTH * 3 // 2, LENGTH * 2)
TITLE = Words("Beyond the trained length", "超出训练长度")
ABOUT = Words(
    f"At every place the token from {BACK} places back is to be written again, with {TOKENS} tokens (chance {1 / TOKENS:.1%}). Two blocks, 8 heads, "
    f"width 64, trained on rows of {LENGTH}, read on rows of {LENGTH * 2}. Each column counts only the places behind those of the column before. "
    "The variants differ in their positions alone, but for two: rotary comes with 4 heads, too, and with sinusoids the embedding is multiplied by "
    "√D, as in the original Transformer (without that the sines drown the tokens, and nothing is learnt in this time). One task and one "
    "small model: this shows what can go wrong, not what must.",
    f"在每个位置把 {BACK} 位之前的词元再写一遍，共 {TOKENS} 种词元（碰运气 {1 / TOKENS:.1%}）。两个块，8 个头，宽 64，用长 {LENGTH} 的行训练，"
    f"读长 {LENGTH * 2} 的行。每一列只数前一列之后的位置。各变体只有位置方案不同，两处例外：旋转位置另有 4 个头的一种；正弦位置的嵌入乘以 √D，"
    "与原始 Transformer 相同（不乘的话正弦会淹没词元，这么短的训练什么也学不到）。这只是一个任务、一个小模型：它说明可能出什么问题，而不是必然如此。",
)


class Scheme(NamedTuple):
    """A way of knowing positions, and what else differs."""

    positions: Positions
    heads: int = 8
    scale_embedding: bool = False


SCHEMES = {
    "NoPositions": Scheme(NoPositions()),
    "Learned": Scheme(Learned()),
    "Sinusoidal": Scheme(Sinusoidal(), scale_embedding=True),
    "Rotary, 8 heads": Scheme(Rotary()),
    "Rotary, 4 heads": Scheme(Rotary(), heads=4),
    "ALiBi": Scheme(ALiBi()),
    "Relative, 32 to 128": Scheme(Relative(buckets=32, farthest=128)),
    "Relative, 16 to 16": Scheme(Relative(buckets=16, farthest=16)),
}


@dataclass(frozen=True)
class Again:
    """Random tokens; the target of every place is the token some places back."""

    length: int
    batch: int
    seed: int

    def __call__(self, step: int) -> Batch:
        ids = torch.randint(TOKENS, (self.batch, self.length), generator=generator(self.seed, step))
        targets = torch.full_like(ids, IGNORED)
        targets[:, BACK:] = ids[:, :-BACK]
        return Batch(ids, targets)


def learnt(scheme: Scheme, *, steps: int, seed: int) -> Decoder:
    """A decoder that could read twice the length and was trained on rows of the length."""
    config = DecoderConfig(
        vocab=TOKENS,
        layers=2,
        heads=scheme.heads,
        width=64,
        context=ENDS[-1],
        positions=scheme.positions,
        scale_embedding=scheme.scale_embedding,
    )
    model = build(config, seed=seed)
    train(model, Again(LENGTH, 32, seed), next_token, steps=steps, lr=3e-3)
    return model


def right_at(model: nn.Module, batch: Batch) -> Tensor:
    """The share of right answers at each place (T); NaN where nothing is asked."""
    with torch.no_grad():
        right = model(batch.inputs).argmax(-1) == batch.targets
    share: Tensor = right.double().mean(0)
    share[(batch.targets == IGNORED).all(0)] = torch.nan
    return share


def stretches(share: Tensor) -> list[float]:
    """The mean share within the trained length, and in each stretch behind it."""
    return [share[start:end].nanmean().item() for start, end in pairwise((0, *ENDS))]


def prove(*, steps: int = 300, seed: int = 0) -> Report:
    """Train one model for each scheme; read longer rows."""
    unseen = Again(ENDS[-1], 300, seed + 1)(0)
    places = {name: right_at(learnt(scheme, steps=steps, seed=seed), unseen) for name, scheme in SCHEMES.items()}
    found = {name: stretches(share) for name, share in places.items()}
    worst = min(shares[0] for name, shares in found.items() if name != "NoPositions")
    none, learned, sines, narrow, wide, alibi, far, near = found.values()
    claims = [
        at_least(
            "within the trained length, the worst but NoPositions", "训练长度之内，NoPositions 之外最差的", worst, 0.95
        ),
        at_most("NoPositions, within the trained length", "NoPositions：训练长度之内", none[0], 0.5),
        at_least("ALiBi, up to twice the length", "ALiBi：直到两倍长度", min(alibi), 0.95),
        at_least(
            "Rotary, 4 heads of 16: up to twice the length", "Rotary，4 个宽 16 的头：直到两倍长度", min(wide), 0.8
        ),
        at_most(
            "Rotary, 8 heads of 8: behind 1.5 times the length", "Rotary，8 个宽 8 的头：1.5 倍之后", narrow[3], 0.3
        ),
        at_most("Learned, behind the trained length", "Learned：训练长度之后", max(learned[1:]), 0.3),
        at_most("Sinusoidal, behind 1.25 times the length", "Sinusoidal：1.25 倍之后", max(sines[2:]), 0.3),
        at_most("Relative, 32 ranges to 128: behind 1.5 times", "Relative，32 个区间到 128：1.5 倍之后", far[3], 0.8),
        at_least("Relative, 16 ranges to 16: behind 1.5 times", "Relative，16 个区间到 16：1.5 倍之后", near[3], 0.7),
        at_least("the second less the first", "后者减前者", near[3] - far[3], 0.05),
    ]
    table = Table(
        Words("Right answers within the trained length and behind it", "训练长度之内与之后的答对比例"),
        [
            ("positions", "位置方案"),
            (f"places {BACK + 1}-{ENDS[0]}, trained", f"第 {BACK + 1}-{ENDS[0]} 位，训练过"),
            *(
                (f"{start + 1}-{end}, to {end / LENGTH:g}×", f"{start + 1}-{end}，到 {end / LENGTH:g} 倍")
                for start, end in pairwise(ENDS)
            ),
        ],
        [[name, *(f"{share:.1%}" for share in shares)] for name, shares in found.items()],
    )
    drawn = {name: list(enumerate(share.tolist(), 1)) for name, share in places.items()}
    caption = Words("Right answers at each place; 32 were trained", "每个位置的答对比例；训练到第 32 位")
    picture = Picture("lengths", caption, curves(drawn, x="place", y="share of right answers", top=1))
    return Report(claims, [table], [picture])
