"""Loading and writing a model at a command: what takes long shows how far it is."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from clearhead.cli.bar import Bar, bar_of
from clearhead.cli.options import tell
from clearhead.messages import say

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded

DELAY = 2.0
"""Seconds before anything is shown."""


def writing_bar(size: int) -> Bar:
    """The bar of writing a model of `size` bytes, if that takes long."""
    return bar_of(say("cli.writing"), size, size=True, delay=DELAY, leave=False)


def loaded_model(name: str, dtype: str, device: str) -> Loaded:
    """The model that the user named, with a bar if that takes long; says if it came without a tokenizer; raises as `load`."""
    from clearhead.formats.load import load  # noqa: PLC0415 - torch comes after the flags are right
    from clearhead.text.numbers import knows_no_words  # noqa: PLC0415

    with ExitStack() as stack:
        bar, before = None, 0

        def watch(read: int, whole: int) -> None:
            nonlocal bar, before
            bar = bar or stack.enter_context(bar_of(say("cli.loading"), whole, delay=DELAY, leave=False))
            bar.move(read - before)
            before = read

        loaded = load(name, dtype=dtype, device=device, watch=watch)
    if knows_no_words(loaded.tokenizer):
        # Words would be left out without a word.
        tell(say("text.numbers_alone", path=loaded.source))
    return loaded
