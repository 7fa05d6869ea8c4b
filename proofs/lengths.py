"""One copying task with each position scheme, beyond the lengths it was trained on.

A decoder reads a mark, some different letters and the mark again, and writes the letters again. It is trained on 3 to 12 letters and asked
for up to 24, so it meets positions and distances that no training has shown. A learned vector for such a position is as it was drawn.
Rotary angles go on, into distances never trained. ALiBi and T5's relative bias say of a large distance only that it is large; what they
have learnt of the others still holds. Every scheme gets the same sizes, batches and updates, whether they are enough for it or not.

Source: Press et al. 2022 (arXiv:2108.12409); Kazemnejad et al. 2023 (arXiv:2305.19466).
"""

from __future__ import annotations

import torch

from clearhead import DecoderConfig, build
from clearhead.models.choices import ALiBi, Learned, NoPositions, Positions, Relative, Rotary, Sinusoidal
from clearhead.models.decoder import Decoder
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch
from clearhead.training.fit import evaluate
from clearhead.training.losses import next_token
from proofs.claims import Picture, Report, Table, Words, at_least, at_most
from proofs.pictures import curves
from proofs.repeats import right_tokens
from proofs.training import generator, train

LETTERS, SHORTEST, LONGEST = 24, 3, 12
ASKED = (6, 12, 15, 18, 24)
SCHEMES: dict[str, Positions] = {
    "NoPositions": NoPositions(),
    "Learned": Learned(),
    "Sinusoidal": Sinusoidal(),
    "Rotary": Rotary(),
    "ALiBi": ALiBi(),
    "Relative": Relative(),
}
TITLE = Words("Copying beyond the trained length", "超出训练长度的复制")
ABOUT = Words(
    f"A decoder (two blocks, 4 heads, width 64) reads different letters of {LETTERS} and a mark, and writes the letters again. It is trained on "
    f"{SHORTEST} to {LONGEST} letters and asked for up to {2 * LONGEST}. The numbers are shares of right letters, each behind the right beginning. "
    "Sizes, batches, rate and updates are the same for all schemes; what has not learnt the trained lengths by then is shown as it is.",
    f"解码器（两个块，4 个头，宽 64）读若干个互不相同的字母（共 {LETTERS} 种）和一个标记，再把这些字母写一遍。训练长度是 {SHORTEST} 到 {LONGEST} 个字母，"
    f"测试到 {2 * LONGEST} 个。数字是在前文正确的情况下字母答对的比例。所有方案的尺寸、批、学习率、步数都相同；到那时还没学会训练长度的，也照实列出。",
)


class Copies:
    """A mark, n letters, the mark, the letters again; the letters behind the second mark are the targets.

    Args:
        shortest: n of a batch is drawn from here ...
        longest: ... to here, both included.
        batch: how many rows a step takes.
        seed: with the step, of the draws.
    """

    def __init__(self, shortest: int, longest: int, *, batch: int, seed: int) -> None:
        self.shortest, self.longest, self.batch, self.seed = shortest, longest, batch, seed

    def __call__(self, step: int) -> Batch:
        random = generator(self.seed, step)
        count = int(torch.randint(self.shortest, self.longest + 1, (), generator=random))
        letters = torch.rand(self.batch, LETTERS, generator=random).argsort(-1)[:, :count]
        half = torch.cat([torch.full((self.batch, 1), LETTERS), letters], dim=1)
        ids = torch.cat([half, half], dim=1)
        targets = ids[:, 1:].clone()
        targets[:, : count + 1] = IGNORED
        return Batch(ids[:, :-1].contiguous(), targets)


def learnt(positions: Positions, *, steps: int, seed: int) -> Decoder:
    """A decoder that knows order in this way, trained on the short rows."""
    config = DecoderConfig(
        vocab=LETTERS + 1,
        layers=2,
        heads=4,
        width=64,
        context=2 * ASKED[-1] + 2,
        positions=positions,
        tied=False,
        scale_embedding=True,  # letters as large as sinusoids
    )
    model = build(config, seed=seed)
    train(model, Copies(SHORTEST, LONGEST, batch=32, seed=seed), next_token, steps=steps, lr=3e-3)
    return model


def prove(*, steps: int = 650, rows: int = 200, seed: int = 0) -> Report:
    """Train a decoder with each scheme; ask each for so many rows of each length."""
    right: dict[str, dict[int, float]] = {}
    for name, positions in SCHEMES.items():
        model = learnt(positions, steps=steps, seed=seed)
        right[name] = {
            count: evaluate(model, [Copies(count, count, batch=rows, seed=seed + 1)(0)], right_tokens)
            for count in ASKED
        }
    trained, twice = LONGEST, 2 * LONGEST
    claims = [
        *(
            at_least(
                f"{name}: right at {trained} letters, as trained",
                f"{name}：{trained} 个字母（训练长度）",
                right[name][trained],
                0.95,
            )
            for name in ("Rotary", "ALiBi", "Relative")
        ),
        at_least(f"ALiBi: right at {twice} letters", f"ALiBi：{twice} 个字母", right["ALiBi"][twice], 0.8),
        at_least(f"Relative: right at {twice} letters", f"Relative：{twice} 个字母", right["Relative"][twice], 0.6),
        at_most(f"Rotary: right at {twice} letters", f"Rotary：{twice} 个字母", right["Rotary"][twice], 0.75),
        at_most(f"Learned: right at {twice} letters", f"Learned：{twice} 个字母", right["Learned"][twice], 0.6),
    ]
    table = Table(
        Words("Right letters; the last three columns lie beyond the training", "答对的字母；后三列超出训练长度"),
        [
            ("positions", "位置"),
            *((f"{count} ({count / LONGEST:g}×)", f"{count}（{count / LONGEST:g}×）") for count in ASKED),
        ],
        [[name, *(f"{share:.1%}" for share in shares.values())] for name, shares in right.items()],
    )
    drawn = {name: list(shares.items()) for name, shares in right.items()}
    picture = curves(drawn, x=f"letters (trained on {SHORTEST} to {LONGEST})", y="share right", top=1, marks=True)
    return Report(claims, [table], [Picture("lengths", Words("Right letters", "答对的字母"), picture)])
