"""`clearhead diff`: its exit status, what a program reads, and what a user may get wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from time import sleep

import pytest

from clearhead.checking import guard
from clearhead.checking.diff import diff as made
from tests.checking.diff.examples import EQUAL, PARTED
from tests.cli.runs import SIZES, Clearhead


@pytest.fixture
def two(trained: Path) -> tuple[str, str]:
    """A run, and one of its checkpoints."""
    return str(trained), str(next(trained.glob("checkpoints/*")))


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[object, ...], dict[str, object]]]:
    """What `diff` was asked; it answers EQUAL."""
    asked: list[tuple[tuple[object, ...], dict[str, object]]] = []
    monkeypatch.setattr(made, "diff", lambda *two, **tuned: asked.append((two, tuned)) or EQUAL)
    return asked


def test_two_models_that_are_equal(clearhead: Clearhead, two: tuple[str, str], found: list) -> None:
    said = clearhead("diff", *two, "-p", "On day", "--seed", 3)
    assert said.status == 0
    assert said.out.startswith(f"equal to rounding: 13 stages of {two[0]} and {two[1]}")
    (models, tuned) = found[0]
    assert [model.source.exists() for model in models] == [True, True]
    assert tuned == {"text": "On day", "weights": None, "kind": None, "values": {}, "seed": 3}


@pytest.mark.parametrize("moment", [0.0, 60.0])
def test_a_comparison_that_takes_long_says_that_it_is_at_work(
    clearhead: Clearhead, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch, moment: float
) -> None:
    monkeypatch.setattr("clearhead.cli.diff.MOMENT", moment)
    monkeypatch.setattr(made, "diff", lambda *_, **__: sleep(0.1) or EQUAL)
    assert (f"comparing {two[0]} and {two[1]} ..." in clearhead("diff", *two).err) == (moment == 0.0)


def test_other_vocabularies_and_unknown_signs_are_said(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("abcd abdc acbd\n" * 90, encoding="utf-8")
    assert clearhead("train", other, "--out", tmp_path / "run", "--steps", 1, "--batch", 2, *SIZES).status == 0
    said = clearhead("diff", trained, tmp_path / "run", "-p", "\u2603 .", "--json")
    read = json.loads(said.out)
    assert any("ids and B has" in note for note in read["notes"])
    assert any("other words" in note for note in read["notes"])
    assert any("\u2603" in note for note in read["notes"])
    assert [each["id"] for each in read["reasons"]] == ["config.sizes"]
    assert "vocab is" in read["reasons"][0]["text"]


def test_two_that_part_end_with_one(
    clearhead: Clearhead, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endless = replace(PARTED, first=replace(PARTED.pairs[4], largest=float("inf")))
    monkeypatch.setattr(made, "diff", lambda *_, **__: endless)
    said = clearhead("diff", *two, "--json", "--html", tmp_path / "x.html")
    assert said.status == 1
    read = json.loads(said.out, parse_constant=pytest.fail)
    assert (read["ok"], read["first"]["largest"], read["a"]) == (False, None, two[0])
    assert "<svg" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_what_shows_nothing_is_no_pass(
    clearhead: Clearhead, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "diff", lambda *_, **__: replace(EQUAL, pairs=()))
    assert "nothing is shown" in clearhead("diff", *two).mistake


def test_code_runs_in_another_process(clearhead: Clearhead, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(guard, "apart", lambda *given: asked.append(given) or PARTED.to_dict())
    said = clearhead(
        "diff", trained, "att.py:GPT", "--weights", "a", "--set", "width=8", "--threads", 2, "--kind", "lm"
    )
    assert said.status == 1
    task, sent, seconds, _ = asked[0]
    tuned = {"text": None, "weights": "a", "kind": "lm", "values": {"width": 8}, "seed": 0}
    assert (task, seconds) == ("diff", 120.0)
    assert sent == {"a": str(trained), "b": "att.py:GPT", "tuned": tuned, "threads": 2}


def test_a_process_that_dies_is_a_refusal(clearhead: Clearhead, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "apart", lambda *_: guard.Ended("check.crashed", "it died"))
    assert clearhead("diff", trained, "att.py:GPT").mistake == "it died"


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("{run} {run}", "equal to itself"),
        ("{run} {run}/.", "equal to itself"),
        ("a.py:X a.py:X", "equal to itself"),
        ("{run} nowhere", "nowhere"),
        ("{run}", "required: b"),
        ("{run} att.py", "names no code"),
        ("a.py:X a.py:Y -p hello", "know no words"),
        ("a.py:X {run} --weights b", "--weights"),
        ("a.py:X {run} --time-limit 0", "time-limit"),
        ("a.py:X {run} --threads 0", "threads"),
        ("a.py:X {run} --set x", "KEY=VALUE"),
        ("a.py:X {run} -p=", "-p is empty"),
        ("{run} other --call a.py:f", "--call says something of code"),
        ("{run} other --kind lm", "--kind says something of code"),
        ("{run} other --html no/such/x.html", "no/such"),
    ],
)
def test_mistakes_are_one_line(clearhead: Clearhead, trained: Path, typed: str, line: str) -> None:
    words = typed.format(run=trained).split()
    assert line in clearhead("diff", *words).mistake
    said = clearhead("diff", *words, "--json")
    assert said.status == 2
    assert line in json.loads(said.out)["error"]
