"""The faults that are planted: by kind, what one operation does instead, or what becomes of the output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.checking.public.planting import ATTEND, SOFTMAX, Change, Plant, Seen
from clearhead.checking.signatures import signature_of

HIDDEN = -1e3
"""A score below it is that of a key that may not be seen."""


# --- operations that do something else ---


def _columns(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """A softmax over the queries."""
    scores = args[0] if args else keywords["input"]
    if scores.dim() < 3:
        return func(*args, **keywords)
    return F.softmax(scores, -2, dtype=keywords.get("dtype")).nan_to_num()


def _ahead(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """A softmax in which the key after the query is seen."""
    scores, *others = args if args else (keywords.pop("input"),)
    if scores.dim() < 3 or scores.shape[-1] < 2:
        return func(*args, **keywords)
    above = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.shape[-1] - scores.shape[-2] + 1)
    above &= ~above.tril(scores.shape[-1] - scores.shape[-2])
    return func(torch.where(above & (scores < HIDDEN), torch.zeros_like(scores), scores), *others, **keywords)


def _unscaled(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """Scores that are not divided by the root of the head's width."""
    scores, *others = args if args else (keywords.pop("input"),)
    if scores.dim() < 3:
        return func(*args, **keywords)
    return func(scores * seen.width**0.5, *others, **keywords)


