"""Memory, arithmetic and time of attention in blocks, beside the visible and the fused kernel.

    python -m bench.blockwise [--lengths 512 1024 2048 4096 --block 64]

Causal, one row, float32, forward and backward, one thread. Memory is the highest resident set of a fresh process above the
one before the kernel ran, when a small run had loaded all code: what the system had to provide, temporaries inside an
operation included. Linux itself keeps count (VmHWM), so nothing is sampled. Arithmetic is what PyTorch counts in matrix
products; it does not know the fused kernel of the CPU. Time is the median, over rounds in which the kernels take turns, of the
ratio to the visible kernel.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from clearhead.ops import Attend, attend_blockwise, attend_fused, attend_visible, causal

HEADS, WIDTH = 4, 64
# Fresh processes give freed memory back at once. By default glibc keeps some for later, more or less as it happens.
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def kernel(name: str, block: int) -> Attend:
    kernels: dict[str, Attend] = {
        "visible": attend_visible,
        "blockwise": partial(attend_blockwise, block=block),
        "fused": attend_fused,
    }
    return kernels[name]


def inputs(length: int) -> list[Tensor]:
    return [torch.randn(1, HEADS, length, WIDTH, requires_grad=True) for _ in range(3)]


def both_ways(attend: Attend, leaves: list[Tensor]) -> None:
    q, k, v = leaves
    attend(q, k, v, causal(q.shape[-2])).sum().backward()


def resident(which: str) -> int:
    """KiB: VmRSS is the resident set now, VmHWM its highest."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(which)).split()[1])


def peak(name: str, length: int, block: int) -> float:
    """MiB of the highest resident set above the one before; to be run in a process of its own."""
    torch.set_num_threads(1)
    both_ways(kernel(name, block), inputs(2 * block))
    leaves = inputs(length)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the highest so far
    before = resident("VmRSS")
    both_ways(kernel(name, block), leaves)
    return (resident("VmHWM") - before) / 1024


def flops(name: str, length: int, block: int) -> tuple[int, int]:
    """Of the forward, and of both."""
    q, k, v = inputs(length)
    with FlopCounterMode(display=False) as counter:
        mixed = kernel(name, block)(q, k, v, causal(length))
        forward = counter.get_total_flops()
        mixed.sum().backward()
    return forward, counter.get_total_flops()


def seconds(name: str, length: int, block: int) -> float:
    leaves = inputs(length)
    began = time.perf_counter()
    both_ways(kernel(name, block), leaves)
    return time.perf_counter() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096])
    options.add_argument("--block", type=int, default=64)
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    torch.set_num_threads(1)
    os.environ.update(GIVE_BACK)
    names, fresh = ("visible", "blockwise", "fused"), multiprocessing.get_context("spawn")
    print(f"{'T':>6} {'kernel':<10} {'MiB':>8} {'GFLOP forward':>14} {'and backward':>13} {'time / visible':>15}")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as pool:
        for length in asked.lengths:
            memory = {name: pool.submit(peak, name, length, asked.block).result() for name in names}
            for name in names:
                seconds(name, length, asked.block)
            rounds = [{name: seconds(name, length, asked.block) for name in names} for _ in range(asked.rounds)]
            for name in names:
                forward, both = flops(name, length, asked.block)
                ratio = statistics.median(taken[name] / taken["visible"] for taken in rounds)
                counted = [f"{count / 1e9:.3f}" if count else "not known" for count in (forward, both)]
                print(f"{length:>6} {name:<10} {memory[name]:>8.1f} {counted[0]:>14} {counted[1]:>13} {ratio:>15.2f}")


if __name__ == "__main__":
    main()
