"""Faults planted into a copy in memory, to see that silence about a class was not blindness. Nothing of the class is changed:
one operation of its forward is, as it runs, or what it gives."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock
from zlib import crc32

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

HIDDEN = -1e3
"""A score below it is that of a key that may not be seen."""
MATMULS = ("matmul", "__matmul__", "bmm", "baddbmm", "einsum")
SOFTMAX = ("softmax",)
ATTEND = ("scaled_dot_product_attention",)
COMPOSED = ("multi_head_attention_forward",)
"""Functions of PyTorch whose inner operations no mode sees."""


@dataclass
class Seen:
    """What a plant did: whether it changed a number, and the width of a head as the last product of matrices had it."""

    changed: bool = False
    width: int = 1
    inside: bool = field(default=False, repr=False)


Change = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], Seen], Any]
"""(function, arguments, keywords, seen) -> what takes the place of its result."""
After = Callable[[Tensor, tuple[Any, ...]], Tensor]
"""(output, inputs) -> what takes the place of the output."""


@dataclass(frozen=True)
class Plant:
    """A fault to be planted.

    Args:
        id: its name in the dictionary of faults.
        what: what is changed, in a few words.
        ops: by the name of an operation what it does instead.
        after: what is done to the output.
        causal: whether it can only be told in code that may not see the future.
        building: whether operations are changed while the class is built, too: tables are made then.
    """

    id: str
    what: str
    ops: Mapping[str, Change] = field(default_factory=dict)
    after: After | None = None
    causal: bool = False
    building: bool = False


class _Planted(TorchFunctionMode):
    """Some operations do something else."""

    def __init__(self, plant: Plant, seen: Seen) -> None:
        super().__init__()
        self.plant, self.seen = plant, seen

    def __torch_function__(self, func: Any, kinds: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        keywords = dict(kwargs or {})
        name = str(getattr(func, "__name__", func))
        if name in COMPOSED:
            with self._patched():
                return func(*args, **keywords)
        return self.changed(name, func, args, keywords)

    def changed(self, name: str, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The result of an operation, or of what takes its place."""
        if name in MATMULS:
            first = next((a for a in args if isinstance(a, Tensor)), None)
            self.seen.width = first.shape[-1] if first is not None and first.dim() else 1
        change = self.plant.ops.get(name)
        if change is None:
            return func(*args, **keywords)
        right = func(*args, **keywords)
        result = change(func, args, keywords, self.seen)
        if isinstance(result, Tensor) and isinstance(right, Tensor) and result.shape == right.shape:
            self.seen.changed |= not torch.equal(result.nan_to_num(), right.nan_to_num())
            return result
        return right

    @contextmanager
    def _patched(self) -> Iterator[None]:
        """The names that a composed function looks up are those of changed operations."""
        own = {name: getattr(F, name) for name in (*SOFTMAX, *ATTEND)}
        with mock.patch.multiple(F, **{name: functools.partial(self._again, name, each) for name, each in own.items()}):
            yield

    def _again(self, name: str, func: Any, *args: Any, **keywords: Any) -> Any:
        return self.changed(name, func, args, keywords)


def planted(make: Callable[[], Any], plant: Plant) -> tuple[Any, Seen]:
    """A fresh instance, or function, with the fault in it, and what it did."""
    seen = Seen()
    if plant.building:
        with _Planted(plant, seen):
            made = make()
    else:
        made = make()
    if not isinstance(made, nn.Module):
        return _around(made, plant, seen), seen
    # A bound method of the instance's own: a copy of the instance has its own copy.
    kind = type(made)

    @functools.wraps(kind.forward)
    def forward(self: Any, *args: Any, **keywords: Any) -> Any:
        return _run(functools.partial(kind.forward, self), args, keywords, plant, seen)

    made.forward = types.MethodType(forward, made)
    return made, seen


def _around(function: Any, plant: Plant, seen: Seen) -> Any:
    @functools.wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        return _run(function, args, keywords, plant, seen)

    return called


def _run(function: Any, args: tuple[Any, ...], keywords: dict[str, Any], plant: Plant, seen: Seen) -> Any:
    if seen.inside:
        return function(*args, **keywords)
    seen.inside = True
    try:
        with _Planted(plant, seen):
            result = function(*args, **keywords)
    finally:
        seen.inside = False
    if plant.after is None:
        return result
    given = (*args, *keywords.values())
    return _replaced(result, plant.after, given, seen)


