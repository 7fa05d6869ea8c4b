"""What a watched forward is made of: which tensors depend on the input, where its products are, and what came from where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.watch import Op, Record

PRODUCTS = ("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "baddbmm", "einsum", "sum", "tensordot")
LINEAR = ("linear", "matmul", "__matmul__", "__rmatmul__", "mm", "addmm", "bmm", "einsum", "conv1d", "baddbmm")
KERNEL = "scaled_dot_product_attention"


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors in nested tuples, lists and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)


LIKE = ("to", "type_as", "expand_as", "view_as", "reshape_as", "zeros_like", "ones_like", "full_like")


@dataclass
class Graph:
    """A record whose tensors are alive.

    Args:
        record: of `watched(..., live=True)`.
        inputs: what the code was fed with.
    """

    record: Record
    inputs: Sequence[Tensor]
    fed: dict[int, bool] = field(default_factory=dict)
    """Whether a tensor depends on the input, by identity; kept alive by the record."""

    def __post_init__(self) -> None:
        for given in self.inputs:
            self.fed[id(given)] = True
        for op in self.record.ops:
            arguments, result = self.arguments(op), list(tensors_in(self.live(op)[2]))
            # What is only brought into the type or shape of a tensor takes nothing else from it.
            depends = any(self.depends(t) for t in (arguments[:1] if op.name in LIKE else arguments))
            changed = arguments[:1] if op.name.endswith("_") and not op.name.endswith("__") else []
            changed += arguments[:1] if op.name in ("__setitem__", "__iadd__", "__imul__") else []
            for made in (*result, *changed):
                self.fed[id(made)] = depends or self.fed.get(id(made), False)

    @staticmethod
    def live(op: Op) -> tuple[tuple[Any, ...], Mapping[str, Any], Any]:
        """The tensors themselves."""
        assert op.live is not None
        return op.live

    def arguments(self, op: Op) -> list[Tensor]:
        """The tensors that an operation was given, themselves."""
        given = self.live(op)
        return [*tensors_in(given[0]), *tensors_in(given[1])]

    def depends(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on the input; one of unknown origin that is no leaf does."""
        known = self.fed.get(id(tensor))
        return tensor.grad_fn is not None and not isinstance(tensor, torch.nn.Parameter) if known is None else known

    def result(self, index: int) -> Tensor | None:
        """The one tensor that an operation gave."""
        made = self.live(self.record.ops[index])[2]
        return made if isinstance(made, Tensor) else None

    def linears(self, before: int, after: int = -1) -> list[int]:
        """The operations between two that multiply what depends on the input by what does not."""
        found = []
        for index in range(after + 1, before):
            op = self.record.ops[index]
            if op.name not in LINEAR:
                continue
            given = [t for t in self.arguments(op) if t.is_floating_point() and t.dim() >= 1]
            fed = [t for t in given if self.depends(t)]
            fixed = [t for t in given if not self.depends(t) and t.dim() >= 2]
            if len(fed) == 1 and fixed and fed[0].dim() >= 2:
                found.append(index)
        return found

    def projected(self, index: int) -> Tensor:
        """What a linear operation gave, with the bias that the next operation adds to it."""
        made = self.result(index)
        assert made is not None
        for op in self.record.ops[index + 1 : index + 3]:
            given = self.arguments(op)
            if op.name in ("add", "add_", "__add__", "__radd__", "__iadd__") and any(t is made for t in given):
                rest = [t for t in given if t is not made]
                summed = self.live(op)[2]
                if len(rest) == 1 and not self.depends(rest[0]) and isinstance(summed, Tensor) and rest[0].dim() <= 2:
                    return summed
        return made

    def fed_by(self, index: int) -> Tensor:
        """What a linear operation was given that depends on the input."""
        given = self.arguments(self.record.ops[index])
        return next(t for t in given if t.is_floating_point() and self.depends(t))

    def along_positions(self, index: int) -> bool:
        """Whether a linear operation makes fewer positions, or others, of those that there are, (..., D, T) -> (..., D, S)."""
        fed, given = self.fed_by(index), self.arguments(self.record.ops[index])
        length = next((x.shape[1] for x in self.inputs if x.dim() >= 2), 0)
        widths = {x.shape[-1] for x in self.inputs if x.dim() >= 3}
        matrices = [t for t in given if not self.depends(t) and t.dim() == 2]
        plain = self.record.ops[index].name in ("linear", "matmul", "__matmul__", "mm")
        at_end = fed.dim() >= 3 and fed.shape[-1] == length and length not in (*widths, *fed.shape[:-1])
        return plain and at_end and any(length in matrix.shape for matrix in matrices)

    def features_axis(self, index: int) -> int:
        """Which axis of its result has the features."""
        made = self.result(index)
        assert made is not None
        return made.dim() - 2 if self.record.ops[index].name == "conv1d" else made.dim() - 1

    def sources(self, tensor: Tensor, before: int) -> list[int]:
        """The linear operations from which a tensor comes without another one between."""
        candidates = [(i, made) for i in self.linears(before) if (made := self.result(i)) is not None]
        near = [
            i
            for (i, _), linked in zip(candidates, linked_to(tensor, [m for _, m in candidates]), strict=True)
            if linked
        ]
        kept: list[int] = []
        for index in reversed(near):
            made = self.result(index)
            assert made is not None
            behind = [self.arguments(self.record.ops[other]) for other in kept]
            if not any(any(linked_to(t, [made])) for given in behind for t in given if t.requires_grad):
                kept.append(index)
        return sorted(kept)


