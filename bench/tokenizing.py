"""How fast text becomes ids: bytes, characters, and BPE beside the `tokenizers` library's own call, in turn.

    python -m bench.tokenizing [shakespeare.txt] [--megabytes 20] [--rounds 3]

The text, by default the built-in corpus, is repeated until it is long enough and cut into documents; the BPE tokenizer is trained
on it. The library's call is `encode_batch_fast`, which leaves ids in its own objects; ours ends in arrays.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from clearhead.text import ByteTokenizer, CharacterTokenizer, read_text
from clearhead.text.bpe_training import train_bpe
from clearhead.text.corpus import write

DOCUMENT = 20_000


def seconds(way: Callable[[], object]) -> float:
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


def documents(text: str, megabytes: float) -> list[str]:
    """The text again and again, in documents of different beginnings: the cuts move with each repetition."""
    many = text * (1 + int(megabytes * 1e6) // len(text.encode()))
    return [many[start : start + DOCUMENT] for start in range(0, len(many), DOCUMENT)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("text", type=Path, nargs="?")
    options.add_argument("--megabytes", type=float, default=20)
    options.add_argument("--vocab", type=int, default=8192)
    options.add_argument("--rounds", type=int, default=3)
    asked = options.parse_args()
    text = read_text(asked.text).text if asked.text else write(1_000_000, seed=0)
    texts = documents(text, asked.megabytes)
    megabytes = sum(len(each.encode()) for each in texts) / 1e6
    characters, bpe = CharacterTokenizer.of(text), train_bpe([text], vocab=asked.vocab)
    ways: dict[str, Callable[[], object]] = {
        "bytes": lambda: ByteTokenizer().encode_many(texts),
        "characters": lambda: characters.encode_many(texts),
        "BPE": lambda: bpe.encode_many(texts),
        "the library": lambda: bpe.tokenizer.encode_batch_fast(texts, add_special_tokens=False),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(asked.rounds + 1):
        for name, way in ways.items():
            spent = seconds(way)
            # The first round fills caches and does not count.
            if number:
                taken[name].append(spent)
    print(f"{megabytes:.1f} MB in {len(texts):,} documents, {bpe.size:,} ids of BPE; medians of {asked.rounds}")
    for name, times in taken.items():
        print(f"  {name:<12}{megabytes / statistics.median(times):>10,.1f} MB/s")
    shares = [theirs / ours for ours, theirs in zip(taken["BPE"], taken["the library"], strict=True)]
    first, middle, last = statistics.quantiles(shares, n=4)
    print(f"  BPE has {middle:.0%} of the library's speed ({first:.0%}-{last:.0%})")


if __name__ == "__main__":
    main()
