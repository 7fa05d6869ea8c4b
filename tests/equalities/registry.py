"""The claims that this folder proves, and for each the faults that it must catch: one list, for the tests and for the page.

A claim is a check, a function that asserts, run over cases. A fault is a mistake put into the package by hand; under it the
same check, at the case named, must fail. `docs/verification.md` is written from this list by `verification.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.oracles.compare import assert_within, largest_difference


@dataclass(frozen=True)
class Fault:
    """A mistake that shapes do not catch.

    Args:
        id: its name, one that `clearhead check` may give it.
        english: what is done wrong.
        chinese: the same.
        plant: puts it into the package until the patch is undone.
    """

    id: str
    english: str
    chinese: str
    plant: Callable[[pytest.MonkeyPatch], None]


@dataclass
class Claim:
    """What is proved, how, over which cases, and which faults the proof must catch at which case."""

    english: str
    chinese: str
    check: Callable[..., None]
    cases: list[str]
    faults: dict[Fault, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The test, as pytest names it."""
        return f"tests/equalities/{Path(inspect.unwrap(self.check).__code__.co_filename).name}::{self.check.__name__}"

    def run(self, case: str) -> None:
        """The check at one case, always with the same random numbers."""
        torch.manual_seed(0)
        self.check(*([case] if self.cases else []))


CLAIMS: list[Claim] = []
differences: list[float] = []
"""What `close` has measured since somebody emptied it."""

Check = Callable[..., None]


def fault(id: str, english: str, chinese: str) -> Callable[[Callable[[pytest.MonkeyPatch], None]], Fault]:
    """Make a function that patches the package a fault."""
    return lambda plant: Fault(id, english, chinese, plant)


def claim(english: str, chinese: str, *, over: Iterable[str] = (), faults: dict[Fault, str]) -> Callable[[Check], Any]:
    """Enter a test as a claim.

    Args:
        english: the claim in one line.
        chinese: the same.
        over: the cases, each one argument of the test; none for a test without argument.
        faults: what it must catch, and at which of the cases ("" for a test without argument).
    """
    cases = list(over)
    assert set(faults.values()) <= set(cases or [""]), "a fault names a case that there is not"

    def enter(check: Check) -> Any:
        CLAIMS.append(Claim(english, chinese, check, cases, faults))
        return (
            pytest.mark.parametrize(next(iter(inspect.signature(check).parameters)), cases)(check) if cases else check
        )

    return enter


def close(actual: Tensor, expected: Tensor, within: float = 1e-12) -> None:
    """Assert one shape, one type, and no difference above `within`; what was found is kept in `differences`."""
    if actual.shape == expected.shape:
        differences.append(largest_difference(actual, expected))
    assert_within(actual, expected, within)


def differ(one: Tensor, other: Tensor, least: float = 1e-3) -> None:
    """Assert that two tensors of one shape are far from equal: what equality is asked of must not be trivial."""
    assert largest_difference(one, other) >= least
