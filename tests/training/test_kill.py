"""SIGKILL at fifty random moments of a real training: always a complete checkpoint, at most one interval lost, the same end."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import load
from clearhead.formats.run import read_run
from clearhead.formats.weights import read_tensors
from clearhead.messages import UserError

TEXT = "".join(f"On day {n} the cat saw {n % 7} birds.\n" for n in range(60))
SIZES = ("--model.layers=2", "--model.heads=2", "--model.width=192", "--model.context=12", "--model.dropout=0.1")
STEPS, INTERVAL, KILLS = 200, 2, 25
RHYTHM = ("--steps", STEPS, "--batch", 2, "--checkpoint-every", INTERVAL, "--eval-every", 7, "--threads", 1)

needs_kill = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


@dataclass
class Chain:
    """One training, killed again and again, and what was seen of it."""

    folder: Path
    seed: int
    kills: int = 0
    before_the_run: int = 0
    """Kills before there was anything to go on with."""
    inside_a_write: int = 0
    """Kills that left a checkpoint half written."""
    latest: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def start(self) -> subprocess.Popen[bytes]:
        """`clearhead train`, new or gone on with."""
        new = not (self.run / "config.json").exists()
        typed = ["text.txt", *RHYTHM, *SIZES] if new else ["--resume", "--threads", 1]
        with (self.folder / "said.txt").open("ab") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "clearhead", "train", "--out", "run", *map(str, typed)],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )

    def names(self) -> list[str]:
        """What is in the folder of checkpoints."""
        try:
            return [path.name for path in (self.run / "checkpoints").iterdir()]
        except FileNotFoundError:
            return []

    def newest(self) -> int:
        """The step of the newest complete checkpoint; 0 if there is none."""
        return max((int(name) for name in self.names() if name.isdecimal()), default=0)

    def until(self, process: subprocess.Popen[bytes], holds: Callable[[], bool]) -> None:
        """Wait until it holds, or the process has ended."""
        while process.poll() is None and not holds():
            time.sleep(0.0005)

    def kill_once(self, moments: random.Random) -> bool:
        """Kill one process at a random moment; False if it ended before."""
        process, newest = self.start(), self.newest()
        kind = moments.choice(["early", "after some", "in a write", "in a write", "in a write"])
        if kind == "early":
            time.sleep(moments.uniform(0, 3))
        else:
            count = moments.randint(0, 3) * INTERVAL
            self.until(process, lambda: self.newest() > newest + count)
            if kind == "in a write":
                self.until(process, lambda: any(name.startswith(".partial-") for name in self.names()))
            time.sleep(moments.uniform(0, 0.1) if kind == "after some" else moments.choice([0, 0.0005, 0.002]))
        seen = self.newest()
        process.kill()
        if process.wait(timeout=60) == 0:
            return False
        self.kills += 1
        self.look(max(seen, self.latest))
        return True

    def look(self, seen: int) -> None:
        """What the kill has left."""
        self.inside_a_write += any(name.startswith(".partial-") and "-old-" not in name for name in self.names())
        if not (self.run / "config.json").exists() or (seen == 0 and self.newest() == 0):
            self.before_the_run += 1
            return
        try:
            latest = read_run(self.run).latest()
            load(self.run, device="cpu")
            for each in read_run(self.run).checkpoints():
                read_tensors(each.path / "model.safetensors")
                read_tensors(each.path / "training.safetensors")
        except UserError as error:
            self.faults.append(f"kill {self.kills}: {error}")
            return
        self.latest = latest.step
        if latest.step < seen:
            self.faults.append(f"kill {self.kills}: step {seen} was there, {latest.step} is left")
        done = max((line["step"] for line in lines(self.run)), default=0)
        if done > latest.step + INTERVAL:
            self.faults.append(f"kill {self.kills}: {done} updates were done, {latest.step} are left")

    def go(self) -> None:
        """All kills, then to the end."""
        moments = random.Random(self.seed)
        while self.kills < KILLS and self.kill_once(moments):
            pass
        if self.start().wait(timeout=300) != 0:
            self.faults.append("it did not end")


def lines(run: Path) -> list[dict[str, float]]:
    """The whole lines of the metrics."""
    found = []
    for line in (
        (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines() if (run / "metrics.jsonl").exists() else []
    ):
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return found


def state(run: Path) -> dict[str, Tensor]:
    """All that the last checkpoint holds."""
    folder = read_run(run).latest().path
    assert int(folder.name) == STEPS
    return read_tensors(folder / "model.safetensors") | read_tensors(folder / "training.safetensors")


@needs_kill
@pytest.mark.slow
def test_fifty_kills_lose_nothing(tmp_path: Path) -> None:
    chains = [Chain(tmp_path / name, seed) for seed, name in enumerate(("first", "second"))]
    for folder in (*(chain.folder for chain in chains), tmp_path / "whole"):
        folder.mkdir()
        (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    threads = [threading.Thread(target=chain.go) for chain in chains]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = Chain(tmp_path / "whole", 0)
    assert whole.start().wait(timeout=300) == 0
    expected = state(whole.run)
    for chain in chains:
        assert chain.faults == []
        assert "Traceback" not in (chain.folder / "said.txt").read_text(encoding="utf-8")
        found = state(chain.run)
        assert found.keys() == expected.keys()
        assert [name for name in found if not torch.equal(found[name], expected[name])] == []
        assert [line["step"] for line in lines(chain.run)] == list(range(1, STEPS + 1))
        losses = [[line["loss"] for line in lines(each.run)] for each in (chain, whole)]
        assert losses[0] == losses[1]
    kills = sum(chain.kills for chain in chains)
    print(*chains, sep="\n")  # noqa: T201 - what was killed where, for whoever reads a failure
    assert kills == 2 * KILLS
    assert sum(chain.inside_a_write for chain in chains) >= 3
    assert sum(chain.before_the_run for chain in chains) < KILLS
