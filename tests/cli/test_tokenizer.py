"""`clearhead tokenizer`: train, show, stats, and mistakes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from clearhead.cli import counted
from clearhead.cli import tokenizer as command
from clearhead.formats.run import create_run
from clearhead.messages import UserError
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer, CharacterTokenizer
from clearhead.text.documents import Document
from clearhead.text.library import LibraryTokenizer
from clearhead.text.scripts import SCRIPTS
from clearhead.text.statistics import ScriptCount, Statistics, statistics
from clearhead.text.token_table import groups_of, table
from clearhead.training.data_choice import DataChoice
from tests.cli.runs import TEXT, Clearhead
from tests.text.small_library import small_letters


@pytest.fixture
def saved(tmp_path: Path, text: Path, clearhead: Clearhead) -> Path:
    """A tokenizer trained on a small text."""
    path = tmp_path / "tokenizer.json"
    said = clearhead("tokenizer", "train", text, "--vocab", 300, "--out", path, "--special", "<|end|>")
    assert (said.status, said.err) == (0, "")
    assert said.out == f"{path}: 300 tokens: 256 bytes, 43 merges, 1 special\n"
    return path


def test_what_is_trained_is_the_librarys(saved: Path) -> None:
    made = LibraryTokenizer(saved.read_text(encoding="utf-8"))
    assert (made.size, dict(made.specials)) == (300, {"<|end|>": 299})
    assert Tokenizer.from_file(str(saved)).encode(TEXT).ids == made.encode(TEXT)
    assert made.decode(made.encode(TEXT)) == TEXT
    assert 299 not in made.encode("<|end|>")


def test_nothing_is_replaced_unless_asked(clearhead: Clearhead, saved: Path, text: Path) -> None:
    before = saved.read_bytes()
    train = ("tokenizer", "train", text, "--out", saved, "--vocab", 280)
    assert "--force" in clearhead(*train).mistake
    assert saved.read_bytes() == before
    assert clearhead(*train, "--force").status == 0
    assert LibraryTokenizer(saved.read_text(encoding="utf-8")).size == 280
    assert [path.name for path in saved.parent.iterdir() if path.name.startswith(".")] == []


def test_a_short_text_is_counted_though_it_is_too_short_to_learn_from(clearhead: Clearhead, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("小猫", encoding="utf-8")
    assert json.loads(clearhead("tokenizer", "stats", "byte", tmp_path / "short.txt", "--json").out)["tokens"] == 6
    train = ("tokenizer", "train", tmp_path / "short.txt", "--vocab", 256, "--out", tmp_path / "t.json")
    assert "at least 1,000" in clearhead(*train).mistake
    (tmp_path / "short.txt").write_text("", encoding="utf-8")
    assert "holds no text" in clearhead("tokenizer", "stats", "byte", tmp_path / "short.txt").mistake


def test_the_smallest_vocabulary_is_the_same_everywhere(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    for vocab, fits in ((255, False), (256, True)):
        said = clearhead("tokenizer", "train", text, "--vocab", vocab, "--out", tmp_path / "t.json")
        assert (said.status == 0) == fits
        try:
            accepted = DataChoice(tokenizer="bpe", vocab=vocab).vocab == vocab
        except UserError:
            accepted = False
        assert accepted == fits


def test_thirds_that_add_up_are_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten tenths and the like; a quarter of a token stays one. The planted fault: what was added, as it is."""

    def told(tokens: float) -> str:
        scripts = {"Latin": ScriptCount(9, tokens)}
        found = Statistics(1, 9, 9, 9, scripts, 0, 0, 0, 256, 3, None, ())
        return json.dumps(counted.numbers(found)["scripts"]["Latin"]["tokens"])  # type: ignore[index]

    assert told(37890.99999999988) == "37891"
    assert told(sum([0.1] * 10)) == "1"
    assert told(0.25) == "0.25"
    monkeypatch.setattr(counted, "_counted", lambda tokens: tokens)
    assert told(sum([0.1] * 10)) != "1"


