"""`clearhead import`: a run that is the same model, with all that came with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from clearhead.formats.load import load
from clearhead.formats.run import read_run
from clearhead.formats.weights import digest, own_tensors, read_tensors
from clearhead.text import LibraryTokenizer
from tests.cli.runs import Clearhead

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


@pytest.fixture(scope="module")
def foreign(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder with a chat template. Nobody may write into it."""
    from clearhead.formats.hugging_face.export import export  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("foreign") / "model"
    export(load(trained), folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return folder


def test_the_run_is_the_model(clearhead: Clearhead, foreign: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "x"
    said = clearhead("import", foreign, run)
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == f"{foreign} (Hugging Face gpt_neox) is now the run {run}"
    before, after = load(foreign), load(run)
    assert before.report is not None
    assert [line.split() for line in lines[1:]] == [
        ["loaded", str(before.report.loaded)],
        ["retied", "1", "(head.weight", "=", "embedding.weight)"],
        ["unused", "0"],
        ["missing", "0"],
        ["unexpected", "0"],
    ]
    assert (after.config, after.tokenizer, after.chat_template) == (before.config, before.tokenizer, TEMPLATE)
    assert isinstance(after.tokenizer, LibraryTokenizer)
    pairs = zip(own_tensors(before.model).items(), own_tensors(after.model).items(), strict=True)
    assert all(one[0] == other[0] and torch.equal(one[1], other[1]) for one, other in pairs)
    written = [
        clearhead("generate", each, "-p", "小猫 saw", "--seed", 3, "--max-tokens", 20) for each in (foreign, run)
    ]
    assert written[0].out == written[1].out != ""


def test_what_it_came_from_is_recorded(clearhead: Clearhead, foreign: Path, tmp_path: Path) -> None:
    facts = json.loads(clearhead("import", foreign, tmp_path / "x", "--json").out)
    run = read_run(tmp_path / "x")
    checkpoint = run.best()
    assert (checkpoint.path.name, checkpoint.step, checkpoint.val_loss) == ("000000", 0, None)
    imported = run.details["imported"]
    assert imported == {
        "origin": "Hugging Face gpt_neox",
        "source": str(foreign.resolve()),
        "sha256": digest(read_tensors(checkpoint.path / "model.safetensors")),
    }
    assert facts | imported == facts
    assert (facts["missing"], facts["unexpected"], facts["unused"]) == ([], [], [])
    assert facts["retied"] == {"head.weight": "embedding.weight"}


def test_what_opens_and_closes_a_text_is_kept(clearhead: Clearhead, foreign: Path, tmp_path: Path) -> None:
    from dataclasses import replace  # noqa: PLC0415

    from clearhead.formats.imported import import_model  # noqa: PLC0415

    import_model(replace(load(foreign), opening=(2,), closing=(1, 3)), tmp_path / "x")
    again = load(tmp_path / "x")
    assert again.read("cat") == [2, *again.tokenizer.encode("cat"), 1, 3]


def test_in_16_bits(clearhead: Clearhead, foreign: Path, tmp_path: Path) -> None:
    assert clearhead("import", foreign, tmp_path / "x", "--dtype", "bfloat16").status == 0
    tensors = read_tensors(read_run(tmp_path / "x").best().path / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
    assert load(tmp_path / "x").model.head.weight.dtype is torch.float32  # type: ignore[union-attr]


def test_training_begins_with_it_and_does_not_go_on(
    clearhead: Clearhead, foreign: Path, text: Path, tmp_path: Path
) -> None:
    clearhead("import", foreign, tmp_path / "x")
    line = clearhead("train", text, "--out", tmp_path / "x", "--resume").mistake
    assert line == (
        f"{tmp_path / 'x'} was imported and holds no training that could go on; "
        f"begin one with its weights: `clearhead train TEXT --init {tmp_path / 'x'} --out NEW`"
    )
    said = clearhead("train", text, "--init", tmp_path / "x", "--out", tmp_path / "new", "--steps", 2, "--batch", 2)
    assert said.status == 0
    details = read_run(tmp_path / "new").details
    assert details["init"]["model"] == str((tmp_path / "x").resolve())
    assert "imported" not in details


MISTAKES = {
    "no source": (("{new}", "{other}"), "there is no such model"),
    "there": (("{source}", "{full}"), "is there already"),
    "dtype": (("{source}", "{new}", "--dtype", "int8"), "int8"),
    "flag": (("{source}", "{new}", "--dtyp", "bfloat16"), "did you mean --dtype?"),
    "no folder": (("{full}", "{new}"), "{full}"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_line_and_leave_nothing(
    clearhead: Clearhead, foreign: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    places = {"source": foreign, "new": tmp_path / "new", "other": tmp_path / "other", "full": tmp_path / "full"}
    arguments, line = MISTAKES[name]
    said = clearhead("import", *(each.format(**places) for each in arguments)).mistake
    assert line.format(**places) in said
    assert [each.relative_to(tmp_path).as_posix() for each in sorted(tmp_path.rglob("*"))] == ["full", "full/mine.txt"]


def test_stopped_halfway_it_leaves_nothing(foreign: Path, tmp_path: Path) -> None:
    from clearhead.formats.imported import import_model  # noqa: PLC0415

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_model(load(foreign), tmp_path / "x", written=stop)
    assert [*tmp_path.iterdir()] == []
