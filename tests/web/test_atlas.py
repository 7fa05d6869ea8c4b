"""The atlas shows the weights that a trace has, of every head, scores them as the detectors do, and is never too large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from clearhead.ops.masks import Allowed
from clearhead.ops.tap import Ran
from clearhead.tracing.detectors import detect_heads
from clearhead.web import atlas, weighing
from clearhead.web.answer import unpacked
from clearhead.web.session import Session
from tests.equalities.variants import model_of
from tests.web.heads_opened import ALL, name_of, recorded, session, session_of


def check_pictures(kind: str, variant: str) -> None:
    of = session_of(kind, variant)
    header, arrays = unpacked(atlas.answer(of, {}).body)
    weights = recorded(of, "*.weights")
    assert sum(part["layers"] for part in header["parts"]) == len(weights)
    for part in header["parts"]:
        for layer in range(part["layers"]):
            (ran, shown) = weights[f"{name_of(part['name'], layer)}.weights"][0], arrays[part["name"]][layer]
            assert shown.shape == (part["heads"], part["rows"], part["columns"]) == tuple(ran.shape)
            assert torch.equal(torch.tensor(shown), (255 * ran.sqrt()).round().to(torch.uint8))


@pytest.mark.parametrize(("kind", "variant"), ALL)
def test_pictures_are_the_weights_of_a_trace(kind: str, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Few weights at once, so that there are several blocks.
    monkeypatch.setattr(weighing, "AT_ONCE", 200)
    check_pictures(kind, variant)


def without(field: str, value: object) -> Callable[[Ran], Ran]:
    return lambda ran: ran._replace(**{field: value})


def all_seen(ran: Ran) -> Ran:
    return ran._replace(visible=Allowed(torch.ones(1, 1, dtype=torch.bool)))


def other_group(ran: Ran) -> Ran:
    return ran._replace(k=ran.k.flip(-3))


FAULTS: list[tuple[str, str, Callable[[Ran], Ran]]] = [
    ("decoder", "soft-cap", without("cap", None)),
    ("decoder", "sinks", without("sinks", None)),
    ("decoder", "ALiBi", without("bias", None)),
    ("decoder", "free head width", without("scale", None)),
    ("decoder", "window", all_seen),
    ("decoder", "learned", other_group),
]


@pytest.mark.parametrize(("kind", "variant", "fault"), FAULTS)
def test_what_is_left_out_is_found(
    kind: str, variant: str, fault: Callable[[Ran], Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atlas, "wide", lambda ran: fault(weighing.wide(ran)))
    monkeypatch.setattr(atlas, "blocks_of", lambda ran, field: weighing.blocks_of(fault(ran), field))
    with pytest.raises(AssertionError):
        check_pictures(kind, variant)


def test_a_query_that_sees_nothing_has_a_black_row() -> None:
    of = hidden_query(4)
    _, arrays = unpacked(atlas.answer(of, {}).body)
    lines = arrays["attention"][0].reshape(4, 13, 13).any(-1)
    assert not lines[:, 4].any()
    assert lines[:, [*range(4), *range(5, 13)]].all()


def hidden_query(place: int) -> Session:
    """A session in which one query sees nothing."""
    of = session_of("decoder", "learned")
    allowed = torch.ones(13, 13, dtype=torch.bool).tril()
    allowed[place] = False
    return replace(of, ran={name: ran._replace(visible=Allowed(allowed)) for name, ran in of.ran.items()})


SCORES = {"previous": "previous_token", "induction": "induction", "sink": "first_token"}


def check_scores(variant: str) -> None:
    of = session_of("decoder", variant)
    header, _ = unpacked(atlas.answer(of, {}).body)
    found = detect_heads(model_of(variant), list(of.ids))
    for name, kind in SCORES.items():
        ours = torch.tensor(header["parts"][0]["scores"][name], dtype=torch.float64)
        assert (ours - found.scores[kind]).abs().max() < 6e-6, name
    for layer, entropies in enumerate(header["parts"][0]["scores"]["entropy"]):
        weights = recorded(of, f"blocks.{layer}.attention.weights")[f"blocks.{layer}.attention.weights"][0]
        shares = weights / weights.sum(-1, keepdim=True)
        wanted = torch.special.entr(shares).sum(-1).mean(-1)
        assert (torch.tensor(entropies, dtype=torch.float64) - wanted).abs().max() < 6e-6


@pytest.mark.parametrize("variant", ["learned", "sinks", "window", "rotary partial, parallel"])
def test_scores_are_those_of_the_detectors(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighing, "AT_ONCE", 200)
    check_scores(variant)


def itself(ids: Tensor) -> Tensor:
    return torch.eye(len(ids), dtype=torch.bool)


@pytest.mark.parametrize("name", SCORES)
def test_another_pattern_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(atlas.PATTERNS, name, itself)
    with pytest.raises(AssertionError):
        check_scores("learned")


def test_scores_that_mean_nothing_are_null() -> None:
    model = model_of("learned")
    of = {length: session(model, torch.arange(length)[None]) for length in (2, 5)}
    scores = {length: unpacked(atlas.answer(each, {}).body)[0]["parts"][0]["scores"] for length, each in of.items()}
    assert scores[5]["induction"] is None
    assert scores[5]["previous"] is not None
    assert scores[2]["previous"] is None
    assert scores[2]["sink"] is None
    crossed = unpacked(atlas.answer(session_of("pair", "T5"), {}).body)[0]["parts"]
    (across,) = (part["scores"] for part in crossed if part["name"] == "decoder.cross_attention")
    assert across["previous"] is across["induction"] is None
    weights = recorded(session_of("pair", "T5"), "decoder.blocks.1.cross_attention.weights")
    (first,) = (each[0, :, :, 0].mean(-1) for each in weights.values())
    assert (torch.tensor(across["sink"][1], dtype=torch.float64) - first).abs().max() < 6e-6


def of_sizes(layers: int, heads: int, groups: int, length: int) -> Session:
    """A session of many heads, without a model that could have run."""
    generator = torch.Generator().manual_seed(2)
    q, k = (torch.randn(1, count, length, 2, generator=generator) for count in (heads, groups))
    ran = session_of("decoder", "learned").ran["blocks.0.attention"]
    one = ran._replace(mixed=q, q=q, k=k, v=k, visible=Allowed(torch.ones(length, length, dtype=torch.bool).tril()))
    ids = tuple(place % 5 for place in range(length))
    return replace(
        session_of("decoder", "learned"), ids=ids, ran={f"blocks.{layer}.attention": one for layer in range(layers)}
    )


def check_size(layers: int, heads: int, groups: int, length: int) -> None:
    body = atlas.answer(of_sizes(layers, heads, groups, length), {}).body
    assert len(body) < 560_000, len(body)
    header, _ = unpacked(body)
    part = header["parts"][0]
    assert 1 <= part["rows"] <= 64
    assert part["rows"] * part["pooled"][0] >= length > (part["rows"] - 1) * part["pooled"][0]


@pytest.mark.parametrize(("layers", "heads", "groups", "length"), [(2, 3, 1, 65), (30, 9, 3, 97), (80, 64, 8, 71)])
def test_it_stays_small_for_any_model(layers: int, heads: int, groups: int, length: int) -> None:
    check_size(layers, heads, groups, length)


def test_pictures_that_do_not_shrink_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atlas, "side_of", lambda heads: 64)
    with pytest.raises(AssertionError):
        check_size(30, 9, 3, 97)


def test_a_diagonal_does_not_vanish() -> None:
    of = of_sizes(1, 1, 1, 300)
    same = torch.eye(300)[None, None] * 30
    ran = of.ran["blocks.0.attention"]._replace(q=same, k=same, scale=1.0)
    _, arrays = unpacked(atlas.answer(replace(of, ran={"blocks.0.attention": ran}), {}).body)
    picture = arrays["attention"][0, 0]
    assert picture.shape == (60, 60)
    assert (picture.diagonal() == 255).all()
