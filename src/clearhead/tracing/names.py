"""The one table of the tensors that a forward shows to a tap: their names and the names of their axes.

A test runs forwards and asserts that every name and every shape is the one written here.
"""

from __future__ import annotations

import re

AXES: dict[str, str] = {
    "B": "batch",
    "T": "queries",
    "S": "keys",
    "D": "width",
    "H": "heads",
    "K": "key/value heads",
    "d": "head width",
    "F": "feed-forward width",
    "V": "vocabulary",
}
"""What each letter of an axis means."""

NAMES: dict[str, str] = {
    "embedding": "B T D",
    "positions": "T D",
    "input": "B T D",
    "blocks.*.attention_norm": "B T D",
    "blocks.*.attention.q": "B H T d",
    "blocks.*.attention.k": "B K T d",
    "blocks.*.attention.v": "B K T d",
    "blocks.*.attention.scores": "B H T S",
    "blocks.*.attention.weights": "B H T S",
    "blocks.*.attention.mixed": "B H T d",
    "blocks.*.attention.output": "B T D",
    "blocks.*.middle": "B T D",
    "blocks.*.feedforward_norm": "B T D",
    "blocks.*.feedforward.gate": "B T F",
    "blocks.*.feedforward.up": "B T F",
    "blocks.*.feedforward.hidden": "B T F",
    "blocks.*.feedforward.output": "B T D",
    "blocks.*.output": "B T D",
    "norm": "B T D",
    "logits": "B T V",
}
"""Name -> axes, in the order in which a decoder computes them; `*` stands for the number of a block."""


def axes_of(name: str) -> tuple[str, ...]:
    """The names of the axes of a traced tensor: `blocks.3.attention.weights` -> `("B", "H", "T", "S")`.

    Raises:
        KeyError: if no forward emits such a name.
    """
    return tuple(NAMES[re.sub(r"^blocks\.\d+\.", "blocks.*.", name)].split())