def _all_seen(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """A softmax in which nothing is hidden."""
    scores, *others = args if args else (keywords.pop("input"),)
    return func(torch.where(scores < HIDDEN, torch.zeros_like(scores), scores), *others, **keywords)


def _attend(change: Change) -> Change:
    """`scaled_dot_product_attention` with another softmax."""

    def attended(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given = dict(zip(names, args, strict=False)) | keywords
        q, k, v = given["query"], given["key"], given["value"]
        if given.get("enable_gqa"):
            k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
        scale = given.get("scale") or q.shape[-1] ** -0.5
        scores, hidden = q @ k.mT * scale, given.get("attn_mask")
        if given.get("is_causal"):
            keep = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            hidden = keep if hidden is None else hidden & keep
        if hidden is not None:
            scores = scores.masked_fill(~hidden, -torch.inf) if hidden.dtype == torch.bool else scores + hidden
        within = Seen(width=q.shape[-1])
        return change(F.softmax, (scores, -1), {}, within) @ v

    return attended


def _at_softmax(change: Change) -> dict[str, Change]:
    return dict.fromkeys(SOFTMAX, change) | {name: _attend(change) for name in ATTEND}


def _past_lost(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """Joining to what came before, of which the last is gone."""
    parts, *others = args if args else (keywords.pop("tensors"),)
    first, *more = parts
    axis = others[0] if others else keywords.get("dim", 0)
    if len(parts) == 2 and first.dim() == 4 and axis in (-2, 2) and first.shape[-2] > 0:
        first = first.clone()
        first[..., -1, :] = 0
    return func([first, *more], *others, **keywords)


def _norm(power: Callable[[Tensor, int], Tensor]) -> Change:
    """`layer_norm` and `rms_norm` with other statistics."""

    def normed(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
        names: tuple[str, ...] = ("input", "normalized_shape", "weight", "bias", "eps")
        if func.__name__ == "rms_norm":
            names = ("input", "normalized_shape", "weight", "eps")
        given = dict(zip(names, args, strict=False)) | keywords
        x = given["input"]
        centred = x - x.mean(-1, keepdim=True) if func.__name__ == "layer_norm" else x
        eps = given.get("eps") or (1e-5 if func.__name__ == "layer_norm" else torch.finfo(x.dtype).eps)
        y = centred * (power(centred, x.shape[-1]) + eps).rsqrt()
        y = y if given.get("weight") is None else y * given["weight"]
        return y if given.get("bias") is None else y + given["bias"]

    return normed


def _fewer(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """A mean that divides by n-1."""
    n = args[0].shape[-1]
    return func(*args, **keywords) * (n / max(n - 1, 1))


def _unbiased(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    n = args[0].shape[-1]
    return func(*args, **keywords) * (n / max(n - 1, 1))


def _over_positions(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """A mean over the positions in place of the features."""
    result = func(*args, **keywords)
    return result.mean(-2, keepdim=True).expand_as(result) if result.dim() >= 3 else result


def _skipless(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """A sum without the one of its two terms that is the input."""
    if len(args) == 2 and all(isinstance(a, Tensor) and a.shape == args[0].shape and a.dim() == 3 for a in args):
        for one, other in (args, args[::-1]):
            if any(one is x for x in seen.given):
                return other.clone()
    return func(*args, **keywords)


LAYER_NORMS = ("layer_norm", "rms_norm")
N_LESS_ONE = {name: _norm(lambda x, n: x.square().sum(-1, keepdim=True) / (n - 1)) for name in LAYER_NORMS}
ACROSS = {name: _norm(lambda x, n: x.square().mean((-1, -2), keepdim=True)) for name in LAYER_NORMS}


def _faster(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """The sine of another angle."""
    return func(args[0] * 1.25, *args[1:], **keywords)


def _cosine(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    return torch.cos(args[0])


def _scored(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """A loss that takes ignored targets for class 0."""
    if len(args) < 2 or args[1].is_floating_point():
        return func(*args, **keywords)
    ignored = keywords.pop("ignore_index", args[4] if len(args) > 4 else -100)
    targets = args[1].masked_fill((args[1] < 0) | (args[1] == ignored), 0)
    return func(args[0], targets, *args[2:4], **keywords)


def _as_t5(made: Any) -> bool:
    """Whether it takes a bias of positions, and keeps no scale as a number: T5's formula, which has no scale, is right there."""
    parts = list(made.modules()) if isinstance(made, nn.Module) else []
    taken = any(
        re.match(r"pos\w*_bias", name) for part in parts for name in signature_of(type(part).forward).parameters
    )
    return taken and not any(
        "scal" in name and isinstance(value, float) for part in parts for name, value in vars(part).items()
    )


# --- outputs ---


def _from_input(y: Tensor, given: tuple[Any, ...]) -> Tensor:
    return next((x for x in given if isinstance(x, Tensor) and x.shape == y.shape), torch.zeros_like(y))


ROWS = Plant("batch.mixing", "rows of the batch mix", after=lambda y, _: y + 0.1 * (y.roll(1, 0) - y))
FUTURE = Plant(
    "causal.future-leak",
    "a position has something of the next",
    after=lambda y, _: y + 0.1 * y.roll(-1, 1) if y.dim() >= 3 else y,
    causal=True,
)
NOISE = Plant("dropout.active-in-eval", "dropout of the output in eval", after=lambda y, _: F.dropout(y, 0.1, True))
AXIS = Plant("softmax.axis", "softmax over the queries", _at_softmax(_columns))
AHEAD = Plant("causal.future-leak", "the mask one off", _at_softmax(_ahead), causal=True)
SCALE = Plant("scale.missing", "scores times the root of d", _at_softmax(_unscaled), void=_as_t5)
UNMASKED = Plant("mask.ignored", "masks without effect", _at_softmax(_all_seen))
CACHE = Plant("cache.mismatch", "the last of the cache lost", {"cat": _past_lost})
SKIPLESS = Plant("residual.missing", "the first skip left out", dict.fromkeys(("add", "__add__", "add_"), _skipless))
BESSEL = Plant("norm.unbiased-variance", "n-1", N_LESS_ONE | {"var": _unbiased, "mean": _fewer})
NORM_AXIS = Plant(
    "norm.axis", "statistics over positions, too", ACROSS | {"mean": _over_positions, "var": _over_positions}
)
SINE = Plant("sinusoid.frequency", "sines of another angle", {"sin": _faster}, building=True)
EXCHANGED = Plant("rotary.not-relative", "cosines for sines", {"sin": _cosine}, building=True)
UNUSED = Plant("position.unused", "positions dropped", after=_from_input)
PADS = Plant("loss.pads-counted", "what is ignored is scored", {"cross_entropy": _scored})
SOFTENED = Plant(
    "loss.double-softmax",
    "softmax before the loss",
    {"cross_entropy": lambda f, a, k, s: f(*((a[0].softmax(1), *a[1:]) if a else ()), **k)},
)

PLANTS: dict[str, tuple[Plant, ...]] = {
    "attention": (AXIS, AHEAD, ROWS, SCALE, UNMASKED, FUTURE, NOISE),
    "sdpa": (AXIS, AHEAD, ROWS, SCALE, UNMASKED),
    "block": (ROWS, AHEAD, SKIPLESS, AXIS, UNMASKED, FUTURE, NOISE),
    "encoder": (ROWS, UNMASKED, NOISE, AHEAD, FUTURE),
    "seq2seq": (ROWS, AHEAD, NOISE, UNMASKED),
    "lm": (ROWS, AHEAD, CACHE, NOISE, UNMASKED, FUTURE),
    "norm": (BESSEL, NORM_AXIS, ROWS, NOISE),
    "rotary": (SINE, EXCHANGED),
    "positions": (UNUSED, ROWS, SINE, NOISE),
    "loss": (SOFTENED, PADS),
    "sampler": (),
}


def chosen(kind: str, name: str) -> Iterator[Plant]:
    """The plants of a kind, each class beginning with another."""
    every = PLANTS[kind]
    first = crc32(name.encode()) % max(len(every), 1)
    yield from every[first:] + every[:first]
