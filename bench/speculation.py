"""What speculation costs and wins: reading several tokens over reading one, and tokens per second with drafts and without.

    python -m bench.speculation [--rounds 7] [--only verifying texts]
    python -m bench.speculation --model runs/large [--draft runs/small] [--prompt "..."]

Float32, eager, batch 1. All ways are taken in turn in one process; numbers are medians over the rounds.

- verifying: a forward of 1 + k tokens behind 256 cached ones over a forward of one, for a small model (0.8 M) and one of
  GPT-2's sizes (124 M), with random weights. The nearest line is `SEVERAL` and `VERIFYING` of generation/writing.py.
- texts: greedy, 256 tokens. Without --model a model with random weights, whose text soon repeats itself: what look-up is made
  for. Its blocks but the first two add nothing, and the draft is those two: always right, the most that a draft can win. A
  draft with weights of its own is never right: the most that one can lose.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import torch

from clearhead.formats.load import Loaded, load
from clearhead.generation.generate import generate
from clearhead.generation.stores import DoublingStore
from clearhead.generation.writing import Helper
from clearhead.models.build import build
from clearhead.models.choices import Rotary
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.text import ByteTokenizer

SMALL = DecoderConfig(vocab=256, layers=4, heads=4, width=128, context=512, positions=Rotary())
LARGE = DecoderConfig(vocab=256, layers=10, heads=10, width=640, context=512, positions=Rotary())
GPT2 = DecoderConfig(vocab=50257, layers=12, heads=12, width=768, context=1024)
CACHED, TOKENS = 256, 256
MORE = (1, 2, 3, 4, 6, 8, 12, 16)


def in_turn(ways: Mapping[object, Callable[[], object]], rounds: int) -> dict[object, list[float]]:
    """Seconds of each way in each round, after a round that does not count."""
    taken: dict[object, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if number:
                taken[name].append(time.perf_counter() - began)
    return taken


def over(taken: Mapping[object, list[float]], name: object, base: object) -> float:
    """The median over the rounds of how many times as long one way took as another."""
    return statistics.median(a / b for a, b in zip(taken[name], taken[base], strict=True))


@torch.inference_mode()
def verifying(name: str, config: DecoderConfig, rounds: int) -> None:
    """The cost of a forward by the number of its tokens."""
    model = build(config, seed=0).eval()
    parameters = sum(weight.numel() for weight in model.parameters())
    store = DoublingStore(model)
    model(torch.arange(CACHED)[None] % config.vocab, store=store)

    def reading(k: int) -> None:
        model(torch.arange(1 + k)[None], store=store)
        store.truncate(CACHED)

    taken = in_turn({k: lambda k=k: reading(k) for k in (0, *MORE)}, rounds)
    print(f"{name}, {parameters / 1e6:.1f} M: one token {statistics.median(taken[0]) * 1e3:.1f} ms")
    for k in MORE:
        ratio = over(taken, k, 0)
        print(f"  1 + {k:<2} tokens {ratio:>6.2f} times one   {(ratio - 1) / k:>6.3f} for each more")
    each, once = statistics.linear_regression(MORE, [over(taken, k, 0) - 1 for k in MORE])
    print(f"  nearest line: {once:.2f} once and {each:.3f} for each more")


def random_pair() -> tuple[Loaded, dict[str, Helper | None]]:
    """A model, and who may propose for it."""

    def loaded(model: Decoder, config: DecoderConfig) -> Loaded:
        return Loaded(model, ByteTokenizer(), config, Path("random weights"))

    model, light = build(LARGE, seed=0).eval(), replace(LARGE, layers=2)
    with torch.no_grad():
        for block in model.blocks[2:]:
            for part in (block.attention.output, block.feedforward.down):
                part.weight.zero_()
    always, never = build(light, seed=0).eval(), build(light, seed=1).eval()
    always.load_state_dict({name: model.state_dict()[name] for name in always.state_dict()})
    helpers = {
        "look-up": "lookup",
        "a draft always right": loaded(always, light),
        "one never right": loaded(never, light),
    }
    return loaded(model, LARGE), {"plain": None, **helpers}


def texts(model: Loaded, helpers: dict[str, Helper | None], prompt: str, rounds: int) -> None:
    """Tokens per second of the same greedy text."""
    ways = {
        name: lambda draft=draft: generate(model, prompt, max_tokens=TOKENS, temperature=0, draft=draft)
        for name, draft in helpers.items()
    }
    taken = in_turn(ways, rounds)
    plain = ways["plain"]().ids
    for name, way in ways.items():
        made = way()
        told = made.speculation
        speed = len(made.ids) / statistics.median(taken[name])
        same = "the same text" if made.ids == plain else "ANOTHER TEXT"
        line = f"  {name:<22} {speed:>7.1f} tokens/s   {1 / over(taken, name, 'plain'):.2f} times plain   {same}"
        print(line if told is None else f"{line}   {told.accepted} of {told.proposed} proposals accepted")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--only", nargs="+", choices=("verifying", "texts"), default=("verifying", "texts"))
    options.add_argument("--model")
    options.add_argument("--draft")
    options.add_argument("--prompt", default="Once upon a time there was")
    asked = options.parse_args()
    print(f"{torch.get_num_threads()} threads, {asked.rounds} rounds")
    if asked.model is not None:
        model = load(asked.model)
        drafts: dict[str, Helper | None] = {} if asked.draft is None else {asked.draft: load(asked.draft)}
        texts(model, {"plain": None, "look-up": "lookup", **drafts}, asked.prompt, asked.rounds)
        return
    if "verifying" in asked.only:
        verifying("small", SMALL, asked.rounds * 10)
        verifying("GPT-2's sizes", GPT2, asked.rounds)
    if "texts" in asked.only:
        model, helpers = random_pair()
        print(f"{LARGE.layers} blocks of width {LARGE.width}")
        texts(model, helpers, asked.prompt, asked.rounds)


if __name__ == "__main__":
    main()
