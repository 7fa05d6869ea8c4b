"""Teaches an encoder-decoder to copy, and another to reverse, 12 random letters; says when 99% are wholly right.

    python examples/copy_and_reverse.py

The pairs are made as they are needed, so none is ever seen twice: what is learnt is the rule. `fit` is the one that learns
language; the model, its cross-attention and the loss are the library's own. The seconds are those of the updates alone.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from clearhead import EncoderDecoderConfig, build, fit
from clearhead.training.fit import evaluate
from clearhead.training.losses import exact_match, target_token
from clearhead.training.optimizer import adamw
from clearhead.training.pairs import Drawn, IdPair, Marks
from clearhead.training.schedules import warmup_cosine

LETTERS, LENGTH = 26, 12
MARKS = Marks(begin=LETTERS, end=LETTERS + 1)
WANTED = 0.99


def copy(generator: np.random.Generator) -> IdPair:
    """Letters, and the same letters."""
    letters = generator.integers(LETTERS, size=LENGTH)
    return IdPair(letters, letters)


def reverse(generator: np.random.Generator) -> IdPair:
    """Letters, and the same letters from the last to the first."""
    letters = generator.integers(LETTERS, size=LENGTH)
    return IdPair(letters, letters[::-1].copy())


TASKS = {"copy": copy, "reverse": reverse}


def learn(task: str, *, steps: int, seed: int) -> float:
    """Train one model, tell how it goes, and give the share of new sources that it answers wholly right."""
    config = EncoderDecoderConfig(vocab=LETTERS + 2, layers=2, heads=4, width=64, context=LENGTH + 1)
    model = build(config, seed=seed)
    batches = Drawn(TASKS[task], MARKS, batch=64, seed=seed)
    unseen = [Drawn(TASKS[task], MARKS, batch=500, seed=seed + 1)(step) for step in range(4)]
    lr = 3e-3
    updates = fit(
        model,
        batches,
        target_token,
        optimizer=adamw(model, lr=lr),
        schedule=lambda step: warmup_cosine(step, lr=lr, steps=steps, warmup=50, final=0.1),
        steps=steps,
    )
    seconds, right, reached = 0.0, 0.0, False
    for update in updates:
        seconds += update.seconds
        if update.step % 50 == 0 or update.step == steps:
            right = evaluate(model, unseen, exact_match)
            print(
                f"{task:<8} step {update.step:>4}  {seconds:5.1f} s  loss {update.loss:.4f}  wholly right {right:.2%}"
            )
        if right >= WANTED and not reached:
            reached = True
            print(f"{task:<8} {WANTED:.0%} reached after {seconds:.1f} s of training")
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"{' or '.join(TASKS)}; both if none is given")
    parser.add_argument("--steps", type=int, default=500, help="updates of each training")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the pairs")
    asked = parser.parse_args()
    if unknown := [task for task in asked.tasks if task not in TASKS]:
        parser.error(f"there is no task {unknown[0]}; there are {', '.join(TASKS)}")
    shares = [learn(task, steps=asked.steps, seed=asked.seed) for task in asked.tasks or TASKS]
    return 0 if min(shares) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
