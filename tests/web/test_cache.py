"""The cache is grown as generation grows it, changes no logits, and costs what is said; a broken one is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from clearhead.formats.load import Loaded, load
from clearhead.generation.generate import generate
from clearhead.generation.stores import Cache, GrowingStore
from clearhead.layers.store import Places
from clearhead.messages import say
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, Sight
from clearhead.models.cost import flops_per_token
from clearhead.models.decoder import Decoder
from clearhead.web import cache, cache_steps
from clearhead.web.answer import unpacked
from clearhead.web.cache_steps import copy_norms, recomputed
from clearhead.web.files import builtin
from clearhead.web.opening import opened
from clearhead.web.session import RefusedError, Session
from tests.web.asking import LETTERS
from tests.web.heads_opened import recorded
from tests.web.read_models import DECODERS, TEXT, WRITERS, encoder, loaded_of, target_of

SHORT = TEXT[:5]
ALL = [*(("decoder", each) for each in DECODERS), *(("pair", each) for each in WRITERS)]


def session_of(kind: str, variant: str, text: str = SHORT) -> Session:
    return opened(endless(loaded_of(kind, variant)), text, target_of(kind))


def endless(loaded: Loaded) -> Loaded:
    """A model that writes on past the mark that ends a text, so that there are steps."""
    return replace(loaded, ends=(-1,))


def told(of: Session, steps: int = 4) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    return unpacked(cache.answer(of, {"steps": str(steps)}).body)


@torch.no_grad()
def check_logits(kind: str, variant: str) -> None:
    """Each step's logits are those of a forward over all ids, each id is the best one, in float64."""
    of = session_of(kind, variant)
    header, _ = told(of)
    ids = list(of.ids)
    assert len(header["steps"]) == min(4, header["context"] - len(ids)) > 2
    for step in header["steps"]:
        whole = recomputed(of.loaded.model, ids, of.source)  # type: ignore[arg-type]
        assert (step["position"], step["id"]) == (len(ids), int(whole[: of.loaded.tokenizer.size].argmax()))
        ids.append(step["id"])
        again = recomputed(of.loaded.model, ids, of.source)  # type: ignore[arg-type]
        assert step["largest"] == pytest.approx(float(again.abs().max()), rel=1e-12)
        assert step["difference"] <= 1e-12
    assert [step["piece"] for step in header["steps"]] == of.loaded.tokenizer.pieces(ids[len(of.ids) :])


@pytest.mark.parametrize(("kind", "variant"), ALL)
def test_a_cache_changes_no_logits(kind: str, variant: str) -> None:
    check_logits(kind, variant)


class Forgetful(GrowingStore):
    """A cache that drops its first token once the prompt has been read."""

    def advance(self, length: int) -> None:
        super().advance(length)
        if self.length == length:
            self.length -= 1
            for layer in self.layers:
                assert layer.kept is not None
                layer.kept = (layer.kept[0][..., 1:, :], layer.kept[1][..., 1:, :])


class Shifted(GrowingStore):
    """A cache in which what follows the prompt stands one position too far."""

    def places(self, length: int, real: Tensor | None, device: torch.device) -> Places:
        found = super().places(length, real, device)
        if not self.length:
            return found
        return found._replace(queries=range(self.length + 1, self.length + 1 + length))


@pytest.mark.parametrize("broken", [Forgetful, Shifted])
@pytest.mark.parametrize(("kind", "variant"), [("decoder", "rotary, fused"), ("decoder", "learned"), ("pair", "T5")])
def test_a_broken_cache_is_seen(
    broken: Callable[[Decoder, int], Cache], kind: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_steps, "cache_for", broken)
    with pytest.raises(AssertionError):
        check_logits(kind, variant)
    assert max(step["difference"] for step in told(session_of(kind, variant))[0]["steps"]) > 1e-6


