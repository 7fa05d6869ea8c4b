"""Pairs on the command line: options in files, both languages, what is left open and what is left behind."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from clearhead.cli.main import main
from clearhead.formats.load import load
from clearhead.formats.run import read_run
from clearhead.formats.weights import own_tensors, read_tensors, save_tensors
from clearhead.generation.generate import generate
from clearhead.layers.attention import MultiHeadAttention
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text import CharacterTokenizer
from clearhead.training.pair_data import PairData
from clearhead.training.plan import resumed_plan
from tests.cli.runs import Clearhead

KIND = ("--model", "EncoderDecoder")
SIZES = ("--model.layers", 1, "--model.encoder_layers", 2, "--model.width", 16, "--batch", 4)
LINES = [f"word {n}\t{n} 词" for n in range(40)]


def chinese(text: str) -> bool:
    return any("\u4e00" <= sign <= "\u9fff" for sign in text)


def write_pairs(folder: Path) -> Path:
    path = folder / "pairs.tsv"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write_pairs(tmp_path)


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run. Nobody may write into it."""
    folder = tmp_path_factory.mktemp("answering")
    typed = ("train", write_pairs(folder), *KIND, "--out", folder / "run", *SIZES, "--steps", 30, "--lr", "1e-2")
    assert main([str(each) for each in typed]) == 0
    return folder / "run"


def test_both_depths_reach_the_model_and_the_user_is_told(clearhead: Clearhead, pairs: Path, tmp_path: Path) -> None:
    said = clearhead("train", pairs, *KIND, "--out", tmp_path / "run", *SIZES, "--steps", 2)
    assert said.status == 0
    assert "for 40 pairs: 2 + 1 blocks" in said.err
    assert "step 2: validation loss" in said.err
    model = read_run(tmp_path / "run").model
    assert isinstance(model, EncoderDecoderConfig)
    assert (model.encoder_layers, model.layers, model.width) == (2, 1, 16)
    plan = resumed_plan(tmp_path / "run", [], {})
    assert isinstance(plan.data, PairData)
    source, target = plan.data.example
    assert f"    {source} → " in said.err
    assert f"(wanted: {target})" in said.err


def test_right_answers_are_counted(clearhead: Clearhead, tmp_path: Path) -> None:
    """A task that is learnt in a moment: the answer is always yes. Of 40 pairs 4 are kept for validation."""
    path = tmp_path / "easy.tsv"
    path.write_text("\n".join(f"is {n} a number?\tyes" for n in range(40)), encoding="utf-8")
    said = clearhead("train", path, *KIND, "--out", tmp_path / "run", *SIZES, "--steps", 40, "--lr", "1e-2")
    assert any("answered wholly right" in line and "4 of 4" in line for line in said.out.splitlines())
    assert "100.00% of the answers wholly right" in said.err
    assert clearhead("generate", tmp_path / "run", "-p", "is 99 a number?").out == "yes\n"


def test_the_checkpoint_that_answers_is_named_if_it_is_not_the_last(clearhead: Clearhead, tmp_path: Path) -> None:
    """What cannot be learnt is learnt by heart, and the validation loss rises."""
    path = tmp_path / "noise.tsv"
    path.write_text("\n".join(f"{n * 7919 % 89}a{n}\t{n * n * 104729 % 99991}" for n in range(40)), encoding="utf-8")
    flags = ("--steps", 120, "--eval-every", 20, "--lr", "3e-2", "--model.dropout", 0)
    said = clearhead("train", path, *KIND, "--out", tmp_path / "run", *SIZES, *flags)
    best = read_run(tmp_path / "run").best()
    assert best.step < 120
    assert f"{best.val_loss:.3f}" in said.out
    assert f"step {best.step})" in said.out
    answer = json.loads(clearhead("generate", tmp_path / "run", "-p", "7a1", "--json").out)
    assert answer["model"] == str(best.path)


