"""What the page on checks in CI says is run: its files are written, its tests pass, its commands end with 0; both languages say the same."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clearhead.checking import assert_causal, child, guard
from clearhead.cli.main import main
from tests.house import readme
from tests.house.source import ROOT

PAGES = [(ROOT / f"docs/checking-in-ci{language}.md").read_text(encoding="utf-8") for language in ("", ".zh-CN")]
INSTALLS = "pip install"


def files(page: str) -> dict[str, str]:
    """The Python blocks by the names in their first lines."""
    bodies = [body for language, body in readme.blocks(page) if language == "python"]
    return {body.split("\n", 1)[0].removeprefix("# "): body for body in bodies}


def actions(page: str) -> list[str]:
    """What the workflow runs."""
    (text,) = [body for language, body in readme.blocks(page) if language == "yaml"]
    return [step["run"] for step in yaml.safe_load(text)["jobs"]["check"]["steps"] if "run" in step]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The reader's project, in which Python finds its modules."""
    for name, text in files(PAGES[0]).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name, module in sys.modules.items() if _inside(module, tmp_path)]:
        del sys.modules[name]


def _inside(module: object, folder: Path) -> bool:
    return Path(getattr(module, "__file__", None) or "/").is_relative_to(folder)


def test_both_languages_say_the_same() -> None:
    english, chinese = PAGES
    assert readme.blocks(english) == readme.blocks(chinese)
    assert re.findall(r"`[^`\n]+`", english) == re.findall(r"`[^`\n]+`", chinese)


@pytest.mark.usefixtures("folder")
def test_its_tests_pass(capsys: pytest.CaptureFixture[str]) -> None:
    status = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir=.", "--import-mode=importlib", "."])
    out = capsys.readouterr().out
    assert status == 0, out
    tests = sum(text.count("def test_") for name, text in files(PAGES[0]).items() if name.startswith("test_"))
    assert int(re.findall(r"(\d+) passed", out)[0]) > tests > 5


def test_its_commands_end_well(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The other process would import PyTorch again for each of them.
    monkeypatch.setattr(
        guard, "apart", lambda task, asked, *_: {"check": child._check, "diff": child._diff}[task](asked)
    )
    commands = [line for line in readme.commands(PAGES[0]) if not line.startswith((INSTALLS, "pytest"))]
    assert len(commands) == 3
    for command in commands:
        typed, _, written = command.partition(" > ")
        assert main(shlex.split(typed)[1:]) == 0, capsys.readouterr()
        if written:
            (folder / written).write_text(capsys.readouterr().out, encoding="utf-8")
    assert {each.name for each in folder.glob("*.json")} == {"report.json", "difference.json"}
    assert {each.name for each in folder.glob("*.html")} == {"report.html", "difference.html"}


def test_the_workflow_runs_what_the_page_says() -> None:
    said = readme.commands(PAGES[0])
    assert [line for line in actions(PAGES[0]) if line not in said] == ["pytest -q"]


def test_a_planted_fault_fails_its_tests(folder: Path) -> None:
    """The page's own claim: a test of it fails where the code is wrong, with the name of the mistake."""
    wrong = files(PAGES[0])["plain.py"].replace("triu(1)", "triu(2)")
    (folder / "shifted.py").write_text(wrong, encoding="utf-8")
    with pytest.raises(AssertionError, match=r"causal\.future-leak"):
        assert_causal("shifted.py:Attention")
