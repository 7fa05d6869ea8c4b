"""Right code as published packages write it is silent, and the one mistake among it is named."""

import pytest

from bench.checking.case import Case
from bench.checking.first import right_world
from tests.checking.kinds.sets import report


@pytest.mark.parametrize("case", right_world.CASES, ids=lambda case: case.name)
def test_it_is_told_right_from_wrong(case: Case) -> None:
    found = report(right_world, case)
    assert [fault.id for fault in found.faults] == ([case.fault] if case.fault else [])
