"""Trains the small model that comes with clearhead, on the built-in corpus, and writes it into the package.

    python -m bench.builtin_model [--out FOLDER] [--steps N] [--threads N]

It reads and writes the stories of `clearhead.text.corpus`, English and Chinese: a decoder with rotary positions, narrow enough that every
number of a cell can be read. Each story stands between a mark that begins it and one that ends it. The weights are kept in bfloat16; with
the same seed, threads and release of PyTorch on the same processor they are the same bits.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

import numpy as np
import torch

from clearhead.formats.atomic import write_json
from clearhead.formats.load import load
from clearhead.formats.run import Run, create_run
from clearhead.formats.weights import changing_tensors, save_tensors
from clearhead.generation.generate import generate
from clearhead.models.build import build
from clearhead.models.choices import RMSNorm, Rotary, SwiGLU
from clearhead.models.config import DecoderConfig
from clearhead.text import MarkedTokenizer, corpus
from clearhead.text.bpe_training import train_bpe
from clearhead.text.corpus.grammar import STORY_END
from clearhead.training.batches import Windows
from clearhead.training.environment import environment
from clearhead.training.fit import evaluate, fit
from clearhead.training.losses import next_token
from clearhead.training.optimizer import adamw
from clearhead.training.schedules import schedule

OUT = Path(__file__).parent.parent / "src" / "clearhead" / "web" / "model"
SEED = 11
CHARACTERS = 2_000_000
"""Of the stories to learn from; those to be judged by come from another seed."""
VOCAB = 1024
"""Bytes, and what is common in both languages; two marks come behind."""
BATCH, STEPS, LR, WARMUP = 10, 700, 4e-3, 70
PROMPTS = {
    "en": (
        "In the barn lived a brave boy named Ben. Every evening he ate hot bread in the park. One cloudy day, a young cat named Mimi"
        " came to run with him. Ben found",
        "Once upon a time there was a kind duck named Dora. One cloudy morning, a kind mouse named Pip came to read with her. Pip gave"
        " her a brown drum. Then Pip painted the drum, and Dora",
    ),
    "zh": (
        "从前有一只快乐的小兔。有一天，它去学校跳舞，遇见了小马。小兔趴在门口，看见了一张红色的画。小兔追小马，一直追到",
        "从前有一个聪明的女孩，名叫小红。有一天，她去学校写字，遇见了小猫。小猫送给她一顶蓝色的帽子。夜里，她梦见了",
    ),
}
"""What the explorer offers to begin with: the model's own stories, in which names come again."""


def stories(characters: int, seed: int) -> list[str]:
    """Whole stories of the built-in corpus; the one that is cut at the end is left out."""
    return corpus.write(characters, seed).split(STORY_END)[:-1]


def marked(tokenizer: MarkedTokenizer, texts: list[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The ids of stories, one after another, each between its marks."""
    parts = [[tokenizer.begin, *map(int, ids), tokenizer.end] for ids in tokenizer.encode_many(texts)]
    return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])


def trained(out: Path, steps: int) -> None:
    """Train the model and write its run."""
    texts = stories(CHARACTERS, SEED)
    tokenizer = MarkedTokenizer(train_bpe(texts, vocab=VOCAB))
    config = DecoderConfig(
        vocab=tokenizer.size,
        layers=4,
        heads=4,
        width=96,
        feedforward_width=256,
        context=256,
        activation=SwiGLU(),
        norm=RMSNorm(),
        positions=Rotary(),
    )
    model = build(config, seed=SEED)
    windows = Windows([marked(tokenizer, texts)], config.context, BATCH, SEED)
    learning = schedule("cosine", lr=LR, steps=steps, warmup=min(WARMUP, steps), final=0.05)
    print(f"{sum(each.numel() for each in model.parameters()):,} parameters, {windows.an_epoch:,} windows", flush=True)
    began = time.perf_counter()
    for update in fit(
        model, windows, next_token, optimizer=adamw(model, lr=LR), schedule=learning, steps=steps, clip=1.0
    ):
        if update.step % 50 == 0 or update.step == steps:
            print(f"{update.step:>6} loss {update.loss:.3f}  {time.perf_counter() - began:,.0f} s", flush=True)
    model = model.to(torch.bfloat16)
    judged = Windows([marked(tokenizer, stories(60_000, SEED + 1))], config.context, BATCH, 0)
    loss = evaluate(model.float(), map(judged, range(8)), next_token)
    print(f"{loss:.3f} nats a token on other stories", flush=True)
    if out.exists():
        shutil.rmtree(out)
    versions = {name: environment(torch.device("cpu"))[name] for name in ("clearhead", "torch", "threads", "machine")}
    details = {"opening": [tokenizer.begin], "versions": versions, "seed": SEED, "steps": steps}
    run = create_run(out, config, tokenizer, details)
    _write(run, model, steps, float(loss))


def _write(run: Run, model: torch.nn.Module, steps: int, loss: float) -> None:
    folder = run.new_checkpoint(steps)
    folder.mkdir()
    save_tensors(changing_tensors(model.to(torch.bfloat16)), folder / "model.safetensors", {"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # whoever uses the package may read it
    write_json(folder / "state.json", {"step": steps, "val_loss": round(loss, 4)})
    write_json(run.path / "prompts.json", PROMPTS)


def shown(out: Path) -> None:
    """What it weighs, and what it writes."""
    size = sum(each.stat().st_size for each in out.rglob("*") if each.is_file())
    print(f"{size / 1e6:.3f} MB in {out}")
    loaded = load(out)
    for text in (each for prompts in PROMPTS.values() for each in prompts):
        print(text, "|", generate(loaded, text, max_tokens=60, temperature=0.0).text)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", type=Path, default=OUT)
    options.add_argument("--steps", type=int, default=STEPS)
    options.add_argument("--threads", type=int, default=2)
    asked = options.parse_args()
    torch.set_num_threads(asked.threads)
    trained(asked.out, asked.steps)
    shown(asked.out)


if __name__ == "__main__":
    main()
