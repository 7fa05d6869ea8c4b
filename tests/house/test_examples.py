"""The examples do what they say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house.source import ROOT

EXAMPLE = ROOT / "examples" / "copy_and_reverse.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments], capture_output=True, encoding="utf-8", timeout=300, check=False
    )


@pytest.mark.parametrize("task", [pytest.param("copy", marks=pytest.mark.slow), "reverse"])
def test_the_rule_is_learnt(task: str) -> None:
    done = run(task, "--steps", "250")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "99% reached" in done.stdout


def test_a_training_too_short_is_no_success() -> None:
    done = run("reverse", "--steps", "5")
    assert done.returncode == 1
    assert "reached" not in done.stdout


def test_an_unknown_task_is_named() -> None:
    done = run("sort")
    assert done.returncode == 2
    assert "sort" in done.stderr
    assert "copy, reverse" in done.stderr