def test_the_example_is_answered_by_the_printed_command(clearhead: Clearhead, pairs: Path, tmp_path: Path) -> None:
    """Quotes and all: the sources hold a space."""
    said = clearhead("train", pairs, *KIND, "--out", tmp_path / "run", *SIZES, "--steps", 1)
    command = shlex.split(said.out[said.out.index("clearhead generate") :])
    source = resumed_plan(tmp_path / "run", [], {}).data.example.source  # type: ignore[union-attr]
    assert command[3:] == [f"--prompt={source}"]
    assert clearhead(*command[1:]).status == 0


@pytest.mark.parametrize("form", ["read", "typed over", "resumed"])
def test_the_printed_options_can_be_read_again(clearhead: Clearhead, pairs: Path, tmp_path: Path, form: str) -> None:
    typed = ("train", pairs, *KIND, "--out", tmp_path / "read", *SIZES, "--steps", 2)
    printed = clearhead(*typed, "--print_config")
    assert (printed.status, (tmp_path / "read").exists()) == (0, False)
    assert "context" not in printed.out, "what is picked for the pairs stays open"
    (tmp_path / "options.yaml").write_text(printed.out, encoding="utf-8")
    read = ("train", "--config", tmp_path / "options.yaml")
    assert clearhead(*read).status == 0
    model = read_run(tmp_path / "read").model
    if form == "read":
        assert clearhead(*typed, "--out", tmp_path / "typed").status == 0
        assert read_run(tmp_path / "typed").model == model
        weights = [read_tensors(read_run(tmp_path / name).latest().path / "model.safetensors") for name in ("read", "typed")]  # fmt: skip
        assert all(tensor.equal(weights[1][name]) for name, tensor in weights[0].items())
    elif form == "typed over":
        assert clearhead(*read, "--out", tmp_path / "other", "--model.encoder_layers", 1).status == 0
        other = read_run(tmp_path / "other").model
        assert isinstance(other, EncoderDecoderConfig)
        assert (other.encoder_layers, other.layers, other.width, other.context) == (1, 1, 16, 5)
    else:
        assert clearhead(*read, "--resume", "--steps", 3).status == 0
        assert read_run(tmp_path / "read").latest().step == 3


def test_an_answer_is_that_of_the_library(clearhead: Clearhead, answering: Path) -> None:
    wanted = generate(load(answering), "word 7", max_tokens=300, temperature=0)
    assert clearhead("generate", answering, "-p", "word 7")[:2] == (0, f"{wanted.text}\n")
    answer = json.loads(clearhead("generate", answering, "-p", "word 7", "--json").out)
    assert (answer["text"], answer["ids"], answer["logprobs"]) == (wanted.text, wanted.ids, wanted.logprobs)
    assert (answer["prompt"], answer["seed"]) == ("word 7", 0)
    drawn = clearhead("generate", answering, "-p", "word 7", "--temperature", 5, "--seed", 3).out
    assert drawn == clearhead("generate", answering, "-p", "word 7", "--temperature", 5, "--seed", 3).out
    assert drawn == f"{generate(load(answering), 'word 7', temperature=5, seed=3).text}\n"
    assert clearhead("generate", answering, "-p", "word 7", "--max-tokens", 0).out == "\n"


def test_what_the_model_has_never_seen_is_told(clearhead: Clearhead, answering: Path) -> None:
    said = clearhead("generate", answering, "-p", "狗")
    assert said.status == 0
    assert "狗" in said.err