def _replaced(result: Any, after: After, given: tuple[Any, ...], seen: Seen) -> Any:
    """What was returned, its first tensor of numbers replaced."""
    if isinstance(result, Tensor):
        if not result.is_floating_point():
            return result
        changed = after(result, given)
        seen.changed |= changed.shape == result.shape and not torch.equal(changed.nan_to_num(), result.nan_to_num())
        return changed if changed.shape == result.shape else result
    if type(result) in (tuple, list) and result:
        place = next((i for i, r in enumerate(result) if isinstance(r, Tensor) and r.is_floating_point()), 0)
        inner = [_replaced(r, after, given, seen) if i == place else r for i, r in enumerate(result)]
        return type(result)(inner)
    if isinstance(result, Mapping):
        for key, value in result.items():
            if isinstance(value, Tensor) and value.is_floating_point() and value.dim():
                result[key] = _replaced(value, after, given, seen)
                break
    return result


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
    return {name: change for name in SOFTMAX} | {name: _attend(change) for name in ATTEND}


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
        names = ("input", "normalized_shape", "weight", "bias", "eps")
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


LAYER_NORMS = ("layer_norm", "rms_norm")
N_LESS_ONE = {name: _norm(lambda x, n: x.square().sum(-1, keepdim=True) / (n - 1)) for name in LAYER_NORMS}
ACROSS = {name: _norm(lambda x, n: x.square().mean((-1, -2), keepdim=True)) for name in LAYER_NORMS}


def _faster(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    """The sine of another angle."""
    return func(args[0] * 1.25, *args[1:], **keywords)


def _cosine(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], seen: Seen) -> Any:
    return torch.cos(args[0])


# --- outputs ---


def _from_input(y: Tensor, given: tuple[Any, ...]) -> Tensor:
    return next((x for x in given if isinstance(x, Tensor) and x.shape == y.shape), torch.zeros_like(y))


def _doubled(y: Tensor, given: tuple[Any, ...]) -> Tensor:
    """The skip once more."""
    return y + next((x for x in given if isinstance(x, Tensor) and x.shape == y.shape), torch.zeros_like(y))


ROWS = Plant("batch.mixing", "rows of the batch mix", after=lambda y, _: y + 0.1 * y.roll(1, 0))
FUTURE = Plant(
    "causal.future-leak",
    "a position has something of the next",
    after=lambda y, _: y + 0.1 * y.roll(-1, 1) if y.dim() >= 3 else y,
    causal=True,
)
NOISE = Plant("dropout.active-in-eval", "dropout of the output in eval", after=lambda y, _: F.dropout(y, 0.1, True))
AXIS = Plant("softmax.axis", "softmax over the queries", _at_softmax(_columns))
AHEAD = Plant("causal.future-leak", "the mask one off", _at_softmax(_ahead), causal=True)
SCALE = Plant("scale.missing", "scores times the root of d", _at_softmax(_unscaled))
UNMASKED = Plant("mask.ignored", "masks without effect", _at_softmax(_all_seen))
CACHE = Plant("cache.mismatch", "the last of the cache lost", {"cat": _past_lost})
TWICE = Plant("residual.doubled", "the skip twice", after=_doubled)
BESSEL = Plant("norm.unbiased-variance", "n-1", N_LESS_ONE | {"var": _unbiased, "mean": _fewer})
NORM_AXIS = Plant(
    "norm.axis", "statistics over positions, too", ACROSS | {"mean": _over_positions, "var": _over_positions}
)
SINE = Plant("sinusoid.frequency", "sines of another angle", {"sin": _faster}, building=True)
EXCHANGED = Plant("rotary.not-relative", "cosines for sines", {"sin": _cosine}, building=True)
UNUSED = Plant("position.unused", "positions dropped", after=_from_input)
PADS = Plant("loss.mean-of-means", "the loss divided by one more", after=lambda y, _: y * 1.1)
SOFTENED = Plant(
    "loss.double-softmax",
    "softmax before the loss",
    {"cross_entropy": lambda f, a, k, s: f(*((a[0].softmax(1), *a[1:]) if a else ()), **k)},
)

PLANTS: dict[str, tuple[Plant, ...]] = {
    "attention": (AXIS, AHEAD, ROWS, SCALE, UNMASKED, FUTURE, NOISE),
    "sdpa": (AXIS, AHEAD, ROWS, SCALE, UNMASKED),
    "block": (ROWS, AHEAD, TWICE, AXIS, UNMASKED, FUTURE, NOISE),
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
