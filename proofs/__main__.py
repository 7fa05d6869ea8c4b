"""Runs the proofs one after another and says of each claim what was measured: `python -m proofs [NAME ...] [--write]`."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

import torch

from proofs.claims import Claim, Report, Words
from proofs.pages import write

NAMES = ("copying", "induction", "sorting", "modular", "lengths", "order", "norms", "residuals", "scale")
DOCS = Path(__file__).resolve().parents[1] / "docs"


def line(name: str, claim: Claim) -> str:
    """What is said of a claim."""
    verdict = "right" if claim.right else "WRONG"
    return f"{verdict:<5}  {name:<12} {claim.words.en:<72} {claim.found:>10}   bar {claim.wanted}"


def ran(name: str) -> tuple[Words, Words, Report]:
    """Title, what it is about, and what was found; prints a line a claim."""
    began, proof = time.perf_counter(), importlib.import_module(f"proofs.{name}")
    report: Report = proof.prove()
    for claim in report.claims:
        print(line(name, claim))
    print(f"       {name:<12} took {time.perf_counter() - began:.0f} s", flush=True)
    return proof.TITLE, proof.ABOUT, report


def main(arguments: list[str] | None = None) -> int:
    """0 if every claim reaches its bar, 1 if one misses it."""
    parser = argparse.ArgumentParser(prog="python -m proofs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; all if none is given")
    parser.add_argument("--write", action="store_true", help="write docs/proofs.md, its Chinese twin and the pictures")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.names if name not in NAMES]:
        parser.error(f"there is no proof {unknown[0]}; there are {', '.join(NAMES)}")
    if asked.write and asked.names:
        parser.error("the pages are written from all proofs: give no name beside --write")
    began = time.perf_counter()
    found = {name: ran(name) for name in asked.names or NAMES}
    if asked.write:
        write(DOCS, found)
    claims = [claim for _, _, report in found.values() for claim in report.claims]
    wrong = sum(not claim.right for claim in claims)
    print(f"{len(claims)} claims, {wrong} wrong; {time.perf_counter() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    # Models as small as these gain little from a second thread, and one thread gives the same numbers every time.
    torch.set_num_threads(1)
    sys.exit(main())
