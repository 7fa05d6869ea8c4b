"""What a model says with another mask is what the same model says that is built with it; the model itself stays as it was."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from clearhead.layers.look import Look
from clearhead.messages import say
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.masks import Allowed, Mask, Positions
from clearhead.web import masked
from clearhead.web.answer import unpacked
from clearhead.web.mask_rule import Rule, parsed
from clearhead.web.opening import opened
from clearhead.web.session import Session
from tests.web.heads_opened import refusal
from tests.web.masks_by_hand import FAULTS, NONE, Fault, by_hand
from tests.web.read_models import TARGET, TEXT, loaded_of

KINDS = [
    ("decoder", "learned"), ("decoder", "rotary, fused"), ("decoder", "window, ALiBi"), ("decoder", "soft-cap"), ("decoder", "sinks"),
    ("encoder", "BERT"), ("encoder", "relative, fused, MHA"), ("pair", "original"), ("pair", "T5"),
]  # fmt: skip
WORDS = ("full", "causal", "causal.window-3", "causal.window-5.prefix-4", "documents-4.padding-2", "causal.padding-3")


def session_of(kind: str, variant: str) -> Session:
    return opened(loaded_of(kind, variant), TEXT, TARGET if kind == "pair" else None)


def logits(of: Session, rule: Rule | None, fault: Fault = NONE) -> Tensor:
    """(T,V) of a copy of the model whose every layer looks where the table written by hand says."""
    model, ids = copy.deepcopy(of.loaded.model), torch.tensor([of.ids])
    stack = model.decoder if isinstance(model, EncoderDecoder) else model
    assert isinstance(stack, Decoder | Encoder)
    if rule is not None:
        table = Allowed(torch.tensor(by_hand(rule, len(of.ids), len(of.ids), fault)))

        def direction(queries: Positions, keys: Positions) -> Mask:
            return table

        stack.looks = tuple(_only(look, direction) for look in stack.looks)
    with torch.no_grad():
        made: Tensor = model(torch.tensor([of.source]), ids) if isinstance(model, EncoderDecoder) else model(ids)
    return made[0]


def _only(look: Look, direction: Any) -> Look:
    return replace(look, direction=direction, window=None)


def answered(of: Session, words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return unpacked(masked.answer(of, {"mask": words}).body)


def check_said(of: Session, words: str, fault: Fault = NONE, swapped: bool = False) -> None:
    header, arrays = answered(of, words)
    before, after = logits(of, None), logits(of, parsed(words), fault)
    assert header["mask"] == words
    own, other = before.softmax(-1), after.softmax(-1)
    for position in range(len(of.ids)):
        ids = [int(each) for each in arrays["ids"][position]]
        assert ids[:5] == own[position].topk(5).indices.tolist()
        assert ids[5:] == other[position].topk(5).indices.tolist()
        assert np.abs(arrays["before"][position] - own[position, ids].numpy()).max() <= 1e-6
        assert np.abs(arrays["after"][position] - other[position, ids].numpy()).max() <= 1e-6
    one, two = (other, own) if swapped else (own, other)
    divergence = (one * (one.log() - two.log())).sum(-1).numpy()
    assert np.abs(arrays["divergence"] - divergence).max() <= 1e-6 * max(1.0, float(divergence.max()))


@pytest.mark.parametrize(("kind", "variant"), KINDS)
def test_it_is_what_a_model_says_that_looks_so(kind: str, variant: str) -> None:
    of = session_of(kind, variant)
    assert of.ids
    for words in WORDS:
        check_said(of, words)


def test_planted_faults_are_found() -> None:
    """A window off by one, padding the wrong way round, a prefix that opens nothing, the sides of the divergence swapped."""
    of = session_of("decoder", "learned")
    for fault, words in zip(
        FAULTS, ("causal.window-3", "causal.window-3", "padding-2", "causal.prefix-4"), strict=True
    ):
        check_said(of, words)
        with pytest.raises(AssertionError):
            check_said(of, words, fault)
    with pytest.raises(AssertionError):
        check_said(of, "full", swapped=True)


@pytest.mark.parametrize(("kind", "variant"), [KINDS[0], KINDS[5], KINDS[7]])
def test_the_models_own_mask_changes_nothing(kind: str, variant: str) -> None:
    of = session_of(kind, variant)
    header, arrays = answered(of, "")
    assert not arrays["divergence"].any()
    assert (arrays["before"] == arrays["after"]).all()
    assert header["says"] == ("here" if kind == "encoder" else "next")
    same = answered(of, "full" if kind == "encoder" else "causal")[1]["divergence"]
    assert np.abs(same).max() <= 1e-12
    tokenizer = of.loaded.tokenizer
    assert {int(id): piece for id, piece in header["pieces"].items()} == {
        id: tokenizer.pieces([id])[0] for id in sorted({int(each) for each in arrays["ids"].flatten()})
    }


def test_with_causal_off_earlier_positions_read_what_comes() -> None:
    of = session_of("decoder", "rotary, fused")
    apart = {
        words: answered(of, words)[1]["divergence"] > 1e-9 for words in ("full", "causal.prefix-3", "causal.window-4")
    }
    assert apart["full"].all()
    assert apart["causal.prefix-3"][:2].all()
    # A window of 4 hides nothing from the first four.
    assert not apart["causal.window-4"][:4].any()
    assert apart["causal.window-4"][4:].all()


def test_an_encoder_without_tokens_says_how_far_it_moved() -> None:
    of = session_of("encoder", "first, dense")
    header, arrays = answered(of, "causal")
    assert (header["says"], header["best"], list(arrays)) == ("features", 0, ["moved"])
    rule = parsed("causal")
    assert rule is not None
    assert isinstance(of.loaded.model, Encoder)
    before = of.loaded.model.features(torch.tensor([of.ids])).detach()[0]
    after = masked.features(of, rule).detach()
    wanted = [float((two - one).norm() / one.norm()) for one, two in zip(before, after, strict=True)]
    assert np.abs(arrays["moved"] - np.array(wanted)).max() <= 1e-6
    assert arrays["moved"][0] > 1e-3
    assert not answered(of, "")[1]["moved"].any()


def test_nothing_of_the_model_is_changed() -> None:
    for kind, variant in (("decoder", "window, ALiBi"), ("encoder", "relative, fused, MHA"), ("pair", "T5")):
        of = session_of(kind, variant)
        model = of.loaded.model
        stack = model.decoder if isinstance(model, EncoderDecoder) else model
        looks, before = stack.looks, logits(of, None)
        model.train()
        answered(of, "causal.window-2.padding-1")
        assert all(module.training for module in model.modules())
        model.eval()
        assert stack.looks is looks
        assert torch.equal(logits(of, None), before)
        again = [masked.answer(of, {"mask": "full"}).body for _ in range(2)]
        assert again[0] == again[1]


def test_a_mask_is_cut_to_the_text() -> None:
    of = session_of("decoder", "learned")
    count = len(of.ids)
    header, arrays = answered(of, f"causal.documents-{count}.padding-{count + 5}")
    assert header["mask"] == f"causal.padding-{count - 1}"
    wanted = answered(of, f"causal.padding-{count - 1}")[1]
    assert (arrays["divergence"] == wanted["divergence"]).all()
    assert (arrays["divergence"] != answered(of, f"causal.padding-{count - 2}")[1]["divergence"]).any()


def test_what_is_no_mask_is_refused() -> None:
    of = session_of("decoder", "learned")
    assert refusal(masked.answer, of, {"mask": "prefix-2"}) == (400, say("masks.prefix_alone", value="prefix-2"))
