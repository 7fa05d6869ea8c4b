"""Induction: a head of the second block looks for what followed the last time.

Rows repeat random tokens at a random period. Who is to go on must find where the present token stood before, and take the
token behind it. One block cannot, however many heads it has: the token behind does not say what stands before it. Two blocks with
one head each can. The first head writes into each position which token stands before it; the second looks for the position whose
token before is the present one. The induction score of a head is the weight that it gives to that position, on average, in rows
that repeat once (`detect_heads`). Whether the ability hangs on the head that scores highest is asked by
setting what it mixes to zero: with one head in the block it is gone, with two of them either is enough.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead import DecoderConfig, build
from clearhead.models.decoder import Decoder
from clearhead.tracing.detectors import detect_heads
from clearhead.tracing.edit import Edit, Editor, zero
from clearhead.tracing.record import Recorder
from clearhead.training.fit import evaluate
from clearhead.training.losses import next_token
from proofs.claims import Picture, Report, Table, Words, at_least, at_most
from proofs.pictures import curves, heat_maps
from proofs.repeats import Repeats, right_tokens
from proofs.training import train

TITLE = Words("Induction on random repeated rows", "随机重复行上的归纳")
ABOUT = Words(
    "Rows repeat random tokens at a random period. Who is to go on must find where the present token stood before, and take the "
    "token behind it. A head of the first block writes into each position which token stands before it; a head of the second "
    "looks for the position whose token before is the present one. The induction score of a head is the weight that it gives to "
    "that position, on average; then what the head mixes is set to zero.",
    "每一行按随机周期重复随机的词元。要接着写，就得找到当前词元上次出现的位置，取它后面的那个词元。第一块的头把“前一个词元是什么”写进每个位置；"
    "第二块的头去找“前一个词元正是当前词元”的位置。头的归纳得分是它给这个位置的平均权重；然后把这个头混合出的结果置零。",
)
Head = tuple[int, int]
"""Block and head."""


class Without(nn.Module):
    """The model while what some heads mix is zero; nothing stays on it."""

    def __init__(self, model: Decoder, *heads: Head) -> None:
        super().__init__()
        self.model = model
        self.edits = [Edit(f"blocks.{block}.attention.mixed", zero, heads={block: [head]}) for block, head in heads]

    def forward(self, ids: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.model(ids, tap=Editor(*self.edits))
        return logits


def learnt(layers: int, heads: int, *, steps: int, seed: int) -> tuple[Decoder, list[float]]:
    """A decoder that was trained on the rows, and its losses."""
    rows = Repeats(seed=seed)
    model = build(DecoderConfig(vocab=rows.vocab, layers=layers, heads=heads, width=64, context=rows.length), seed=seed)
    return model, train(model, rows, next_token, steps=steps, lr=3e-3)


def weights_of(model: Decoder, ids: Tensor) -> dict[str, Tensor]:
    """The weights (T,S) of every head while the first row is read."""
    recorder = Recorder("blocks.*.attention.weights")
    with torch.no_grad():
        model(ids[:1], tap=recorder)
    blocks = enumerate(recorder.tensors.values())
    return {f"head {block}.{head}": each for block, all_heads in blocks for head, each in enumerate(all_heads[0])}


def prove(*, steps: int = 500, seed: int = 0) -> Report:
    """Train three decoders; score and ablate the heads of two."""
    one, losses_of_one = learnt(1, 2, steps=steps, seed=seed)
    two, losses_of_two = learnt(2, 1, steps=steps, seed=seed)
    pair, _ = learnt(2, 2, steps=steps * 2 // 3, seed=seed)
    unseen = Repeats(seed=seed + 1, batch=200)
    batches = [unseen(step) for step in range(2)]
    scores, scores_of_pair = (detect_heads(model, period=unseen.longest) for model in (two, pair))

    def loss(model: Decoder) -> float:
        return evaluate(model, batches, next_token)

    def right(model: Decoder, *heads: Head) -> float:
        return evaluate(Without(model, *heads), batches, right_tokens)

    found, induction = scores.best("induction"), scores.scores["induction"]
    others = [float(value) for value in induction.flatten() if value < induction[found]]
    both = [(1, 0), (1, 1)]
    name = f"{found[0]}.{found[1]}"
    claims = [
        at_least("one block of two heads: loss, nats", "一个块、两个头：损失（奈特）", loss(one), 2.0, ".3f"),
        at_most("two blocks of one head: loss, nats", "两个块、各一个头：损失（奈特）", loss(two), 0.4, ".3f"),
        at_least("two blocks of one head: next token right", "两个块、各一个头：下一个词元正确", right(two), 0.95),
        at_least(f"head {name}: induction score", f"头 {name}：归纳得分", float(induction[found]), 0.7, ".3f"),
        at_most("highest induction score of another head", "其他头的最高归纳得分", max(others), 0.2, ".3f"),
        at_most(f"next token right without head {name}", f"去掉头 {name}：下一个词元正确", right(two, found), 0.15),
        at_least(
            "two heads in each block: right without one of the second block",
            "每块两个头：去掉第二块的一个头后正确",
            min(right(pair, head) for head in both),
            0.8,
        ),
        at_most("right without both", "两个都去掉后正确", right(pair, *both), 0.15),
    ]
    rows = [
        [
            f"{title}, {block}.{head}",
            *(f"{each.scores[kind][block, head]:.3f}" for kind in ("previous_token", "induction")),
            f"{right(model, (block, head)):.1%}",
        ]
        for title, model, each in (("2 × 1", two, scores), ("2 × 2", pair, scores_of_pair))
        for block, head in torch.ones_like(each.scores["induction"]).nonzero().tolist()
    ]
    table = Table(
        Words("Every head, and what is left without it", "每个头，以及去掉它之后剩下的能力"),
        [
            ("blocks × heads, head", "块 × 头，哪个头"),
            ("previous-token score", "前一词元得分"),
            ("induction score", "归纳得分"),
            ("right without it", "去掉后正确"),
        ],
        rows,
    )
    losses = {"one block, two heads": losses_of_one, "two blocks, one head each": losses_of_two}
    drawn = {title: list(enumerate(each, 1)) for title, each in losses.items()}
    caption = Words(
        "The two heads on one row: the first looks at the token before, the second behind the last time",
        "两个头读同一行：第一个看前一个词元，第二个看上次出现之后",
    )
    batch, _ = unseen.draw(2)
    return Report(
        claims,
        [table],
        [
            Picture("induction-loss", Words("The losses", "损失"), curves(drawn, x="update", y="loss, nats")),
            Picture(
                "induction-heads", caption, heat_maps(weights_of(two, batch.inputs), x="looked at", y="looks", cell=6)
            ),
        ],
    )
