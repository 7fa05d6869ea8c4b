"""One prompt that was opened: what a forward left behind for whoever looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.ops.tap import Ran


class RefusedError(Exception):
    """A question that has no answer: what is wrong and how to mend it, in one line, and the status that HTTP gives it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Stage:
    """What is kept of a tensor of the forward.

    Args:
        name: as in the table of traced tensors.
        axes: the names of its axes.
        shape: its sizes.
        summary: mean, std, least, most and bytes.
    """

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    summary: Mapping[str, float | int | None]


@dataclass(frozen=True, eq=False)
class Session:
    """One forward of a model on a text; equal to itself alone.

    Args:
        id: digest of the model, the text and the target.
        loaded: the model.
        text: what was read, as it was typed, cut where it was too long.
        target: what an encoder-decoder has written so far; None elsewhere.
        ids: of the text; of the target in an encoder-decoder.
        source: of an encoder-decoder's source; () elsewhere.
        cut: how many ids were left out at the front.
        ran: what each attention worked on, by its name without `.weights`: "blocks.0.attention", "decoder.blocks.1.cross_attention".
        stages: every tensor of the forward, in its order.
        features: what the head over the vocabulary read of the only row, (T,D); of an encoder-decoder the decoder's.
        seconds: how long the forward took.
        size: bytes that are kept.
    """

    id: str
    loaded: Loaded
    text: str
    target: str | None
    ids: tuple[int, ...]
    source: tuple[int, ...]
    cut: int
    ran: Mapping[str, Ran]
    stages: tuple[Stage, ...]
    features: Tensor
    seconds: float
    size: int
