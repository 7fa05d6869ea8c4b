"""Commands as a user types them, in this process and in one of their own, and a run that is trained once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from clearhead.cli.main import main

TEXT = "".join(f"On day {n} the cat saw {n % 7} birds.\n第{n}天，小猫看见{n % 5}只鸟。\n" for n in range(40))
SIZES = ("--model.layers=1", "--model.heads=2", "--model.width=8", "--model.context=12")
PREPARING = "Preparing: "


class Said(NamedTuple):
    """What a command answered."""

    status: int
    out: str
    err: str

    @property
    def mistake(self) -> str:
        """The one line that names a user's mistake; nothing else may be there beside the line of the preparation."""
        lines = [line for line in self.err.splitlines() if not line.startswith(PREPARING)]
        assert self.status == 2, self
        assert len(lines) == 1, self.err
        assert lines[0].startswith("clearhead: "), self.err
        assert self.out == ""
        return lines[0].removeprefix("clearhead: ")


Clearhead = Callable[..., Said]


def caller(capsys: pytest.CaptureFixture[str]) -> Clearhead:
    """`clearhead ARGUMENTS` in this process."""

    def call(*arguments: object) -> Said:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        return Said(status, *capsys.readouterr())

    return call


def write_text(folder: Path) -> Path:
    """A text of a few KB, English and Chinese."""
    path = folder / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def start(*arguments: object, cwd: Path, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.Popen[bytes]:
    """`python -m clearhead ARGUMENTS` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "clearhead", *map(str, arguments)],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )
