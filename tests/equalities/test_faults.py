"""Each planted fault is caught by the claim it stands beside; by the very same check."""

from __future__ import annotations

import pytest

from tests.equalities.registry import Claim, Fault
from tests.equalities.verification import claims, holds, planted

PAIRS = [(claim, fault, case) for claim in claims() for fault, case in claim.faults.items()]


@pytest.mark.parametrize(
    ("claim", "fault", "case"), PAIRS, ids=[f"{claim.check.__name__}-{fault.id}" for claim, fault, _ in PAIRS]
)
def test_the_fault_is_caught(claim: Claim, fault: Fault, case: str) -> None:
    with planted(fault):
        assert not holds(claim, case)


def test_every_claim_has_a_fault() -> None:
    assert [claim.english for claim in claims() if not claim.faults] == []
