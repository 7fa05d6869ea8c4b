"""What every kind is asked finds what is planted in the first set, names it first, and is silent on what is right."""

from __future__ import annotations

import pytest

from clearhead.checking.common.everything import everything
from clearhead.checking.order import ordered
from clearhead.checking.settings import Settings
from tests.checking.common.opened import once_each, opened, others

FILES = ("modes", "weights", "weights_tables", "precision")


def of(which):
    return [pytest.param(file, case, id=case.name) for file in FILES for case in which(file)]


def held(file, case):
    found = everything(opened(file, case), Settings())
    named = [fault.id for fault in ordered(found.faults)]
    if case.fault is None:
        assert named == [], found.faults
        assert all(check.verdict in ("pass", "skipped") for check in found.checks)
    else:
        assert named, "not detected"
        assert named[0] in (case.fault, *case.also), found.faults


@pytest.mark.parametrize(("file", "case"), of(once_each))
def test_one_of_each_fault(file, case):
    held(file, case)


@pytest.mark.slow
@pytest.mark.parametrize(("file", "case"), of(others))
def test_all_the_others(file, case):
    held(file, case)
