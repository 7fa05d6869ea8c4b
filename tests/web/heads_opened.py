"""Sessions of small models of the grid, opened by hand: every kind of attention whose heads a page may ask for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text import CharacterTokenizer
from clearhead.tracing.record import Recorder
from clearhead.web.keeper import Keeper
from clearhead.web.place import parts_of
from clearhead.web.session import RefusedError, Session
from tests.equalities.variants import VARIANTS, model_of
from tests.equalities.variants_encoders import ENCODERS, PAIRS, encoder_of, pair_of, source_of, target_of

LETTERS = CharacterTokenizer.of("abcdefgh小猫😀")
KINDS = ("learned", "learned, fused, MHA", "learned, fused, MQA", "rotary, fused", "rotary interleaved",
         "rotary partial, parallel", "YaRN", "ALiBi", "window", "window, ALiBi", "soft-cap", "sinks", "free head width")  # fmt: skip
"""Decoders: MHA, grouped heads and one for all, both pairings, partial turns, a factor, biases, windows, a cap, sinks, a scale."""
READERS = ("relative", "rotary, blockwise, QK-norm", "sinks, blockwise")
PAIRED = ("T5", "rotary, fused", "soft-cap, blockwise", "learned")
ALL = [
    *(("decoder", each) for each in KINDS),
    *(("encoder", each) for each in READERS),
    *(("pair", each) for each in PAIRED),
]


@cache
def session_of(kind: str, variant: str) -> Session:
    """A model of the grid in float64, and what its attentions worked on in one forward."""
    match kind:
        case "decoder":
            # 13 ids of 11 letters: some come again.
            return session(model_of(variant), target_of(1), config=VARIANTS[variant])
        case "encoder":
            return session(encoder_of(variant), target_of(1), config=ENCODERS[variant])
    return session(pair_of(variant), target_of(1), source_of(variant, 1), config=PAIRS[variant])


def session(model: nn.Module, ids: Tensor, source: Tensor | None = None, *, config: object = None) -> Session:
    """One forward under a keeper."""
    assert isinstance(model, Decoder | Encoder | EncoderDecoder)
    keeper = Keeper()
    with torch.no_grad():
        model(*([ids] if source is None else [source, ids]), tap=keeper)
    loaded = Loaded(model, LETTERS, config, Path("here"))  # type: ignore[arg-type]
    read = () if source is None else tuple(source[0].tolist())
    assert keeper.features is not None
    kept, read_ids = keeper.features[0], tuple(ids[0].tolist())
    return Session("name", loaded, "", None, read_ids, read, 0, keeper.ran, keeper.stages, kept, 0.0, 0)


def recorded(of: Session, names: str) -> dict[str, Tensor]:
    """What a recorder keeps of the same forward."""
    recorder, ids = Recorder(names), torch.tensor([of.ids])
    with torch.no_grad():
        of.loaded.model(*([torch.tensor([of.source]), ids] if of.source else [ids]), tap=recorder)
    return recorder.tensors


def name_of(part: str, layer: int) -> str:
    """Of a layer: "decoder.attention", 1 -> "decoder.blocks.1.attention"."""
    side, dot, kind = part.rpartition(".")
    return f"{side}{dot}blocks.{layer}.{kind}"


def refusal(asked: Callable[[Session, dict[str, str]], object], of: Session, query: dict[str, str]) -> tuple[int, str]:
    """The status and the line with which a question is refused."""
    with pytest.raises(RefusedError) as caught:
        asked(of, query)
    return caught.value.status, str(caught.value)


def places(of: Session) -> list[tuple[str, int, int]]:
    """Part, layer and head of every head."""
    return [
        (part, layer, head)
        for part, layers in parts_of(of).items()
        for layer, ran in enumerate(layers)
        for head in range(ran.q.shape[-3])
    ]


def query(part: str, layer: int, head: int, **more: int) -> dict[str, str]:
    """The fields of an address."""
    return {"part": part, "layer": str(layer), "head": str(head), **{name: str(value) for name, value in more.items()}}
