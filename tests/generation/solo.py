"""The decode loop with one row, as most tests want it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clearhead.generation.draws import dice
from clearhead.generation.loop import Step, Writing, decode
from clearhead.generation.rows import Reader
from clearhead.generation.sampling import SamplingSettings
from clearhead.models.decoder import Decoder


def solo(model: Decoder | Reader, prompt: Sequence[int], settings: SamplingSettings, *, seed: int) -> Iterator[Step]:
    """The steps of one text, without end."""
    reader = model if isinstance(model, Reader) else Reader(model)
    row = Writing(list(prompt), sampling=settings, draw=dice(seed))
    return (step for _, step in decode(reader, [row]))