def test_a_model_at_fault_is_found_and_the_status_says_no(
    clearhead: Clearhead, answering: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = MultiHeadAttention.across
    assert clearhead("check", answering).status == 0
    monkeypatch.setattr(MultiHeadAttention, "across", lambda self, x, memory, **tap: 0 * right(self, x, memory, **tap))
    said, told = clearhead("check", answering), clearhead("check", answering, "--json")
    assert (said.status, told.status) == (1, 1)
    assert "cross.source-lost" in next(line for line in said.out.splitlines() if line.split()[:1] == ["WRONG"])
    assert json.loads(told.out)["ok"] is False


MISTAKES = {
    "no pairs": ("train", *KIND, "--out", "{0}/new"),
    "an encoder": ("train", "{0}/pairs.tsv", "--model", "Encoder", "--out", "{0}/new"),
    "no such kind": ("train", "{0}/pairs.tsv", "--model", "Foo", "--out", "{0}/new"),
    "two vocabularies": ("train", "{0}/pairs.tsv", *KIND, "--model.source_vocab", "9", "--out", "{0}/new"),
    "a short source": ("train", "{0}/pairs.tsv", *KIND, "--model.source_context", "3", "--out", "{0}/new"),
    "a short target": ("train", "{0}/pairs.tsv", *KIND, "--model.context", "3", "--out", "{0}/new"),
    "a text": ("train", "{0}/text.txt", *KIND, "--out", "{0}/new"),
    "three columns": ("train", "{0}/three.tsv", *KIND, "--out", "{0}/new"),
    "no source": ("train", "{0}/no-source.tsv", *KIND, "--out", "{0}/new"),
    "no target": ("train", "{0}/no-target.tsv", *KIND, "--out", "{0}/new"),
    "one pair": ("train", "{0}/one.tsv", *KIND, "--out", "{0}/new"),
    "an empty file": ("train", "{0}/empty.tsv", *KIND, "--out", "{0}/new"),
    "one source": ("train", "{0}/same.tsv", *KIND, "--out", "{0}/new"),
    "one good, one bad": ("train", "{0}/pairs.tsv", "{0}/three.tsv", *KIND, "--out", "{0}/new"),
    "nothing asked": ("generate", "{1}"),
    "an empty source": ("generate", "{1}", "-p", ""),
    "a long source": ("generate", "{1}", "-p", "word word word"),
    "another kind": ("train", "--out", "{1}", "--resume", "--model", "Decoder"),
    "another depth": ("train", "--out", "{1}", "--resume", *KIND, "--model.encoder_layers", "1"),
    "another context": ("train", "--out", "{1}", "--resume", *KIND, "--model.source_context", "80"),
    "other pairs": ("train", "{0}/three.tsv", "--out", "{1}", "--resume"),
}
FILES = {
    "text.txt": "A cat sees a bird.\n" * 90,
    "three.tsv": "a\tb\n\nc\td\te\n",
    "no-source.tsv": "a\tb\n\td\n",
    "no-target.tsv": "a\tb\nc\t\n",
    "one.tsv": "a\tb\n",
    "empty.tsv": "",
    "same.tsv": "a\tb\na\tc\n",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_is_one_line_in_both_languages_and_leaves_nothing_behind(
    clearhead: Clearhead, answering: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    write_pairs(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    typed = [str(word).format(tmp_path, answering) for word in MISTAKES[mistake]]
    before = {path: path.stat().st_mtime_ns for folder in (tmp_path, answering) for path in folder.rglob("*")}
    assert not chinese(clearhead(*typed).mistake)
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    said = clearhead(*typed)
    *preparing, line = said.err.splitlines()
    assert (said.status, said.out, len(preparing) <= 1) == (2, "", True)
    assert line.startswith("clearhead: ")
    assert chinese(line)
    assert not re.search(r"(?<![\w./_-])(source|target)(?!\w)", line), "said in Chinese"
    assert before == {path: path.stat().st_mtime_ns for folder in (tmp_path, answering) for path in folder.rglob("*")}


@pytest.mark.parametrize(("name", "line"), [("three.tsv", 3), ("no-source.tsv", 2), ("no-target.tsv", 2), ("text.txt", 1)])  # fmt: skip
def test_a_bad_line_is_named_by_file_and_number(clearhead: Clearhead, tmp_path: Path, name: str, line: int) -> None:
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    said = clearhead("train", write_pairs(tmp_path), tmp_path / name, *KIND, "--out", tmp_path / "run").mistake
    assert f"ine {line} of {tmp_path / name} " in said


def test_a_training_answers_in_chinese(
    clearhead: Clearhead, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    said = clearhead("train", pairs, *KIND, "--out", tmp_path / "run", *SIZES, "--steps", 1)
    assert said.status == 0
    assert "针对 40 对数据：2 + 1 个块" in said.err
    assert "应为：" in said.err
    assert all(chinese(line) for line in said.out.splitlines() if not set(line) <= set("+-"))
    checked = clearhead("check", tmp_path / "run")
    assert checked.status == 0
    assert all(chinese(line) for line in checked.out.splitlines() if line)


def test_a_training_that_goes_wrong_keeps_what_was_right(clearhead: Clearhead, pairs: Path, tmp_path: Path) -> None:
    wild = ("--lr", "1e30", "--warmup", 0, "--eval-every", 1)
    said = clearhead("train", pairs, *KIND, "--out", tmp_path / "run", *SIZES, "--steps", 3, *wild)
    assert said.status == 2
    assert said.err.splitlines()[-1].startswith("clearhead: step 2 ")


@pytest.mark.parametrize(
    ("more", "named"), [("", "do not belong together"), ("狗鸟", "CharacterTokenizer")], ids=["other sizes", "one size"]
)
def test_a_model_without_its_marks_is_refused(
    clearhead: Clearhead, answering: Path, tmp_path: Path, more: str, named: str
) -> None:
    """A run whose tokenizer was put in the place of another."""
    run = shutil.copytree(answering, tmp_path / "run")
    tokenizer = CharacterTokenizer.of("".join(LINES).replace("\t", "") + more)
    assert tokenizer.size + (0 if more else 2) == load(answering).config.vocab
    (run / "tokenizer.json").write_text(json.dumps(tokenizer.to_dict(), ensure_ascii=False), encoding="utf-8")
    for verb in (("generate", run, "-p", "word"), ("check", run)):
        assert named in clearhead(*verb).mistake


def test_weights_of_another_part_are_refused(clearhead: Clearhead, answering: Path, tmp_path: Path) -> None:
    """Those of the encoder alone."""
    run = shutil.copytree(answering, tmp_path / "run")
    model = load(answering).model
    assert isinstance(model, EncoderDecoder)
    save_tensors(own_tensors(model.encoder), read_run(run).best().path / "model.safetensors")
    assert "model.safetensors" in clearhead("generate", run, "-p", "word").mistake


def test_the_same_file_trains_a_decoder_where_no_kind_is_named(clearhead: Clearhead, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(LINES * 4), encoding="utf-8")
    flags = ("--steps", 1, "--batch", 1, "--model.layers", 1, "--model.width", 8, "--model.heads", 2)
    said = clearhead("train", path, "--out", tmp_path / "run", *flags)
    assert said.status == 0
    assert isinstance(read_run(tmp_path / "run").model, DecoderConfig)
    hints = [line for line in said.err.splitlines() if "--model EncoderDecoder" in line]
    assert len(hints) == 1
    assert "looks like a pair" in hints[0]
    again = clearhead("train", "--out", tmp_path / "run", "--resume", "--steps", 2, "--model.layers", 1)
    assert (again.status, "EncoderDecoder" in again.err) == (0, False)
    named = clearhead("train", path, "--out", tmp_path / "named", "--model", "Decoder", *flags)
    assert (named.status, "EncoderDecoder" in named.err) == (0, False)
    path.write_text("\n".join([*LINES * 4, "no tab"]), encoding="utf-8")
    other = clearhead("train", path, "--out", tmp_path / "other", *flags)
    assert (other.status, "EncoderDecoder" in other.err) == (0, False)
