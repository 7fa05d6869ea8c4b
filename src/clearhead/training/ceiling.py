"""What part of a machine's speed an update uses: its arithmetic against a large matrix product's."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

import torch

from clearhead.models.config import ModelConfig
from clearhead.models.cost import flops_per_token
from clearhead.training.fit import Update
from clearhead.training.objective import Objective
from clearhead.training.pairs import PairBatch

SECONDS = 0.25
"""How long the products take together, about; with what comes before them that stays below half a second."""
SMALLEST, LARGEST = 256, 8192
"""Sides of the matrices, powers of two."""
TIMES = 5
"""How often the product is timed; the fastest counts, as others may have been disturbed."""
BATCHES = 8
"""How many of the first batches are looked at for the length of rows, which differs where rows are filled up."""


@dataclass(frozen=True)
class Ceiling:
    """What this machine can do at best, and what an update asks of it.

    Args:
        flops_per_second: of a large matrix product, as `matmul_ceiling` measures it.
        flops_per_update: as `update_flops` counts it.
    """

    flops_per_second: float
    flops_per_update: float

    def share(self, update: Update) -> float:
        """FLOPs of the update / its seconds / the ceiling.

        Known as model FLOPs utilisation: what a model computes twice to save memory counts once, and so does what is computed
        for padding.

        Source: Chowdhery et al. 2022, appendix B (arXiv:2204.02311).
        """
        return self.flops_per_update / update.seconds / self.flops_per_second


def matmul_ceiling(device: torch.device, dtype: torch.dtype = torch.float32) -> float:
    """FLOP/s of a product of two large square matrices: 2·n³ / seconds, the fastest of a few.

    n is doubled from 256 on, until a few products would take more than a quarter of a second, at most to 8192; the best n counts. On a
    machine that others use, too, a short product is more likely to be left alone than a long one. On an accelerator the clock is
    read when the device has finished. The threads are those that PyTorch has now. No random number is drawn from
    the process.

    Args:
        device: where the training runs.
        dtype: in which its matrix products are computed; bfloat16 where the forward is cast to it.

    Source: on measuring asynchronous devices, PyTorch's notes on CUDA semantics.
    """
    side, taken = SMALLEST, _seconds(device, dtype, SMALLEST, TIMES)
    best = 2 * side**3 / taken
    while side < LARGEST and TIMES * 8 * taken < SECONDS:
        side *= 2
        taken = _seconds(device, dtype, side, TIMES)
        best = max(best, 2 * side**3 / taken)
    return best


def update_flops(config: ModelConfig, objective: Objective[Any], *, low_rank: bool = False) -> float:
    """Floating-point operations of an update, the mean of the first batches: 3 · Σ tokens · FLOPs of a token's forward.

    A backward costs twice a forward: it multiplies once for the gradients of weights, and once for those of activations. Where
    changes of low rank alone are trained, the weights want no gradients, and the factor is 2; what the changes add is
    left out. Every place of a row is counted, padding too, with all keys of the row (a causal mask allows half of them).

    Args:
        config: of the model.
        objective: what it learns from; its batches have `inputs`, and `source` for an encoder-decoder.
        low_rank: whether all weights but changes of low rank are frozen.

    Source: Kaplan et al. 2020 §2.1 (arXiv:2001.08361); `models.cost.flops_per_token`.
    """
    forward = statistics.fmean(forward_flops(config, objective.batches(step)) for step in range(BATCHES))
    return (2 if low_rank else 3) * forward


def forward_flops(config: ModelConfig, batch: Any) -> int:
    """Floating-point operations of the forward of one batch.

    Args:
        config: of the model.
        batch: with `inputs` (B,T), and `source` (B,M) for an encoder-decoder.
    """
    rows, length = map(int, batch.inputs.shape)
    if isinstance(batch, PairBatch):
        sources = batch.source.shape[1]
        parts = flops_per_token(config, length, source=sources)
        encoder = parts.pop("encoder")
        return rows * (length * sum(parts.values()) + sources * encoder)
    return rows * length * sum(flops_per_token(config, length).values())


def _seconds(device: torch.device, dtype: torch.dtype, side: int, times: int) -> float:
    """The least time of a product, after one that does not count: memory is allocated and a kernel chosen in it."""
    generator = torch.Generator(device).manual_seed(0)
    # Zeros would cost some devices less.
    left, right = (torch.randn(side, side, device=device, generator=generator).to(dtype) for _ in range(2))
    out = torch.empty(side, side, device=device, dtype=dtype)
    taken = []
    with torch.inference_mode():
        for _ in range(times + 1):
            _wait(device)
            began = time.perf_counter()
            torch.mm(left, right, out=out)
            _wait(device)
            taken.append(time.perf_counter() - began)
    return min(taken[1:])


def _wait(device: torch.device) -> None:
    """Until the device has done all it was asked."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
