"""The stages of a watched forward: each operation on numbers that the inputs reach, and each inner module, in the order in which they ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.common.trial import apart
from clearhead.checking.diff.kernels import KERNELS, Call, Step, steps_of
from clearhead.checking.diff.side import Stage
from clearhead.checking.rounding import UNIT
from clearhead.checking.watch import Op, Record

VIEWS = frozenset(
    [
        "view",
        "reshape",
        "transpose",
        "permute",
        "contiguous",
        "to",
        "float",
        "double",
        "half",
        "bfloat16",
        "type",
        "type_as",
        "unsqueeze",
        "squeeze",
        "flatten",
        "unflatten",
        "expand",
        "expand_as",
        "clone",
        "detach",
        "T",
        "mT",
        "H",
        "mH",
        "data",
        "t",
        "swapaxes",
        "swapdims",
        "movedim",
        "moveaxis",
        "view_as",
        "reshape_as",
        "alias",
        "requires_grad_",
        "real",
    ]
)
"""Operations that leave the numbers as they are."""

PARTS = frozenset(("chunk", "split", "unbind", "tensor_split", "split_with_sizes", "__getitem__", "narrow", "select"))
"""Operations that take a part of the numbers."""


@dataclass(frozen=True, eq=False)
class CodeStage(Stage):
    """A stage of somebody's code, with what it was made of.

    Args:
        parents: the stages that it was made of, by their places in the walk.
        fed: whether the inputs of the forward reach it; a table of angles or a mask is made of nothing.
        module: the innermost module that was running.
        at: the place, among all operations, of the one that made it; -1 if none did.
        part: which of its results it is: "[1]", or, of a kernel, which step: ".weights"; "" for the result itself.
    """

    parents: tuple[int, ...] = ()
    fed: bool = True
    module: str = ""
    at: int = -1
    part: str = ""


class Reader:
    """Turns a record into stages.

    Args:
        record: of a forward, with the live tensors.
        module: whose inner modules have names; None for a function.
        fed: the inputs themselves.
    """

    def __init__(self, record: Record, module: nn.Module | None, fed: tuple[Tensor, ...]) -> None:
        self.record, self.kinds = record, {} if module is None else dict(module.named_modules())
        self.stages: list[CodeStage] = []
        self.at = -1
        self.sources: dict[int, tuple[int, ...]] = {}
        """By a tensor's identity, the stages that it is made of."""
        self.reached = {id(each) for each in fed}
        self.narrowest = torch.float64
        """The narrowest type of what the inputs reach; a mask in float32 is as exact as one in float64."""
        self.runs: dict[int, list[Any]] = {}
        for ran in record.runs:
            self.runs.setdefault(ran.ended, []).append(ran)

    def read(self) -> tuple[CodeStage, ...]:
        """All stages."""
        for index, op in enumerate(self.record.ops):
            self.at = index
            self._op(op)
            for ran in self.runs.get(index + 1, ()):
                self._named(ran.module, ran.outputs)
        return tuple(self.stages)

    def _op(self, op: Op) -> None:
        assert op.live is not None
        arguments, keywords, result = op.live
        given = list(_tensors((arguments, keywords)))
        parents = tuple(dict.fromkeys(place for each in given for place in self.sources.get(id(each), ())))
        fed = any(id(each) in self.reached for each in given)
        copies = tuple(_tensors((op.arguments, op.keywords)))
        if op.name == "__setitem__":
            self._made(arguments[0], parents, fed)
        elif op.name in KERNELS:
            self._opened(op, parents, fed)
        elif isinstance(op.result, Tensor):
            if self._counts(op, op.result, copies):
                made = CodeStage(_title(op), op.result, op.where, copies, op.name, parents, fed, op.module, self.at)
                parents = (self._add(made),)
            self._made(result, parents, fed)
        else:
            self._several(op, copies, parents, fed)

    def _several(self, op: Op, copies: tuple[Tensor, ...], parents: tuple[int, ...], fed: bool) -> None:
        """An operation with several results: parts of a tensor, or a pair of which one is used."""
        live = list(_tensors(op.live[2])) if op.live is not None else []
        for place, (copy, each) in enumerate(zip(_tensors(op.result), live, strict=True)):
            own = parents
            if copy.is_floating_point():
                name = _title(op, f"[{place}]")
                made = CodeStage(name, copy, op.where, copies, op.name, parents, fed, op.module, self.at, f"[{place}]")
                own = (self._add(made),)
            self._made(each, own, fed)

    def _opened(self, op: Op, parents: tuple[int, ...], fed: bool) -> None:
        """A kernel that does several steps at once, with those that it does not show, where the formulas give what it gave."""
        copies = tuple(_tensors((op.arguments, op.keywords)))
        assert op.live is not None
        result = next(_tensors(op.result))
        steps: tuple[Step, ...] = ()
        # The steps are ours: what the kernel took of its caller may be more than they know.
        with suppress(RuntimeError):
            steps = steps_of(op.name, op.arguments, op.keywords)
        if steps and apart(steps[-1].value, result) <= 256 * UNIT.get(result.dtype, 0.0):
            places: dict[str, int] = {}
            call = Call(op.live[0], op.live[1])
            for step in steps[:-1]:
                own = tuple(places[name] for name in step.of if name in places)
                given = self._of(*(call.argument(*KERNELS[op.name][name]) for name in step.given))
                title = _title(op, f".{step.name}")
                made = CodeStage(
                    title, step.value, op.where, step.operands, step.made_by, (*own, *given), fed, op.module, self.at
                )
                places[step.name] = self._add(replace(made, part=f".{step.name}"))
            own = tuple(places[name] for name in steps[-1].of if name in places)
            parents = (*own, *self._of(*(call.argument(*KERNELS[op.name][name]) for name in steps[-1].given)))
            copies = steps[-1].operands
        place = self._add(CodeStage(_title(op), result, op.where, copies, op.name, parents, fed, op.module, self.at))
        for each in _tensors(op.live[2]):
            self._made(each, (place,), fed)

    def _of(self, *tensors: Any) -> tuple[int, ...]:
        return tuple(dict.fromkeys(place for each in tensors for place in self.sources.get(id(each), ())))

    def _made(self, result: Any, parents: tuple[int, ...], fed: bool) -> None:
        if isinstance(result, Tensor):
            self.sources[id(result)] = parents
            if fed:
                self.reached.add(id(result))
                if UNIT.get(result.dtype, 0.0) > UNIT[self.narrowest]:
                    self.narrowest = result.dtype

    def _add(self, stage: CodeStage) -> int:
        self.stages.append(stage)
        return len(self.stages) - 1

    def _counts(self, op: Op, result: Tensor, given: tuple[Tensor, ...]) -> bool:
        """Whether an operation makes new numbers, or takes a part of what there was."""
        if not result.is_floating_point() or op.name in VIEWS or not result.numel():
            return False
        if op.name == "einsum" and len(given) == 1:
            # Nothing but axes in another order; a sum over one of them makes fewer numbers.
            return given[0].numel() != result.numel()
        if op.name in PARTS:
            # A part, or all of it in another order.
            whole = [each for each in given[:1] if each.is_floating_point()]
            return any(
                x.numel() != result.numel() or (x.shape == result.shape and not torch.equal(x, result)) for x in whole
            )
        # Dropout in evaluation, a factor of one: nothing happened.
        same = (each for each in given if each.shape == result.shape and each.is_complex() == result.is_complex())
        return not any(torch.equal(each.to(result.dtype), result) for each in same)

    def _named(self, module: str, outputs: tuple[Tensor, ...]) -> None:
        """Give the stage that a module's run ended with the module's name."""
        if not module or not outputs:
            return
        for back in range(1, min(4, len(self.stages)) + 1):
            stage = self.stages[-back]
            if stage.value.shape == outputs[0].shape and torch.equal(stage.value, outputs[0]):
                # An inner module's name says more precisely where it was.
                if stage.name.endswith(")"):
                    kind = type(self.kinds[module])
                    made_by = kind.__name__ if kind.__module__.startswith("torch.nn") else stage.made_by
                    count = sum(each.name.split("#")[0] == module for each in self.stages)
                    name = module if not count else f"{module}#{count + 1}"
                    self.stages[-back] = replace(stage, name=name, made_by=made_by)
                return


def _title(op: Op, part: str = "") -> str:
    return f"{op.name.strip('_')}{part} ({op.where or op.module or '-'})"


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _tensors(each)
