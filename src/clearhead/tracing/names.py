"""The one table of the tensors that a forward shows to a tap: their names and the names of their axes.

A test runs forwards and asserts that every name and every shape is the one written here.
"""

from __future__ import annotations

import re

AXES: dict[str, str] = {
    "B": "batch",
    "T": "queries",
    "S": "keys",
    "M": "source tokens",
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
    "segments": "B T D",
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
    "blocks.*.cross_attention_norm": "B T D",
    "blocks.*.cross_attention.q": "B H T d",
    "blocks.*.cross_attention.k": "B K M d",
    "blocks.*.cross_attention.v": "B K M d",
    "blocks.*.cross_attention.scores": "B H T M",
    "blocks.*.cross_attention.weights": "B H T M",
    "blocks.*.cross_attention.mixed": "B H T d",
    "blocks.*.cross_attention.output": "B T D",
    "blocks.*.crossed": "B T D",
    "blocks.*.feedforward_norm": "B T D",
    "blocks.*.feedforward.gate": "B T F",
    "blocks.*.feedforward.up": "B T F",
    "blocks.*.feedforward.hidden": "B T F",
    "blocks.*.feedforward.output": "B T D",
    "blocks.*.output": "B T D",
    "norm": "B T D",
    "logits": "B T V",
    "head.transformed": "B T D",
    "head.logits": "B T V",
    "head.pooled": "B D",
    "head.output": "B D",
}
"""Name -> axes, in the order in which a model computes them; `*` stands for the number of a block.

Keys and values that cross-attention asks are computed once, before the first block. Where rows are padded their positions
differ, and `positions` has an axis B in front. An encoder-decoder puts `encoder.` or `decoder.` before each name.
"""

_NOT_SHOWN: dict[str, tuple[str, ...]] = {
    "encoder": ("logits", "blocks.*.cross", "segments", "head."),
    "decoder": ("segments", "head."),
}
"""How the names begin that a part of an encoder-decoder does not show."""


def axes_of(name: str) -> tuple[str, ...]:
    """The names of the axes of a traced tensor: `blocks.3.attention.weights` -> `("B", "H", "T", "S")`.

    What an encoder-decoder's encoder asks and is asked is the source: `encoder.blocks.3.attention.weights` has the axes
    `("B", "H", "M", "M")`.

    Raises:
        KeyError: if no forward emits such a name.
    """
    part, _, own = name.partition(".")
    if part not in _NOT_SHOWN:
        part, own = "", name
    row = re.sub(r"^blocks\.\d+\.", "blocks.*.", own)
    if row.startswith(_NOT_SHOWN.get(part, ())):
        raise KeyError(name)
    axes = tuple(NAMES[row].split())
    return tuple("M" if axis in ("T", "S") else axis for axis in axes) if part == "encoder" else axes


def known_axes(name: str) -> tuple[str, ...]:
    """The axes of the name; none for one that a part of a user's own emits."""
    try:
        return axes_of(name)
    except KeyError:
        return ()
