"""`clearhead train`: the happy path, configuration files, going on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.cli import train
from clearhead.cli.options import own_name
from clearhead.formats.run import read_run
from clearhead.models.choices import ReLU
from clearhead.models.config import DecoderConfig
from clearhead.training.fit import Update
from clearhead.training.run import Evaluated, Training
from tests.cli.runs import SIZES, TEXT, Clearhead


def settings(run: Path) -> dict[str, object]:
    recorded: dict[str, object] = read_run(run).details["training"]
    return recorded


def steps_done(run: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_training_ends_with_its_loss_in_words_and_the_next_command(
    clearhead: Clearhead, text: Path, tmp_path: Path
) -> None:
    said = clearhead("train", text, "--out", tmp_path / "run", "--steps", 4, "--batch", 2, *SIZES)
    assert said.status == 0
    assert "nats per token" in said.out
    assert "ln V" in said.out
    assert f"clearhead generate {tmp_path / 'run'}" in said.out
    assert "validation loss" in said.err
    assert "tokens/s" in said.err
    assert steps_done(tmp_path / "run") == [1, 2, 3, 4]
    assert (settings(tmp_path / "run")["steps"], settings(tmp_path / "run")["batch"]) == (4, 2)


def test_the_entropy_is_told_where_it_is_known(clearhead: Clearhead, tmp_path: Path) -> None:
    """That is, of the built-in corpus."""
    said = clearhead("train", "--out", tmp_path / "run", "--steps", 1, "--batch", 1, *SIZES)
    assert said.status == 0
    assert "entropy" in said.out
    assert "corpus" in read_run(tmp_path / "run").details["data"]


def test_every_setting_reaches_the_run(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    given = {
        "steps": 3,
        "batch": 2,
        "lr": 0.01,
        "final_lr": 0.5,
        "warmup": 1,
        "weight_decay": 0.2,
        "beta2": 0.9,
        "clip": 2.0,
        "seed": 7,
        "eval_every": 2,
        "checkpoint_every": 3,
        "keep": 3,
        "optimizer": "muon",
        "schedule": "wsd",
        "label_smoothing": 0.1,
        "micro_batch": 1,
        "logits_at_once": 7,
        "dtype": "bfloat16",
    }
    switches = {"recompute": True, "skip_nonfinite": True, "compile": False}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    assert {flag for flag, _, _ in train.SETTINGS} | {"--dtype"} == {flag.partition("=")[0] for flag in flags}
    assert {flag.lstrip("-").replace("-", "_") for flag, _ in train.SWITCHES} == switches.keys()
    flags += [f"--{name.replace('_', '-')}" for name, on in switches.items() if on]
    said = clearhead("train", text, "--out", tmp_path / "run", "--device", "cpu", "--threads", 1, *flags, *SIZES)
    assert said.status == 0, said.err
    assert settings(tmp_path / "run") == given | switches


@pytest.mark.parametrize(
    "flags",
    [
        ["--eval-every", "2", "--model.feedforward_width", "20"],
        ["--eval_every", "2", "--model.feedforward-width", "20"],
        ["--eval-every=2", "--model.feedforward-width=20"],
        ["--eval_every=2", "--model.feedforward_width=20"],
    ],
    ids=" ".join,
)
def test_dashes_and_underscores_are_the_same(
    clearhead: Clearhead, text: Path, tmp_path: Path, flags: list[str]
) -> None:
    said = clearhead("train", text, "--out", tmp_path / "run", "--steps", 2, "--batch", 1, *SIZES, *flags)
    assert said.status == 0
    model = read_run(tmp_path / "run").model
    assert isinstance(model, DecoderConfig)
    assert (settings(tmp_path / "run")["eval_every"], model.feedforward_width) == (2, 20)


def test_a_choice_is_written_by_its_name(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    choices = ("--model.activation=ReLU", "--model.norm.eps=1e-3", "--model.tied=false", "--model.kernel", "Visible")
    said = clearhead("train", text, "--out", tmp_path / "run", "--steps", 1, "--batch", 1, *SIZES, *choices)
    assert said.status == 0
    model = read_run(tmp_path / "run").model
    assert isinstance(model, DecoderConfig)
    assert model.activation == ReLU()
    assert (getattr(model.norm, "eps", None), model.tied) == (1e-3, False)


def test_the_byte_tokenizer(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    said = clearhead("train", text, "--out", tmp_path / "run", "--steps", 1, "--tokenizer", "byte", *SIZES)
    assert said.status == 0
    assert read_run(tmp_path / "run").tokenizer.size == 256


def test_an_encoding_may_be_named(clearhead: Clearhead, tmp_path: Path) -> None:
    path = tmp_path / "big5.txt"
    path.write_bytes("小貓看見了鳥，很高興。\n".encode("big5") * 90)
    said = clearhead("train", path, "--out", tmp_path / "run", "--steps", 1, "--encoding", "big5", *SIZES)
    assert said.status == 0
    tokenizer = read_run(tmp_path / "run").tokenizer
    assert tokenizer.decode(tokenizer.encode("小貓看見")) == "小貓看見"


@pytest.fixture
def config(clearhead: Clearhead, text: Path, tmp_path: Path) -> Path:
    """What --print_config said about a training."""
    said = clearhead("train", text, "--steps", 3, "--batch", 2, *SIZES, "--print_config")
    assert said.status == 0
    path = tmp_path / "config.yaml"
    path.write_text(said.out, encoding="utf-8")
    return path


@pytest.mark.parametrize("config_first", [True, False])
def test_the_printed_configuration_can_be_read_again_and_what_is_typed_counts_more(
    clearhead: Clearhead, text: Path, config: Path, tmp_path: Path, config_first: bool
) -> None:
    read, typed = ["--config", config], [text, "--out", tmp_path / "run", "--steps", 2, "--model.width", 16]
    said = clearhead("train", *(read + typed if config_first else typed + read))
    assert said.status == 0
    model, recorded = read_run(tmp_path / "run").model, read_run(tmp_path / "run").details
    assert isinstance(model, DecoderConfig)
    assert (model.width, model.layers, model.context) == (16, 1, 12)
    assert (recorded["training"]["steps"], recorded["training"]["batch"]) == (2, 2)
    assert recorded["data"]["files"] == [str(text)]


@pytest.mark.parametrize("written", ["text: {0}", "text: [{0}]", '{{"text": ["{0}"], "steps": 1}}'])
def test_a_text_may_stand_in_the_configuration(clearhead: Clearhead, text: Path, tmp_path: Path, written: str) -> None:
    """Or a run on the built-in corpus would be taken for one on the text."""
    config = tmp_path / "mine.yaml"
    config.write_text(written.format(text.as_posix()), encoding="utf-8")
    said = clearhead("train", "--config", config, "--out", tmp_path / "run", "--steps", 1, "--batch", 1, *SIZES)
    assert said.status == 0
    assert read_run(tmp_path / "run").details["data"]["files"] == [str(text)]


def test_a_finished_run_says_so_and_more_steps_go_on(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "run")
    assert clearhead("train", text, *out, "--steps", 3, "--batch", 1, *SIZES).status == 0
    said = clearhead("train", *out, "--resume")
    assert said.status == 0
    assert "3 steps already" in said.out
    assert "--steps" in said.out
    assert clearhead("train", *out, "--resume", "--steps", 5).status == 0
    assert steps_done(tmp_path / "run") == [1, 2, 3, 4, 5]


def stop_after(monkeypatch: pytest.MonkeyPatch, steps: int, evaluated: bool = False) -> None:
    """As if Ctrl-C had come during update number `steps`."""
    import signal  # noqa: PLC0415

    right = Training.events

    def events(training: Training, stop: Callable[[], bool]) -> object:
        for event in right(training, stop):
            if event.step == steps and isinstance(event, Evaluated if evaluated else Update):
                signal.raise_signal(signal.SIGINT)
            yield event

    monkeypatch.setattr(Training, "events", events)


def test_a_stopped_training_says_how_to_go_on_and_that_works(
    clearhead: Clearhead, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    stop_after(monkeypatch, 3)
    said = clearhead("train", text, "--out", out, "--steps", 6, "--batch", 1, *SIZES)
    monkeypatch.undo()
    assert said.status == 130
    assert "Stopping" in said.err
    assert "after step 3" in said.out
    command = said.out[said.out.index("clearhead train") :].split()
    assert clearhead(*command[1:]).status == 0
    assert steps_done(out) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("evaluated", [False, True])
def test_a_stop_in_the_last_update_lets_it_finish(
    clearhead: Clearhead, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluated: bool
) -> None:
    stop_after(monkeypatch, 4, evaluated)
    said = clearhead("train", text, "--out", tmp_path / "run", "--steps", 4, "--batch", 1, *SIZES)
    assert said.status == 0
    assert "nats per token" in said.out
    assert read_run(tmp_path / "run").latest().step == 4


def test_a_training_that_goes_wrong_stops_there_and_keeps_what_was_right(
    clearhead: Clearhead, text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    wild = ("--lr", "1e30", "--warmup", 0, "--eval-every", 1)
    said = clearhead("train", text, "--out", out, "--steps", 3, "--batch", 1, *wild, *SIZES)
    assert said.status == 2
    last = said.err.splitlines()[-1]
    assert last.startswith("clearhead: step 2 ")
    assert "is not finite" in last
    assert "lower --lr" in last
    assert steps_done(out) == [1]
    said = clearhead(
        "train", text, "--out", tmp_path / "on", "--steps", 3, "--batch", 1, *wild, "--skip-nonfinite", *SIZES
    )
    assert said.status == 0, said.err
    lines = [json.loads(line) for line in (tmp_path / "on/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line.get("skipped", False) for line in lines] == [False, True, True]


def test_the_text_of_the_tests_is_large_enough() -> None:
    assert len(TEXT.encode()) > 1_000


def test_printed_options_leave_open_what_was_left_open(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    """What is picked for the text is picked again when they are read; so typed and read options build one model."""
    typed = ("--model.layers", 1, "--model.width", 12, "--steps", 1, "--batch", 1)
    printed = clearhead("train", text, "--out", tmp_path / "read", *typed, "--print_config").out
    (tmp_path / "options.yaml").write_text(printed, encoding="utf-8")
    assert clearhead("train", text, "--out", tmp_path / "typed", *typed).status == 0
    assert clearhead("train", "--config", tmp_path / "options.yaml").status == 0
    assert read_run(tmp_path / "read").model == read_run(tmp_path / "typed").model
    assert "heads: 4" not in printed


def test_an_options_file_that_is_not_utf8_is_one_line(clearhead: Clearhead, tmp_path: Path) -> None:
    (tmp_path / "options.yaml").write_text("steps: 3\n", encoding="utf-16")
    assert "not UTF-8" in clearhead("train", "--config", tmp_path / "options.yaml", "--out", tmp_path / "run").mistake


def test_printed_commands_name_the_program_that_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/clearhead")
    for typed, printed in {
        "/usr/bin/clearhead": "clearhead",
        "somewhere/bin/clearhead": "somewhere/bin/clearhead",
        "/any/site-packages/clearhead/__main__.py": "python -m clearhead",
        "/usr/bin/pytest": "clearhead",
    }.items():
        monkeypatch.setattr("sys.argv", [typed])
        assert own_name() == printed
