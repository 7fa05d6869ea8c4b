"""How good `clearhead check` is: every module of a set is checked, and what was found is counted.

python -m bench.checking.run                    # all sets, kinds given, in this process
python -m bench.checking.run second --guess     # kinds left to be guessed
python -m bench.checking.run --slow --write     # each as a command of its own, timed; docs/verification.md takes the table
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import pkgutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.checking.case import Case

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
SETS = ("first", "second", "third")


@dataclass(frozen=True)
class Outcome:
    """What a check said of one module.

    Args:
        case: the module.
        named: the faults that were named, in order.
        ok: whether nothing was wrong; None if it could not be run.
        said: why it could not be run, or the evidence of the first fault.
        seconds: how long it took.
    """

    case: Case
    named: tuple[str, ...]
    ok: bool | None
    said: str
    seconds: float

    @property
    def detected(self) -> bool:
        """Whether a planted fault was noticed."""
        return self.ok is False

    @property
    def first_right(self) -> bool:
        """Whether the first name is that of the planted fault."""
        return self.named[:1] != () and self.named[0] in (self.case.fault, *self.case.also)


def cases(name: str) -> Iterator[tuple[str, Case]]:
    """Every module of a set, with its file."""
    package = importlib.import_module(f"bench.checking.{name}")
    for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda found: found.name):
        module = importlib.import_module(f"bench.checking.{name}.{found.name}")
        for case in getattr(module, "CASES", ()):
            yield f"bench.checking.{name}.{found.name}", case


def checked(task: tuple[str, Case, bool]) -> Outcome:
    """The outcome for one module, checked in this process."""
    import torch  # noqa: PLC0415 - each worker has its own

    from clearhead.checking.check import check  # noqa: PLC0415
    from clearhead.messages import UserError  # noqa: PLC0415

    place, case, guess = task
    torch.set_num_threads(1)
    began = time.perf_counter()
    try:
        report = check(f"{place}:{case.name}", kind=None if guess else case.kind, **dict(case.options))
    except UserError as error:
        return Outcome(case, (), None, str(error), time.perf_counter() - began)
    said = report.faults[0].evidence if report.faults else ""
    return Outcome(case, tuple(f.id for f in report.faults), report.ok, said, time.perf_counter() - began)


def commanded(task: tuple[str, Case, bool]) -> Outcome:
    """The same by the command that a user types, the start of Python and PyTorch in the time."""
    place, case, guess = task
    flags = [] if guess else ["--kind", case.kind]
    for name, value in case.options.items():
        flags += _flag(name, value)
    began = time.perf_counter()
    command = [sys.executable, "-m", "clearhead", "check", f"{place}:{case.name}", *flags, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if not done.stdout.strip():
        return Outcome(case, (), None, done.stderr.strip(), seconds)
    report = json.loads(done.stdout)
    named = tuple(fault["id"] for fault in report["faults"])
    return Outcome(case, named, report["ok"], report["faults"][0]["evidence"] if named else "", seconds)


def _flag(name: str, value: Any) -> list[str]:
    match name, value:
        case "causal", bool():
            return ["--causal" if value else "--no-causal"]
        case "values", dict():
            return [part for key, each in value.items() for part in ("--set", f"{key}={json.dumps(each)}")]
    return [f"--{name.replace('_', '-')}", str(value)]


def main() -> None:
    """Check the sets, print what was missed and a table, write the counts if asked."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("sets", nargs="*", metavar="SET", help=f"{', '.join(SETS)}; all if none is named")
    made.add_argument("--guess", action="store_true", help="leave the kinds to be guessed")
    made.add_argument("--slow", action="store_true", help="each module as a command of its own")
    made.add_argument("--only", default="", help="kinds, with commas")
    made.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    made.add_argument(
        "--blind", action="store_true", help="with --write: these are the counts before anything was mended"
    )
    asked = made.parse_args()
    if set(asked.sets) - set(SETS):
        made.error(f"sets are {', '.join(SETS)}")
    kinds = [kind for kind in asked.only.split(",") if kind]
    counts = {}
    for name in asked.sets or SETS:
        tasks = [(place, case, asked.guess) for place, case in cases(name) if not kinds or case.kind in kinds]
        with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=60) as pool:
            outcomes = pool.map(commanded if asked.slow else checked, tasks, chunksize=4)
        counts[name] = table(name, outcomes)
    if asked.write:
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        written = {f"{name}, blind" if asked.blind else name: count for name, count in counts.items()}
        RESULTS.write_text(json.dumps(known | written, indent=1) + "\n", encoding="utf-8")


def table(name: str, outcomes: list[Outcome]) -> dict[str, dict[str, float]]:
    """Print what was missed, then a line a kind; the same as numbers."""
    for outcome in outcomes:
        wrong = _wrong(outcome)
        if wrong:
            case = outcome.case
            planted, named = case.fault or "right", ", ".join(outcome.named[:3]) or "-"
            print(f"{wrong:<12} {case.kind:<10} {case.name:<32} {planted:<28} named {named}  {outcome.said[:140]}")
    found: dict[str, dict[str, float]] = {}
    print(f"\n{name + ' set':<12} planted detected first-name   right alarms   not run   slowest")
    for kind in [*sorted({outcome.case.kind for outcome in outcomes}), "all"]:
        mine = [outcome for outcome in outcomes if kind in ("all", outcome.case.kind)]
        planted = [outcome for outcome in mine if outcome.case.fault is not None]
        right = [outcome for outcome in mine if outcome.case.fault is None]
        row = {
            "planted": len(planted),
            "detected": sum(outcome.detected for outcome in planted),
            "first": sum(outcome.first_right for outcome in planted),
            "right": len(right),
            "alarms": sum(outcome.detected for outcome in right),
            "not_run": sum(outcome.ok is None for outcome in mine),
            "slowest": round(max((outcome.seconds for outcome in mine), default=0.0), 1),
        }
        found[kind] = row
        print(
            f"{kind:<12} {row['planted']:>7} {row['detected']:>8} {row['first']:>10} {row['right']:>7} {row['alarms']:>6} "
            f"{row['not_run']:>9} {row['slowest']:>8.1f} s"
        )
    return found


def _wrong(outcome: Outcome) -> str:
    if outcome.ok is None:
        return "NOT RUN"
    if outcome.case.fault is None:
        return "FALSE ALARM" if outcome.detected else ""
    if not outcome.detected:
        return "MISSED"
    return "" if outcome.first_right else "OTHER NAME"


if __name__ == "__main__":
    main()