def test_a_text_with_few_pairs_says_so(clearhead: Clearhead, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("ab " * 500, encoding="utf-8")
    said = clearhead("tokenizer", "train", tmp_path / "one.txt", "--vocab", 1000, "--out", tmp_path / "t.json")
    assert said.status == 0
    assert "not 1,000" in said.err


def test_how_files_are_read(clearhead: Clearhead, tmp_path: Path) -> None:
    lines = (json.dumps({"body": f"Der Fluß {n} ist groß."}) + "\n" for n in range(80))
    (tmp_path / "lines.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "old.txt").write_bytes("Der Fluß ist groß. ".encode("latin-1") * 60)
    (tmp_path / "bad.txt").write_bytes(b"good text \xff " * 120)
    asked = ("tokenizer", "stats", "byte", "--json")
    assert json.loads(clearhead(*asked, tmp_path / "lines.jsonl", "--field", "body").out)["documents"] == 80
    assert "body" in clearhead(*asked, tmp_path / "lines.jsonl").mistake
    latin = json.loads(clearhead(*asked, tmp_path / "old.txt", "--encoding", "latin-1").out)
    assert latin["bytes"] == latin["characters"] + 120
    assert "bad.txt" in clearhead(*asked, tmp_path / "bad.txt").mistake
    assert json.loads(clearhead(*asked, tmp_path / "bad.txt", "--errors", "replace").out)["characters"] == 12 * 120


def test_tokens_over_their_characters(clearhead: Clearhead, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    made = LibraryTokenizer(saved.read_text(encoding="utf-8"))
    text = "On day 3 the 小猫 狗é"
    said = clearhead("tokenizer", "show", saved, text)
    drawn = table(text, groups_of(made, text), 30)
    assert drawn.count("\n\n") > 1
    assert said.out == f"{drawn}{len(made.encode(text))} tokens, 18 characters, 25 bytes\n"
    assert (said.status, said.err) == (0, "")
    answer = json.loads(clearhead("tokenizer", "show", saved, text, "--json").out)
    assert [each["id"] for each in answer["tokens"]] == made.encode(text)
    assert [each["piece"] for each in answer["tokens"]] == made.pieces(made.encode(text))
    assert {(each["start"], each["end"]) for each in answer["tokens"][-2:]} == {(17, 18)}


def test_the_text_of_standard_input(clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("猫\r\n".encode())))
    assert json.loads(clearhead("tokenizer", "show", "byte", "-", "--json").out)["text"] == "猫\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert clearhead("tokenizer", "show", "byte", "-").out == "0 tokens, 0 characters, 0 bytes\n"


def test_a_tokenizer_that_changes_the_text_says_so(clearhead: Clearhead, tmp_path: Path) -> None:
    (tmp_path / "words.json").write_text(small_letters().json, encoding="utf-8")
    said = clearhead("tokenizer", "show", tmp_path / "words.json", "The cat")
    assert "changes the text" in said.err
    assert "the" in said.out
    answer = json.loads(clearhead("tokenizer", "show", tmp_path / "words.json", "The cat", "--json").out)
    assert [each["start"] for each in answer["tokens"]] == [None, None]
    (tmp_path / "text.txt").write_text("The cat " * 200, encoding="utf-8")
    assert "1,600 characters" in clearhead("tokenizer", "stats", tmp_path / "words.json", tmp_path / "text.txt").out


def test_every_way_to_name_a_tokenizer(clearhead: Clearhead, saved: Path, tmp_path: Path) -> None:
    def ids(name: object) -> list[int]:
        answer = json.loads(clearhead("tokenizer", "show", name, "day", "--json").out)
        return [each["id"] for each in answer["tokens"]]

    run = create_run(tmp_path / "run", DecoderConfig(vocab=4), CharacterTokenizer("ayd"), {}).path
    checkpoint = run / "checkpoints" / "000001"
    checkpoint.mkdir(parents=True)
    assert ids(run) == ids(run / "tokenizer.json") == ids(checkpoint) == [3, 1, 2]
    assert ids("byte") == [*b"day"]
    assert ids(saved) == LibraryTokenizer(saved.read_text(encoding="utf-8")).encode("day")


def test_what_is_counted(clearhead: Clearhead, saved: Path, text: Path) -> None:
    made = LibraryTokenizer(saved.read_text(encoding="utf-8"))
    found = statistics(made, lambda: iter([Document(None, None, [TEXT])]))
    said = clearhead("tokenizer", "stats", saved, text)
    assert (said.status, said.err) == (0, "")
    assert said.out == "\n".join([*counted.sentences(found), *counted.scripts_table(found)]) + "\n"
    rows = {line.split("  ")[1]: line.split()[-3:] for line in said.out.split("\n\n")[1].splitlines()[1:]}
    for script, count in found.scripts.items():
        assert rows[script] == [f"{count.characters:,}", f"{count.tokens:,.0f}", f"{count.characters_per_token:.3f}"]
    answer = json.loads(clearhead("tokenizer", "stats", saved, text, "--json").out)
    assert answer["scripts"]["Han"]["characters"] == sum(sign in "第天小猫看见只鸟" for sign in TEXT)
    assert answer["tokens"] == len(made.encode(TEXT))
    assert answer["files"] == [str(text)]
    assert (answer["vocabulary"], answer["used"]) == (300, len(set(made.encode(TEXT))))
    other = json.loads(clearhead("tokenizer", "stats", "byte", text, "--json").out)
    assert other["tokens"] == other["bytes"] == len(TEXT.encode()) > answer["tokens"]


def test_unknown_tokens_are_counted(clearhead: Clearhead, text: Path, tmp_path: Path) -> None:
    path = tmp_path / "characters.json"
    path.write_text(json.dumps(CharacterTokenizer("abc").to_dict()), encoding="utf-8")
    unknown = sum(sign not in "abc" for sign in TEXT)
    assert f"unknown tokens {unknown:,} (" in clearhead("tokenizer", "stats", path, text).out


def test_every_script_has_a_name_in_both_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    signs = "aαЖ小ひ한ㄅعאअকஅఅกກកကཀᠠაաአಅ5,+ \u0301"
    found = statistics(ByteTokenizer(), lambda: iter([Document(None, None, [signs])]))
    assert set(found.scripts) == set(SCRIPTS)
    english = counted.scripts_table(found)
    assert all(any(line.startswith(f"  {script} ") for line in english) for script in SCRIPTS)
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert all(any("\u4e00" <= sign <= "\u9fff" for sign in line) for line in counted.scripts_table(found)[1:])


@pytest.mark.parametrize("action", command.ACTIONS)
def test_help_of_every_action(clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    assert f"\n  {action} " in clearhead("tokenizer").out
    english = clearhead("tokenizer", action, "--help")
    assert (english.status, english.err) == (0, "")
    assert f"usage: clearhead tokenizer {action}" in english.out
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert any("\u4e00" <= sign <= "\u9fff" for sign in clearhead("tokenizer", action, "--help").out)


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("shwo byte a", "did you mean show?"),
        ("show", "tokenizer"),
        ("show byte", "text"),
        ("show byte a --jsn", "--json"),
        ("show nothing.json a", "nothing.json"),
        ("show {folder} a", "tokenizer.json"),
        ("show {text} a", "text.txt"),
        ("stats byte", "files"),
        ("stats byte missing.txt", "missing.txt"),
        ("stats nothing.json {text}", "nothing.json"),
        ("stats byte {text} --errors some", "errors"),
        ("stats byte {text} --encoding klingon", "klingon"),
        ("train --vocab 300 --out {folder}/t.json", "files"),
        ("train {text} --out {folder}/t.json", "--vocab"),
        ("train {text} --vocab 300", "--out"),
        ("train {text} --vocab few --out {folder}/t.json", "int"),
        ("train {text} --vocab 255 --out {folder}/t.json", "256"),
        ("train {text} --vocab 300 --out {folder}", "folder"),
        ("train {text} --vocab 300 --out {folder}/no/t.json", "no folder"),
        ("train {text} --vocab 300 --out {folder}/t.json --special a", "'a'"),
        ("train missing.txt --vocab 300 --out {folder}/t.json", "missing.txt"),
    ],
)
def test_a_mistake_is_one_line(clearhead: Clearhead, text: Path, tmp_path: Path, typed: str, named: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    words = [word.format(text=text, folder=folder) for word in typed.split()]
    assert named in clearhead("tokenizer", *words).mistake
    assert list(folder.iterdir()) == [], "nothing half-written is left"


def test_a_mistake_is_said_in_chinese(clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    assert "没有这个操作" in clearhead("tokenizer", "stat", "byte").mistake
