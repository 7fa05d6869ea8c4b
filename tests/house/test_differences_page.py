"""The page on differences says what is so: its command ends as it says, every id of a reason stands in it, both languages say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clearhead.checking import child, guard
from clearhead.cli.main import main
from tests.house import readme
from tests.house.source import ROOT

PAGES = [(ROOT / f"docs/differences{language}.md").read_text(encoding="utf-8") for language in ("", ".zh-CN")]
KINDS = (
    "activation|attention|block|causal|config|dropout|embedding|feedforward|head|heads|load|logits|noise|norm|position|projection|qkv"
    "|residual|rotary|scale|scores|sinusoid|softmax|weights|window"
)
FIELDS = {"norm.eps"}
"""Words of that form that are fields of a configuration."""
ROWS = {"weights.related"}
"""What tensors are said to be that is no reason."""


def ids() -> set[str]:
    """The ids of reasons, as the sources write them."""
    files = (ROOT / "src/clearhead/checking/diff").glob("*.py")
    aside = ("weights_roles", "weights_named", "weights_recipes", "weights_fused", "copying", "said")
    texts = [path.read_text(encoding="utf-8") for path in files if path.stem not in aside]
    return {found for text in texts for found in re.findall(rf'(?<!say\()"((?:{KINDS})\.[a-z-]+)"', text)} - FIELDS


def test_both_languages_say_the_same() -> None:
    assert readme.blocks(PAGES[0]) == readme.blocks(PAGES[1])
    assert re.findall(r"^\| `([^`]+)`", PAGES[0], re.M) == re.findall(r"^\| `([^`]+)`", PAGES[1], re.M)


def test_every_reason_stands_in_it() -> None:
    told = set(re.findall(r"^\| `([^`]+)`", PAGES[0], re.M))
    assert ids() - told == set()
    assert told - ids() == {"config.FIELD"} | ROWS


def test_its_command_says_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The other process would import PyTorch again.
    monkeypatch.setattr(guard, "apart", lambda task, asked, *_: child._diff(asked))
    monkeypatch.chdir(tmp_path)
    for body in (body for language, body in readme.blocks(PAGES[0]) if language == "python"):
        (tmp_path / body.split("\n", 1)[0].removeprefix("# ")).write_text(body, encoding="utf-8")
    said = [body for language, body in readme.blocks(PAGES[0]) if language == "text"]
    (command,) = readme.commands(PAGES[0])
    assert main(command.split()[1:]) == 0
    assert capsys.readouterr().out.startswith(re.sub(r"the largest difference is.*", "", said[0].strip(), flags=re.S))
    wrong = (tmp_path / "fused.py").read_text(encoding="utf-8")
    scaled = wrong.replace("is_causal=True", "is_causal=True, scale=width**-0.5")
    assert scaled != wrong
    (tmp_path / "fused.py").write_text(scaled, encoding="utf-8")
    assert main(command.split()[1:]) == 1
    assert said[1].strip().split("\n")[2:4] == capsys.readouterr().out.split("\n")[2:4]
