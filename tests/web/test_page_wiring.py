"""The picture of a model: every tensor has its place, branches leave the stream and come back to a sum, for each kind of block."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.scripts import told

ATTENTION = [f"attention.{name}" for name in ("q", "k", "v", "scores", "weights", "mixed", "output")]
FEEDFORWARD = [f"feedforward.{name}" for name in ("gate", "up", "hidden", "output")]
BLOCKS = {
    "sequential": ["attention_norm", *ATTENTION, "middle", "feedforward_norm", *FEEDFORWARD, "output"],
    "post-norm": [*ATTENTION, "middle", *FEEDFORWARD, "output"],
    "parallel": ["attention_norm", *ATTENTION, "feedforward_norm", *FEEDFORWARD, "output"],
}


def column(names: list[str], change: tuple[str, str] = ("", "")) -> dict[str, Any]:
    """The picture of stages, its first block opened."""
    stages = json.dumps([{"name": name} for name in names])
    found: dict[str, Any] = told("wiring.js", f"page.column({stages}, 0, {{left: 0, top: 0, width: 400}})", change)
    return found


def of(block: list[str], count: int = 2) -> list[str]:
    """The stages of a model of such blocks."""
    return [
        "embedding",
        "input",
        *[f"blocks.{each}.{name}" for each in range(count) for name in block],
        "norm",
        "logits",
    ]


def lanes(drawn: dict[str, Any]) -> dict[str, str]:
    """Where each stage stands: on the stream or on a branch."""
    return {item["name"]: item["lane"] for item in drawn["items"] if item["kind"] == "stage"}


@pytest.mark.parametrize("kind", BLOCKS)
def test_every_tensor_of_the_opened_block_is_drawn_once(kind: str) -> None:
    drawn = column(of(BLOCKS[kind]))
    names = [item["stage"]["name"] for item in drawn["items"] if item["kind"] == "stage"]
    assert sorted(names) == sorted(
        ["embedding", "input", *[f"blocks.0.{name}" for name in BLOCKS[kind]], "norm", "logits"]
    )
    stream = {name for name, lane in lanes(drawn).items() if lane == "spine"}
    assert stream == {"embedding", "input", "output", "norm", "logits"} | ({"middle"} & set(BLOCKS[kind]))


@pytest.mark.parametrize("kind", BLOCKS)
def test_nothing_lies_on_something_else(kind: str) -> None:
    check_apart(column(of(BLOCKS[kind], 12)))


def test_boxes_that_lie_on_each_other_are_found() -> None:
    """Planted: folded blocks that do not move the next box down."""
    with pytest.raises(AssertionError):
        check_apart(column(of(BLOCKS["sequential"], 12), ("place.y += FOLDED + SEAM;", "place.y += 0;")))


def check_apart(drawn: dict[str, Any]) -> None:
    """No two boxes share a point."""
    boxes = drawn["items"]
    for place, one in enumerate(boxes):
        for other in boxes[:place]:
            beside = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
            below = one["y"] >= other["y"] + other["height"] or other["y"] >= one["y"] + one["height"]
            assert beside or below, (one["name"], other["name"])


def test_a_sum_without_a_norm_before_it_is_normed_itself() -> None:
    def titles(kind: str) -> list[str]:
        return [item["title"] for item in column(of(BLOCKS[kind]))["items"] if item["name"] in ("middle", "output")]

    assert titles("sequential") == ["middle", "output"]
    assert titles("post-norm") == ["middle_normed", "output_normed"]


CROSS = [f"cross_attention.{name}" for name in ("q", "scores", "weights", "mixed", "output")]


def test_cross_attention_reads_the_source_and_stands_after_the_embedding() -> None:
    first = ["blocks.0.cross_attention.k", "blocks.0.cross_attention.v"]
    block = [
        "attention_norm",
        *ATTENTION,
        "middle",
        "cross_attention_norm",
        *CROSS,
        "crossed",
        "feedforward_norm",
        *FEEDFORWARD,
        "output",
    ]
    drawn = column([f"decoder.{name}" for name in [*first, *of(block, 1)]])
    order = list(lanes(drawn))
    assert order[:2] == ["embedding", "input"]
    assert order[-2:] == ["norm", "logits"]
    row = [
        item
        for item in drawn["items"]
        if item["name"] in ("cross_attention.q", "cross_attention.k", "cross_attention.v")
    ]
    assert [item["name"][-1] for item in row] == ["q", "k", "v"]
    assert len({item["y"] for item in row}) == 1
    ends = {tuple(wire["points"][-1]) for wire in drawn["wires"]}
    into = [item["name"][-1] for item in row if (item["x"] + item["width"] / 2, item["y"]) in ends]
    assert into == ["q"], "keys and values come from the source, not from the stream"
