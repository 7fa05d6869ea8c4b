"""What the READMEs say is run: every command and every Python block, in order, in one folder; both languages say the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import readme
from tests.house.source import ROOT

STEPS = 20
# Commands that are not run -> why.
NOT_RUN = {
    r"\bpip install\b": "needs the internet",
    r"-m venv\b": "the tests have their environment",
    r"^make (test|install|clean)\b": "make test is what runs this",
}
# What is run otherwise than it is written: pattern, what stands there instead, why.
INSTEAD = (
    (
        r"^make demo\b",
        f'make -C "{ROOT}" -o .venv/.package demo BIN="{{bin}}" OUT="{{out}}" STEPS={STEPS}',
        "into the test's folder",
    ),
    (r"(?<=\s)--steps[ =][\d_]+", "", "a handful of steps for all"),
    (
        r"(\bclearhead train\b.*?)( *>.*)?$",
        rf"\1 --steps {STEPS} --eval-every {STEPS}\2",
        "a handful of steps in place of minutes",
    ),
    (r"^(\S*[/\\])?(bin/|Scripts\\)(?=\w)", "", "the tests' environment is first on the path"),
)
PYTHON_INSTEAD = ((r"\bsteps=[\d_]+", f"steps={STEPS}", "a handful of steps in place of minutes"),)
SOME_PROMPTS = "Once\n从前\nThe\n"
SOME_DOCUMENTS = "".join(f'{{"text": "Day {day}: the cat saw {day % 7} birds."}}\n' for day in range(60))
SOME_QUESTIONS = "".join(
    f'{{"messages": [{{"role": "user", "content": "After {n}?"}}, {{"role": "assistant", "content": "{n + 1}"}}]}}\n'
    for n in range(60)
)
LINES = {"documents.jsonl": SOME_DOCUMENTS, "questions.jsonl": SOME_QUESTIONS}
SOME_PAIRS = "".join(f"word {number}\t{number} drow\n" for number in range(60))
A_TEXT = "".join(
    f"On day {day} the cat saw {day % 7} birds. 第{day}天，小猫看见{day % 5}只鸟。\n" for day in range(200)
)


def text_of(name: str) -> str:
    """A README of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def reason_not_to_run(command: str) -> str | None:
    """Why a command is left out, if it is."""
    return next((reason for pattern, reason in NOT_RUN.items() if re.search(pattern, command)), None)


def as_run(command: str, folder: Path) -> str:
    """A command as the test runs it."""
    for pattern, other, _ in INSTEAD:
        command = re.sub(pattern, other.replace("\\", r"\\") if pattern.startswith("^make") else other, command)
    return command.replace("{bin}", Path(sys.executable).parent.as_posix()).replace(
        "{out}", (folder / "runs/demo").as_posix()
    )


def prepare(command: str, folder: Path) -> None:
    """What the reader has and the test does not: a text of their own, and a run that is not there yet.

    Two ways to the same run (with make, without) stand one after the other; the reader takes one of them.
    """
    for name in re.findall(r"(?<![\w./\\-])[\w-]+\.txt\b", command):
        if not (folder / name).exists():
            (folder / name).write_text(SOME_PROMPTS if name == "prompts.txt" else A_TEXT, encoding="utf-8")
    for name in re.findall(r"[\w-]+\.jsonl\b", command):
        (folder / name).write_text(LINES[name], encoding="utf-8")
    for name in re.findall(r"[\w-]+\.tsv\b", command):
        (folder / name).write_text(SOME_PAIRS, encoding="utf-8")
    out = re.search(r"\btrain\b.*--out[ =](\S+)", command)
    if out and "--resume" not in command:
        shutil.rmtree(folder / out[1], ignore_errors=True)


def run(command: str | list[str], folder: Path) -> None:
    """Runs a command in a folder; it must end well."""
    environment = {
        name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=folder,
        env=environment | {"PATH": path, "PYTHONUTF8": "1"},
        capture_output=True,
        # Nobody types: a conversation ends at once.
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{command}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"


def test_both_languages_say_the_same() -> None:
    english, chinese = text_of("README.md"), text_of("README.zh-CN.md")
    assert readme.commands(english) == readme.commands(chinese)
    assert readme.python(english) == readme.python(chinese)


def test_the_two_commands_come_first() -> None:
    assert readme.commands(text_of("README.md"))[:2] == ["make demo", "make test"]


def test_every_exception_is_needed() -> None:
    commands = readme.commands(text_of("README.md"))
    assert [pattern for pattern in NOT_RUN if not any(re.search(pattern, command) for command in commands)] == []


def test_every_command_does_what_it_says(tmp_path: Path) -> None:
    text = text_of("README.md")
    for command in readme.commands(text):
        if reason_not_to_run(command) or (command.startswith("make") and not shutil.which("make")):
            continue
        prepare(command, tmp_path)
        run(as_run(command, tmp_path), tmp_path)
    script = "\n".join(readme.python(text))
    for pattern, other, _ in PYTHON_INSTEAD:
        script = re.sub(pattern, other, script)
    (tmp_path / "readme.py").write_text(script, encoding="utf-8")
    run([sys.executable, "readme.py"], tmp_path)


PLANTED = """
```bash
make demo            # both
clearhead train a.txt \\
    --out "runs/#1"  # a run
# nothing
```
```console
$ clearhead info runs/x
12 parameters
```
```python
x = 1  # one
```
```text
not a command
```
"""


def test_the_reading_itself() -> None:
    assert readme.commands(PLANTED) == ["make demo", 'clearhead train a.txt --out "runs/#1"', "clearhead info runs/x"]
    assert readme.python(PLANTED) == ["x = 1"]
    assert readme.commands(PLANTED.replace("both", "都")) == readme.commands(PLANTED)
    assert readme.commands(PLANTED.replace("info", "inform")) != readme.commands(PLANTED)


@pytest.mark.parametrize(
    ("written", "run_as"),
    [
        (".venv/bin/clearhead info runs/x", "clearhead info runs/x"),
        (r".venv\Scripts\clearhead info runs/x", "clearhead info runs/x"),
        (
            ".venv/bin/python -m clearhead train --out runs/x",
            f"python -m clearhead train --out runs/x --steps {STEPS} --eval-every {STEPS}",
        ),
        (
            "clearhead train a.txt --steps 2000 --out r",
            f"clearhead train a.txt  --out r --steps {STEPS} --eval-every {STEPS}",
        ),
        (
            "clearhead train --print_config > c.yaml",
            f"clearhead train --print_config --steps {STEPS} --eval-every {STEPS} > c.yaml",
        ),
    ],
)
def test_what_is_run_instead(tmp_path: Path, written: str, run_as: str) -> None:
    assert as_run(written, tmp_path) == run_as


def test_a_command_that_fails_is_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended with 3"):
        run([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)
    with pytest.raises(AssertionError, match="no-such-command"):
        run("no-such-command", tmp_path)
