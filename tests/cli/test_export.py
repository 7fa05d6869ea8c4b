"""`clearhead export`: what is written is what others load, and mistakes are one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from clearhead.cli import loading
from clearhead.cli.bar import bar_of
from clearhead.formats import safetensors_written
from clearhead.formats.load import load
from clearhead.formats.run import create_run
from clearhead.formats.weights import own_tensors, save_tensors
from clearhead.models.build import build
from clearhead.models.choices import ALiBi
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer
from clearhead.text.numbers import NumberTokenizer
from tests.cli.runs import Clearhead

SIZES = {"layers": 1, "heads": 2, "width": 8, "context": 12}


def saved(folder: Path, config: DecoderConfig, tokenizer: ByteTokenizer | NumberTokenizer) -> Path:
    """A run of a model that has learnt nothing."""
    run = create_run(folder / "run", config, tokenizer, {})
    checkpoint = run.new_checkpoint(3)
    checkpoint.mkdir()
    save_tensors(own_tensors(build(config, seed=0)), checkpoint / "model.safetensors")
    (checkpoint / "state.json").write_text("{}", encoding="utf-8")
    return run.path


@torch.no_grad()
def test_what_was_trained_here_others_load(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = clearhead("export", trained, out, "--format", "hf")
    assert (said.status, said.err) == (0, "")
    first, second = said.out.splitlines()
    assert first.startswith(f"{out}: written as gpt_neox, ")
    assert second == f'transformers.GPTNeoXForCausalLM.from_pretrained("{out}") loads it.'
    ours, text = load(trained), "小猫 cat saw 3"
    ids = AutoTokenizer.from_pretrained(out)(text, return_tensors="pt").input_ids
    assert ids.tolist() == [ours.tokenizer.encode(text)]
    theirs = AutoModelForCausalLM.from_pretrained(out).eval()
    assert (theirs(ids).logits - ours.model(ids)).abs().max() <= 1e-5  # type: ignore[operator]


def test_as_json_and_in_16_bits(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    wide, narrow = tmp_path / "wide", tmp_path / "narrow"
    facts = json.loads(clearhead("export", trained, wide, "--json").out)
    files = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert facts == {
        "model": str(trained),
        "folder": str(wide),
        "format": "hf",
        "family": "gpt_neox",
        "bytes": sum((wide / name).stat().st_size for name in files),
        "files": files,
    }
    assert clearhead("export", trained, narrow, "--dtype", "bfloat16").status == 0
    assert AutoModelForCausalLM.from_pretrained(narrow).dtype is torch.bfloat16
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (wide, narrow)]
    assert 1.5 < sizes[0] / sizes[1] < 2


def test_into_the_folder_where_one_stands(
    clearhead: Clearhead, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert clearhead("export", trained, ".").status == 0
    assert (tmp_path / "here" / "config.json").exists()


def test_numbers_have_no_tokenizer(clearhead: Clearhead, tmp_path: Path) -> None:
    run = saved(tmp_path, DecoderConfig(**SIZES, vocab=7), NumberTokenizer(7))
    said = clearhead("export", run, tmp_path / "out")
    assert said.status == 0
    assert said.err.splitlines()[-1] == "No tokenizer was written: this model reads ids."
    assert not (tmp_path / "out" / "tokenizer.json").exists()


def test_a_bar_where_writing_takes_long(
    clearhead: Clearhead, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "DELAY", 0.0)
    monkeypatch.setattr(loading, "bar_of", lambda *given, **named: bar_of(*given, **named | {"leave": True}))
    said = clearhead("export", trained, tmp_path / "out")
    line = next(line for line in said.err.splitlines() if line.startswith("writing "))
    assert "100%" in line


def test_a_folder_behind_a_link(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    """Which may be on a disk that has the room: the link stays, and the files lie where it leads to."""
    for name, there in (("there", True), ("coming", False)):
        folder, link = tmp_path / name, tmp_path / f"link-{name}"
        if there:
            folder.mkdir()
        link.symlink_to(folder)
        assert clearhead("export", trained, link).status == 0
        assert link.is_symlink()
        assert (folder / "model.safetensors").is_file()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["coming", "link-coming", "link-there", "there"]


def test_not_into_a_run(clearhead: Clearhead, trained: Path) -> None:
    """Whose folder a training may be writing."""
    said = clearhead("export", trained, trained / "more/hf").mistake
    assert f"lies inside the run {trained}" in said
    assert not (trained / "more").exists()


MISTAKES = {
    "format": (("{run}", "{new}", "--format", "onnx"), "--format onnx: there is no such format; known: hf"),
    "run": (("{new}", "{other}"), "there is no such model"),
    "there": (("{run}", "{full}"), "is there already"),
    "file": (("{run}", "{full}/mine.txt"), "is there already"),
    "under a file": (("{run}", "{full}/mine.txt/out"), "cannot be written: "),
    "dtype": (("{run}", "{new}", "--dtype", "int8"), "int8"),
    "flag": (("{run}", "{new}", "--formt", "hf"), "did you mean --format?"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_line_and_leave_nothing(
    clearhead: Clearhead, trained: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    places = {"run": trained, "new": tmp_path / "new", "other": tmp_path / "other", "full": tmp_path / "full"}
    arguments, line = MISTAKES[name]
    assert line in clearhead("export", *(each.format(**places) for each in arguments)).mistake
    assert [each.relative_to(tmp_path).as_posix() for each in sorted(tmp_path.rglob("*"))] == ["full", "full/mine.txt"]


def test_a_part_that_no_architecture_has_is_named(clearhead: Clearhead, tmp_path: Path) -> None:
    run = saved(tmp_path, DecoderConfig(**SIZES, vocab=256, positions=ALiBi()), ByteTokenizer())
    assert "gpt2, differs in positions ALiBi;" in clearhead("export", run, tmp_path / "out").mistake
    assert not (tmp_path / "out").exists()


def test_a_full_disk(clearhead: Clearhead, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors_written, "_write", full)
    assert "cannot be written: No space left on device" in clearhead("export", trained, tmp_path / "out").mistake
    assert [*tmp_path.iterdir()] == []
