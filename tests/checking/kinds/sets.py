"""Modules of a set of bench/checking as cases of a test."""

from __future__ import annotations

import pytest

from bench.checking.case import Case
from clearhead.checking.check import check
from clearhead.checking.report import Report


def chosen(cases: list[Case], right: int = 0) -> list[object]:
    """Each fault once, and the first right ones; the others are slow together."""
    seen: set[str | None] = set()
    made = []
    for index, case in enumerate(cases):
        quick = index < right if case.fault is None else case.fault not in seen
        seen.add(case.fault)
        made.append(pytest.param(case, id=case.name, marks=() if quick else pytest.mark.slow))
    return made


def report(module: object, case: Case) -> Report:
    """What the check says of a module of the set, its kind given or guessed as the case says."""
    return check(getattr(module, case.name), kind=None if case.guess else case.kind, **case.options)
