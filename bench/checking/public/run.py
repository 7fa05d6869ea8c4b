"""`clearhead check` over classes of published packages: silent, an alarm, a fault that is known to be there, or not run.

python -m bench.checking.public.run                            # every package that is installed
python -m bench.checking.public.run timm --only Swin --plant   # some classes; faults planted into the silent ones
python -m bench.checking.public.run --plant --write            # docs/verification.md takes the table
python -m bench.checking.public.run --keep outcomes.jsonl      # goes on where it was stopped
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import logging
import multiprocessing
import pkgutil
import queue
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.checking.public.unseen import PAGE, page

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
LIMIT = 60.0
"""Seconds that one check may take, the start of a process not counted."""
MOST = 3
"""Plants that are tried in one class."""


@dataclass(frozen=True)
class Outcome:
    """What came out for one class.

    Args:
        package: on the registry.
        name: of the class with its options.
        state: silent, confirmed, alarm, not run, or not installed.
        said: the faults, or why it could not be run.
        seconds: how long the check took.
        planted: (id, what, whether it was seen, what was said) of each fault that changed a number.
    """

    package: str
    name: str
    state: str
    said: str = ""
    seconds: float = 0.0
    planted: tuple[tuple[str, str, bool, str], ...] = ()


Task = tuple[str, int, str, str]
"""The file, the place of the subject in it, its package and its name."""


def tasks(packages: list[str], only: str) -> Iterator[Task]:
    """Every subject that is asked for."""
    for found in sorted(pkgutil.iter_modules([str(HERE)]), key=lambda found: found.name):
        module = importlib.import_module(f"bench.checking.public.{found.name}")
        for place, subject in enumerate(getattr(module, "SUBJECTS", ())):
            wanted = any(part in subject.name for part in only.split("+"))
            if (not packages or subject.package in packages) and wanted:
                yield module.__name__, place, subject.package, subject.name


def serve(pipe: Connection) -> None:
    """The other process: checks what it is asked for until it is asked for nothing."""
    import torch  # noqa: PLC0415 - each process has its own

    torch.set_num_threads(1)
    # What packages say of themselves while they run is not what is asked here.
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    pipe.send("ready")
    for file, place, plant in iter(pipe.recv, None):
        subject = importlib.import_module(file).SUBJECTS[place]
        pipe.send(_answer(subject, plant))


def _answer(subject: Any, plant: str) -> tuple[Any, ...]:
    """(state, said) of a subject; with a plant's name (whether it did anything, whether it was seen, what was said)."""
    from bench.checking.public.planting import planted  # noqa: PLC0415
    from bench.checking.public.plants import PLANTS  # noqa: PLC0415
    from clearhead.checking.strangers import Attempt, Seeded  # noqa: PLC0415

    with Attempt() as attempt, Seeded():
        if not plant:
            return _checked(subject, subject.make())
        one = next(each for each in PLANTS[subject.kind] if each.what == plant)
        made, seen = planted(subject.make, one)
        if one.void(made):
            return False, False, "void: what is planted is right in it"
        state, said, causal = _checked(subject, made, one.id)
        told = state == "alarm" or (state == "not run" and seen.changed)
        return seen.changed and (told or (seen.moved and (causal or not one.causal))), told, said
    return (False, False, attempt.reason) if plant else ("not run", attempt.reason, False)


def _checked(subject: Any, made: Any, asked: str = "") -> tuple[str, str, bool]:
    """State, what was said (of a fault that was planted, where nothing else was), and whether it may not see the future."""
    from clearhead.checking.check import check  # noqa: PLC0415
    from clearhead.messages import UserError  # noqa: PLC0415

    try:
        report = check(made, kind=subject.kind, **dict(subject.options))
    except UserError as error:
        return "not run", str(error)[:600], False
    wrong = [f"{fault.id} at {fault.where or '-'}: {fault.evidence}" for fault in report.faults]
    wrong += [f"{each.id}: {each.evidence}" for each in report.checks if each.verdict == "error"]
    new = [line for line in wrong if line.split(" ")[0].rstrip(":") not in subject.confirmed]
    rows = report.sight.expected if report.sight else []
    causal = any(not all(row) for row in rows) or subject.kind == "lm"
    state = "alarm" if new else "confirmed" if wrong else "silent"
    return state, "\n    ".join(new or wrong) or (_of(report.checks, asked) if asked else ""), causal


def _of(checks: Any, asked: str) -> str:
    """What a check said of a fault that it did not see."""
    about = [each for each in checks if each.id in (asked, asked.split(".", maxsplit=1)[0])]
    if not about:
        return "not asked of it"
    passed = any(each.verdict == "pass" for each in about)
    return "passed" if passed else f"could not be asked: {about[0].evidence[:200]}"


