"""How good `clearhead diff` is: every pair of the trial is compared, and what was said is counted.

python -m bench.diff.run            # a line a pair, then the table
python -m bench.diff.run window     # pairs with that word in their names
"""

from __future__ import annotations

import sys
import time
from typing import Literal, NamedTuple

import torch

from bench.diff.after import AFTER
from bench.diff.cases import CODES, EQUAL, MODELS, Trial
from bench.diff.newcomer_reasons import TRIALS as REASONS
from bench.diff.newcomer_weights import TRIALS as WEIGHTS
from clearhead.checking.diff.diff import diff
from clearhead.checking.diff.report import Difference
from clearhead.checking.diff.said import place
from clearhead.messages import UserError

SETS = {
    "MODEL and code": MODELS,
    "code and code": CODES,
    "equal": EQUAL,
    "after": AFTER,
    "newcomer's, weights": WEIGHTS,
    "newcomer's, reasons": REASONS,
}
"""What is counted apart."""

Came = Literal["named", "located", "missed", "false", "equal", "refused"]
"""The reason is right; only the place is; neither; a pair that is equal is said to part; it is not; it could not be compared."""


class Outcome(NamedTuple):
    """What was said of a pair."""

    came: Came
    said: str
    seconds: float


def tried(trial: Trial) -> Outcome:
    """Compare a pair."""
    began = time.perf_counter()
    try:
        found = diff(trial.a(), trial.b())
    except UserError as error:
        return Outcome("refused", str(error), time.perf_counter() - began)
    return Outcome(_judged(trial, found), _said(found), time.perf_counter() - began)


def _judged(trial: Trial, found: Difference) -> Came:
    if not trial.ids:
        return "equal" if found.ok else "false"
    if found.first is None:
        return "missed"
    there = f"{found.first.a} {found.first.b} {found.first.where}"
    if found.reasons:
        there += f" {found.reasons[0].place} {found.reasons[0].text}"
        if found.reasons[0].id in trial.ids and set(trial.then) <= {each.id for each in found.reasons}:
            return "named"
        return "false"
    return "located" if any(word in there for word in trial.at) else "missed"


def _said(found: Difference) -> str:
    if found.first is None:
        return f"{sum(pair.held == 'equal' for pair in found.pairs)} stages equal"
    reasons = "; ".join(f"{each.id}: {each.text}" for each in found.reasons)
    return f"{place(vars(found.first))} | {reasons}"


def main() -> None:
    """Try, print, count."""
    torch.set_num_threads(1)
    words = sys.argv[1:]
    for title, trials in SETS.items():
        outcomes = []
        for trial in trials:
            if words and not any(word in trial.name for word in words):
                continue
            outcomes.append(tried(trial))
            came, said, seconds = outcomes[-1]
            print(f"{came:8} {seconds:5.1f} s  {trial.name:45} {said[:300]}", flush=True)
        counts = {came: sum(each.came == came for each in outcomes) for came in Came.__args__}
        told = ", ".join(f"{count} {came}" for came, count in counts.items() if count)
        print(f"== {title}: {len(outcomes)} pairs: {told}")


if __name__ == "__main__":
    main()
