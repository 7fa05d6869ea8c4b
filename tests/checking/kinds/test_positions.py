"""The kind `positions`: every planted fault is found and named, right positions are silent, tables are read as waves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bench.checking.case import Case
from bench.checking.first import positions, positions_right, rotary_right
from clearhead.checking.check import check
from clearhead.checking.kinds.positions_sinusoids import known_mistake, waves
from clearhead.ops.positions import sinusoids, sinusoids_in_halves
from tests.checking.kinds.sets import chosen, report


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


@pytest.mark.parametrize(
    "power", [lambda i, width: width * 10_000.0 ** (-2 * i), lambda i, width: 10_000.0 ** (-2 * i) / width]
)
def test_a_division_outside_the_power_is_named(power: Callable[[torch.Tensor, int], torch.Tensor]) -> None:
    angle = torch.arange(20)[:, None] * power(torch.arange(8).double(), 16)
    assert "outside the power" in str(known_mistake(torch.stack([angle.sin(), angle.cos()], -1).flatten(1), 1e-6))


def test_pairs_that_stand_still_are_a_fault_though_no_formula_is_known() -> None:
    def sinusoids_of(length: int, dim: int) -> torch.Tensor:
        i = torch.arange(dim // 2)
        angle = torch.arange(length)[:, None] * 10_000.0 ** (-2 * i / dim) * (i < dim // 4)
        return torch.cat([angle.sin(), angle.cos()], -1)

    found = check(sinusoids_of, kind="positions").faults[0]
    assert found.id == "sinusoid.frequency"
    assert "do not move" in found.evidence


@pytest.mark.parametrize(
    ("others", "said"), [("B, T, D = x.shape", False), ("B, T, D = x.shape\nx = x.transpose(0, 1)", True)]
)
def test_the_rest_of_the_file_tells_which_axis_has_the_positions(tmp_path: Path, others: str, said: bool) -> None:
    code = Path(inspect.getsourcefile(positions_right) or "").read_text(encoding="utf-8")
    header, tutorial = code.partition("class ")[0], "class Tutorial" + code.partition("class Tutorial")[2]
    plain = tutorial.partition("CASES")[0].replace('"""Sequence-first, as nn.Transformer has it."""', "")
    below = "\n\ndef other(x):\n" + "".join(f"    {line}\n" for line in others.splitlines()) + "    return x\n"
    file = tmp_path / ("turned.py" if said else "plain.py")
    file.write_text(header + plain + below, encoding="utf-8")
    assert check(f"{file}:Tutorial", kind="positions").ok is said


def test_cosines_and_sines_apart_are_tables_of_a_turn() -> None:
    found = check(rotary_right.CachedTables)
    assert found.ok
    assert found.kind != "positions"