class Child:
    """A process that checks, started again where one crashed or took too long."""

    def __init__(self) -> None:
        self.process: Any = None
        self.pipe: Any = None

    def ask(self, file: str, place: int, plant: str = "") -> tuple[Any, ...]:
        """The answer, or why there is none."""
        if self.process is None:
            ours, theirs = multiprocessing.get_context("spawn").Pipe()
            self.pipe = ours
            self.process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
            self.pipe.recv()
        reason = f"took more than {LIMIT:g} s"
        try:
            self.pipe.send((file, place, plant))
            if self.pipe.poll(LIMIT):
                answer: tuple[Any, ...] = self.pipe.recv()
                return answer
        except (EOFError, OSError):
            reason = "the process ended"
        self.end()
        # A plant that ends the process, or takes too long, shows nothing about what is seen.
        return (False, False, reason) if plant else ("not run", reason, False)

    def end(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
        self.process = None


def outcome(child: Child, task: Task, plant: bool) -> Outcome:
    """The outcome for one subject."""
    from bench.checking.public.plants import chosen  # noqa: PLC0415

    file, place, package, name = task
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return Outcome(package, name, "not installed")
    began = time.perf_counter()
    state, said, causal = child.ask(file, place)
    made = Outcome(package, name, state, said, time.perf_counter() - began)
    if not plant or state != "silent":
        return made
    subject = importlib.import_module(file).SUBJECTS[place]
    results: list[tuple[str, str, bool, str]] = []
    for each in chosen(subject.kind, name):
        if len(results) >= MOST or each.id in subject.blind or (each.causal and not causal):
            continue
        changed, seen, told = child.ask(file, place, each.what)
        if changed:
            results.append((each.id, each.what, seen, told))
    return replace(made, planted=tuple(results))


def all_outcomes(todo: list[Task], plant: bool, workers: int, path: Path | None = None) -> list[Outcome]:
    """The outcomes of all, in order; each is printed if it is not silent. Those that a file has are not made again."""
    earlier = kept(path)
    found = {number: earlier[task[2:]] for number, task in enumerate(todo) if task[2:] in earlier}
    waiting: queue.SimpleQueue[tuple[int, Task]] = queue.SimpleQueue()
    for number, task in enumerate(todo):
        if number not in found:
            waiting.put((number, task))

    def work() -> None:
        child = Child()
        while not waiting.empty():
            number, task = waiting.get()
            found[number] = outcome(child, task, plant)
            keep(path, found[number])
            show(found[number])
        child.end()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in sorted(found)]


def kept(path: Path | None) -> dict[tuple[str, str], Outcome]:
    """The outcomes of an earlier run, by package and name; a later one takes the place of an earlier."""
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
    rows = [json.loads(line) for line in lines]
    made = [Outcome(**row | {"planted": tuple(map(tuple, row["planted"]))}) for row in rows]
    return {(each.package, each.name): each for each in made}


def keep(path: Path | None, made: Outcome) -> None:
    """Add an outcome to those that are kept, if they are."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(made)) + "\n")


def show(made: Outcome) -> None:
    """Print what is not silent, and planted faults that went unseen."""
    if made.state not in ("silent", "not installed"):
        print(
            f"{made.state.upper():<10} {made.package}  {made.name}  ({made.seconds:.1f} s)\n    {made.said}", flush=True
        )
    for id, what, seen, _ in made.planted:
        if not seen:
            print(f"UNSEEN     {made.package}  {made.name}  {id}: {what}", flush=True)


COLUMNS = ("classes", "silent", "confirmed", "alarms", "not_run", "planted", "seen")


def table(outcomes: list[Outcome]) -> dict[str, dict[str, Any]]:
    """Print a line a package; the same as numbers."""
    print(f"\n{'package':<28}" + "".join(f"{column:>10}" for column in COLUMNS))
    found: dict[str, dict[str, Any]] = {}
    for package in [*sorted({made.package for made in outcomes}), "all"]:
        mine = [made for made in outcomes if package in ("all", made.package) and made.state != "not installed"]
        states = [made.state for made in mine]
        planted = [each for made in mine for each in made.planted]
        numbers = (
            len(mine), states.count("silent"), states.count("confirmed"), states.count("alarm"), states.count("not run"),
            len(planted), sum(each[2] for each in planted),
        )  # fmt: skip
        print(f"{package:<28}" + "".join(f"{number:>10}" for number in numbers))
        if package == "all" or not mine:
            continue
        reasons = {made.name: made.said.splitlines()[0][:300] for made in mine if made.state == "not run" and made.said}
        row: dict[str, Any] = {"version": importlib.metadata.version(package)}
        unseen = [[made.name, id, said] for made in mine for id, _, seen, said in made.planted if not seen]
        named = sum(
            seen and any(line.strip().startswith(id) for line in said.splitlines()) for id, _, seen, said in planted
        )
        row |= dict(zip(COLUMNS, numbers, strict=True)) | {"named": named}
        found[package] = row | {"reasons": reasons, "unseen": unseen}
    return found


def main() -> None:
    """Check the packages, print what is not silent and a table, write the counts if asked."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("packages", nargs="*", metavar="PACKAGE", help="all that are installed if none is named")
    made.add_argument("--only", default="", help="parts of the names of the classes, with + between")
    made.add_argument("--plant", action="store_true", help="plant faults into those that are silent")
    made.add_argument("--workers", type=int, default=2)
    made.add_argument(
        "--keep", type=Path, metavar="FILE", help="keep each outcome there, and make none again that it has"
    )
    made.add_argument("--write", action="store_true", help=f"write {RESULTS.name} and {PAGE.name}")
    asked = made.parse_args()
    counts = table(all_outcomes(list(tasks(asked.packages, asked.only)), asked.plant, asked.workers, asked.keep))
    if asked.write:
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        written = dict(sorted((known | counts).items()))
        RESULTS.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(written), encoding="utf-8")


if __name__ == "__main__":
    main()
