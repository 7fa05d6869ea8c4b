"""From a file of text to a token file: MB/s and the most memory, with bytes, characters and BPE as tokens.

    python -m bench.token_files [--megabytes 64] [--text FILE] [--rounds 3] [--only bytes characters bpe]

The file is the text again and again, in a temporary folder; without --text it is the built-in corpus. Each way runs in a process
of its own: sources, documents, encoding, token file, as training does it, with the process's own peak of resident memory after the
first round. BPE (8,192 ids, learnt from the text) alternates with the `tokenizers` library's own `encode_batch_fast` on the same
text, the time of its calls alone; the ratio is the median over the rounds, by the clock and by processor time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from clearhead.formats.token_files import write_tokens
from clearhead.text import ByteTokenizer, CharacterTokenizer, Tokenizer, corpus, tokenizer_from_dict
from clearhead.text.bpe_training import train_bpe
from clearhead.text.documents import Reading
from clearhead.text.encoding import SIZES, encoded
from clearhead.text.library import LibraryTokenizer
from clearhead.text.sources import find_sources

WAYS = ("bytes", "characters", "bpe")
VOCAB = 8192


class Spent(NamedTuple):
    """Seconds."""

    wall: float
    processors: float
    """Of all threads together: what a busy machine does not change."""


def now() -> Spent:
    return Spent(time.perf_counter(), time.process_time())


def since(began: Spent) -> Spent:
    return Spent(*(b - a for a, b in zip(began, now(), strict=True)))


def peak() -> float:
    """The most resident memory of this process so far, in MB; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage: there a process starts with the peak of the one that started it.
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def ours(file: Path, tokenizer: Tokenizer) -> Spent:
    """From the text to the token file."""
    began = now()
    sources = find_sources([str(file)], Reading())
    write_tokens(file.with_suffix(".tokens"), tokenizer, encoded(tokenizer, sources.documents), source="")
    return since(began)


def peers(file: Path, tokenizer: LibraryTokenizer) -> Spent:
    """The library's calls on the same text, as many characters at a time, cut anywhere."""
    taken = Spent(0.0, 0.0)
    with file.open(encoding="utf-8", newline="") as lines:
        while text := lines.read(SIZES.batch):
            pieces = [text[begin : begin + SIZES.piece] for begin in range(0, len(text), SIZES.piece)]
            began = now()
            tokenizer.tokenizer.encode_batch_fast(pieces, add_special_tokens=False)
            taken = Spent(*map(sum, zip(taken, since(began), strict=True)))
    return taken


def child(way: str, file: Path, rounds: int) -> None:
    """One way in this process; what was measured as JSON."""
    tokenizer = tokenizer_from_dict(json.loads(file.with_suffix(f".{way}.json").read_text(encoding="utf-8")))
    before = peak()
    spent = [ours(file, tokenizer)]
    most = peak()
    library: list[Spent] = []
    for number in range(rounds):
        if number:
            spent.append(ours(file, tokenizer))
        if isinstance(tokenizer, LibraryTokenizer):
            library.append(peers(file, tokenizer))
    print(json.dumps({"ours": spent, "library": library, "before": before, "peak": most}))


def write_text(file: Path, text: str, megabytes: int) -> int:
    """The text again and again; the number of bytes."""
    data = text.encode()
    with file.open("wb") as out:
        while out.tell() < megabytes * 1_000_000:
            out.write(data)
        return out.tell()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--megabytes", type=int, default=64)
    options.add_argument("--text", type=Path)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", nargs="+", choices=WAYS, default=WAYS)
    options.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.child:
        child(asked.child[0], Path(asked.child[1]), asked.rounds)
        return
    text = asked.text.read_text(encoding="utf-8") if asked.text else corpus.write(800_000, 0)
    tokenizers = {
        "bytes": ByteTokenizer,
        "characters": lambda: CharacterTokenizer.of(text),
        "bpe": lambda: train_bpe([text], vocab=VOCAB),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text.txt"
        size = write_text(file, text, asked.megabytes)
        for way in asked.only:
            saved = json.dumps(tokenizers[way]().to_dict())
            file.with_suffix(f".{way}.json").write_text(saved, encoding="utf-8")
            command = [
                sys.executable,
                "-m",
                "bench.token_files",
                "--rounds",
                str(asked.rounds),
                "--child",
                way,
                str(file),
            ]
            ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            report(way, size / 1e6, json.loads(ran.stdout))


def report(way: str, megabytes: float, found: dict[str, Any]) -> None:
    def rate(spent: list[list[float]]) -> float:
        return megabytes / statistics.median(wall for wall, _ in spent)

    memory = f"{found['peak']:.0f} MB at most ({found['before']:.0f} before)"
    print(f"{way:<10} {rate(found['ours']):>7.1f} MB/s of {megabytes:.0f} MB, {memory}")
    if found["library"]:
        clock, processors = (
            [library[kind] / ours[kind] for ours, library in zip(found["ours"], found["library"], strict=True)]
            for kind in (0, 1)
        )
        print(
            f"{'library':<10} {rate(found['library']):>7.1f} MB/s; ours over it {statistics.median(clock):.3f} "
            f"({min(clock):.3f}-{max(clock):.3f}), by processor time {statistics.median(processors):.3f}"
        )


if __name__ == "__main__":
    main()
