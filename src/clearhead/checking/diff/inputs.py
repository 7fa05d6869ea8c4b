"""What two sides can both be given."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.checking.diff.code import CodeSide
from clearhead.checking.diff.ours import ModelSide
from clearhead.checking.diff.side import Given, Side, Tuned
from clearhead.messages import UserError, say
from clearhead.models.config import DecoderConfig

ROWS, LENGTHS = 2, (11, 7, 5, 16, 32, 64, 3, 2, 1)
"""Sizes unlike each other and unlike the usual numbers of heads; lengths are tried in this order."""

LONGER = (40, 24, 16)
"""Equal results are asked for once more at the first of these that both take: a window of 32 keys hides something then."""

BEYOND, LONGEST = 3, 4096
"""How many positions more than a window has keys show it, and the most that are tried."""

COUNT = {"encoder-decoder": 2}
"""How many inputs a model of ours takes, by its architecture; one if not named."""


def inputs_for(a: Side, b: Side, tuned: Tuned) -> Given:
    """The same inputs for both: ids of the text, else random ids below the smaller vocabulary, vectors where vectors are taken.

    Args:
        a: one side; it is asked first what it takes.
        b: the other.
        tuned: the text, and the seed of random inputs.

    Raises:
        UserError: if a text is given and neither side has a tokenizer, or the two do not take the same inputs.
    """
    if tuned.text is not None:
        return _of_text(a, b, tuned.text)
    first: UserError | None = None
    for length in LENGTHS:
        for given in _drawn(a, b, length, tuned.seed):
            refusal = _refusal(a, b, given)
            if refusal is None:
                return given
            first = first or refusal
    raise first or _unknown(a, b)


def longer(a: Side, b: Side, given: Given, tuned: Tuned) -> Given | None:
    """Longer inputs, which reach beyond what a short window sees; None if a text was given, or no longer ones are taken by both."""
    length = given.inputs[-1].shape[1] if given.inputs and given.inputs[-1].dim() > 1 else 0
    if tuned.text is not None or not length:
        return None
    limits = [n for n in (getattr(side, "limit", None) for side in (a, b)) if n]
    beyond = [min([n + BEYOND, *limits]) for n in sorted(windows(a) | windows(b), reverse=True)]
    far = [n for n in beyond if LONGER[0] < n <= LONGEST]
    for wanted in (n for n in (*far, *LONGER) if n > length):
        for each in _drawn(a, b, wanted, tuned.seed):
            if _refusal(a, b, each) is None:
                return each
    return None


def windows(side: Side) -> set[int]:
    """How many keys a query may see at most, as the side says: in its configuration, or under a name with "window" in its modules."""
    if isinstance(side, ModelSide):
        config = side.config
        if not isinstance(config, DecoderConfig):
            return set()
        return {n for n in (config.window, *(sight.window for sight in config.cycle)) if n}
    module = side.module(None) if isinstance(side, CodeSide) else None
    if not isinstance(module, nn.Module):
        return set()
    held = [vars(part) for part in module.modules()]
    held += [
        vars(each) for own in list(held) for name, each in own.items() if "config" in name and hasattr(each, "__dict__")
    ]
    named = (value for own in held for name, value in own.items() if "window" in name)
    return {value for value in named if isinstance(value, int) and not isinstance(value, bool) and value > 0}


def unseen(a: Side, b: Side, given: Given) -> list[str]:
    """That a window is no shorter than what both read, so that nothing was hidden by it."""
    length = max((each.shape[1] for each in given.inputs if each.dim() > 1), default=0)
    wide = sorted(n for n in windows(a) | windows(b) if n >= length)
    return [say("diff.window_unseen", window=n, length=length) for n in wide if length]


def _refusal(a: Side, b: Side, given: Given) -> UserError | None:
    """Which of the two does not take the inputs, and why; None if both do."""
    for who, side in (("A", a), ("B", b)):
        if reason := _refused(side, given):
            said = say("diff.inputs_differ", a=a.name, b=b.name, given=given.text, who=who, reason=reason)
            return UserError(said)
    return None


def _unknown(a: Side, b: Side) -> UserError:
    """That nothing is known of what one of the two takes."""
    sides = [(who, side) for who, side in (("A", a), ("B", b)) if isinstance(side, CodeSide) and not side.kind]
    who, side = sides[0] if sides else ("A", a)
    reason = side.opened.tried if isinstance(side, CodeSide) else ""
    return UserError(say("diff.inputs_unknown", a=a.name, b=b.name, who=who, reason=reason or "-"))


def _refused(side: Side, given: Given) -> str:
    """Why a side does not take the inputs, "" if it does or that is not known before it runs."""
    return side.takes(given) if isinstance(side, CodeSide) else ""


def _drawn(a: Side, b: Side, length: int, seed: int) -> list[Given]:
    """Random inputs of one length, as the one and as the other would have them."""
    codes = [side for side in (a, b) if isinstance(side, CodeSide)]
    ours = [side for side in (a, b) if not isinstance(side, CodeSide)]
    vocab = min((side.vocab for side in (a, b) if side.vocab), default=None)
    limits = [n for n in (getattr(side, "limit", None) for side in (a, b)) if n]
    if limits and length > min(limits):
        return []
    if ours:
        drawn = torch.Generator().manual_seed(seed)
        count = max(COUNT.get(str(getattr(side, "architecture", "")), 1) for side in ours)
        ids = tuple(torch.randint(0, vocab or 2, (ROWS, length), generator=drawn) for _ in range(count))
        return [Given(ids, say("diff.given_ids", rows=ROWS, length=length, vocab=vocab))]
    found = []
    for side in codes:
        inputs = tuple(_below(each, vocab) for each in side.drawn(ROWS, length, seed))
        if inputs:
            found.append(Given(inputs, _words(inputs, vocab)))
    return found


def _below(each: Tensor, vocab: int | None) -> Tensor:
    return each if each.is_floating_point() or vocab is None else each % vocab


def _words(inputs: tuple[Tensor, ...], vocab: int | None) -> str:
    if not inputs[0].is_floating_point():
        rows, length = inputs[0].shape[:2]
        return say("diff.given_ids", rows=rows, length=length, vocab=vocab)
    return say("diff.given_vectors", shapes=", ".join(str(tuple(each.shape)) for each in inputs))


def _of_text(a: Side, b: Side, text: str) -> Given:
    """The ids of a text by the tokenizer of whichever side has one: `encode(text) -> list of ids`."""
    for side in (a, b):
        encode = getattr(side, "encode", None)
        if encode is None:
            continue
        ids = list(encode(text))
        smallest = min((each.vocab for each in (a, b) if each.vocab), default=None)
        if not ids:
            raise UserError(say("diff.no_ids"))
        if smallest is not None and max(ids) >= smallest:
            raise UserError(say("diff.id_too_large", id=max(ids), vocab=smallest))
        given = torch.tensor([ids])
        count = COUNT.get(str(getattr(side, "architecture", "")), 1)
        return Given((given,) * count, say("diff.given_text", count=len(ids)))
    raise UserError(say("diff.no_tokenizer"))
