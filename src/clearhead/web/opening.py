"""Opening a prompt: one forward, and what is left of it for whoever looks."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.formats.weights import own_tensors
from clearhead.messages import say
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.tap import Tap
from clearhead.text.tokenizer import without_surrogates
from clearhead.training.fit import evaluating
from clearhead.web.keeper import Keeper, kept_bytes
from clearhead.web.session import RefusedError, Session
from clearhead.web.spans import spans_of
from clearhead.web.writing import own_answer

LOGITS_AT_ONCE = 1 << 23
"""How many logits are held at a time: those of a long text would be larger than all that is kept."""

LOGITS_FEW = 1 << 21
"""Up to how many logits are computed when a prompt is opened: no picture but their own needs them, and of a small model with a large
vocabulary they are a third of the forward. Beyond, when somebody opens them."""

SAMPLED = 256
"""How many numbers of each weight go into the name of a session."""


class Read(NamedTuple):
    """What a model reads.

    Args:
        text: cut where it was too long.
        ids: of the text; of the target in an encoder-decoder.
        source: ids of an encoder-decoder's source; () elsewhere.
        target: cut where it was too long; None elsewhere than in an encoder-decoder.
        cut: how many ids were left out at the front.
    """

    text: str
    ids: tuple[int, ...]
    source: tuple[int, ...]
    target: str | None
    cut: int


def opened(loaded: Loaded, text: str, target: str | None = None) -> Session:
    """One forward of the model on the text, in evaluation mode and without gradients; the same each time.

    A text that is too long for the model is cut at its front, at a whole character. For an empty one the model is given what opens a
    text, or the mark that begins or ends one. Logits are computed some positions at a time, those of a long text when somebody asks.

    Args:
        loaded: the model.
        text: as it was typed.
        target: what an encoder-decoder has written so far; what it writes by itself if None.

    Raises:
        RefusedError: 422 if there is nothing that the model could read, a target is given to a model that has none, or an
            encoder-decoder's tokenizer has no marks that begin and end an answer.
    """
    return forward(loaded, read_of(loaded, text, target), session_id(loaded, text, target))


def forward(loaded: Loaded, read: Read, name: str) -> Session:
    """The same of what was made of a text.

    Args:
        loaded: the model.
        read: as `read_of` has it.
        name: as `session_id` has it.
    """
    keeper, began = Keeper(), time.perf_counter()
    with evaluating(loaded.model):
        _run(loaded.model, read, keeper)
    seconds = time.perf_counter() - began
    assert keeper.features is not None  # every model norms what its head reads, be it with the identity
    features = keeper.features[0]
    return Session(
        id=name,
        loaded=loaded,
        text=read.text,
        target=read.target,
        ids=read.ids,
        source=read.source,
        cut=read.cut,
        ran=keeper.ran,
        stages=keeper.stages,
        features=features,
        seconds=seconds,
        size=kept_bytes(keeper.ran.values()) + features.nbytes,
    )


def again(session: Session, tap: Tap) -> None:
    """The forward of a session once more, under a tap.

    Args:
        session: that was opened.
        tap: sees every tensor.
    """
    model, device = session.loaded.model, _device(session.loaded.model)
    ids = torch.tensor([session.ids], device=device)
    with evaluating(model):
        if isinstance(model, EncoderDecoder):
            model(torch.tensor([session.source], device=device), ids, tap=tap)
        else:
            model(ids, tap=tap)


def read_of(loaded: Loaded, text: str, target: str | None = None) -> Read:
    """What the model is given for a text.

    Args:
        loaded: the model.
        text: as it was typed.
        target: what an encoder-decoder has written so far; what it writes by itself if None.

    Raises:
        RefusedError: as `opened`.
    """
    text, model = without_surrogates(text), loaded.model
    if not isinstance(model, EncoderDecoder):
        if target:
            raise RefusedError(422, say("opening.target_alone"))
        kept, ids, cut = _fitting(loaded, text, loaded.opening, loaded.closing, model.context)
        return Read(kept, ids or _empty(loaded), (), None, cut)
    begin, end = loaded.tokenizer.begin, loaded.tokenizer.end
    if begin is None or end is None:
        raise RefusedError(422, say("opening.no_marks"))
    kept, source, cut = _fitting(loaded, text, loaded.opening, (*loaded.closing, end), model.encoder.context)
    if target is None:
        # Of nothing there is nothing to say.
        target = own_answer(loaded, kept).text if loaded.tokenizer.encode(kept) else ""
    written = without_surrogates(target)
    around = (loaded.opening, loaded.closing) if written else ((), ())
    written, ids, also = _fitting(loaded, written, (begin, *around[0]), around[1], model.decoder.context)
    return Read(kept, ids, source, written, cut + also)


def session_id(loaded: Loaded, text: str, target: str | None = None) -> str:
    """The name of a session: a digest of the model, the text and the target, in 20 hexadecimal digits.

    Of the model its configuration, its number type, its tokenizer's marks and some numbers of each weight, so that a model that was
    trained on has another name.

    Args:
        loaded: the model.
        text: as it was typed.
        target: what an encoder-decoder has written so far.
    """
    digest = hashlib.blake2b(digest_size=10)
    marks = (loaded.tokenizer.size, loaded.tokenizer.begin, loaded.tokenizer.end, loaded.opening, loaded.closing)
    for told in (loaded.config, marks, text, target):
        digest.update(repr(told).encode("utf-8", "backslashreplace") + b"\0")
    for name, tensor in own_tensors(loaded.model).items():
        flat = tensor.detach().flatten()
        some = flat[:: max(1, flat.numel() // SAMPLED)]
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(some.cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _fitting(
    loaded: Loaded, text: str, before: Sequence[int], behind: Sequence[int], context: int
) -> tuple[str, tuple[int, ...], int]:
    """The text, its ids with what stands around them, and how many were left out at the front to make them fit."""
    tokenizer, room = loaded.tokenizer, max(0, context - len(before) - len(behind))
    ids = tokenizer.encode(text)
    count = len(ids)
    if count > room:
        # At a whole character; what is left is encoded anew, so that it is what the same text alone would be.
        starts = sorted({span.start for span in spans_of(tokenizer, text, ids)[count - room :]})
        for start in [*starts, len(text)]:
            ids = tokenizer.encode(text[start:])
            if len(ids) <= room:
                text = text[start:]
                break
    return text, (*before, *ids, *behind), count - len(ids)


def _empty(loaded: Loaded) -> tuple[int, ...]:
    """What stands for no text at all."""
    tokenizer = loaded.tokenizer
    mark = tokenizer.end if tokenizer.begin is None else tokenizer.begin
    if mark is None:
        raise RefusedError(422, say("opening.nothing_to_read"))
    return (mark,)


def logits_of(session: Session) -> Iterator[Tensor]:
    """The logits over the vocabulary once more, some positions of the first row at a time: each (t,V)."""
    with evaluating(session.loaded.model):
        head = _head_of(session.loaded.model)
        # Fewer at a time than in the forward: whoever asks works on copies of them, beside a session that is kept.
        for part in torch.split(session.features, max(1, _step(head) // 4)):
            yield head(part)


def _run(model: Decoder | Encoder | EncoderDecoder, read: Read, keeper: Keeper) -> None:
    """One forward under the keeper; the logits over the vocabulary some positions at a time."""
    ids, source = (torch.tensor([each], device=_device(model)) for each in (read.ids, read.source))
    if isinstance(model, Encoder):
        model(ids, tap=keeper)
        return
    features = model.features(*((source, ids) if isinstance(model, EncoderDecoder) else (ids,)), tap=keeper)[0]
    head = _head_of(model)
    name = "decoder.logits" if isinstance(model, EncoderDecoder) else "logits"
    shape = (1, len(features), head.out_features)
    if math.prod(shape) > LOGITS_FEW:
        keeper.never(name, shape, features.element_size())
        return
    parts: Iterator[Tensor] = (head(part) for part in torch.split(features, _step(head)))
    keeper.in_parts(name, parts, shape, features.element_size())


def _head_of(model: nn.Module) -> nn.Linear:
    """From features to logits over the vocabulary."""
    decoder = model.decoder if isinstance(model, EncoderDecoder) else model
    assert isinstance(decoder, Decoder)
    return decoder.head


def _step(head: nn.Linear) -> int:
    """How many positions' logits are held at a time."""
    return max(1, LOGITS_AT_ONCE // head.out_features)


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
