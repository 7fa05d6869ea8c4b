"""The kind `positions`: every planted fault is found and named, right positions are silent, tables are read as waves."""

from __future__ import annotations

import pytest
import torch

from bench.checking.case import Case
from bench.checking.first import positions, positions_right
from clearhead.checking.check import check
from clearhead.checking.kinds.positions_sinusoids import known_mistake, waves
from clearhead.checking.report import Report
from clearhead.ops.positions import sinusoids, sinusoids_in_halves


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
    return check(getattr(module, case.name), kind=None if case.guess else case.kind, **case.options)


@pytest.mark.parametrize("case", chosen(positions.CASES))
def test_a_planted_fault_is_named_first(case: Case) -> None:
    found = report(positions, case)
    assert not found.ok
    assert found.kind == "positions"
    assert found.faults[0].id in (case.fault, *case.also)
    assert found.faults[0].fix


@pytest.mark.parametrize("case", chosen(positions_right.CASES, 4))
def test_right_positions_are_silent(case: Case) -> None:
    found = report(positions_right, case)
    assert found.ok
    assert found.kind == "positions"


@pytest.mark.parametrize("start", [0, 1, 5])
def test_waves_are_read_with_their_layout_and_start(start: int) -> None:
    for formula, layout in ((sinusoids, "interleaved"), (sinusoids_in_halves, "halves")):
        found = waves(3.0 * formula(range(start, start + 20), 24, base=300.0), 1e-9)
        assert found is not None
        assert found.layout == layout
        assert found.steady
        assert found.start == pytest.approx(start, abs=1e-6)
        assert torch.allclose(found.speeds, 300.0 ** (-torch.arange(0, 24, 2).double() / 24))


def test_columns_of_different_frequencies_are_no_waves() -> None:
    table = sinusoids(range(20), 24)
    table[:, 1::2] = sinusoids(range(20), 24, base=10.0)[:, 1::2]
    assert waves(table, 1e-6) is None


def test_a_right_table_is_no_known_mistake_and_a_wrong_power_is() -> None:
    assert known_mistake(sinusoids(range(20), 24), 1e-6) is None
    wrong = sinusoids(range(20), 24, base=10_000.0**2)
    assert known_mistake(wrong, 1e-6) == "sin, cos(t / 10000^(4i/D))"
