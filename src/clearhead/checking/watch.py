"""Watching somebody's code run: every operation, in order, with the line that asked for it. Nothing of the code is changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_ROOTS = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
"""Folders whose frames are not the user's: PyTorch's and ours."""


class WithArguments:
    """Something that was called, with what it was given."""

    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]

    def argument(self, position: int, keyword: str, default: Any = None) -> Any:
        """An argument, given by position or by keyword."""
        if position < len(self.arguments):
            return self.arguments[position]
        return self.keywords.get(keyword, default)


@dataclass(frozen=True, eq=False)
class Op(WithArguments):
    """One operation as it ran; equal to itself alone, as its tensors cannot be compared in one word.

    Args:
        name: of the function, without its module: "softmax", "matmul", "masked_fill", "scaled_dot_product_attention", "__setitem__".
        arguments: positional arguments; tensors are copies, as they were before.
        keywords: keyword arguments, the same way.
        result: what it gave, a copy.
        where: the line that called it, "att.py:31"; "" if no line of the user's did.
        module: the innermost module that was running, "" for the target itself.
        live: the positional arguments, the keyword arguments and the result themselves, if they were asked for.
    """

    name: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    result: Any
    where: str
    module: str
    live: tuple[tuple[Any, ...], Mapping[str, Any], Any] | None = None


@dataclass(frozen=True, eq=False)
class Ran:
    """One run of a module below the target; equal to itself alone.

    Args:
        module: its name in `named_modules()`, "" for the target itself.
        inputs: the tensors that it was given, positional and by keyword, copies.
        outputs: the tensors that it gave, copies.
        ended: how many operations had run when it ended.
    """

    module: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    ended: int = 0


@dataclass
class Record:
    """What was seen in one call."""

    ops: list[Op] = field(default_factory=list)
    runs: list[Ran] = field(default_factory=list)
    """In the order in which they ended: inner ones first."""
    result: Any = None

    def named(self, *names: str) -> list[Op]:
        """The operations of these names, in order."""
        return [op for op in self.ops if op.name in names]

    def of(self, module: str) -> list[Ran]:
        """The runs of a module."""
        return [ran for ran in self.runs if ran.module == module]


def watched(module: nn.Module | None, call: Callable[[], Any], *, live: bool = False) -> Record:
    """Run `call` and record it.

    Args:
        module: whose inner modules are told apart; None for a function.
        call: runs the code under check.
        live: whether the tensors themselves are kept beside the copies, so that gradients can be taken between them;
            properties such as `.T` are recorded then, too.
    """
    record = Record()
    with _hooked(module, record) as running, _Watch(record, running, live):
        record.result = call()
    return record


class _Watch(TorchFunctionMode):
    """Records each function as it is called."""

    def __init__(self, record: Record, running: list[str], live: bool) -> None:
        super().__init__()
        self.record, self.running, self.live = record, running, live

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords = kwargs or {}
        # Properties such as .shape pass here, too, and are no operations.
        name = str(getattr(func, "__name__", func))
        if name in ("__get__", "__set__"):
            result = func(*args, **keywords)
            if not self.live or not isinstance(result, Tensor):
                return result
            name = str(getattr(getattr(func, "__self__", None), "__name__", name))
            self.record.ops.append(self._op(name, (args, keywords), result, (args, keywords)))
            return result
        before = (_copied(args), {key: _copied(value) for key, value in keywords.items()})
        result = func(*args, **keywords)
        self.record.ops.append(self._op(name, before, result, (args, keywords)))
        return result

    def _op(self, name: str, before: Any, result: Any, live: Any) -> Op:
        where, module = _line(), self.running[-1] if self.running else ""
        kept = (live[0], live[1], result) if self.live else None
        return Op(name, before[0], before[1], _copied(result), where, module, kept)


@contextmanager
def _hooked(module: nn.Module | None, record: Record) -> Iterator[list[str]]:
    """Which modules run, innermost last, while hooks are in place; they are gone afterwards."""
    running: list[str] = []
    handles = []

    def before(name: str) -> Callable[..., None]:
        def enter(_: nn.Module, _args: Any, _keywords: Any) -> None:
            running.append(name)

        return enter

    def after(name: str) -> Callable[..., None]:
        def leave(_: nn.Module, args: Any, keywords: Any, output: Any) -> None:
            running.pop()
            record.runs.append(Ran(name, _tensors((args, keywords)), _tensors(output), len(record.ops)))

        return leave

    for name, inner in [] if module is None else module.named_modules():
        handles.append(inner.register_forward_pre_hook(before(name), with_kwargs=True))
        handles.append(inner.register_forward_hook(after(name), with_kwargs=True))
    try:
        yield running
    finally:
        for handle in handles:
            handle.remove()


def _copied(value: Any) -> Any:
    """The value with copies of its tensors: code that works in place must not change what was seen."""
    if isinstance(value, Tensor):
        with torch._C.DisableTorchFunction():
            return value.detach().clone()
    if isinstance(value, tuple):
        return tuple(_copied(item) for item in value)
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _tensors(value: Any) -> tuple[Tensor, ...]:
    """Copies of all tensors in nested tuples, lists, dictionaries and objects with fields."""
    if isinstance(value, Tensor):
        return (_copied(value),)
    if isinstance(value, Mapping):
        return tuple(found for item in value.values() for found in _tensors(item))
    if isinstance(value, tuple | list):
        return tuple(found for item in value for found in _tensors(item))
    return ()


def _line() -> str:
    """The innermost line of the user's own that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_ROOTS) and not file.startswith("<"):
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
