"""Tokens per second of decoding: with each cache and without, in turn, in one process.

    python -m bench.decode_speed [--layers 4 --width 128 --context 512]

A model with random weights decodes greedily from a prompt of 8 tokens to its full context.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from clearhead.generation.stores import FixedStore, GrowingStore
from clearhead.layers.store import NO_STORE
from clearhead.models.build import build
from clearhead.models.choices import Rotary
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder


def seconds(model: Decoder, new_store: Callable[[Decoder], object] | None, tokens: int) -> float:
    """Wall time to decode `tokens` tokens after 8."""
    ids = torch.arange(8)[None]
    store = NO_STORE if new_store is None else new_store(model)
    began = time.perf_counter()
    with torch.inference_mode():
        fresh = ids
        for _ in range(tokens):
            logits = model(ids if new_store is None else fresh, store=store)
            fresh = logits[:, -1:].argmax(-1)
            ids = torch.cat([ids, fresh], dim=1)
    return time.perf_counter() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("layers", 4), ("heads", 4), ("width", 128), ("context", 512), ("rounds", 5)):
        options.add_argument(f"--{name}", type=int, default=default)
    asked = options.parse_args()
    config = DecoderConfig(
        vocab=256, layers=asked.layers, heads=asked.heads, width=asked.width, context=asked.context, positions=Rotary()
    )
    model, tokens = build(config, seed=0).eval(), asked.context - 8
    ways = {"no cache": None, "growing": GrowingStore, "fixed": FixedStore}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(asked.rounds):
        for name, way in ways.items():
            taken[name].append(seconds(model, way, tokens))
    for name, times in taken.items():
        ratio = statistics.median(a / b for a, b in zip(taken["no cache"], times, strict=True))
        print(f"{name:<10} {tokens / statistics.median(times):>8,.0f} tokens/s   {ratio:.1f} times no cache")


if __name__ == "__main__":
    main()
