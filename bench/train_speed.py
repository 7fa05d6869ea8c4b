"""Training speed beside nanoGPT's own model, in the same process, in turn.

    python -m bench.train_speed path/to/nanoGPT/model.py

Both models have nanoGPT's CPU recipe (4 blocks, 4 heads, width 128, context 64, batch 12, float32, eager, dropout 0), see the
same windows and are updated as each would be: nanoGPT by the calls of its train.py, clearhead by `fit`. They alternate; the
medians of tokens/s are compared, and clearhead's time outside forward, backward and step is reported.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from bench.peers import definitions
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.training.batches import Windows
from clearhead.training.fit import fit
from clearhead.training.losses import next_token
from clearhead.training.optimizer import adamw

CONFIG = DecoderConfig(vocab=65, layers=4, heads=4, width=128, context=64)
BATCH, UPDATES = 12, 60


class Peer:
    """nanoGPT's model, updated as its train.py does on a CPU without compilation."""

    def __init__(self, path: Path, windows: Windows) -> None:
        peer = definitions(path)
        self.model = peer.GPT(
            peer.GPTConfig(
                block_size=CONFIG.context,
                vocab_size=CONFIG.vocab,
                n_layer=CONFIG.layers,
                n_head=CONFIG.heads,
                n_embd=CONFIG.width,
                dropout=0.0,
                bias=False,
            )
        )
        self.optimizer = self.model.configure_optimizers(0.1, 1e-3, (0.9, 0.99), "cpu")
        self.windows, self.step = windows, 0

    def run(self, updates: int) -> float:
        began = time.perf_counter()
        for _ in range(updates):
            inputs, targets = self.windows(self.step)
            for group in self.optimizer.param_groups:
                group["lr"] = 1e-3
            _, loss = self.model(inputs, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.step += 1
        return time.perf_counter() - began


class Ours:
    """clearhead's model, updated by `fit`."""

    def __init__(self, windows: Windows) -> None:
        self.model, self.windows, self.step = build(CONFIG, seed=0), windows, 0
        self.optimizer = adamw(self.model, lr=1e-3)

    def run(self, updates: int) -> float:
        began = time.perf_counter()
        for update in fit(
            self.model,
            self.windows,
            next_token,
            optimizer=self.optimizer,
            schedule=lambda _: 1e-3,
            steps=self.step + updates,
            first=self.step,
        ):
            self.step = update.step
        return time.perf_counter() - began

    def bare(self, updates: int) -> float:
        """Forward, backward, clipping and step alone, on one batch."""
        batch = self.windows(0)
        began = time.perf_counter()
        for _ in range(updates):
            total, count = next_token(self.model, batch)
            (total / count).backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("model", type=Path, help="nanoGPT's model.py")
    options.add_argument("--rounds", type=int, default=11)
    asked = options.parse_args()
    ids = np.random.default_rng(0).integers(0, CONFIG.vocab, 1_000_000)
    windows = Windows([ids], CONFIG.context, BATCH, 0)
    peer, ours = Peer(asked.model, windows), Ours(windows)
    runs = {"nanoGPT": peer.run, "clearhead": ours.run, "bare": ours.bare}
    for run in runs.values():
        run(10)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(asked.rounds):
        for name, run in runs.items():
            seconds[name].append(run(UPDATES))
    tokens = UPDATES * BATCH * CONFIG.context
    for name in ("nanoGPT", "clearhead"):
        print(f"{name:<10} {tokens / statistics.median(seconds[name]):>10,.0f} tokens/s")
    ratios = [a / b for a, b in zip(seconds["nanoGPT"], seconds["clearhead"], strict=True)]
    print(f"clearhead / nanoGPT {statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})")
    outside = [1 - b / a for a, b in zip(seconds["clearhead"], seconds["bare"], strict=True)]
    print(f"outside forward/backward/step {statistics.median(outside):.1%}")


if __name__ == "__main__":
    main()