def test_it_writes_what_generation_writes() -> None:
    of = opened(load(str(builtin())), "The little cat", None)
    written = generate(of.loaded, "The little cat", max_tokens=6, temperature=0, eos=()).ids
    assert [step["id"] for step in told(of, 6)[0]["steps"]] == written
    # Planted: another prompt.
    assert generate(of.loaded, "The little dog", max_tokens=6, temperature=0, eos=()).ids != written
    paired = opened(endless(loaded_of("pair", "T5")), SHORT, None)
    assert [step["id"] for step in told(paired, 6)[0]["steps"]] == generate(
        paired.loaded, SHORT, max_tokens=6, temperature=0, eos=()
    ).ids


def check_end(of: Session, text: str) -> None:
    """It ends where generation ends; the mark itself is not read."""
    header, arrays = told(of, 6)
    written = generate(of.loaded, text, max_tokens=6, temperature=0)
    assert written.finish_reason == "eos"
    *ids, end = written.ids
    assert [step["id"] for step in header["steps"]] == ids
    assert header["end"] == of.loaded.tokenizer.pieces([end])[0]
    assert arrays["keys"].shape[1] == len(of.ids) + len(header["steps"])


def test_it_ends_at_the_mark_that_ends_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = opened(loaded_of("pair", "T5"), SHORT, None)
    check_end(at_once, SHORT)
    assert told(at_once)[0]["steps"] == []
    going_on = opened(load(str(builtin())), "The little cat")
    ids = [step["id"] for step in told(going_on, 6)[0]["steps"]]
    assert told(going_on, 6)[0]["end"] is None
    third = next(id for place, id in enumerate(ids) if place > 1 and id not in ids[:place])
    later = opened(replace(going_on.loaded, ends=(third,)), "The little cat")
    check_end(later, "The little cat")
    # Planted: the ends of another model.
    monkeypatch.setattr(cache_steps, "ends_of", lambda *_: frozenset())
    with pytest.raises(AssertionError):
        check_end(later, "The little cat")


def check_flops(of: Session) -> None:
    """A step is one token at its length; without a cache all are read again, each at its own length."""
    header, _ = told(of)
    config, source = of.loaded.config, len(of.source)

    def each(length: int) -> dict[str, int]:
        return flops_per_token(config, length, source=source)

    def whole(length: int) -> int:
        body = sum(sum(each(t).values()) - each(t)["head"] - each(t).get("encoder", 0) for t in range(1, length + 1))
        return body + each(1)["head"] + source * each(1).get("encoder", 0)

    assert header["prefill_flops"] == whole(len(of.ids))
    for step in header["steps"]:
        length = step["position"] + 1
        assert step["flops"] == sum(each(length).values()) - each(length).get("encoder", 0)
        assert step["flops_without"] == whole(length)


