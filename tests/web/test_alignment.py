"""The alignment of two texts is the mean of the weights of a trace; a row says which head looks there most; what is written is greedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from clearhead.generation.generate import generate
from clearhead.web import alignment, weighing
from clearhead.web.answer import unpacked
from clearhead.web.export import Question, answers_of, place_of
from clearhead.web.opening import opened
from clearhead.web.session import Session
from tests.web.heads_opened import PAIRED, recorded, refusal, session_of
from tests.web.read_models import TARGET, TEXT, decoder, encoder, pair

CHOICES: tuple[tuple[int | None, int | None], ...] = ((None, None), (1, None), (0, 3))
"""All layers, a layer, a head."""


def asked(layer: int | None, head: int | None, **more: int) -> dict[str, str]:
    """The fields of an address."""
    fields = {"layer": layer, "head": head, **more}
    return {name: str(value) for name, value in fields.items() if value is not None}


def traced(of: Session, layer: int | None, head: int | None) -> Tensor:
    """The weights of the heads in question: (L,H,T,S), of one layer and one head where those are named."""
    kept = recorded(of, "decoder.blocks.*.cross_attention.weights")
    every = torch.stack([kept[f"decoder.blocks.{place}.cross_attention.weights"][0] for place in range(len(kept))])
    every = every if layer is None else every[[layer]]
    return every if head is None else every[:, [head]]


def check_alignment(variant: str) -> None:
    of = session_of("pair", variant)
    for layer, head in CHOICES:
        mean = traced(of, layer, head).mean((0, 1))
        header, arrays = unpacked(alignment.answer(of, asked(layer, head)).body)
        assert (header["layer"], header["head"], header["pooled"]) == (layer, head, [1, 1])
        assert [header["queries"], header["keys"]] == list(mean.shape)
        most = float(mean.max())
        assert abs(header["most"] - most) < 1e-12
        wanted = (255 * (mean / most).sqrt()).round().to(torch.uint8).numpy()
        # A weight in the middle between two bytes may be rounded up or down.
        assert np.abs(arrays["weights"].astype(int) - wanted).max() <= 1
        assert np.array_equal(arrays["largest"], mean.argmax(-1).numpy())
        assert np.abs(arrays["highest"] - mean.amax(-1).numpy()).max() < 1e-6


def check_row(variant: str) -> None:
    of = session_of("pair", variant)
    for layer, head in CHOICES:
        heads = traced(of, layer, head)
        for query in (0, 5, heads.shape[2] - 1):
            header, arrays = unpacked(alignment.row(of, asked(layer, head, query=query)).body)
            weights = heads[:, :, query]
            assert header["query"] == query
            assert np.abs(arrays["weights"] - weights.mean((0, 1)).numpy()).max() < 1e-6
            assert np.abs(arrays["highest"] - weights.amax((0, 1)).numpy()).max() < 1e-6
            for key in range(weights.shape[-1]):
                place = (int(arrays["layers"][key]) - (layer or 0), int(arrays["heads"][key]) - (head or 0))
                assert abs(float(weights[place][key]) - float(arrays["highest"][key])) < 1e-6


@pytest.mark.parametrize("variant", PAIRED)
def test_it_is_the_mean_of_a_trace(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Few weights at once, so that there are several blocks.
    monkeypatch.setattr(weighing, "AT_ONCE", 60)
    check_alignment(variant)
    check_row(variant)


def without_the_last(heads: alignment.Heads) -> Tensor:
    return MEAN(heads._replace(ran=heads.ran[:1]))


def of_the_sum(heads: alignment.Heads) -> Tensor:
    return MEAN(heads) * 2


MEAN, ROW = alignment.mean_of, alignment._row


@pytest.mark.parametrize("fault", [without_the_last, of_the_sum, lambda heads: MEAN(heads).flip(-1)])
def test_another_mean_is_found(fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "mean_of", fault)
    with pytest.raises(AssertionError):
        check_alignment("T5")


@pytest.mark.parametrize(
    "fault", [lambda ran, head, query: ROW(ran, head, max(0, query - 1)), lambda ran, head, query: ROW(ran, 0, query)]
)
def test_another_row_is_found(fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_row", fault)
    with pytest.raises((AssertionError, IndexError)):
        check_row("T5")


def test_a_large_one_keeps_the_largest_of_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "SIDE", 5)
    of = session_of("pair", "T5")
    mean = traced(of, None, None).mean((0, 1))
    header, arrays = unpacked(alignment.answer(of, {}).body)
    # 13 tokens of the target and 7 of the source in at most 5 of each.
    assert header["pooled"] == [3, 2]
    fields = [[float(mean[r : r + 3, c : c + 2].max()) for c in range(0, 7, 2)] for r in range(0, 13, 3)]
    back = header["most"] * (arrays["weights"].astype(float) / 255) ** 2
    assert np.abs(back - np.array(fields)).max() < header["most"] / 255
    assert arrays["largest"].shape == arrays["highest"].shape == (13,)


def test_a_saved_file_holds_it() -> None:
    of = opened(pair(), TEXT, TARGET)
    answers = answers_of(of, place_of(of, {"layer": "1", "head": "2", "query": "3"}))
    config = pair().config
    kinds = [key.partition("?")[0] for key in answers]
    assert kinds.count("alignment") == 1 + config.layers * (1 + config.heads)
    for layer, head in ((None, None), (1, None), (1, 2)):
        for path, question, more in (("alignment", alignment.answer, {}), ("aligned", alignment.row, {"query": 3})):
            asked_for = asked(layer, head, **more)
            assert answers[Question(path, asked_for).key].body == question(of, asked_for).body
    assert all(Question("aligned", {"query": str(query)}).key in answers for query in range(len(of.ids)))
    # Where the part is the encoder's, a place of the source that the target does not have is its last one.
    of_encoder = answers_of(of, place_of(of, {"part": "encoder.attention", "query": "11"}))
    assert Question("aligned", {"query": str(len(of.ids) - 1)}).key in of_encoder


def test_what_is_written_is_what_the_model_answers() -> None:
    of = opened(pair(), TEXT[:8], TARGET)
    told = json.loads(alignment.written(of, {}).body)
    found = generate(pair(), TEXT[:8], max_tokens=pair().config.context - 1, temperature=0)
    assert told == {"target": found.text, "ended": found.finish_reason == "eos"}


@pytest.mark.parametrize("loaded", [decoder, encoder])
def test_a_model_of_one_text_has_none(loaded: Callable[[], Any]) -> None:
    of = opened(loaded(), "abc")
    for question in (alignment.answer, alignment.row, alignment.written):
        status, line = refusal(question, of, {"query": "0"})
        assert status == 400
        assert "encoder-decoder" in line


@pytest.mark.parametrize(
    ("query", "word"),
    [({"head": "1"}, "layer="), ({"layer": "9"}, "layer 9"), ({"layer": "0", "head": "x"}, "whole number")],
)
def test_what_is_not_there_is_refused(query: dict[str, str], word: str) -> None:
    of = session_of("pair", "T5")
    for question in (alignment.answer, alignment.row):
        status, line = refusal(question, of, {"query": "0", **query})
        assert status == 400
        assert word in line
    assert refusal(alignment.row, of, {"query": "13"})[0] == 400
    assert refusal(alignment.row, of, {})[0] == 400
