"""Who may look at whom in a layer: its own mask, or another in its place; and how others write a mask down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.mask_formats import from_additive, from_multihead, from_sdpa, to_additive, to_multihead, to_sdpa
from clearhead.ops.masks import Allowed, Mask
from clearhead.web.answer import Answer, packed
from clearhead.web.head import SIDE
from clearhead.web.mask_rule import Rule, asked, first, neighbours, rule_of
from clearhead.web.place import Place, parts_of, place_of
from clearhead.web.pooling import field_of, pooled
from clearhead.web.session import Session
from clearhead.web.weighing import first_row

HIDDEN, SEEN, PADDING = 0, 1, 2
"""What the picture says of a query and a key: may not look, may look, the key is padding."""


@torch.no_grad()
def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """The mask of a layer, or what another would be there.

    Args:
        session: the forward.
        query: `part`, `layer`, and `mask`: "" for the layer's own. An encoder-decoder's encoder and cross-attention keep theirs.

    Returns:
        Packed: `seen` (rows, columns ≤ `SIDE`): `HIDDEN`, `SEEN` or `PADDING`, by the largest of "seen" in a field; header `own` and `mask`
        (words of `mask_rule`), `everywhere` (whether all layers of the part have the same of their own), `rule`, `cut` (whether more was
        asked for than the text has room for), `first` (the numbers with which rules are switched on), `switched` (whether the part takes
        another mask), `cells` {seen, hidden, padding}, `blind` (how many of the first queries see nothing: padding, for any other sees
        itself), `changed` {opened, closed} against the layer's own, and `conventions`.

    Raises:
        RefusedError: if there is no such layer, or the words are none.
    """
    wanted = asked(query)
    place = place_of(session, {**query, "head": "0"})
    owns = own_rules(session, place.part)
    own, can = owns[place.layer], switchable(place.part)
    queries, keys = place.sizes
    ran = own_matrix(place)
    if wanted is None or not can:
        rule, seen = own, ran
    else:
        rule = wanted.within(keys)
        seen = first_row(rule.mask(keys, ran.device).matrix(ran.device)).expand(-1, queries, keys)[0]
    padding = (torch.arange(keys, device=seen.device) < rule.padding).expand(queries, keys) & ~seen
    field = field_of(queries, SIDE), field_of(keys, SIDE)
    picture = torch.where(_any(seen, field), SEEN, torch.where(_any(padding, field), PADDING, HIDDEN))
    told: dict[str, Any] = {
        "part": place.part,
        "layer": place.layer,
        "queries": queries,
        "keys": keys,
        "pooled": list(field),
        "mask": rule.words,
        "own": own.words,
        "everywhere": len(set(owns)) == 1,
        "rule": rule.told(),
        "cut": can and wanted is not None and rule != wanted,
        "first": first(queries).told(),
        "switched": can,
        "cells": {"seen": _count(seen), "hidden": _count(~seen & ~padding), "padding": _count(padding)},
        "blind": _count(~seen.any(-1)),
        "changed": {"opened": _count(seen & ~ran), "closed": _count(ran & ~seen)},
        "conventions": conventions(),
    }
    return packed(told, [("seen", picture.to(torch.uint8).cpu().numpy())])


def switchable(part: str) -> bool:
    """Whether a part can be given another mask: the self-attention that makes what the model says."""
    return part in ("attention", "decoder.attention")


def questions(part: str, layer: int, words: str) -> list[tuple[str, dict[str, str]]]:
    """What the page asks to show a mask: of the layer, and what the model says with it.

    Args:
        part: of the attentions.
        layer: of them.
        words: of the mask, as the address has it.
    """
    if not switchable(part):
        return [("mask", _of_layer(part, layer, ""))]
    return [("mask", _of_layer(part, layer, words)), ("masked", {"mask": words})]


def beside(session: Session, part: str, layer: int, words: str) -> Iterator[list[list[tuple[str, dict[str, str]]]]]:
    """What a person may ask next of a mask, the nearest first: the model's own, then what each switch makes of it, then other layers.

    Args:
        session: the forward.
        part: of the attentions.
        layer: of them.
        words: of the mask that is shown.
    """
    yield [questions(part, layer, "")]
    parts = parts_of(session)
    # The switches belong to one part; where another is looked at, that one is a choice away.
    turned = next(name for name in parts if switchable(name))
    place = min(layer, len(parts[turned]) - 1)
    rules = neighbours(own_rules(session, turned)[place], len(session.ids))
    yield [questions(turned, place, each) for each in dict.fromkeys(["", words, *(rule.words for rule in rules)])]
    yield [questions(name, each, "") for name, layers in parts.items() for each in range(len(layers))]


def _of_layer(part: str, layer: int, words: str) -> dict[str, str]:
    return {"part": part, "layer": str(layer), "mask": words}


def own_rules(session: Session, part: str) -> list[Rule]:
    """The rule of each layer of a part, as its model was built: cross-attention sees all of the other text.

    Args:
        session: the forward.
        part: of its attentions.
    """
    model = session.loaded.model
    if isinstance(model, EncoderDecoder):
        if part == "decoder.cross_attention":
            return [Rule()] * len(model.decoder.looks)
        model = model.encoder if part == "encoder.attention" else model.decoder
    assert isinstance(model, Decoder | Encoder)
    return [rule_of(look) for look in model.looks]


def own_matrix(place: Place) -> Tensor:
    """The mask that a layer ran with: (T,S), True = may look. It is the same for all heads."""
    queries, keys = place.sizes
    return first_row(place.ran.visible.matrix(place.ran.q.device)).expand(-1, queries, keys).any(0)


@cache
def conventions() -> dict[str, Any]:
    """How three conventions write "may look" and "must not", and what one of them is where another is expected.

    Returns:
        `written`: the two values by convention: "sdpa" (bool, True = may look), "multihead" (bool, True = must not), "additive" (floats);
        `taken`: whether each is seen once it is read as if it were the other, by "written, read".
    """
    both = Allowed(torch.tensor([[True, False]]))
    sdpa, multihead, additive = to_sdpa(both), to_multihead(both), to_additive(both)
    read: dict[str, Mask] = {
        "sdpa, multihead": from_multihead(sdpa),
        "multihead, sdpa": from_sdpa(multihead),
        # As booleans: every number but 0 is True.
        "additive, sdpa": from_sdpa(additive.bool()),
        # Added to the scores, True is 1 and False is 0: a bias. None of the two is -inf, which alone hides a key.
        "sdpa, additive": Allowed(sdpa.float() > -torch.inf),
        "additive, additive": from_additive(additive),
    }
    written = {"sdpa": sdpa, "multihead": multihead, "additive": additive}
    return {
        "written": {name: [_value(each) for each in values[0].tolist()] for name, values in written.items()},
        "taken": {name: mask.matrix()[0].tolist() for name, mask in read.items()},
    }


def _value(value: bool | float) -> str:
    return str(value) if isinstance(value, bool) else "0" if value == 0 else "−inf"


def _any(cells: Tensor, field: tuple[int, int]) -> Tensor:
    """Whether a field has one such cell: (T,S) -> (rows, columns)."""
    return cells if field == (1, 1) else pooled(cells[None].float(), field)[0] > 0


def _count(cells: Tensor) -> int:
    return int(cells.sum())
