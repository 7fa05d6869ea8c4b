"""Each number of a cell follows from those before it, and the last are those of a trace."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from clearhead.layers.look import RotaryTurn
from clearhead.messages import say
from clearhead.ops.rotary import Rotation
from clearhead.web import cell
from clearhead.web.session import Session
from tests.web.heads_opened import ALL, name_of, places, query, recorded, refusal, session_of
from tests.web.test_atlas import hidden_query


def told_of(of: Session, place: tuple[str, int, int], asked: int, key: int) -> dict[str, Any]:
    part, layer, head = place
    return json.loads(cell.answer(of, query(part, layer, head, query=asked, key=key)).body)  # type: ignore[no-any-return]


def check_closing(told: dict[str, Any]) -> None:
    """Worked out by hand from what the page is told, as a reader would."""
    products = [a * b for a, b in zip(told["q"]["after"], told["k"]["after"], strict=True)]
    near(told["terms"], products)
    near(sum(told["terms"]), told["dot"])
    score = told["dot"] * told["scale"]
    if told["cap"] is not None:
        score = told["cap"] * math.tanh(score / told["cap"])
    near(score + (told["bias"] or 0.0), told["score"])
    if told["visible"]:
        near(math.exp(told["score"] - told["highest"]), told["exponential"])
    else:
        assert told["exponential"] == told["weight"] == 0
    near(told["exponential"] / told["total"], told["weight"])
    near(told["share"], [told["weight"] * each for each in told["v"]])


def near(found: Any, wanted: Any) -> None:
    difference = torch.tensor(found, dtype=torch.float64) - torch.tensor(wanted, dtype=torch.float64)
    assert float(difference.abs().max()) <= 1e-6


def check_row(of: Session, part: str, layer: int, head: int, asked: int) -> None:
    """All cells of a row: they close, are those of the trace, and add up to what ran."""
    name = name_of(part, layer)
    kept = recorded(of, f"{name}.*")
    weights, scores = (kept[f"{name}.{each}"][0, head, asked] for each in ("weights", "scores"))
    cells = [told_of(of, (part, layer, head), asked, key) for key in range(len(weights))]
    for told in cells:
        check_closing(told)
    near([told["weight"] for told in cells], weights.tolist())
    near([told["score"] for told in cells], scores.tolist())
    sink = cells[0]["sink"]
    near(sum(told["exponential"] for told in cells) + (sink["exponential"] if sink else 0.0), cells[0]["total"])
    near(sum(told["weight"] for told in cells) + (sink["weight"] if sink else 0.0), 1.0)
    seen = [told["score"] for told in cells if told["visible"]] + ([sink["score"]] if sink else [])
    near(max(seen), cells[0]["highest"])
    near([sum(column) for column in zip(*(told["share"] for told in cells), strict=True)], cells[0]["mixed"])
    near(cells[0]["mixed"], kept[f"{name}.mixed"][0, head, asked].tolist())


def check_kind(kind: str, variant: str) -> None:
    of = session_of(kind, variant)
    for place in places(of)[1::3]:
        check_row(of, *place, asked=6)


@pytest.mark.parametrize(("kind", "variant"), ALL)
def test_cells_close_and_are_those_of_a_trace(kind: str, variant: str) -> None:
    check_kind(kind, variant)


PLANTED: list[tuple[str, str, str, object]] = [
    ("decoder", "soft-cap", "cap", None),
    ("decoder", "sinks", "sinks", None),
    ("decoder", "ALiBi", "bias", None),
    ("encoder", "relative", "bias", None),
    ("decoder", "free head width", "scale", None),
]


@pytest.mark.parametrize(("kind", "variant", "field", "value"), PLANTED)
def test_what_is_left_out_is_found(
    kind: str, variant: str, field: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = cell._double
    monkeypatch.setattr(cell, "_double", lambda ran: double(ran._replace(**{field: value})))
    with pytest.raises(AssertionError):
        check_kind(kind, variant)


@pytest.mark.parametrize(("name", "by"), [("dot", 1e-5), ("total", 1e-4), ("weight", 1e-5), ("score", 1e-5)])
def test_a_number_that_does_not_follow_is_found(name: str, by: float) -> None:
    told = told_of(session_of("decoder", "learned"), ("attention", 1, 2), 6, 3)
    check_closing(told)
    with pytest.raises(AssertionError):
        check_closing({**told, name: told[name] + by})


TURNED = ("rotary, fused", "rotary interleaved", "rotary partial, parallel", "YaRN", "sinks")


def check_turning(variant: str) -> None:
    """Turning `before` gives `after`, and `before` is what the module projected."""
    of = session_of("decoder", variant)
    attention, turn = of.loaded.model.blocks[1].attention, of.loaded.model.looks[1].turn  # type: ignore[union-attr,index]
    assert isinstance(turn, RotaryTurn)
    rotate = turn(range(13), torch.float64, torch.device("cpu"))
    told = told_of(of, ("attention", 1, 3), asked=11, key=5)
    assert told["rotation"]["interleaved"] == turn.interleaved
    assert told["rotation"]["turned"] == turn.turned == 2 * len(told["rotation"]["angles"]["q"])
    normed = recorded(of, "blocks.1.attention_norm")["blocks.1.attention_norm"][0]
    q, k, _ = attention.qkv(normed).detach().split(attention.sizes, dim=-1)
    for name, all_heads, head, place in (("q", q, 3, 11), ("k", k, told["kv_head"], 5)):
        vectors = torch.zeros(1, 1, 13, len(told[name]["before"]), dtype=torch.float64)
        vectors[0, 0, place] = torch.tensor(told[name]["before"])
        near(rotate(vectors)[0, 0, place].tolist(), told[name]["after"])
        width = vectors.shape[-1]
        near(told[name]["before"], all_heads[place, head * width : (head + 1) * width].tolist())
        # ω of the first pair is 1, unless it is scaled; angles are told within a turn.
        if variant != "YaRN":
            near(math.cos(told["rotation"]["angles"][name][0] - place), 1.0)


@pytest.mark.parametrize("variant", TURNED)
def test_vectors_are_turned_back(variant: str) -> None:
    check_turning(variant)


def other_pairs(vector: Any, turned: Rotation, place: int) -> Any:
    return BACK(vector, replace(turned, interleaved=not turned.interleaved), place)


def further(vector: Any, turned: Rotation, place: int) -> Any:
    return BACK(vector, turned, place - 1)


def factor_kept(vector: Any, turned: Rotation, place: int) -> Any:
    return Rotation(turned.cos[place], -turned.sin[place], turned.interleaved)(vector)


BACK = cell.turned_back


@pytest.mark.parametrize(
    ("variant", "fault"),
    [("rotary, fused", other_pairs), ("rotary partial, parallel", further), ("YaRN", factor_kept)],
)
def test_turned_otherwise_is_found(variant: str, fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "turned_back", fault)
    with pytest.raises(AssertionError):
        check_turning(variant)


def test_nothing_is_turned_where_nothing_turns() -> None:
    for of, part in (
        (session_of("decoder", "ALiBi"), "attention"),
        (session_of("pair", "rotary, fused"), "decoder.cross_attention"),
    ):
        told = told_of(of, (part, 1, 2), 6, 3)
        assert told["rotation"] is told["q"]["before"] is told["k"]["before"] is None
    turned = told_of(session_of("pair", "rotary, fused"), ("encoder.attention", 0, 2), 6, 3)
    assert turned["rotation"]["turned"] == 6


def test_a_query_that_sees_nothing() -> None:
    told = told_of(hidden_query(4), ("attention", 1, 2), 4, 3)
    assert told["highest"] is None
    assert not told["visible"]
    assert told["weight"] == told["total"] == told["exponential"] == 0
    assert told["share"] == [0.0] * 6


def test_what_is_no_number_is_null() -> None:
    of = session_of("decoder", "learned")
    ran = of.ran["blocks.0.attention"]
    v = ran.v.clone()
    v[0, 0, 2, 1] = math.inf
    other = replace(of, ran={**of.ran, "blocks.0.attention": ran._replace(v=v)})
    told = told_of(other, ("attention", 0, 1), 6, 2)
    assert told["v"][1] is None
    assert told["v"][0] is not None


def test_keys_that_are_not_there_are_refused() -> None:
    of = session_of("pair", "T5")
    asked = query("decoder.cross_attention", 0, 1, query=12, key=7)
    assert refusal(cell.answer, of, asked) == (400, say("heads.outside", name="key", value=7, last=6))
    assert refusal(cell.answer, of, {**asked, "key": "NaN"})[0] == 400
    del asked["key"]
    assert refusal(cell.answer, of, asked) == (400, say("heads.missing", name="key"))
