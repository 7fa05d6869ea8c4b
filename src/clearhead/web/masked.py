"""What the model says once another mask stands in every layer: the best tokens before and after, and how far the two are apart."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.softmax import at_least_float32
from clearhead.training.fit import evaluating
from clearhead.web.answer import Answer, packed
from clearhead.web.mask_rule import Rule, asked
from clearhead.web.opening import LOGITS_AT_ONCE
from clearhead.web.session import Session
from clearhead.web.tokens import pieces_of, says_tokens

BEST = 5
"""How many tokens are told of each position."""

Stack = TypeVar("Stack", Decoder, Encoder)


class Compared(NamedTuple):
    """Of some positions, what the model says with its own mask and with another."""

    ids: Tensor
    """(t,2n): the n most probable tokens before, then those after."""
    before: Tensor
    """(t,2n): their probabilities with the model's own mask."""
    after: Tensor
    """(t,2n): their probabilities with the other."""
    divergence: Tensor
    """(t): KL(before ‖ after), in nats."""


def answer(session: Session, query: Mapping[str, str]) -> Answer:
    """One forward with another mask in every layer, beside what ran; none for the model's own.

    Weights are shared, nothing of the model is changed, and positions stay as they are.

    Args:
        session: the forward.
        query: `mask`, "" for the model's own.

    Returns:
        Packed: header `{mask, best, says, pieces}`; `says` is "next" (of a decoder, the token behind each position), "here" (of an encoder
        that guesses tokens, the one at each position) or "features" (of an encoder that says none). `ids`, `before`, `after`
        (queries, 2 best) and `divergence` (queries) as in `Compared`, `pieces` by id; of "features" alone `moved` (queries): how far the last
        norm's output moved, as a share of its length.

    Raises:
        RefusedError: if the words are no mask.
    """
    wanted, loaded = asked(query), session.loaded
    rule = None if wanted is None else wanted.within(len(session.ids))
    header: dict[str, Any] = {"mask": "" if rule is None else rule.words, "best": 0, "says": "features", "pieces": {}}
    with evaluating(loaded.model):
        before = session.features
        after = before if rule is None else features(session, rule)
        if not says_tokens(loaded):
            return packed(header, [("moved", _numbers(moved(before, after)))])
        parts = [compared(*each) for each in _logits(loaded, before, after)]
    every = Compared(*(torch.cat(each) for each in zip(*parts, strict=True)))
    header["best"] = every.ids.shape[1] // 2
    header["says"] = "here" if isinstance(loaded.model, Encoder) else "next"
    names = sorted(set(every.ids.flatten().tolist()))
    header["pieces"] = dict(zip(map(str, names), pieces_of(loaded.tokenizer, names), strict=True))
    return packed(header, [(name, _numbers(each)) for name, each in every._asdict().items()])


def features(session: Session, rule: Rule) -> Tensor:
    """What the head reads of the only row with another mask, (T,D).

    Args:
        session: the forward.
        rule: of every layer's self-attention; an encoder-decoder's encoder and cross-attention keep theirs.
    """
    model = session.loaded.model
    device = next(model.parameters()).device
    ids = torch.tensor([session.ids], device=device)
    limits = rule.limits(len(session.ids), device)
    if isinstance(model, EncoderDecoder):
        memory = model.remember(torch.tensor([session.source], device=device))
        return looking(model.decoder, rule).features(ids, visible=limits, store=memory)[0]
    if isinstance(model, Encoder):
        return looking(model, rule).features(ids, visible=limits)[0]
    assert isinstance(model, Decoder)
    return looking(model, rule).features(ids, visible=limits)[0]


def looking(stack: Stack, rule: Rule) -> Stack:
    """The same modules, with a rule of before, after and window in the place of each layer's own; `limits` says the rest.

    Args:
        stack: whose weights it shares; it stays as it is.
        rule: whose direction and window it looks with.
    """
    # Looks are a plain tuple, no module: the copy has its own, and all else together with the original.
    other, direction = copy.copy(stack), rule.direction
    other.looks = tuple(replace(look, direction=direction, window=rule.window) for look in stack.looks)
    return other


def compared(before: Tensor, after: Tensor) -> Compared:
    """What two rows of logits say: (t,V), (t,V) -> `Compared`.

    Args:
        before: with the model's own mask.
        after: with the other.
    """
    kind = at_least_float32(before.dtype)
    own, other = before.to(kind).log_softmax(-1), after.to(kind).log_softmax(-1)
    count = min(BEST, own.shape[-1])
    ids = torch.cat([own.topk(count).indices, other.topk(count).indices], -1)
    # Rounding may make a sum of 0 a little less.
    apart = (own.exp() * (own - other)).sum(-1).clamp(min=0.0)
    return Compared(ids, own.gather(-1, ids).exp(), other.gather(-1, ids).exp(), apart)


def moved(before: Tensor, after: Tensor) -> Tensor:
    """‖after - before‖ / ‖before‖ of each position: (T,D), (T,D) -> (T); 0 where nothing was and nothing is."""
    kind = at_least_float32(before.dtype)
    far, long = (torch.linalg.vector_norm(each.to(kind), dim=-1) for each in (after - before, before))
    shares: Tensor = far / long.masked_fill(long == 0, 1.0)
    return shares


def _logits(loaded: Loaded, before: Tensor, after: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The logits of both, some positions at a time: four copies of them stand in memory at once."""
    model = loaded.model
    step = max(1, LOGITS_AT_ONCE // 4 // loaded.config.vocab)
    for own, other in zip(torch.split(before, step), torch.split(after, step), strict=True):
        yield _headed(model, own), _headed(model, other)


def _headed(model: Decoder | Encoder | EncoderDecoder, part: Tensor) -> Tensor:
    if isinstance(model, Encoder):
        every = torch.ones(1, len(part), dtype=torch.bool, device=part.device)
        logits: Tensor = model.head(part[None], every)[0]
        return logits
    head = model.decoder.head if isinstance(model, EncoderDecoder) else model.head
    made: Tensor = head(part)
    return made


def _numbers(tensor: Tensor) -> Any:
    return tensor.float().cpu().numpy()
