"""Running a check, or a comparison, in a process of its own: somebody's code may crash, or never end. A guard, not a sandbox. Imports without torch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from clearhead.messages import UserError, say

CHILD = "from clearhead.checking.child import main; main()"
QUIET = {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
"""What keeps libraries from drawing bars: code that loads weights is built several times."""

MOMENT = 4.0
"""Seconds after which a reader wants to know that something is being done."""


@dataclass(frozen=True)
class Ended:
    """Why the other process gave no answer.

    Args:
        id: "check.endless" or "check.crashed".
        evidence: what happened, and what to do.
    """

    id: str
    evidence: str


def guarded(
    target: str, settings: Mapping[str, Any], seconds: float, patient: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """The report on a target as plain data, made by another process within a time limit.

    Args:
        target: the name of somebody's code, or a model.
        settings: the fields of `Settings` that the user gave, as JSON can hold them; `call` as the name of a function.
        seconds: how long it may take.
        patient: called once if it takes longer than a moment.

    Returns:
        `Report.to_dict()`; where the process crashed or took too long, a report with one check whose verdict is "error".

    Raises:
        UserError: if the code cannot be checked, as the other process says.
    """
    made = apart("check", {"target": target, "settings": dict(settings)}, seconds, patient)
    return _ended(target, made) if isinstance(made, Ended) else made


def guarded_diff(
    a: str,
    b: str,
    tuned: Mapping[str, Any],
    seconds: float,
    patient: Callable[[], None] = lambda: None,
    *,
    threads: int | None = None,
) -> dict[str, Any]:
    """What a comparison found, as plain data, made by another process within a time limit.

    Args:
        a: the first of the two, by its name.
        b: the second.
        tuned: the other arguments of `diff`, as JSON can hold them.
        seconds: how long it may take.
        patient: called once if it takes longer than a moment.
        threads: how many it may use; one if None.

    Returns:
        `Difference.to_dict()`.

    Raises:
        UserError: if the two cannot be compared, as the other process says, or it crashed or took too long.
    """
    made = apart("diff", {"a": a, "b": b, "tuned": dict(tuned), "threads": threads}, seconds, patient)
    if isinstance(made, Ended):
        raise UserError(made.evidence)
    return made


def apart(
    task: Literal["check", "diff"], asked: Mapping[str, Any], seconds: float, patient: Callable[[], None]
) -> dict[str, Any] | Ended:
    """What another process answers, or why it does not.

    Args:
        task: what is to be done, as `child` knows it.
        asked: what it needs to know, as JSON can hold it.
        seconds: how long it may take.
        patient: called once if it takes longer than a moment.

    Raises:
        UserError: if it refuses.
    """
    with tempfile.TemporaryDirectory(prefix="clearhead-check-") as folder:
        answer = Path(folder) / "report.json"
        request = json.dumps({"task": task, "asked": dict(asked), "answer": str(answer)})
        # What the code prints is not the answer: it goes where messages go.
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=_aside(),
            text=True,
            start_new_session=True,
            env=QUIET | os.environ,
        )
        try:
            if not _done(child, request, min(MOMENT, seconds)):
                patient()
                if not _done(child, None, max(seconds - MOMENT, 0.0)):
                    return Ended("check.endless", say("check.endless", seconds=f"{seconds:g}"))
        finally:
            _end(child)
        if answer.exists():
            made: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
            if "refused" in made:
                raise UserError(str(made["refused"]))
            return made
        return Ended("check.crashed", say("check.crashed", status=_status(child.returncode)))


def _done(child: subprocess.Popen[str], request: str | None, seconds: float) -> bool:
    """Give the process its request, if there is one, and wait so long; whether it has ended."""
    try:
        child.communicate(request, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _aside() -> int:
    """Where output goes that is not the answer: standard error, or nowhere if that is no file."""
    try:
        return sys.stderr.fileno()
    except OSError:
        return subprocess.DEVNULL


def _end(child: subprocess.Popen[str]) -> None:
    """End the process and whatever it has started."""
    if child.poll() is None:
        # Its own session is its own group: what it started goes with it.
        os.killpg(child.pid, signal.SIGKILL) if hasattr(os, "killpg") else child.kill()
        child.wait()


def _status(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return str(code)


def _ended(target: str, ended: Ended) -> dict[str, Any]:
    """The report on code whose process gave no answer."""
    check = {"id": ended.id, "verdict": "error", "evidence": ended.evidence, "largest": 0.0}
    return {
        "target": target, "kind": "", "ok": False, "guessed": True, "checks": [check], "faults": [], "notes": [], "sight": None,
        "rounding": [],
    }  # fmt: skip
