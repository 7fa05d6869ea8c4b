"""What the page says would be without a weight is what `effect_of_weight` says, whatever the kernel, the part and the model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.messages import say
from clearhead.tracing.effect import Answer, Which, effect_of_weight
from clearhead.web import effect, effects, without
from clearhead.web.opening import opened
from clearhead.web.place import parts_of
from clearhead.web.session import Session
from clearhead.web.without import Outcome, Row
from tests.web.heads_opened import name_of, query, refusal
from tests.web.read_models import TEXT, decoder, encoder, loaded_of, target_of
from tests.web.test_atlas import hidden_query

DECODERS = ("learned", "learned, fused, MQA", "rotary, fused", "window, ALiBi", "soft-cap", "sinks", "rotary partial, parallel",
            "sinusoidal, post-norm")  # fmt: skip
WRITERS = ("original", "T5", "sinks", "relative, fused")
EVERY = [*(("decoder", each) for each in DECODERS), *(("pair", each) for each in WRITERS)]
OF: dict[str, Which] = {"encoder.attention": "encoder", "decoder.cross_attention": "cross_attention"}
QUERY, HEAD = 4, 2


def read(kind: str, variant: str) -> Session:
    return opened(loaded_of(kind, variant), TEXT, target_of(kind))


def told(answer: Any, of: Session, part: str, layer: int, **more: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer(of, query(part, layer, HEAD, query=QUERY, **more)).body)
    return found


def wanted(of: Session, part: str, layer: int, key: int, position: int = -1) -> Any:
    """By the definition: four forwards."""
    source = {"text": list(of.source), "target": list(of.ids)} if of.source else {"text": list(of.ids)}
    model: Any = of.loaded.model
    return effect_of_weight(
        model, block=layer, head=HEAD, query=QUERY, key=key, of=OF.get(part, "attention"), position=position, **source
    )


def check_said(of: Session, said: dict[str, Any], by_definition: Answer) -> None:
    assert abs(said["logit"] - by_definition.logit) < 1e-12
    assert abs(said["logprob"] - by_definition.logprob) < 1e-12
    assert said["best"] == of.loaded.tokenizer.pieces([int(by_definition.best)])[0]


def check(kind: str, variant: str) -> None:
    of = read(kind, variant)
    for part, layers in parts_of(of).items():
        layer, key = len(layers) - 1, 3
        found, true = told(effect.answer, of, part, layer, key=key), wanted(of, part, layer, key)
        assert found["position"] == true.position == len(of.ids) - 1
        assert found["token"] == of.loaded.tokenizer.pieces([true.id])[0]
        assert abs(found["weight"] - true.weight) < 1e-14
        assert found["difference"] < 1e-12
        for name in ("ran", "without_weight", "without_head"):
            check_said(of, found[name], getattr(true, name))
        # An earlier layer, and another answer than the last: the one behind the query itself.
        found, true = told(effect.answer, of, part, 0, key=3, at=QUERY), wanted(of, part, 0, 3, QUERY)
        assert found["position"] == QUERY
        for name in ("ran", "without_weight", "without_head"):
            check_said(of, found[name], getattr(true, name))
        assert abs(found["without_weight"]["logprob"] - found["ran"]["logprob"]) > 1e-7


@pytest.mark.parametrize(("kind", "variant"), EVERY)
def test_an_effect_is_that_of_the_definition(kind: str, variant: str) -> None:
    check(kind, variant)


def check_all(of: Session, part: str, most: int) -> None:
    """The largest weights of a row, each as if it were asked for alone."""
    weights = wanted_weights(of, part)
    found = told(effects.answer, of, part, 0)
    order = [key for key in weights.argsort(descending=True, stable=True).tolist() if weights[key] > 0][:most]
    assert [each["key"] for each in found["keys"]] == order
    for each in found["keys"]:
        alone = told(effect.answer, of, part, 0, key=each["key"])
        assert each["weight"] == alone["weight"]
        check_close(each, alone["without_weight"])
        check_close(found["without_head"], alone["without_head"])
        check_close(found["ran"], alone["ran"])
    assert found["token"] == alone["token"]


def check_close(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one["best"] == other["best"]
    for name in ("logit", "logprob"):
        assert abs(one[name] - other[name]) < 1e-12


def wanted_weights(of: Session, part: str) -> Tensor:
    ran = of.ran[name_of(part, 0)]
    seen = ran.visible.matrix(ran.q.device).expand(1, 1, ran.q.shape[-2], ran.k.shape[-2])[0, 0, QUERY]
    weights = torch.tensor([told(effect.answer, of, part, 0, key=key)["weight"] for key in range(ran.k.shape[-2])])
    return weights.masked_fill(~seen, -1.0)


@pytest.mark.parametrize(("kind", "variant", "part"), [("decoder", "rotary, fused", "attention"), ("pair", "T5", "decoder.cross_attention")])  # fmt: skip
def test_the_largest_weights_come_first_and_each_is_as_if_alone(kind: str, variant: str, part: str) -> None:
    of = read(kind, variant)
    check_all(of, part, 12)
    # As many rows at a time as have room, down to one: nothing else is said.
    whole = told(effects.answer, of, part, 0)
    assert without._rows_at_once(of) > 14
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(without, "AT_ONCE", 1)
        assert without._rows_at_once(of) == 1
        for one, other in zip(told(effects.answer, of, part, 0)["keys"], whole["keys"], strict=True):
            check_close(one, other)


def test_no_more_weights_than_a_person_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "LISTED", 3)
    check_all(read("decoder", "learned"), "attention", 3)


def test_the_pieces_are_the_whole() -> None:
    """Of a slow model the page asks for some weights at a time."""
    of = read("pair", "T5")
    whole = told(effects.answer, of, "decoder.cross_attention", 0)["keys"]
    parts = [
        each
        for start in range(0, 12, effects.PIECE)
        for each in told(effects.answer, of, "decoder.cross_attention", 0, **{"from": start})["keys"]
    ]
    assert len(whole) == 12
    for start, count in (("0", 4), ("8", 4), ("11", 1)):
        some = told(effects.answer, of, "decoder.cross_attention", 0, **{"from": start})
        assert (some["listed"], len(some["keys"])) == (12, count), "of how many there are each piece says"
    assert [each["key"] for each in parts] == [each["key"] for each in whole]
    for one, other in zip(parts, whole, strict=True):
        check_close(one, other)
    asked = query("attention", 0, 1, query=3, **{"from": 12})
    assert refusal(effects.answer, read("decoder", "learned"), asked)[0] == 400


def test_an_encoder_is_asked_about_the_token_itself() -> None:
    of = opened(encoder("BERT"), TEXT)
    found = told(effect.answer, of, "attention", 1, key=3)
    assert found["position"] == QUERY
    with torch.no_grad():
        logits = of.loaded.model(torch.tensor([of.ids]))[0, QUERY]
        tap = without.Taken("blocks.1.attention.mixed", HEAD, QUERY, torch.zeros(1, 1), torch.zeros(1, 1))
        silent = of.loaded.model(torch.tensor([of.ids]), tap=tap)[0, QUERY]
    id = int(logits.argmax())
    assert abs(found["ran"]["logprob"] - float(logits.log_softmax(-1)[id])) < 1e-12
    assert abs(found["without_head"]["logprob"] - float(silent.log_softmax(-1)[id])) < 1e-12
    assert found["without_head"]["logprob"] != found["ran"]["logprob"]


def test_an_encoder_that_says_no_tokens_has_no_answer() -> None:
    of = opened(encoder("learned, blockwise, MQA"), TEXT)
    one, row = told(effect.answer, of, "attention", 1, key=3), told(effects.answer, of, "attention", 1)
    assert one["position"] is one["token"] is one["ran"] is one["without_weight"] is one["without_head"] is None
    assert row["position"] is row["keys"] is row["ran"] is None
    assert 0 < one["weight"] < 1


def test_a_query_that_sees_nothing_has_no_weights() -> None:
    of = hidden_query(QUERY)
    row = told(effects.answer, of, "attention", 1)
    assert row["keys"] == []
    one = told(effect.answer, of, "attention", 1, key=2)
    assert one["weight"] == 0
    assert one["without_weight"] == one["ran"]


def test_what_is_no_number_is_null() -> None:
    assert Outcome(-math.inf, math.nan, "a").described() == {"logit": None, "logprob": None, "best": "a"}


def test_the_same_is_said_each_time_and_nothing_stays_on_the_model() -> None:
    of = read("decoder", "rotary, fused")
    of.loaded.model.train()
    asked = query("attention", 0, 1, query=3, key=2)
    assert effect.answer(of, asked).body == effect.answer(of, asked).body
    assert of.loaded.model.training
    assert not any(part._forward_hooks for part in of.loaded.model.modules())
    of.loaded.model.eval()


def test_positions_that_are_not_there_are_refused() -> None:
    of = opened(decoder(), TEXT)
    asked = query("attention", 0, 1, query=3, key=2, at=len(of.ids))
    outside = say("heads.outside", name="at", value=len(of.ids), last=len(of.ids) - 1)
    assert refusal(effect.answer, of, asked) == (400, outside)
    assert refusal(effects.answer, of, asked) == (400, outside)
    del asked["at"], asked["key"]
    assert refusal(effect.answer, of, asked) == (400, say("heads.missing", name="key"))


# --- planted faults


def of_the_next_head(of: Session, row: Row, keys: list[int]) -> without.Answers:
    return ANSWERS(of, row._replace(place=replace(row.place, head=row.place.head - 1)), keys)


def renormalised(of: Session, row: Row, keys: list[int]) -> without.Answers:
    """The others take over what was read: mixed - w (v - mixed) / (1 - w) in the place of mixed - w v."""
    mixed = row.weights @ row.values
    rest = 1 - row.weights[:, None]
    return ANSWERS(of, row._replace(values=(row.values - mixed) / rest), keys)


def added(of: Session, row: Row, keys: list[int]) -> without.Answers:
    """A sign swapped: the weight counts twice."""
    return ANSWERS(of, row._replace(values=-row.values), keys)


def of_the_next_key(of: Session, row: Row, keys: list[int]) -> without.Answers:
    return ANSWERS(of, row, [key - 1 for key in keys])


ANSWERS = without.answers_without


@pytest.mark.parametrize("fault", [of_the_next_head, renormalised, added, of_the_next_key])
@pytest.mark.parametrize(("kind", "variant"), [("decoder", "rotary, fused"), ("pair", "original")])
def test_another_removal_is_found(
    monkeypatch: pytest.MonkeyPatch, kind: str, variant: str, fault: Callable[..., without.Answers]
) -> None:
    monkeypatch.setattr(effect, "answers_without", fault)
    with pytest.raises(AssertionError):
        check(kind, variant)


@pytest.mark.parametrize("fault", [of_the_next_head, of_the_next_key])
def test_another_removal_of_several_is_found(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[..., without.Answers]
) -> None:
    monkeypatch.setattr(effects, "answers_without", fault)
    with pytest.raises(AssertionError):
        check_all(read("decoder", "rotary, fused"), "attention", 12)
