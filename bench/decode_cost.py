"""What a decoded token costs: with few and many cached tokens, beside transformers, and beside loops without a cache.

    python -m bench.decode_cost [--rounds 7] [--only long peers small past]

Random weights, float32, eager, batch 1. Ways are taken in turn in one process, and a ratio is the median over the rounds:

- long: a token of a model of GPT-2's sizes (124 M) with 2,048 tokens in its cache, over one with 64; token by token in turn.
- peers: the same sizes, greedily, 32 tokens behind 64: clearhead's loop, transformers' `generate`, and without a cache.
- small: 4 blocks of width 128, from 8 to 512 tokens: `generate` with several settings over a bare loop of forward and argmax.
- past: the same with a context of 128: tokens past it with `overflow="recompute"` over a bare forward of the last 128.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

import torch

from clearhead.formats.load import Loaded
from clearhead.generation.draws import chances_after, dice
from clearhead.generation.generate import generate
from clearhead.generation.loop import Writing, decode
from clearhead.generation.rows import Reader
from clearhead.generation.sampling import SamplingSettings
from clearhead.generation.stores import DoublingStore
from clearhead.layers.store import NO_STORE, Store
from clearhead.models.build import build
from clearhead.models.choices import GELUTanh
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.text import ByteTokenizer

GPT2 = DecoderConfig(
    vocab=50257, layers=12, heads=12, width=768, context=2304, bias=True, qkv_bias=True, activation=GELUTanh()
)
SMALL = DecoderConfig(vocab=256, layers=4, heads=4, width=128, context=512)
FEW, MANY = 64, 2048
GREEDY = SamplingSettings(temperature=0)


def seconds(way: Callable[[], object]) -> float:
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


def in_turn(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each way in each round, after a round that does not count."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            spent = seconds(way)
            if number:
                taken[name].append(spent)
    return taken


def ratio(over: list[float], under: list[float]) -> str:
    """The median over the rounds, and the quarters around it."""
    first, middle, last = statistics.quantiles([a / b for a, b in zip(over, under, strict=True)], n=4)
    return f"{middle:.2f} ({first:.2f}-{last:.2f})"


def report(title: str, taken: Mapping[str, list[float]], tokens: int, *, beside: str) -> None:
    print(f"{title}, threads: {torch.get_num_threads()}; time over that of: {beside}")
    for name, times in taken.items():
        print(f"  {name:<24}{tokens / statistics.median(times):>9,.1f} tokens/s   {ratio(times, taken[beside])}")


def some_ids(count: int, vocab: int) -> list[int]:
    return torch.randint(vocab, (count,), generator=torch.Generator().manual_seed(0)).tolist()


def loop(model: Decoder, prompt: list[int], tokens: int) -> None:
    """What decoding is in the package, without text."""
    list(islice(decode(Reader(model), [Writing(list(prompt), sampling=GREEDY)]), tokens))


@torch.inference_mode()
def bare(model: Decoder, prompt: list[int], tokens: int, store: Store) -> None:
    """Forward and argmax; without a store everything is read anew."""
    ids = fresh = torch.tensor([prompt])
    for _ in range(tokens):
        logits = model(ids[:, -model.context :] if store is NO_STORE else fresh, store=store)
        fresh = logits[:, -1:].argmax(-1)
        ids = torch.cat([ids, fresh], dim=1)


@torch.inference_mode()
def bare_with_chances(model: Decoder, prompt: list[int], tokens: int) -> None:
    """Without a store, and with what every step names: a draw, its chance and its logprob."""
    ids, draw = list(prompt), dice(0)
    for _ in range(tokens):
        logits = model(torch.tensor([ids[-model.context :]]))[0, -1]
        chances = chances_after(ids, logits, GREEDY)
        ids.append(draw(chances))
        float(logits.log_softmax(-1)[ids[-1]]), float(chances[ids[-1]])


def long(rounds: int) -> None:
    model = build(GPT2, seed=0).eval()
    going = {
        f"{count:,} cached": decode(Reader(model), [Writing(some_ids(count, GPT2.vocab), sampling=GREEDY)])
        for count in (FEW, MANY)
    }
    # The first step, which reads the prompt, is the round that does not count.
    taken = in_turn({name: lambda steps=steps: next(steps) for name, steps in going.items()}, 8 * rounds)
    report("one token, 124 M", taken, 1, beside=f"{FEW:,} cached")


def peers(rounds: int) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel  # noqa: PLC0415

    ours = build(GPT2, seed=0).eval()
    theirs = GPT2LMHeadModel(GPT2Config(n_positions=GPT2.context, bos_token_id=None, eos_token_id=None)).eval()
    prompt, tokens = some_ids(FEW, GPT2.vocab), 32
    given = torch.tensor([prompt])

    def transformers() -> None:
        made = theirs.generate(
            given, attention_mask=torch.ones_like(given), do_sample=False, use_cache=True, max_new_tokens=tokens
        )
        assert made.shape[1] == FEW + tokens

    ways = {
        "clearhead": lambda: loop(ours, prompt, tokens),
        "transformers": transformers,
        "no cache": lambda: bare(ours, prompt, tokens, NO_STORE),
    }
    report("32 tokens behind 64, 124 M", in_turn(ways, rounds), tokens, beside="clearhead")


def small(rounds: int) -> None:
    model, prompt = build(SMALL, seed=0).eval(), some_ids(8, SMALL.vocab)
    loaded, tokens = Loaded(model, ByteTokenizer(), SMALL, Path()), SMALL.context - 8

    def written(**settings: float) -> Callable[[], object]:
        return lambda: generate(loaded, prompt, max_tokens=tokens, eos=(), **settings)

    ways = {
        "bare": lambda: bare(model, prompt, tokens, DoublingStore(model)),
        "temperature 0": written(temperature=0),
        "nothing set": written(),
        "τ 0.8, 40 best, p 0.9": written(temperature=0.8, top_k=40, top_p=0.9),
        "frequency penalty": written(frequency_penalty=0.2),
        "3 alternatives": written(alternatives=3),
        "bare, no cache": lambda: bare(model, prompt, tokens, NO_STORE),
    }
    report("504 tokens behind 8, small", in_turn(ways, rounds), tokens, beside="bare")


def past(rounds: int) -> None:
    config = DecoderConfig(vocab=256, layers=4, heads=4, width=128, context=128)
    model, prompt, tokens = build(config, seed=0).eval(), some_ids(config.context, config.vocab), 64
    ways = {
        "bare": lambda: bare(model, prompt, tokens, NO_STORE),
        "bare, with chances": lambda: bare_with_chances(model, prompt, tokens),
        "recompute": lambda: loop(model, prompt, tokens),
    }
    report("64 tokens past a context of 128, small", in_turn(ways, 3 * rounds), tokens, beside="bare")


PARTS: dict[str, Callable[[int], None]] = {"long": long, "peers": peers, "small": small, "past": past}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    asked = options.parse_args()
    for name in asked.only:
        PARTS[name](asked.rounds)


if __name__ == "__main__":
    main()
