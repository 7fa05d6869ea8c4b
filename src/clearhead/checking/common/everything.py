"""All that every kind is asked, in one call."""

from __future__ import annotations

from clearhead.checking.case import Case
from clearhead.checking.common.devices import devices
from clearhead.checking.common.modes import modes
from clearhead.checking.common.precision import precision
from clearhead.checking.common.rows import rows
from clearhead.checking.common.unused import unused
from clearhead.checking.common.weights import weights
from clearhead.checking.kinds.kind import Found
from clearhead.checking.settings import Settings


def everything(case: Case, settings: Settings) -> Found:
    """Modes, rows, weights, gradients, devices and number types.

    Args:
        case: how the code is run.
        settings: what the user wants.
    """
    found = weights(case.target) + modes(case)
    return found + rows(case) + unused(case) + devices(case) + precision(case, settings)
