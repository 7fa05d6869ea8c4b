"""Loading a model at a command: what takes long shows how far it is."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from clearhead.cli.bar import bar_of
from clearhead.messages import say

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded

DELAY = 2.0
"""Seconds before anything is shown."""


def loaded_model(name: str, dtype: str, device: str) -> Loaded:
    """The model that the user named, with a bar if that takes long; raises as `load`."""
    from clearhead.formats.load import load  # noqa: PLC0415 - torch comes after the flags are right

    with ExitStack() as stack:
        bar, before = None, 0

        def watch(read: int, whole: int) -> None:
            nonlocal bar, before
            bar = bar or stack.enter_context(bar_of(say("cli.loading"), whole, delay=DELAY, leave=False))
            bar.move(read - before)
            before = read

        return load(name, dtype=dtype, device=device, watch=watch)
