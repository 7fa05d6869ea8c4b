"""What patching found: a share for every part that was patched, as a matrix, a list of the best, and a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal

from torch import Tensor

from clearhead.messages import say
from clearhead.text.columns import shown
from clearhead.tracing.parts import columns

By = Literal["position", "head", "name"]
"""What is patched at a time: a tensor at one position, one head of it, or all of it."""

ABREAST = 12
"""Columns that stand beside each other in a terminal; more stand below."""


@dataclass(frozen=True)
class Restored:
    """One part that was patched."""

    name: str
    index: int | None
    """The position or head; None for all of the tensor."""
    label: str
    """The token at that position (`clean→corrupted` where they differ), or the number of the head."""
    share: float
    """Of the metric's way from corrupted to clean: 1 is all of it."""


@dataclass(frozen=True, repr=False)
class Patching:
    """The share of a metric that each part restores: (patched - corrupted) / (clean - corrupted).

    1: with this part alone from the clean run, the metric is that of the clean run. 0: nothing changed. Below 0 it moved away, above 1
    it moved beyond. Shares of different parts need not sum to 1: parts work together.
    """

    names: list[str]
    """The rows: N tensors, in the order of the forward."""
    labels: list[list[str]]
    """The columns of each row: tokens, heads, or one without a label."""
    shares: Tensor
    """(N,C) in float64; NaN behind the columns of a shorter row."""
    by: By
    clean: float
    """The metric of the clean text."""
    corrupted: float
    """The metric of the corrupted text."""
    estimated: bool = False
    """Whether the shares are first-order estimates (`attribution_patching`), not measured."""

    def __iter__(self) -> Iterator[Restored]:
        """Every part, row by row."""
        for name, labels, row in zip(self.names, self.labels, self.shares.tolist(), strict=True):
            for index, label in enumerate(labels):
                yield Restored(name, None if self.by == "name" else index, label, row[index])

    def share(self, name: str, index: int = 0) -> float:
        """The share of one part.

        Args:
            name: a row.
            index: its position or head.
        """
        return float(self.shares[self.names.index(name), index])

    def best(self, n: int = 10) -> list[Restored]:
        """The parts that restore most, the first the most.

        Args:
            n: how many at most.
        """
        return sorted(self, key=lambda part: -part.share)[:n]

    def __repr__(self) -> str:
        lines = [self._heading()]
        for headings, rows in self._tables().items():
            for first in range(0, len(headings), ABREAST):
                beside = slice(first, min(first + ABREAST, len(headings)))
                cells = [[self.names[row], *map(_number, self.shares[row, beside].tolist())] for row in rows]
                # What is patched whole needs no heading.
                lines.append(columns(cells if self.by == "name" else [["", *headings[beside]], *cells]))
        return "\n\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(self._heading())}</p>"]
        for headings, rows in self._tables().items():
            head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
            lines = [f"<tr><th></th>{head}</tr>"]
            for row in rows:
                cells = "".join(map(_cell, self.shares[row, : len(headings)].tolist()))
                lines.append(f"<tr><th>{escape(self.names[row])}</th>{cells}</tr>")
            parts.append(f"<table>{''.join(lines)}</table>")
        return "".join(parts)

    def _heading(self) -> str:
        clean, corrupted = f"{self.clean:.4g}", f"{self.corrupted:.4g}"
        if self.estimated:
            return say("tracing.patched_estimate", clean=clean, corrupted=corrupted)
        return say("tracing.patched", clean=clean, corrupted=corrupted)

    def _tables(self) -> dict[tuple[str, ...], list[int]]:
        """Headings -> the rows that have these columns."""
        found: dict[tuple[str, ...], list[int]] = {}
        for row, labels in enumerate(self.labels):
            numbered = [f"{index} {shown(label)}" for index, label in enumerate(labels)]
            found.setdefault(tuple(numbered if self.by == "position" else labels), []).append(row)
        return found


def _number(share: float) -> str:
    """Two decimals, and no minus before 0."""
    return f"{round(share, 2) + 0.0:.2f}"


def _cell(share: float) -> str:
    """A cell in blue for what was restored, in red for what moved away."""
    colour = "33, 102, 172" if share > 0 else "178, 24, 43"
    return f'<td style="background: rgba({colour}, {min(abs(share), 1.0) * 0.7:.2f})">{_number(share)}</td>'
