"""One tensor of a forward as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from clearhead.messages import say
from clearhead.models.encoder import Encoder
from clearhead.ops.softmax import at_least_float32
from clearhead.ops.tap import Scoped, Tap
from clearhead.tracing.names import known_axes
from clearhead.web.answer import Answer, packed
from clearhead.web.flow import Teller, squares
from clearhead.web.opening import again, logits_of
from clearhead.web.pooling import field_of
from clearhead.web.session import RefusedError, Session
from clearhead.web.summing import Numbers, summing

MOST = 256
"""The most rows and columns of a picture."""


def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """A tensor of the first row of the batch as a matrix: its last axis from left to right, all others from top to bottom.

    Args:
        session: the forward.
        query: `name` of the tensor.

    Returns:
        Packed: `stage` as the flow tells it, with its numbers; `rows` and `columns` of the matrix; `pooled`, how many of them each field
        of the picture holds; `least` and `most` of the matrix; `picture`, bytes by the number of the largest size in each field,
        round(127.5 (1 + x / end)) with end = max(|least|, |most|): 0 in the middle.

    Raises:
        RefusedError: 400 if the forward has no such tensor, 422 if none of its numbers is finite.
    """
    name = query.get("name", "")
    stage = next((each for each in session.stages if each.name == name), None)
    if stage is None:
        raise RefusedError(400, say("opening.no_stage", name=name[:80] or '""'))
    shown = stage.shape[1:] if stage.axes[:1] == ("B",) else stage.shape
    rows, columns = (math.prod(shown[:-1]), shown[-1]) if shown else (1, 1)
    field = (field_of(rows, MOST), field_of(columns, MOST))
    taken: list[Numbers] = []
    with torch.no_grad():
        # Numbers that were not taken in the forward are summed up while the picture is made: what is computed again is so once.
        parts = matrices(session, name)
        parts = parts if stage.summary["mean"] is not None else summing(parts, taken)
        picture, least, most = _picture(parts, (rows, columns), field)
    if least > most:
        raise RefusedError(422, say("opening.no_numbers", name=name))
    told: dict[str, Any] = Teller(session).told(stage, *taken)
    header = {"stage": told, "rows": rows, "columns": columns, "pooled": list(field), "least": least, "most": most}
    return packed(header, [("picture", _bytes(picture, max(abs(least), abs(most))))])


def matrices(session: Session, name: str) -> Iterator[Tensor]:
    """A tensor of the first row of the batch as a matrix, some of its rows after others.

    What attention worked on has been kept; scores and weights are computed a head at a time; logits some positions at a time; for any
    other tensor the forward runs again up to it.

    Args:
        session: the forward.
        name: of one of its tensors.
    """
    of, _, letter = name.rpartition(".")
    again_squares = squares(session, name)
    if again_squares is not None:
        parts: Iterator[Tensor] = again_squares
    elif of in session.ran and letter in ("q", "k", "v", "mixed"):
        parts = iter([getattr(session.ran[of], letter)[0]])
    elif letter == "logits" and not isinstance(session.loaded.model, Encoder):
        parts = logits_of(session)
    else:
        tensor = tensor_of(session, name)
        parts = iter([tensor[0] if known_axes(name)[:1] == ("B",) else tensor])
    return (part.reshape(-1, part.shape[-1]) for part in parts)


def tensor_of(session: Session, name: str) -> Tensor:
    """A tensor of the forward, which runs again as far as it.

    Args:
        session: the forward.
        name: of the tensor.

    Raises:
        KeyError: if no tensor has the name.
    """
    only = _Only(name)
    try:
        again(session, only)
    except _ReachedError as reached:
        return reached.tensor
    raise KeyError(name)


class _ReachedError(Exception):
    """The tensor that was asked for has passed; no more is needed of the forward."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        self.tensor = tensor


class _Only(Tap):
    """A tap that ends the forward at one tensor."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        if name == self.name:
            raise _ReachedError(tensor.detach())
        return tensor

    def within(self, scope: str) -> Tap:
        return Scoped(self, f"{scope}.")


def _picture(parts: Iterator[Tensor], shape: tuple[int, int], field: tuple[int, int]) -> tuple[Tensor, float, float]:
    """The number of the largest size in each field, and the least and the most of all; what is not finite is passed over.

    Args:
        parts: of the matrix, from the top.
        shape: its rows and columns.
        field: how many of them make a field.

    Returns:
        The fields, and least > most if no number is finite.
    """
    rows = math.ceil(shape[0] / field[0])
    most: Tensor | None = None
    least: Tensor | None = None
    done = 0
    for part in parts:
        finite = part.isfinite()
        highest, lowest = (_columns(part, finite, field[1], sign) for sign in (1, -1))
        if most is None or least is None:
            most = highest.new_full((rows, highest.shape[1]), -torch.inf)
            least = -most
        index = torch.arange(done, done + len(part), device=part.device).div(field[0], rounding_mode="floor")
        index = index[:, None].expand_as(highest)
        most.scatter_reduce_(0, index, highest, "amax")
        least.scatter_reduce_(0, index, lowest, "amin")
        done += len(part)
    assert most is not None, "a tensor has rows"
    assert least is not None
    larger = torch.where(most >= -least, most, least)
    return larger.where(larger.isfinite(), 0.0), float(least.min()), float(most.max())


def _columns(part: Tensor, finite: Tensor, field: int, sign: int) -> Tensor:
    """The largest (sign 1) or smallest (-1) finite number of each field of columns: (r,c) -> (r,⌈c/f⌉), at least float32."""
    wide = part.to(at_least_float32(part.dtype))
    signed = (sign * wide).where(finite, -torch.inf)
    return sign * F.max_pool1d(signed[None], field, ceil_mode=True)[0]


def _bytes(picture: Tensor, end: float) -> NDArray[np.uint8]:
    """0 for -end, 127.5 for 0, 255 for end."""
    shares = (picture / (end or 1.0)).clamp(-1, 1)
    found: NDArray[np.uint8] = (127.5 * (1 + shares)).round().to(torch.uint8).cpu().numpy()
    return found
