"""The scripts of docs/findings.md, run again: each in a process of its own, and what it prints compared with the page.

python -m bench.checking.public.confirm                       # every finding
python -m bench.checking.public.confirm conformer transformers  # those of some packages
"""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "findings.md"
LIMIT = 300.0
"""Seconds that one script may take; most of it is the import of the packages."""
NOTHING = 1e-6
"""Below this a number is what rounding leaves of 0."""

SECTION = re.compile(r"^### ([^\n]+)\n(.*?)(?=^##+ |\Z)", re.MULTILINE | re.DOTALL)
PACKAGES = re.compile(r"^- \*\*(?:Package and version:|软件包与版本：)\*\* (.+)$", re.MULTILINE)
FAULT = re.compile(r"^- \*\*(?:Fault:|错误：)\*\* (.+)$", re.MULTILINE)
VERSIONED = re.compile(r"`([\w.-]+)` (\d[\w.]*)")
NAMED = re.compile(r"(?:`([\w.-]+)`|—)( \(found by reading\)|（读代码发现）)?")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Finding:
    """A section of the page.

    Args:
        title: its heading.
        packages: (name, version) of each package that has it.
        faults: (id, whether it was found by reading) of each; the id is empty where the dictionary has none.
        script: what shows it; empty in Chinese, whose page names the English one.
        output: what the script prints.
    """

    title: str
    packages: tuple[tuple[str, str], ...]
    faults: tuple[tuple[str, bool], ...]
    script: str = ""
    output: str = ""


def findings(page: str) -> list[Finding]:
    """The sections of a page of findings, in order."""
    return [_finding(title, body) for title, body in SECTION.findall(page)]


def _finding(title: str, body: str) -> Finding:
    packages = VERSIONED.findall("".join(PACKAGES.findall(body)))
    faults = [(id, bool(read)) for id, read in NAMED.findall("".join(FAULT.findall(body)))]
    blocks = dict(BLOCK.findall(body))
    return Finding(title, tuple(packages), tuple(faults), blocks.get("python", ""), blocks.get("text", ""))


def same(said: str, printed: str) -> bool:
    """Whether two outputs are the same text around numbers that are the same to two significant digits; counts are compared exactly."""
    return (
        NUMBER.sub("#", said).split() == NUMBER.sub("#", printed).split()
        and len(NUMBER.findall(said)) == len(NUMBER.findall(printed))
        and all(map(_close, NUMBER.findall(said), NUMBER.findall(printed)))
    )


def _close(said: str, printed: str) -> bool:
    if said == printed:
        return True
    # A count has no fraction; what is printed as 0 on one machine may be rounding on another.
    if not any(mark in said + printed for mark in ".e"):
        return False
    one, other = float(said), float(printed)
    largest = max(abs(one), abs(other))
    return largest < NOTHING or abs(one - other) < 10.0 ** (math.floor(math.log10(largest)) - 1)


def printed(script: str) -> str:
    """What a script prints in a process of its own; its error, if it ends with one."""
    settings = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8", "TQDM_DISABLE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", "-c", script]
        try:
            done = subprocess.run(
                command, cwd=folder, env=settings, capture_output=True, encoding="utf-8", timeout=LIMIT, check=False
            )
        except subprocess.TimeoutExpired:
            return f"took more than {LIMIT:g} s"
    return done.stdout if not done.returncode else done.stdout + done.stderr


def missing(finding: Finding) -> list[str]:
    """What of its packages is not installed, or in another version than the page's."""
    told = []
    for package, version in finding.packages:
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found = "not installed"
        if found != version:
            told.append(f"{package} {found}" + ("" if found == "not installed" else f", the page has {version}"))
    return told


def confirmed(finding: Finding) -> tuple[str, str]:
    """(confirmed, differs or package not installed; what there is to say besides)."""
    absent = missing(finding)
    if any(each.endswith("not installed") for each in absent):
        return "package not installed", "; ".join(absent)
    out = printed(finding.script)
    if same(finding.output, out):
        return "confirmed", "; ".join(absent)
    return "differs", "\n".join([*absent, "the page:", finding.output.rstrip(), "now:", out.rstrip()])


def main() -> int:
    """Run the scripts, print a line for each; 1 if one prints something else than the page."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("packages", nargs="*", metavar="PACKAGE", help="all if none is named")
    asked.add_argument("--workers", type=int, default=2)
    given = asked.parse_args()
    page = findings(PAGE.read_text(encoding="utf-8"))
    todo = [each for each in page if not given.packages or {name for name, _ in each.packages} & {*given.packages}]
    states = []
    with ThreadPoolExecutor(given.workers) as pool:
        for finding, (state, told) in zip(todo, pool.map(confirmed, todo), strict=True):
            states.append(state)
            name = ", ".join(package for package, _ in finding.packages)
            besides = f"\n{told}".replace("\n", "\n    ") if told else ""
            print(f"{state:<22}{name}: {finding.title}{besides}", flush=True)
    print(", ".join(f"{states.count(state)} {state}" for state in ("confirmed", "differs", "package not installed")))
    return int("differs" in states)


if __name__ == "__main__":
    sys.exit(main())
