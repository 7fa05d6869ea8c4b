"""Running a side again with the numbers of the other in the place of its own at some stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from clearhead.checking.diff.kernels import steps_of


class Put(NamedTuple):
    """A tensor that stands in place of what an operation gave.

    Args:
        at: the place of the operation among all.
        part: which of its results: "[1]", ".weights"; "" for the result itself.
        value: the tensor.
    """

    at: int
    part: str
    value: Tensor


class Putting(TorchFunctionMode):
    """Puts tensors in place of results, counting operations as `watched` does with `live`.

    Args:
        puts: what is put where.
    """

    def __init__(self, puts: tuple[Put, ...]) -> None:
        super().__init__()
        self.puts: dict[int, list[Put]] = {}
        for each in puts:
            self.puts.setdefault(each.at, []).append(each)
        self.count = 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords = kwargs or {}
        name = str(getattr(func, "__name__", func))
        result = func(*args, **keywords)
        if name in ("__get__", "__set__") and not isinstance(result, Tensor):
            return result
        at, self.count = self.count, self.count + 1
        puts = self.puts.get(at, [])
        steps = {put.part[1:]: put.value for put in puts if put.part.startswith(".")}
        if steps:
            # All steps of a kernel at once: with another q its k is another, too.
            result = _first(result, steps_of(name, args, keywords, steps)[-1].value)
        for put in puts:
            result = result if put.part.startswith(".") else _put(name, put, result)
        return result


def _put(name: str, put: Put, result: Any) -> Any:
    if put.part.startswith("["):
        place = int(put.part[1:-1])
        parts = [_like(put.value, each) if n == place else each for n, each in enumerate(result)]
        return type(result)(parts) if isinstance(result, tuple | list) and not hasattr(result, "_fields") else parts
    if not isinstance(result, Tensor):
        return _first(result, put.value)
    made = _like(put.value, result)
    if _in_place(name):
        # The tensor itself was changed, and others hold it.
        with torch._C.DisableTorchFunction():
            result.copy_(made)
        return result
    return made


def _first(result: Any, value: Tensor) -> Any:
    """What a kernel gave, with another tensor first."""
    if isinstance(result, Tensor):
        return _like(value, result)
    return (_like(value, result[0]), *result[1:])


def _in_place(name: str) -> bool:
    return (name.endswith("_") and not name.startswith("_")) or (name.startswith("__i") and name != "__invert__")


def _like(value: Tensor, result: Tensor) -> Tensor:
    with torch._C.DisableTorchFunction():
        return value.reshape(result.shape).to(result.dtype).clone()
