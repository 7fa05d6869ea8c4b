"""The kind `rotary`: every planted fault is found and named, right turns are silent, matrices tell what a turn does."""

from __future__ import annotations

import pytest
import torch

from bench.checking.case import Case
from bench.checking.first import rotary, rotary_right
from clearhead.checking.check import check
from clearhead.checking.kinds.rotary_calls import open_rotary
from clearhead.checking.kinds.rotary_case import matrices
from clearhead.checking.kinds.rotary_frequencies import frequencies, known_mistake
from clearhead.checking.kinds.rotary_pairs import pairs_of, unequal
from clearhead.checking.kinds.rotary_tables import tables_of
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of
from clearhead.checking.watch import Record
from clearhead.ops.rotary import turn_half_split, turn_interleaved
from tests.checking.kinds.sets import chosen, report


@pytest.mark.parametrize("case", chosen(rotary.CASES))
def test_a_planted_fault_is_named_first(case: Case) -> None:
    found = report(rotary, case)
    assert not found.ok
    assert found.kind == "rotary"
    assert found.faults[0].id in (case.fault, *case.also)
    assert found.faults[0].fix


@pytest.mark.parametrize("case", chosen(rotary_right.CASES, 4))
def test_a_right_turn_is_silent(case: Case) -> None:
    found = report(rotary_right, case)
    assert found.ok
    assert found.kind == "rotary"


def waves(length: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    angles = torch.arange(length).double()[:, None] * 50.0 ** (-torch.arange(0, width, 2).double() / width)
    return angles.cos(), angles.sin()


def turned_by(turn: object, width: int = 8) -> torch.Tensor:
    def rope(x: torch.Tensor) -> torch.Tensor:
        return turn(x, *waves(x.shape[-2], x.shape[-1]))  # type: ignore[operator]

    case = open_rotary(target_of(rope, "rope", Settings()), Settings())
    return matrices(case, 9)[0]


def test_pairs_are_read_off_the_matrices() -> None:
    halves, adjacent = pairs_of(turned_by(turn_half_split)), pairs_of(turned_by(turn_interleaved))
    assert halves is not None
    assert adjacent is not None
    assert (halves.style, halves.partner(0)) == ("half-split", 4)
    assert (adjacent.style, adjacent.partner(0)) == ("interleaved", 1)


def test_two_pairings_of_one_pair_of_vectors_are_named() -> None:
    q, k = turned_by(turn_half_split), turned_by(turn_interleaved)
    named = unequal(q, k, "")
    assert named is not None
    assert named[0] == "rotary.pairing"
    assert unequal(q, q, "") is None


def test_tables_are_read_in_every_form() -> None:
    cos, sin = waves(6, 8)
    for given in (
        torch.polar(torch.ones_like(cos), torch.atan2(sin, cos)),
        (cos, sin),
        (sin, cos),
        (cos[None, None], sin[None, None]),
        torch.stack([cos, sin], -1),
        torch.cat([cos, sin], -1),
        torch.cat([sin, cos], -1),
    ):
        found = tables_of(given)
        assert torch.allclose(found.cos, cos)
        assert torch.allclose(found.sin, sin)


def test_nothing_turned_is_a_fault_and_not_a_pass() -> None:
    def rope(q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return q, k

    assert check(rope, kind="rotary").faults[0].id == "position.unused"


@pytest.mark.parametrize("says", ["", "Runs under autocast."])
def test_angles_in_the_type_of_the_vectors_are_a_note_and_a_fault_where_the_code_is_for_16_bits(says: str) -> None:
    def rope(x: torch.Tensor) -> torch.Tensor:
        speeds = (100.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])).to(x)
        angles = torch.arange(x.shape[-2]).to(x)[:, None] * speeds
        return turn_half_split(x, angles.cos(), angles.sin())

    target = target_of(rope, "rope", Settings())
    target.__dict__["source"] = target.source + says
    case = open_rotary(target, Settings())
    found = frequencies(case, matrices(case, 11)[0], Record())
    assert [fault.id for fault in found.faults] == (["rotary.low-precision"] if says else [])
    assert bool(found.notes) is not bool(says)
    check_made = next(each for each in found.checks if each.id == "rotary.low-precision")
    assert check_made.verdict == ("fail" if says else "pass")


def test_a_right_series_is_no_known_mistake_and_a_wrong_power_is() -> None:
    i = torch.arange(8).double()
    for base in (10_000.0, 500_000.0, 1e6):
        assert known_mistake(base ** (-2 * i / 16), base) is None
        assert "outside the power" in str(known_mistake(base ** (-2 * i) / 16, base))
        assert known_mistake(base ** (-i / 16), base) == "ω = base^(-i/d)"
