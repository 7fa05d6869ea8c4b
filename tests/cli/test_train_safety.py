"""`clearhead train` and what belongs to others: the user's files, another process's run, what a run began with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clearhead.formats.lock import NAME, training_alone
from clearhead.formats.run import read_run
from tests.cli.runs import SIZES, Clearhead, start, write_text

QUICK = ("--steps", 4, "--batch", 2)


def test_files_of_the_user_stay(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    own = tmp_path / "run/tokens/mine.txt"
    own.parent.mkdir(parents=True)
    own.write_text("precious", encoding="utf-8")
    assert "not empty" in clearhead("train", text, "--out", tmp_path / "run", *QUICK, *SIZES).mistake
    own.rename(own.with_name("train.tokens"))
    # What looks like a token file of a killed process is no text of ours until it is whole; a mistake deletes none.
    assert clearhead("train", tmp_path / "nothing.txt", "--out", tmp_path / "run", *QUICK).status == 2
    assert own.with_name("train.tokens").read_text(encoding="utf-8") == "precious"


def test_a_run_in_training_is_left_alone(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert clearhead("train", text, "--out", out, *QUICK, *SIZES).status == 0
    with training_alone(out):
        assert "another process" in clearhead("train", "--out", out, "--resume", "--steps", 9).mistake
    assert clearhead("train", "--out", out, "--resume", "--steps", 9).status == 0
    assert not (out / NAME).exists()


def test_of_two_that_begin_at_once_one_trains(text: Path, tmp_path: Path) -> None:
    arguments = ("train", text, "--out", "run", "--steps", 4, "--batch", 2, *SIZES)
    both = [start(*arguments, cwd=tmp_path) for _ in range(2)]
    ended = [process.communicate(timeout=100)[1].decode() for process in both]
    statuses = sorted(process.returncode for process in both)
    assert statuses == [0, 2], ended
    assert read_run(tmp_path / "run").latest().step == 4


def test_what_fails_leaves_no_folder(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    for flags in (("--lr", 0), ("--model.context", 0), ("--minutes", 0), ("--model", "Encoder", "--model.context", 2)):
        assert clearhead("train", text, "--out", tmp_path / "run", *QUICK, *flags).mistake
        assert not (tmp_path / "run").exists()


def test_a_resumption_keeps_to_what_the_run_began_with(
    clearhead: Clearhead, trained: Path, text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    begun = ("--init", trained, "--lora.rank", 2)
    assert clearhead("train", text, "--out", out, *begun, *QUICK).status == 0
    again = ("train", "--out", out, "--resume", "--steps", 6)
    assert "lora.rank" in clearhead(*again, "--lora.rank", 3).mistake
    assert "lora.alpha" in clearhead(*again, "--lora.rank", 2, "--lora.alpha", 9).mistake
    assert "init" in clearhead(*again, "--init", tmp_path).mistake
    assert clearhead(*again, *begun).status == 0
    plain = tmp_path / "plain"
    assert clearhead("train", text, "--out", plain, *QUICK, *SIZES).status == 0
    assert "lora" in clearhead("train", "--out", plain, "--resume", "--steps", 6, "--lora.rank", 2).mistake


def test_a_model_that_knows_no_character_of_a_text_does_not_learn_it(
    clearhead: Clearhead, trained: Path, tmp_path: Path
) -> None:
    text = tmp_path / "greek.txt"
    text.write_text("αβγδε ζηθ " * 200, encoding="utf-8")
    said = clearhead("train", text, "--init", trained, "--out", tmp_path / "run", *QUICK)
    assert "does not know" in said.mistake
    assert not (tmp_path / "run").exists()
    write_text(tmp_path)
    some = tmp_path / "some.txt"
    some.write_text("αβγ" + (tmp_path / "text.txt").read_text(encoding="utf-8"), encoding="utf-8")
    said = clearhead("train", some, "--init", trained, "--out", tmp_path / "run", *QUICK)
    assert said.status == 0
    assert "3 of " in said.err


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--field", "body"], "--field"),
        (["--document-mask", "false"], "--document-mask"),
        (["--minutes", "0.1", "--batch", "3"], "--batch"),
        (["--minutes", "0.1", "--model.layers", "1"], "--model.layers"),
        (["--minutes", "0.1", "--model", "Encoder"], "--minutes"),
        (["--preset", "nanogpt", "--model.layers", "1"], "--preset"),
        (["--preset", "nonsense"], "nonsense"),
    ],
    ids=str,
)
def test_what_has_no_effect_is_refused(
    clearhead: Clearhead, text: Path, tmp_path: Path, flags: list[str], named: str
) -> None:
    assert named in clearhead("train", text, "--out", tmp_path / "run", *flags).mistake
    assert not (tmp_path / "run").exists()


def test_a_dial_of_seconds(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    """The planned time is the one that was asked for, whatever the update is made of."""
    said = clearhead("train", text, "--out", tmp_path / "run", "--minutes", 0.05, "--micro-batch", 3)
    assert said.status == 0, said.err
    assert "0.05" in said.err
    assert "Estimate" in said.err
    assert "--minutes" in clearhead("train", "--out", tmp_path / "run", "--resume", "--minutes", 1).mistake


def test_a_line_of_the_record_that_is_damaged_costs_no_other(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert clearhead("train", text, "--out", out, *QUICK, *SIZES).status == 0
    record = out / "metrics.jsonl"
    lines = record.read_text(encoding="utf-8").splitlines()
    record.write_text("\n".join([lines[0], "garbage", *lines[2:]]) + "\n", encoding="utf-8")
    assert clearhead("train", "--out", out, "--resume", "--steps", 6).status == 0
    kept = [json.loads(line)["step"] for line in record.read_text(encoding="utf-8").splitlines()]
    assert kept == [1, 3, 4, 5, 6]


def test_a_training_that_went_wrong_goes_on_from_its_last_checkpoint(
    clearhead: Clearhead, text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    wild = ("--lr", "1e30", "--warmup", 0, "--checkpoint-every", 1, "--eval-every", 9)
    assert clearhead("train", text, "--out", out, *QUICK, *wild, *SIZES).status == 2
    assert read_run(out).latest().step == 1
    said = clearhead("train", "--out", out, "--resume", "--skip-nonfinite")
    assert said.status == 0, said.err
    assert read_run(out).latest().step == 4


def test_fewer_steps_than_are_done_change_nothing(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert clearhead("train", text, "--out", out, *QUICK, *SIZES).status == 0
    before = (out / "config.json").read_text(encoding="utf-8")
    assert clearhead("train", "--out", out, "--resume", "--steps", 2).status == 0
    assert (out / "config.json").read_text(encoding="utf-8") == before
