"""Finding by trial how a module takes its masks."""

from __future__ import annotations

from clearhead.checking.kinds.masks_found import MaskUse
from clearhead.checking.kinds.sequence_case import SequenceCase
from clearhead.checking.settings import Settings


def masks_of(case: SequenceCase, settings: Settings) -> tuple[MaskUse, ...]:
    """How each mask of the module is given."""
    return ()