@pytest.mark.parametrize(("kind", "variant"), [("decoder", "learned"), ("decoder", "window, ALiBi"), ("pair", "T5")])
def test_flops_are_those_of_the_definition(kind: str, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = session_of(kind, variant)
    check_flops(of)
    made = cache_steps.Costs.step
    monkeypatch.setattr(cache_steps.Costs, "step", lambda self, length: made(self, length) - self._head)
    with pytest.raises(AssertionError):
        check_flops(of)


def check_norms(of: Session) -> None:
    """The picture is the norm of k and v of a forward over all ids, as a recorder has them."""
    header, arrays = told(of)
    ids = (*of.ids, *(step["id"] for step in header["steps"]))
    kept = recorded(Session(**{**vars(of), "ids": ids}), "*")
    side = "decoder." if of.source else ""
    for name, letter in (("keys", "k"), ("values", "v")):
        norms = torch.stack(
            [
                kept[f"{side}blocks.{layer}.attention.{letter}"][0].square().sum((0, 2)).sqrt()
                for layer in range(header["layers"])
            ]
        )
        assert arrays[name].shape == (header["layers"], len(ids))
        assert header["most"][name] == pytest.approx(float(norms.max()), rel=1e-6)
        drawn = header["most"][name] * (arrays[name] / 255.0) ** 2
        assert np.abs(drawn - norms.numpy()).max() <= header["most"][name] / 200


@pytest.mark.parametrize(("kind", "variant"), [("decoder", "rotary, fused"), ("decoder", "ALiBi, MQA"), ("pair", "T5")])
def test_the_picture_holds_the_norms(kind: str, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = session_of(kind, variant)
    check_norms(of)

    def turned(store: Cache, norms: Tensor) -> None:
        copy_norms(store, norms.flip(1))

    monkeypatch.setattr(cache_steps, "copy_norms", turned)
    with pytest.raises(AssertionError):
        check_norms(of)


def ring() -> Session:
    """A model whose every layer has a window, far shorter than the context."""
    sights = (Sight(window=5), Sight(window=3))
    config = DecoderConfig(vocab=LETTERS.size, layers=2, heads=3, width=12, context=64, cycle=sights)
    return opened(Loaded(build(config, seed=2).eval().double(), LETTERS, config, Path("ring")), "abcdefgh" * 4)


def test_a_ring_lets_old_tokens_go() -> None:
    header, arrays = told(ring(), 7)
    assert (header["ring"], header["windows"]) == (21, [5, 3])
    assert [step["difference"] <= 1e-12 for step in header["steps"]] == [True] * 7
    # 32 are read at once; the first 11 of them are not kept, so that nothing is known of them.
    assert not arrays["keys"][:, :11].any()
    assert arrays["keys"][:, 11:].all()
    of = header["bytes"]
    assert of["own"]["context"] == 21 * of["own"]["token"]
    assert of["window"]["context"] == (5 + 3) * of["own"]["token"] // 2


def test_the_context_ends_it_and_a_long_reading_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    of = session_of("decoder", "learned", TEXT)
    header, _ = told(of, 32)
    assert header["asked"] == 32
    assert len(header["steps"]) == header["context"] - len(of.ids) < 32
    monkeypatch.setattr(cache_steps, "AGAIN", 0)
    few, _ = told(of, 32)
    assert [step["difference"] is None for step in few["steps"]] == [False, *[True] * (len(few["steps"]) - 1)]
    assert [step["id"] for step in few["steps"]] == [step["id"] for step in header["steps"]]
    assert told(of, 0)[0]["steps"] == []
    assert told(of, 0)[1]["keys"].shape == (header["layers"], len(of.ids))


def test_the_answer_is_the_same_each_time_and_leaves_the_model_as_it_was() -> None:
    of = session_of("pair", "T5")
    of.loaded.model.train()
    try:
        assert cache.answer(of, {"steps": "4"}) == cache.answer(of, {"steps": "4"})
        assert of.loaded.model.training
    finally:
        of.loaded.model.eval()


def test_what_is_not_there_is_refused_in_one_line() -> None:
    of = session_of("decoder", "learned")
    for query, line in (
        ({"steps": "33"}, say("heads.outside", name="steps", value=33, last=32)),
        ({"steps": "-1"}, say("heads.not_a_number", name="steps", value="-1", last=32)),
    ):
        with pytest.raises(RefusedError, match=line[:20]) as caught:
            cache.answer(of, query)
        assert (caught.value.status, str(caught.value)) == (400, line)
    with pytest.raises(RefusedError) as caught:
        cache.answer(opened(encoder(), SHORT), {"steps": "4"})
    assert (caught.value.status, str(caught.value)) == (400, say("cache.encoder"))


def test_where_nothing_is_said_the_page_has_its_steps() -> None:
    of = session_of("decoder", "learned")
    assert cache.answer(of, {}) == cache.answer(of, {"steps": str(cache.STEPS)}) != cache.answer(of, {"steps": "4"})
    assert told(of, cache.MOST_STEPS)[0]["asked"] == 32


def test_reading_the_source_again_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    of = session_of("pair", "T5")
    config, source = of.loaded.config, len(of.source)

    def check() -> None:
        assert told(of)[0]["source_flops"] == source * flops_per_token(config, 1, source=source)["encoder"] > 0

    check()
    assert told(session_of("decoder", "learned"))[0]["source_flops"] == 0
    monkeypatch.setattr(
        cache_steps, "flops_per_token", lambda *given, source: flops_per_token(*given, source=source + 1)
    )
    with pytest.raises(AssertionError):
        check()
