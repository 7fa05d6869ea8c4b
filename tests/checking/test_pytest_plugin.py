"""The fixture, as the tests of another project use it."""

import subprocess
import sys

import pytest

from bench.checking.first.weights import Heads, RowsMixed
from clearhead.checking import asserts
from clearhead.checking.pytest_plugin import clearhead_check, clearhead_same
from tests.checking.diff.examples import EQUAL, PARTED


def inside(fixture):
    """The function that pytest has wrapped."""
    return fixture.__wrapped__ if hasattr(fixture, "__wrapped__") else fixture._get_wrapped_function()


check_of, same_of = inside(clearhead_check), inside(clearhead_same)


def test_a_right_module_gives_its_report():
    assert check_of()(Heads(), kind="attention", only=("batch.mixing",)).ok


def test_a_wrong_one_fails_with_the_name_and_the_remedy():
    with pytest.raises(pytest.fail.Exception, match=r"(?s)batch\.mixing.*fix:"):
        check_of()(RowsMixed(), kind="attention")


def test_two_that_are_the_same_give_what_was_compared(monkeypatch):
    monkeypatch.setattr(asserts, "diff", lambda *_, **__: EQUAL)
    assert same_of()("a", "b") is EQUAL


def test_two_that_part_fail_with_the_place_and_the_reason(monkeypatch):
    monkeypatch.setattr(asserts, "diff", lambda *_, **__: PARTED)
    with pytest.raises(pytest.fail.Exception, match=r"(?s)blocks\.4\.norm.*norm\.eps"):
        same_of()("a", "b")


@pytest.mark.slow
def test_the_fixture_is_found_by_another_project(tmp_path):
    text = (
        "from torch import nn\n\n\ndef test_it(clearhead_check):\n    clearhead_check(nn.LayerNorm(16), kind='norm')\n"
    )
    (tmp_path / "test_other.py").write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        ".",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
