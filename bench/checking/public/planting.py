"""Planting a fault into a copy in memory, to see that silence about a class was not blindness; the faults are in plants.py.

Nothing of the class is changed: one operation of its forward is, as it runs, or what it gives.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from clearhead.checking.kinds.formula_graph import tensors_in
from clearhead.checking.signatures import signature_of
from clearhead.checking.strangers import Attempt

MATMULS = ("matmul", "__matmul__", "bmm", "baddbmm", "einsum")
SOFTMAX = ("softmax",)
ATTEND = ("scaled_dot_product_attention",)
TRIES = 12
"""Calls that are held against one without the plant, until one differs."""
COMPOSED = ("multi_head_attention_forward",)
"""Functions of PyTorch whose inner operations no mode sees."""


@dataclass
class Seen:
    """What a plant did.

    Args:
        changed: whether it changed a number.
        moved: whether that changed the output of some call: behind a norm, a factor does not.
        width: of a head, as the last product of matrices had it.
        given: the inputs.
        inside: whether a call is running.
        tried: how many calls were held against one without the plant.
    """

    changed: bool = False
    moved: bool = False
    width: int = 1
    given: tuple[Any, ...] = ()
    inside: bool = field(default=False, repr=False)
    tried: int = field(default=0, repr=False)


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
        void: of a class as it is made, whether what is planted is a formula that is right in it.
    """

    id: str
    what: str
    ops: Mapping[str, Change] = field(default_factory=dict)
    after: After | None = None
    causal: bool = False
    building: bool = False
    void: Callable[[Any], bool] = lambda made: False


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
        right = _aside(name, func, args, keywords)
        result = change(func, args, keywords, self.seen)
        if isinstance(result, Tensor) and isinstance(right, Tensor) and result.shape == right.shape:
            self.seen.changed |= not torch.equal(result.nan_to_num(), right.nan_to_num())
            return result
        return right

    @contextmanager
    def _patched(self) -> Iterator[None]:
        """The names that a composed function looks up are those of changed operations."""
        own = {name: getattr(F, name) for name in (*SOFTMAX, *ATTEND)}
        with ExitStack() as patches:
            for name, each in own.items():
                patches.enter_context(mock.patch.object(F, name, functools.partial(self._again, name, each)))
            yield

    def _again(self, name: str, func: Any, *args: Any, **keywords: Any) -> Any:
        return self.changed(name, func, args, keywords)


def _aside(name: str, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What an operation gives, unseen by whoever watches, and without changing what it works on."""
    in_place = name.endswith("_") and not name.endswith("__")
    with torch._C.DisableTorchFunction():
        return func(*(a.clone() if in_place and isinstance(a, Tensor) else a for a in args), **keywords)


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

    called.__signature__ = signature_of(function)  # type: ignore[attr-defined]
    return called


def _run(function: Any, args: tuple[Any, ...], keywords: dict[str, Any], plant: Plant, seen: Seen) -> Any:
    if seen.inside:
        return function(*args, **keywords)
    seen.inside, seen.given = True, (*args, *keywords.values())
    try:
        right = None if seen.moved or seen.tried >= TRIES else _unplanted(function, args, keywords)
        with _Planted(plant, seen):
            result = function(*args, **keywords)
    finally:
        seen.inside = False
    if plant.after is not None:
        result = _replaced(result, plant.after, seen.given, seen)
    # What a forward keeps of its inputs would itself be named, as a tensor that is held and not registered.
    seen.given = ()
    if right is not None:
        seen.tried += 1
        seen.moved = plant.building or _apart(right, list(tensors_in(result)))
    return result


def _unplanted(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Tensor] | None:
    """What a call gives without the plant, unseen by whoever watches; None if what it works on cannot be copied."""
    with Attempt(), torch.random.fork_rng(devices=[]), torch._C.DisableTorchFunction(), torch.no_grad():
        owner = getattr(function, "args", ())
        alone = functools.partial(function.func, *copy.deepcopy(owner)) if owner else function
        return [t.clone() for t in tensors_in(alone(*copy.deepcopy(args), **copy.deepcopy(keywords)))]
    return None


def _apart(right: list[Tensor], found: list[Tensor]) -> bool:
    """Whether two results differ by more than rounding."""
    if [t.shape for t in right] != [t.shape for t in found]:
        return True
    floats = [(a, b) for a, b in zip(right, found, strict=True) if a.is_floating_point()]
    with torch._C.DisableTorchFunction(), torch.no_grad():
        return not all(torch.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True) for a, b in floats)


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
    if isinstance(result, MutableMapping):
        for key, value in result.items():
            if isinstance(value, Tensor) and value.is_floating_point() and value.dim():
                result[key] = _replaced(value, after, given, seen)
                break
    return result
