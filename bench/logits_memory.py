"""Memory and time of an update with the logits whole, in chunks, and in chunks whose logits are computed twice.

    python -m bench.logits_memory [--vocab 50000 --rows 8 --length 512 --at-once 256 1024]

A decoder of 2 blocks of width 256 with a tied head, float32, AdamW, one thread. Memory is the highest resident set of a fresh process
during one update above the one before it, when a small update had loaded all code and made the optimiser's means; Linux itself
keeps count (VmHWM). Time is the median over rounds in which the ways take turns, beside that of the whole.

`twice` is the plain alternative, `torch.utils.checkpoint` around each chunk: the logits are forgotten and made again in the backward.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bench.blockwise import GIVE_BACK, resident
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch
from clearhead.training.fit import Loss
from clearhead.training.logits import parts_of, summed
from clearhead.training.losses import next_token, training_loss
from clearhead.training.optimizer import adamw


def twice(at_once: int) -> Loss[Batch]:
    """In chunks, each a checkpoint."""

    def loss(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        features, head, _ = parts_of(model)
        x, y = features(batch.inputs).flatten(0, 1), batch.targets.flatten()

        def part(x: Tensor, y: Tensor) -> Tensor:
            return summed(head(x), y)[0]

        chunks = zip(x.split(at_once), y.split(at_once), strict=True)
        total = torch.stack([checkpoint(part, *chunk, use_reentrant=False) for chunk in chunks]).sum()
        return total, (y != IGNORED).sum()

    return loss


def way(name: str, at_once: int) -> Loss[Batch]:
    return {"whole": next_token, "chunks": training_loss(next_token, at_once=at_once), "twice": twice(at_once)}[name]


def updating(asked: argparse.Namespace) -> Callable[[Loss[Batch], int], float]:
    """Seconds of an update by a loss on so many rows."""
    config = DecoderConfig(vocab=asked.vocab, layers=2, heads=4, width=256, context=asked.length)
    model = build(config, seed=0)
    optimizer = adamw(model, lr=1e-3)

    def update(loss: Loss[Batch], rows: int) -> float:
        ids = torch.randint(asked.vocab, (rows, asked.length + 1), generator=torch.Generator().manual_seed(0))
        began = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        total, count = loss(model, Batch(ids[:, :-1], ids[:, 1:]))
        (total / count).backward()
        optimizer.step()
        return time.perf_counter() - began

    return update


def peak(name: str, at_once: int, asked: argparse.Namespace) -> float:
    """MiB of the highest resident set above the one before; to be run in a process of its own."""
    torch.set_num_threads(1)
    update, loss = updating(asked), way(name, at_once)
    update(way(name, 64), 1)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the highest so far
    before = resident("VmRSS")
    update(loss, asked.rows)
    return (resident("VmHWM") - before) / 1024


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--vocab", type=int, default=50_000)
    options.add_argument("--rows", type=int, default=8)
    options.add_argument("--length", type=int, default=512)
    options.add_argument("--at-once", type=int, nargs="+", default=[256, 1024])
    options.add_argument("--rounds", type=int, default=3)
    asked = options.parse_args()
    torch.set_num_threads(1)
    os.environ.update(GIVE_BACK)
    ways = [("whole", asked.rows * asked.length), *((name, n) for n in asked.at_once for name in ("chunks", "twice"))]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        memory = {each: pool.submit(peak, *each, asked).result() for each in ways}
    update = updating(asked)
    update(way("whole", 1), 1)
    rounds = [{each: update(way(*each), asked.rows) for each in ways} for _ in range(asked.rounds)]
    size = asked.vocab * asked.rows * asked.length * 4 / 2**20
    print(f"V {asked.vocab}, {asked.rows * asked.length} positions: the logits are {size:.0f} MiB")
    print(f"{'way':<8} {'at once':>8} {'MiB':>8} {'s':>7} {'time / whole':>13}")
    for each in ways:
        taken = statistics.median(one[each] for one in rounds)
        ratio = statistics.median(one[each] / one[ways[0]] for one in rounds)
        print(f"{each[0]:<8} {each[1]:>8} {memory[each]:>8.0f} {taken:>7.2f} {ratio:>13.2f}")


if __name__ == "__main__":
    main()
