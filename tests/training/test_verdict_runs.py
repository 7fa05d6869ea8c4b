"""The verdict on trainings that really ran: too fast, too short, learnt by heart; and the demo, which is healthy."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from clearhead.cli.main import main
from clearhead.training.plan import resumed_plan
from clearhead.training.record import read_record
from clearhead.training.standing import Known
from clearhead.training.text_data import TextData
from clearhead.training.verdict import Verdict, judged

SIZES = ("--model.layers=1", "--model.heads=2", "--model.width=32", "--model.context=16", "--batch=8", "--threads=1")
WORDS = ["cat", "bird", "day", "rain", "hill", "fish", "moon", "tree", "boat", "star", "wolf", "lake"]
LONG = "".join(
    f"the {WORDS[n * 7919 % 12]} saw a {WORDS[n * 104729 % 11]} by the {WORDS[n * n * 31 % 10]}.\n" for n in range(900)
)
SHORT = "".join(random.Random(0).choices([chr(0x4E00 + sign) for sign in range(150)], k=1000))
"""Signs without a rule: which one follows which can only be learnt by heart."""


def trained(folder: Path, text: str | None, *flags: str) -> Verdict:
    """The verdict on a training by the command line, measured against what the command line measures it against."""
    files = []
    if text is not None:
        (folder / "text.txt").write_text(text, encoding="utf-8")
        files = [str(folder / "text.txt")]
    assert main(["train", *files, "--out", str(folder / "run"), *flags]) == 0
    plan = resumed_plan(folder / "run", files, {})
    data, settings = plan.data, plan.settings
    assert isinstance(data, TextData)
    epochs = settings.steps * data.tokens_a_step(plan.run.model, settings.batch) / data.tokens
    known = Known(data.uniform, data.levels, data.entropy, epochs, 3e-3, settings.clip, dropout=0.0)
    return judged(read_record(plan.run.metrics), known)


def test_a_learning_rate_of_one_is_too_high(tmp_path: Path) -> None:
    assert "climbed" in trained(tmp_path, LONG, *SIZES, "--steps=60", "--lr=1").names


def test_too_few_steps_are_not_finished(tmp_path: Path) -> None:
    """And twice as many gain about what was said: within a factor of two and a half."""
    (tmp_path / "short").mkdir()
    (tmp_path / "long").mkdir()
    short = trained(tmp_path / "short", LONG, *SIZES, "--steps=60", "--model.dropout=0")
    assert "unfinished" in short.names
    long = trained(tmp_path / "long", LONG, *SIZES, "--steps=120", "--model.dropout=0")
    said = next(each.sentence for each in short.findings if each.name == "unfinished")
    promised = float(said.split("about ")[1].split(" ")[0])
    assert 0.4 < (short.last - long.last) / promised < 2.5


def test_what_is_learnt_by_heart_is_called_so(tmp_path: Path) -> None:
    flags = ("--steps=200", "--eval-every=50", "--lr=1e-2", "--model.dropout=0", "--model.width=64")
    found = trained(tmp_path, SHORT, *SIZES, *flags)
    assert "overfitting" in found.names
    assert "little_data" not in found.names
    assert found.gap > 0.2


@pytest.mark.slow
def test_the_demo_is_healthy(tmp_path: Path) -> None:
    """The built-in corpus at the sizes and the steps that are picked for it on the slowest machine."""
    threads = f"--threads={os.cpu_count() or 1}"
    assert trained(tmp_path, None, "--steps=1200", threads).names == ("near", "healthy")


def test_a_text_that_repeats_itself_is_not_called_so(tmp_path: Path) -> None:
    """The fault to the check above: with the same letters on both sides nothing is learnt by heart that does not help."""
    flags = ("--steps=100", "--lr=1e-2", "--model.dropout=0", "--model.width=64")
    found = trained(tmp_path, SHORT[:140] * 20, *SIZES, *flags)
    assert not {"overfitting", "gap", "little_data"} & set(found.names)
