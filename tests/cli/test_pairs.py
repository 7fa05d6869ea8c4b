"""Pairs on the command line: train, go on, answer, check; and what a user may get wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from clearhead.cli.model_flags import without_fields
from clearhead.formats.run import read_run
from clearhead.formats.weights import read_tensors
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.training.plan import new_plan
from clearhead.training.run import Training
from tests.cli.runs import Clearhead

SIZES = ("--model.layers", 1, "--model.width", 8, "--model.heads", 2, "--batch", 4)
LINES = [f"word {n}\t{n} 词" for n in range(40)]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("named", [("--model", "EncoderDecoder"), ("--model=EncoderDecoder",), ("--model", "EncoderDecoderConfig")])  # fmt: skip
def test_the_kind_is_named_by_its_class(
    clearhead: Clearhead, pairs: Path, tmp_path: Path, named: tuple[str, ...]
) -> None:
    out = tmp_path / "run"
    said = clearhead("train", pairs, *named, "--out", out, *SIZES, "--steps", 3)
    assert said.status == 0, said.err
    assert " of 4 " in said.out
    model = read_run(out).model
    assert isinstance(model, EncoderDecoderConfig)
    # The longest source is "word 39", the longest target "39 词"; each has a mark.
    assert (model.encoder.context, model.context, model.layers, model.encoder.layers) == (8, 5, 1, 1)
    written = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert 0 <= written[-1]["exact_match"] <= 1


def test_a_run_is_gone_on_with_to_the_bit(clearhead: Clearhead, pairs: Path, tmp_path: Path) -> None:
    model = EncoderDecoderConfig(layers=1, heads=2, width=8, context=9, dropout=0.3)
    for name, stop in (("whole", None), ("parts", 3)):
        given = {"steps": 6, "batch": 7}
        plan = new_plan(tmp_path / name, [str(pairs)], given, model=model, device=torch.device("cpu"))
        objective = plan.data.objective(plan.run.model, batch=7, seed=0)
        training = Training(plan.run, plan.settings, objective, torch.device("cpu"))
        for _ in training.events(stop=lambda training=training, stop=stop: training.step == stop):
            pass
        training.save_if_new()
    assert read_run(tmp_path / "parts").latest().step == 3
    torch.manual_seed(99)
    assert clearhead("train", "--out", tmp_path / "parts", "--resume").status == 0
    one, other = (
        read_tensors(read_run(tmp_path / name).latest().path / "model.safetensors") for name in ("whole", "parts")
    )
    assert read_run(tmp_path / "parts").latest().step == 6
    assert all(one[name].equal(other[name]) for name in one)


def test_answers_and_checks(clearhead: Clearhead, pairs: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    trained = clearhead("train", pairs, "--model", "EncoderDecoder", "--out", out, *SIZES, "--steps", 3)
    assert "generate" in trained.out
    assert " --prompt=" in trained.out
    said = clearhead("generate", out, "-p", "word 3", "--json")
    assert said.status == 0
    answer = json.loads(said.out)
    assert len(answer["ids"]) <= 5
    assert clearhead("generate", out, "-p", "word 3").out.rstrip("\n") == answer["text"].rstrip("\n")
    assert "-p" in clearhead("generate", out).mistake
    # 14 characters and the mark.
    line = clearhead("generate", out, "-p", "word word word").mistake
    assert all(named in line for named in ("source", " 15 ", " 8;", "--model.source_context"))
    checked = clearhead("check", out, "--json")
    assert checked.status == 0
    assert {"mask.ignored", "cross.source-lost"} <= {each["id"] for each in json.loads(checked.out)["checks"]}
    assert clearhead("info", out).status == 0


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (["a\tb", "no tab here"], "ine 2 of"),
        (["a\tb", "c\td\te"], "3 columns"),
        (["a\tb", "\td"], "no source"),
        (["a\tb", "c\t"], "no target"),
        (["a\tb"], "one pair"),
        ([""], "no pairs"),
        (["a\tb", "a\tc"], "two different sources"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_left(
    clearhead: Clearhead, tmp_path: Path, lines: list[str], named: str
) -> None:
    path = tmp_path / "bad.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert named in clearhead("train", path, "--model", "EncoderDecoder", "--out", tmp_path / "run").mistake
    assert not (tmp_path / "run").exists()


def test_other_mistakes(clearhead: Clearhead, pairs: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "run")
    kind = ("--model", "EncoderDecoder")
    assert "pairs" in clearhead("train", *kind, *out).mistake
    assert "Features" in clearhead("train", pairs, "--model", "Encoder", "--model.head", "Features", *out).mistake
    assert "EncoderDecoderConfig" in clearhead("train", pairs, "--model", "Foo", *out).mistake
    line = clearhead("train", pairs, *kind, "--model.source_context", 7, *out).mistake
    assert all(named in line for named in ("source", f"line 11 of {pairs}", " 8 ", " 7;", "--model.source_context"))
    line = clearhead("train", pairs, *kind, "--model.context", 4, *out).mistake
    assert all(named in line for named in ("target", f"line 11 of {pairs}", " 5 ", " 4;", "--model.context"))
    assert "source_vocab" in clearhead("train", pairs, *kind, "--model.source_vocab", 7, *out).mistake
    assert "Parallel" in clearhead("train", pairs, *kind, "--model.block", "Parallel", *out).mistake
    assert not (tmp_path / "run").exists()
    assert clearhead("train", pairs, *kind, *out, *SIZES, "--steps", 1).status == 0
    assert "layers" in clearhead("train", *out, "--resume", *kind, "--model.layers", 2).mistake
    assert "DecoderConfig" in clearhead("train", *out, "--resume", "--model", "Decoder").mistake
    pairs.write_text("\n".join(LINES[1:]), encoding="utf-8")
    assert "sha256" in clearhead("train", *out, "--resume", "--steps", 2).mistake


def test_a_field_alone_means_the_kind_that_the_run_is_of(clearhead: Clearhead, pairs: Path, tmp_path: Path) -> None:
    out = ("train", "--out", tmp_path / "run")
    assert (
        clearhead(*out, pairs, "--model", "EncoderDecoder", *SIZES, "--model.encoder_layers", 2, "--steps", 1).status
        == 0
    )
    again = (*out, "--resume", "--steps", 2)
    # What was not typed then may be typed now: the run has 2 key/value heads, and reads sources of 8.
    same = ("--model.kv_heads", 2, "--model.source_context", 8)
    assert clearhead(*again, "--model", "EncoderDecoder", *same, "--steps", 1).status == 0
    assert clearhead("train", pairs, "--model.width", 8, *again[1:], "--model.encoder_layers=2").status == 0
    assert read_run(tmp_path / "run").latest().step == 2
    assert "model.width: " in clearhead(*again, "--model.width", 16).mistake
    assert "model.encoder_layers: " in clearhead(*again, "--model.encoder_layers", 3).mistake
    assert "belongs to Decoder" in clearhead(*again, "--model.window", 3).mistake
    assert "--model.width" in clearhead(*again, "--model.widht", 8).mistake
    assert "expected one argument" in clearhead(*again, "--model.width").mistake
    assert (
        clearhead(*again, "--model.width", 8, "--print_config").out.count("class_path: clearhead.EncoderDecoderConfig")
        == 1
    )
    (tmp_path / "options.yaml").write_text(f"out: {tmp_path / 'run'}\nresume: true\n", encoding="utf-8")
    read = ("train", "--config", tmp_path / "options.yaml", "--model.width")
    assert clearhead(*read, 8).status == 0
    assert "model.width: " in clearhead(*read, 16).mistake
    # A new run of the same file, or one whose kind is typed, is as it was.
    assert clearhead("train", pairs, "--print_config", *SIZES).out.count("clearhead.DecoderConfig") == 1
    assert "DecoderConfig" in clearhead(*again, "--model", "Decoder", "--model.width", 8).mistake
    assert "no such model" in clearhead("train", "--resume", "--out", tmp_path / "none", "--model.width", 8).mistake


def test_what_stands_beside_the_fields_is_kept() -> None:
    typed = [
        "a",
        "--model.width",
        "8",
        "b",
        "--model.layers=2",
        "c",
        "--model.heads",
        "--out",
        "d",
        "--print_config",
        "e",
    ]
    assert without_fields(typed) == ["a", "b", "c", "--out", "d", "e"]


def test_bytes_and_other_encodings(clearhead: Clearhead, tmp_path: Path) -> None:
    path = tmp_path / "gb.tsv"
    lines = [f"第{n}天，小猫看见了几只鸟？\t它看见了{n % 5}只鸟，高兴地回家了。" for n in range(40)]
    path.write_bytes("\n".join(lines).encode("gb18030"))
    said = clearhead("train", path, "--model", "EncoderDecoder", "--tokenizer", "byte", "--out", tmp_path / "run", *SIZES, "--steps", 1)  # fmt: skip
    assert said.status == 0, said.err
    assert "gb18030" in said.err.lower()
    assert read_run(tmp_path / "run").tokenizer.size == 258


def test_a_model_written_as_json_is_what_is_built(clearhead: Clearhead, pairs: Path, tmp_path: Path) -> None:
    written = json.dumps({"class_path": "EncoderDecoderConfig", "init_args": {"layers": 1, "width": 8, "heads": 2}})
    assert clearhead("train", pairs, "--model", written, "--out", tmp_path / "run", "--steps", 1).status == 0
    model = read_run(tmp_path / "run").model
    assert isinstance(model, EncoderDecoderConfig)
    assert (model.layers, model.width, model.heads, model.context) == (1, 8, 2, 5)


WRITTEN = {
    "YAML": "model:\n  class_path: EncoderDecoder\n  init_args:\n    width: 8\n    heads: 2\n",
    "YAML with a comment": "model:\n  class_path: 'EncoderDecoder' # reads and writes\n  init_args: {width: 8, heads: 2}\n",
    "YAML in one line": "model: {class_path: EncoderDecoder, init_args: {width: 8, heads: 2}}\n",
    "JSON": '{"model": {"class_path": "EncoderDecoder", "init_args": {"width": 8, "heads": 2}}}',
    "the whole name": "model:\n  class_path: EncoderDecoderConfig\n  init_args:\n    width: 8\n    heads: 2\n",
    "Windows": "model:\r\n  class_path: EncoderDecoder\r\n  init_args:\r\n    width: 8\r\n    heads: 2\r\n",
}


@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize("flag", ["--config", "--config="])
def test_a_file_names_the_kind_as_the_command_line_does(
    clearhead: Clearhead, pairs: Path, tmp_path: Path, form: str, flag: str
) -> None:
    """Numbers are read as they are in every file: 1e-2 is one."""
    end = "" if form == "JSON" else "\nlr: 1e-2\nsteps: 1\nbatch: 4\n"
    path = tmp_path / "options.yaml"
    path.write_bytes(f"{WRITTEN[form]}{end}".encode())
    named = (f"{flag}{path}",) if flag.endswith("=") else (flag, path)
    said = clearhead("train", pairs, *named, "--out", tmp_path / "run", *(("--steps", 1) if form == "JSON" else ()))
    assert said.status == 0, said.err
    model = read_run(tmp_path / "run").model
    assert isinstance(model, EncoderDecoderConfig)
    assert (model.width, model.heads, model.source_context) == (8, 2, 8)
    over = clearhead("train", *named, "--out", tmp_path / "run", "--resume", "--model.width", 16, "--steps", 1)
    assert "model.width: " in over.mistake


def test_a_file_may_name_the_kind_alone_and_json_may_be_typed(
    clearhead: Clearhead, pairs: Path, tmp_path: Path
) -> None:
    (tmp_path / "options.yaml").write_text("model: EncoderDecoder\n", encoding="utf-8")
    for given in (("--config", tmp_path / "options.yaml"), ("--model", '{"class_path": "EncoderDecoder"}')):
        assert "class_path: clearhead.EncoderDecoderConfig" in clearhead("train", pairs, *given, "--print_config").out
    for wrong, named in (("steps: [1", "line 3"), ("stepz: 3", "--steps"), ("steps: many", "--steps many")):
        (tmp_path / "options.yaml").write_text(f"model: EncoderDecoder\n{wrong}\n", encoding="utf-8")
        assert named in clearhead("train", pairs, "--config", tmp_path / "options.yaml").mistake


def test_long_pairs_are_gone_on_with_by_the_same_line(clearhead: Clearhead, tmp_path: Path) -> None:
    path = tmp_path / "-long.tsv"
    path.write_text("\n".join(f"-{'x' * 150}{n}\t{n}" for n in range(20)), encoding="utf-8")
    line = ("train", "./" + path.name, "--model", "EncoderDecoder", *SIZES, "--out", tmp_path / "run", "--steps")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        done = clearhead(*line, 1)
        assert done.status == 0, done.err
        assert "--prompt=" in done.out
        again = clearhead(*line, 2, "--resume")
        assert again.status == 0, again.err
        assert clearhead("generate", tmp_path / "run", f"--prompt=-{'x' * 9}").status == 0
