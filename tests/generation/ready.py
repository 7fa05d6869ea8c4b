"""Models that are ready to write, and where their view of a text begins, as the rule says it in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.generation.rows import Overflow
from clearhead.generation.writing import Generation
from clearhead.layers import NO_STORE, Store
from clearhead.layers.look import Look
from clearhead.models import choices as c
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text import CharacterTokenizer, MarkedTokenizer, Tokenizer
from tests.equalities.variants import redrawn

PLAIN = CharacterTokenizer.of("abcdefgh小猫😀")
MARKED = MarkedTokenizer(PLAIN)
CONTEXT, RING_CONTEXT, SOURCE_CONTEXT = 9, 21, 13
SIZES = {"layers": 2, "heads": 4, "kv_heads": 2, "width": 24, "feedforward_width": 40, "context": CONTEXT}
DECODER = DecoderConfig(vocab=PLAIN.size, **SIZES)
PAIR = EncoderDecoderConfig(vocab=MARKED.size, encoder_layers=1, source_context=SOURCE_CONTEXT, **SIZES)
KINDS: dict[str, DecoderConfig | EncoderDecoderConfig] = {
    "learned": DECODER,
    "rotary": replace(DECODER, positions=c.Rotary()),
    "ALiBi": replace(DECODER, positions=c.ALiBi()),
    # A ring is chosen where it is smaller than the context: window 3 and 16 spare tokens. With trained positions, or what lies
    # outside the window would make no difference.
    "ring": replace(DECODER, window=3, context=RING_CONTEXT),
    "pair": PAIR,
    "pair, relative": replace(PAIR, positions=c.Relative(buckets=8, farthest=7)),
}
DECODERS = [kind for kind, config in KINDS.items() if isinstance(config, DecoderConfig)]
PAIRS = [kind for kind in KINDS if kind not in DECODERS]


def ready(config: DecoderConfig | EncoderDecoderConfig, tokenizer: Tokenizer | None = None) -> Loaded:
    """A model with opinions, in float64."""
    model = redrawn(build(config, seed=1))
    assert isinstance(model, Decoder | EncoderDecoder)
    usual = MARKED if isinstance(config, EncoderDecoderConfig) else PLAIN
    return Loaded(model, tokenizer or usual, config, Path("here"))


def start_of(overflow: Overflow, context: int, prompt: int, length: int) -> int:
    """Where the view of a text of `length` ids begins, of which `prompt` were given.

    Recompute sees the last `context`. A window is filled from the start, and emptied to its newest half when one more comes.
    """
    if overflow == "recompute":
        return max(0, length - context)
    start = 0
    for seen in range(prompt, length + 1):
        if seen - start > context:
            start = seen - max(1, context // 2)
    return start


def logprobs_after(loaded: Loaded, ids: Sequence[int], source: Sequence[int], start: int) -> Tensor:
    """The reference: ln of the model's probabilities (V) of what follows, everything read anew in one forward."""
    view = torch.tensor([ids[start:]])
    with torch.no_grad():
        logits = loaded.model(torch.tensor([source]), view) if source else loaded.model(view)
    return logits[0, -1].log_softmax(-1)


@contextmanager
def reads(loaded: Loaded) -> Iterator[list[tuple[int, int]]]:
    """The shapes (R,T) of all that the decoder reads meanwhile."""
    decoder = loaded.model.decoder if isinstance(loaded.model, EncoderDecoder) else loaded.model
    shapes: list[tuple[int, int]] = []
    hook = decoder.register_forward_pre_hook(lambda _, arguments: shapes.append(tuple(arguments[0].shape)))
    try:
        yield shapes
    finally:
        hook.remove()


def close(made: Generation, wanted: Generation) -> bool:
    """Whether two texts are the same: every token, and every number within 1e-10."""
    if (made.ids, made.text, made.finish_reason) != (wanted.ids, wanted.text, wanted.finish_reason):
        return False
    numbers = [*zip(made.logprobs, wanted.logprobs, strict=True), *zip(made.chances, wanted.chances, strict=True)]
    for ours, theirs in zip(made.alternatives, wanted.alternatives, strict=True):
        numbers += [(our[1], their[1]) for our, their in zip(ours, theirs, strict=True)]
    return all(abs(ours - theirs) <= 1e-10 for ours, theirs in numbers)


class Scripted(nn.Module):
    """A model that writes what it is told, whatever it reads."""

    context = 4096
    blocks = ()
    looks = (Look(),)

    def __init__(self, script: Sequence[int], vocab: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(vocab), requires_grad=False)
        self.script, self.written = list(script), 0

    def forward(
        self, ids: Tensor, *, real: Tensor | None = None, store: Store = NO_STORE, tap: object = None
    ) -> Tensor:
        store.advance(ids.shape[1])
        logits = self.logits.repeat(*ids.shape, 1)
        logits[:, -1, self.script[self.written]] = 99.0
        self.written += 1
        return logits


class Constant(nn.Module):
    """A model that always has the same logits."""

    context, blocks, looks = 64, (), (Look(),)

    def __init__(self, logits: list[float]) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits, dtype=torch.float64), requires_grad=False)

    def forward(
        self, ids: Tensor, *, real: Tensor | None = None, store: Store = NO_STORE, tap: object = None
    ) -> Tensor:
        store.advance(ids.shape[1])
        return self.logits.expand(*ids.shape, -1)


def scripted(script: Sequence[int], tokenizer: Tokenizer) -> Loaded:
    """A model that writes these ids, one after another, and then fails."""
    config = DecoderConfig(vocab=tokenizer.size)
    return Loaded(Scripted(script, tokenizer.size), tokenizer, config, Path("here"))  # type: ignore[arg-type]


def replaced(patch: pytest.MonkeyPatch, owner: object, name: str, make: Callable[[Callable], Callable]) -> None:  # type: ignore[type-arg]
    """Plant a fault: `make` is given what is right."""
    patch.setattr(owner, name, make(getattr(owner, name)))
