"""`clearhead check`: a function of one's own that runs the code, flags that came to nothing, and refusals that a program can read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clearhead.checking import check as checking
from clearhead.checking import child, guard
from clearhead.checking.settings import Settings
from clearhead.checking.target import resolve
from clearhead.checking.unused import unused
from clearhead.messages import UserError
from tests.cli.runs import Clearhead

CODE = """
from torch import nn


class Odd(nn.Module):
    def __init__(self, dim=12, things=3):
        super().__init__()
        self.up = nn.Linear(dim, dim)

    def forward(self, book, *, rules, weather=1):
        return self.up(book.get("x")), rules


class Attention(nn.Module):
    def __init__(self, dim=12, n=3):
        super().__init__()
        self.qkv, self.out, self.n_head = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), n

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (each.view(rows, length, self.n_head, -1).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(rows, length, width))


def call(module, x):
    return module({"x": x}, rules=1)[0]


NUMBER = 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with somebody's code; what the other process would do is done in this one, which is quicker."""
    (tmp_path / "odd.py").write_text(CODE, encoding="utf-8")
    monkeypatch.setattr(guard, "apart", lambda task, asked, *_: {"check": child._check}[task](asked))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_what_cannot_be_called_is_told_how_to_be_wrapped(clearhead: Clearhead) -> None:
    said = clearhead("check", "odd.py:Odd", "--kind", "block")
    first, *wrapper, last = said.err.splitlines()
    assert said.status == 2
    assert "AttributeError" in first
    assert first.count("block: (('book', 'x')") == 1
    assert wrapper == ["    def call(module, x):", "        return module(x, rules=...)[0]"]
    assert "--kind block --call wrap.py:call" in last


@pytest.mark.usefixtures("here")
def test_such_a_function_is_used(clearhead: Clearhead) -> None:
    said = clearhead("check", "odd.py:Odd", "--kind", "norm", "--call", "odd.py:call", "--only", "batch.mixing")
    assert said.status == 0
    assert "batch.mixing" in said.out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("check odd.py:Odd --call odd.py:NUMBER", "names a int"),
        ("check odd.py:Odd --call odd.py:Attention", "takes a function"),
        ("check odd.py:Odd --call odd.py:calls", "has no calls"),
        ("check odd.py:Nobody", "has no Nobody"),
        ("check odd.py", "names no code"),
        ("check odd.py:Odd --html no/x.html", "no folder"),
        ("check odd.py:Odd --stet 3", "--set"),
    ],
)
def test_a_refusal_is_one_line_and_an_object_where_json_was_asked(clearhead: Clearhead, typed: str, line: str) -> None:
    assert line in clearhead(*typed.split()).mistake
    said = clearhead(*typed.split(), "--json")
    assert said.status == 2
    assert line in json.loads(said.out)["error"]


def test_a_check_that_died_says_so_in_its_object(clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "apart", lambda *_: guard.Ended("check.crashed", "it died"))
    said = clearhead("check", "odd.py:Odd", "--json")
    assert said.status == 2
    assert json.loads(said.out)["error"] == "it died"


def test_flags_of_code_say_nothing_of_a_model(clearhead: Clearhead, trained: Path) -> None:
    said = clearhead("check", trained, "--heads", 4, "--kind", "lm", "--only", "causal.future-leak", "--json")
    assert "--kind, --heads was not used" in json.loads(said.out)["notes"][0]
    assert json.loads(clearhead("check", trained, "--json").out)["notes"] == []


@pytest.mark.parametrize(
    ("kind", "settings", "line"),
    [
        ("attention", Settings(heads=4), "believed, though the code itself says 3"),
        ("attention", Settings(kv_heads=4), "--kv-heads 4 was not used to build it"),
        ("attention", Settings(vocab=7), "nothing that is asked of attention"),
        ("norm", Settings(kind="norm"), "rather attention"),
        ("attention", Settings(heads=3), None),
        ("attention", Settings(width=24, kind="attention"), None),
        ("block", Settings(kind="block", window=4), None),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_came_to_nothing_is_noted(kind: str, settings: Settings, line: str | None) -> None:
    notes = unused(resolve("odd.py:Attention", settings), kind, settings)
    assert [line in note for note in notes] == ([True] if line else [])


@pytest.mark.usefixtures("here")
def test_the_note_is_in_the_report() -> None:
    report = checking.check("odd.py:Attention", kind="attention", vocab=7, only="batch.mixing")
    assert "--vocab 7 was not used" in report.notes[0]


def test_a_constructor_that_takes_the_size_is_not_noted(here: Path) -> None:
    (here / "config.py").write_text(
        CODE.replace("n=3", "num_heads=3").replace(", n\n", ", num_heads\n"), encoding="utf-8"
    )
    settings = Settings(heads=2)
    assert unused(resolve("config.py:Attention", settings), "attention", settings) == ()


def test_the_wrapper_of_a_loss_takes_what_a_loss_takes(here: Path) -> None:
    (here / "loss.py").write_text(
        "class Loss:\n    def __call__(self, book, page, word): return book['x']\n", encoding="utf-8"
    )
    with pytest.raises(
        UserError, match=r"def call\(module, logits, targets\):\n +return module\(logits, targets, word=\.\.\.\)"
    ):
        checking.check("loss.py:Loss", kind="loss")