def linked_to(tensor: Tensor, others: Sequence[Tensor]) -> list[bool]:
    """Whether a tensor was computed from each of the others."""
    usable = [other for other in others if other.requires_grad]
    if not tensor.requires_grad or not usable:
        return [tensor is other for other in others]
    found = torch.autograd.grad(tensor.sum(), usable, retain_graph=True, allow_unused=True)
    linked = {id(other): grad is not None for other, grad in zip(usable, found, strict=True)}
    return [tensor is other or linked.get(id(other), False) for other in others]


def slope(value: Tensor, of: Tensor) -> Tensor:
    """The gradient of the sum of `value` with respect to `of`; zeros if it does not depend on it."""
    if not value.requires_grad or not of.requires_grad:
        return torch.zeros_like(of)
    found = torch.autograd.grad(value.sum(), of, retain_graph=True, allow_unused=True)[0]
    return torch.zeros_like(of) if found is None else torch.nan_to_num(found)


@dataclass(frozen=True)
class Product:
    """A product of two tensors that both depend on the input, summed over one axis.

    Args:
        index: of the operation.
        left: (..., rows, summed), turned so, alive.
        right: (..., columns, summed), turned so, alive.
        out: the result, alive.
        rows: the axis of the result, from its end, along which the rows of `left` lie.
        columns: the same for the rows of `right`.
        given: both operands as the operation was given them, alive.
        lost: whether an axis of one operand alone is summed, too.
    """

    index: int
    left: Tensor
    right: Tensor
    out: Tensor
    rows: int
    columns: int
    given: tuple[Tensor, Tensor]
    lost: bool = False


def product(graph: Graph, index: int, lengths: Iterable[int] = ()) -> Product | None:
    """The product that an operation is; None if it is none."""
    op = graph.record.ops[index]
    out = graph.result(index)
    if op.name not in PRODUCTS or out is None:
        return None
    if op.name == "sum":
        return _summed(graph, index, out)
    given = [t for t in graph.arguments(op) if t.is_floating_point()]
    if op.name == "baddbmm":
        given = given[-2:]
    if len(given) != 2 or not all(graph.depends(t) for t in given):
        return None
    if op.name == "einsum":
        return _einsum(graph, index, given, out, tuple(lengths))
    if op.name == "tensordot" or min(t.dim() for t in given) < 2:
        return None
    left, right = given if op.name != "__rmatmul__" else given[::-1]
    return Product(index, left, right.transpose(-2, -1), out, -2, -1, (left, right))


