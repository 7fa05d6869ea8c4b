"""The page of findings: both languages name the same, each has its script, and it holds what `bench.checking.public` knows to be confirmed."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import pkgutil
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.checking import public
from bench.checking.public import confirm
from bench.checking.public.confirm import Finding, findings, same
from tests.house.source import ROOT

PAGES = [(ROOT / f"docs/findings{language}.md").read_text(encoding="utf-8") for language in ("", ".zh-CN")]
ENGLISH, CHINESE = map(findings, PAGES)
LINE = re.compile(r"^\| ([^|]+) \| ([^|]+) \| .+ \| (.+?) \| \[(.+)\]\(#(.+)\) \|$", re.MULTILINE)
CONFIRMED = {
    (subject.package, id)
    for found in pkgutil.iter_modules(public.__path__)
    for subject in getattr(importlib.import_module(f"{public.__name__}.{found.name}"), "SUBJECTS", ())
    for id in subject.confirmed
}


def named(page: Sequence[Finding]) -> list[tuple[object, ...]]:
    """What a finding is in any language."""
    return [(each.packages, each.faults) for each in page]


def unwritten(page: Sequence[Finding], known: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """What is known to be confirmed and not on the page."""
    return known - {(package, id) for each in page for package, _ in each.packages for id, _ in each.faults}


def unknown(page: Sequence[Finding], known: set[tuple[str, str]]) -> list[str]:
    """What the page says that `check` found and no subject knows."""
    return [
        f"{each.title}: {id}"
        for each in page
        for id, read in each.faults
        if not read and not {(package, id) for package, _ in each.packages} & known
    ]


def link(title: str) -> str:
    """Where a heading is found on a page."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_both_languages_name_the_same_findings_in_the_same_order() -> None:
    assert named(ENGLISH) == named(CHINESE)
    assert named(ENGLISH) != named(CHINESE[1:] + CHINESE[:1])
    assert len({each.title for each in ENGLISH}) == len(ENGLISH) > 30


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_are_the_sections(page: str) -> None:
    rows = [
        (packages, versions, re.findall(r"`([^`]+)`", faults), title, at)
        for packages, versions, faults, title, at in LINE.findall(page)
    ]
    assert rows == [
        (
            ", ".join(name for name, _ in each.packages),
            ", ".join(version for _, version in each.packages),
            [id for id, _ in each.faults if id],
            each.title,
            link(each.title),
        )
        for each in findings(page)
    ]


def test_every_section_has_a_script_and_what_it_prints() -> None:
    for each in ENGLISH:
        assert each.packages
        assert each.faults
        assert each.output.strip()
        imported = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(each.script))
            for name in _modules(node)
        }  # fmt: skip
        assert "clearhead" not in imported
    assert not any(each.script for each in CHINESE)


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [name.name for name in node.names] if isinstance(node, ast.Import) else []


def test_versions_are_those_that_are_installed() -> None:
    pins = [(ROOT / name).read_text(encoding="utf-8") for name in ("clients.txt", "constraints.txt")]
    wanted = dict(re.findall(r"^([\w.-]+)==([\w.]+)", "\n".join(pins), re.MULTILINE))
    on_the_page = {package: version for each in ENGLISH for package, version in each.packages}
    assert {package: wanted.get(package) for package in on_the_page} == on_the_page


def test_the_page_holds_what_is_confirmed() -> None:
    assert unwritten(ENGLISH, CONFIRMED) == set()
    assert unwritten(ENGLISH, CONFIRMED | {("conformer", "softmax.axis")}) == {("conformer", "softmax.axis")}


def test_what_check_found_is_known_to_a_subject() -> None:
    assert unknown(ENGLISH, CONFIRMED) == []
    planted = Finding("planted", (("conformer", "0.3.2"),), (("softmax.axis", False), ("norm.axis", True)))
    assert unknown([planted], CONFIRMED) == ["planted: softmax.axis"]


@pytest.mark.parametrize(
    ("said", "printed", "alike"),
    [
        ("moves by 0.153\n", "moves by 0.149", True),
        ("moves by 0.153", "moves by 0.17", False),
        ("moves by 0", "moves by 5.6e-17", True),
        ("moves by 0", "moves by 0.0001", False),
        ("16 of 50 tensors", "17 of 50 tensors", False),
        ("[1, 1, 0]", "[1, 0, 1]", False),
        ("finite: [True]", "finite: [False]", False),
        ("moves by 0.1", "moves by nan", False),
        ("one\n", "one\ntwo\n", False),
    ],
)
def test_two_digits_are_compared(said: str, printed: str, alike: bool) -> None:
    assert same(said, printed) is alike


def test_a_script_that_prints_something_else_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def told(package: str, version: str, said: str) -> tuple[int, str]:
        page = f"### One\n\n- **Package and version:** `{package}` {version}\n- **Fault:** `norm.axis`\n\n"
        page += f"```python\nprint(0.5)\n```\n\n```text\n{said}\n```\n"
        (tmp_path / "page.md").write_text(page, encoding="utf-8")
        monkeypatch.setattr(confirm, "PAGE", tmp_path / "page.md")
        monkeypatch.setattr(sys, "argv", ["confirm"])
        return confirm.main(), capsys.readouterr().out

    version = importlib.metadata.version("pytest")
    status, out = told("pytest", version, "0.501")
    assert (status, out.splitlines()[0].split()) == (0, ["confirmed", "pytest:", "One"])
    assert out.endswith("1 confirmed, 0 differs, 0 package not installed\n")
    status, out = told("pytest", version, "0.6")
    assert status == 1
    assert "the page:\n    0.6\n    now:\n    0.5" in out
    status, out = told("no-such-package-here", "1.0", "0.6")
    assert status == 0
    assert "package not installed" in out.splitlines()[0]
    assert "the page has 0.1" in told("pytest", "0.1", "0.5")[1]
