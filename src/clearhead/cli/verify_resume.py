"""`clearhead verify-resume`: proof, on a user's own run, that stopping and going on changes no bit."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import ArgumentParser
from tqdm import tqdm

from clearhead.cli.options import parse, parser, use_threads
from clearhead.messages import say

if TYPE_CHECKING:
    from clearhead.training.replay import Compared, Replay

LAYOUT = "{desc} {bar:20} {n_fmt}/{total_fmt} [{elapsed}<{remaining}]"
SHOWN = 16
"""Hexadecimal digits of a SHA-256 that the table shows: 64 bits, more than chance ever makes equal. --json has all."""


def options() -> ArgumentParser:
    """The flags of `clearhead verify-resume`."""
    made = parser("verify-resume")
    made.add_argument("run", type=str, help="run directory with at least two checkpoints")
    made.add_argument("text", type=str, nargs="*", help="where the run's data is now, if it has moved")
    made.add_argument("--device", type=str, default=None, help="auto, cpu, cuda or mps; as recorded if not given")
    made.add_argument("--threads", type=int, default=None, help="CPU threads; as recorded if not given")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def run(arguments: Sequence[str]) -> int:
    """Replay the run's last interval and compare; 0 if every bit is the same, 1 if not."""
    asked = parse(options(), arguments)
    from clearhead.cli.progress import reading_bar  # noqa: PLC0415 - torch comes after the flags are right
    from clearhead.formats.run import read_run  # noqa: PLC0415
    from clearhead.models.device import pick_device  # noqa: PLC0415
    from clearhead.training.environment import recorded_environment  # noqa: PLC0415
    from clearhead.training.replay import interval, replay  # noqa: PLC0415

    found = read_run(Path(asked.run))
    before, last = interval(found)
    recorded = recorded_environment(found, last)
    use_threads(asked.threads if asked.threads is not None else _threads(recorded))
    device = pick_device(asked.device or str(recorded.get("device", "auto")).split()[0])
    print(_begins(before.step, last.step, str(device)), file=sys.stderr, flush=True)
    total, what = last.step - before.step, say("cli.verify_resume.bar")
    # In a log file the line above is enough.
    with tqdm(total=total, desc=what, bar_format=LAYOUT, ascii=False, leave=False, disable=None) as bar:
        made = replay(
            found.path,
            asked.text,
            device=device,
            watch=reading_bar,
            progress=lambda step: _show(bar, step - before.step),
        )
    print(json.dumps(_plain(asked.run, made), ensure_ascii=False) if asked.json else "\n".join(_lines(made)))
    return 0 if made.equal else 1


def _threads(recorded: dict[str, Any]) -> int | None:
    threads = recorded.get("threads")
    return threads if isinstance(threads, int) and threads >= 1 else None


def _begins(first: int, last: int, device: str) -> str:
    import torch  # noqa: PLC0415

    return say("cli.verify_resume.replaying", first=first, last=last, device=device, threads=torch.get_num_threads())


def _show(bar: tqdm[Any], done: int) -> None:
    bar.update(done - bar.n)


def _lines(made: Replay) -> list[str]:
    """The answer: a row for each part, the verdict, and what differs."""
    lines = [_row(each) for each in made.parts]
    lines += [
        "",
        say("cli.verify_resume.yes" if made.equal else "cli.verify_resume.no", first=made.first, last=made.last),
    ]
    if made.equal:
        return lines
    lines += [each.difference for each in made.parts if each.difference is not None]
    lines += [made.explanation or ""]
    if made.environment:
        return [*lines, say("cli.verify_resume.differs_in", differences=", ".join(made.environment))]
    return [*lines, say("cli.verify_resume.nothing_differs")]


def _row(compared: Compared) -> str:
    return say(
        "cli.verify_resume.row",
        recorded=compared.recorded[:SHOWN],
        replayed=compared.replayed[:SHOWN],
        sign="==" if compared.equal else "!=",
        part=say(f"resuming.part.{compared.part}", count=compared.count),
    )


def _plain(run: str, made: Replay) -> dict[str, Any]:
    parts = {
        each.part: {
            "recorded": each.recorded,
            "replayed": each.replayed,
            "equal": each.equal,
            "count": each.count,
            "difference": each.difference,
        }
        for each in made.parts
    }
    return {
        "run": run,
        "first": made.first,
        "last": made.last,
        "equal": made.equal,
        "parts": parts,
        "fault": made.fault,
        "explanation": made.explanation,
        "environment": list(made.environment),
    }