def _summed(graph: Graph, index: int, out: Tensor) -> Product | None:
    """A sum over the last axis of two tensors multiplied with each other, each repeated along one axis."""
    op = graph.record.ops[index]
    given = graph.arguments(op)
    axis = op.argument(1, "dim", op.keywords.get("axis"))
    if len(given) != 1 or axis not in (-1, given[0].dim() - 1, [-1], (-1,)):
        return None
    for before in range(index - 1, max(index - 3, -1), -1):
        earlier = graph.record.ops[before]
        pair = graph.arguments(earlier)
        if earlier.name != "mul" or graph.result(before) is not given[0] or len(pair) != 2:
            continue
        if min(t.dim() for t in pair) < 3 or not all(graph.depends(t) for t in pair):
            return None
        first, second = pair
        if first.shape[-2] == 1 and second.shape[-3] == 1:
            return Product(index, first.squeeze(-2), second.squeeze(-3), out, -2, -1, (first, second))
        if second.shape[-2] == 1 and first.shape[-3] == 1:
            return Product(index, second.squeeze(-2), first.squeeze(-3), out, -2, -1, (second, first))
    return None


def _einsum(graph: Graph, index: int, given: list[Tensor], out: Tensor, lengths: tuple[int, ...]) -> Product | None:
    """The product that an equation writes; one free axis of each side is its rows, the others are taken as a batch."""
    equation = graph.record.ops[index].argument(0, "equation")
    if not isinstance(equation, str) or "->" not in equation:
        return None
    inputs, _, result = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != 2:
        return None
    terms = [_written_out(term, tensor.dim()) for term, tensor in zip(terms, given, strict=True)]
    result = _written_out(result, out.dim())
    contracted = [letter for letter in terms[0] if letter in terms[1] and letter not in result]
    lost = any(letter not in result and letter not in contracted for term in terms for letter in term)
    if len(contracted) != 1:
        return None
    free = [
        [letter for letter in result if letter in term and letter not in other] for term, other in (terms, terms[::-1])
    ]
    if not all(free):
        return None
    sizes = {
        letter: n
        for term, tensor in zip(terms, given, strict=True)
        for letter, n in zip(term, tensor.shape, strict=True)
    }
    row, column = (_row(letters, sizes, lengths) for letters in free)
    batch = [letter for letter in result if letter not in (row, column)]
    turned = []
    for term, tensor, own in zip(terms, given, (row, column), strict=True):
        extra = [letter for letter in term if letter not in (*batch, own, contracted[0])]
        if extra:
            tensor = tensor.sum([term.index(letter) for letter in extra])  # noqa: PLW2901
            term = "".join(letter for letter in term if letter not in extra)  # noqa: PLW2901
        ordered = [letter for letter in (*batch, own, contracted[0]) if letter in term]
        moved = tensor.permute([term.index(letter) for letter in ordered])
        for place, letter in enumerate(batch):
            moved = moved if letter in term else moved.unsqueeze(place)
        turned.append(moved)
    places = [result.index(letter) - len(result) for letter in (row, column)]
    return Product(index, turned[0], turned[1], out, places[0], places[1], (given[0], given[1]), lost)


def _row(letters: list[str], sizes: Mapping[str, int], lengths: tuple[int, ...]) -> str:
    """Which of the free axes has the positions: the one whose size is a length, else the last."""
    fits = [letter for letter in letters if sizes[letter] in lengths]
    return fits[-1] if fits else letters[-1]


def _written_out(term: str, dims: int) -> str:
    """The term with letters for what "..." stands for."""
    missing = dims - len(term.replace("...", ""))
    return term.replace("...", "ABCDEFGH"[8 - missing :]) if "..." in term else term
