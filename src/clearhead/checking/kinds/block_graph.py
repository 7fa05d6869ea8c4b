"""What came from what in a forward: every operation with the operations that its inputs came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clearhead.checking.kinds.block_ops import LINEAR
from clearhead.checking.watch import WithArguments, _line


@dataclass(eq=False)
class Node(WithArguments):
    """A tensor as one operation gave it.

    Args:
        index: its place in the order of operations.
        name: of the operation; "constant" for a parameter, buffer or anything made before.
        arguments: positional arguments, a `Node` in place of each tensor.
        keywords: keyword arguments, the same way.
        parents: the nodes among all arguments.
        value: a copy, as it was then.
        live: the tensor itself; code that works in place may have changed it since.
        origins: which of the watched inputs it depends on.
        where: the line that asked for it.
        module: the innermost module that was running.
    """

    index: int
    name: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    parents: tuple[Node, ...]
    value: Tensor
    live: Tensor
    origins: frozenset[str]
    where: str = ""
    module: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of its value."""
        return tuple(self.value.shape)


@dataclass
class Entered:
    """One run of a module: what it was given and what it gave.

    Args:
        module: its name, "" for the target itself.
        inputs: the nodes among its arguments.
        start: how many nodes there were before it ran.
        stop: how many there were after it.
        outputs: the nodes that it gave.
    """

    module: str
    inputs: tuple[Node, ...]
    start: int
    stop: int = 0
    outputs: tuple[Node, ...] = ()


def _projected(node: Node) -> bool:
    """Whether a value is a product with a constant matrix, but for types, views and factors, that has fewer features than it reads.

    Where it has as many they are queries or keys: linear attention has a softmax over the features of each.
    """
    while len(given := [p for p in node.parents if p.origins]) == 1:
        node = given[0]
        if node.name in LINEAR:
            read = [p for p in node.parents if p.origins]
            return len(read) == 1 and node.shape[-1] < read[0].shape[-1]
    return False


@dataclass
class Graph:
    """All that ran in one call, in order."""

    nodes: list[Node] = field(default_factory=list)
    runs: list[Entered] = field(default_factory=list)
    result: Any = None
    known: dict[int, Node] = field(default_factory=dict)

    def node(self, tensor: Tensor) -> Node:
        """The node of a tensor as it is now; a constant if no operation gave it."""
        found = self.known.get(id(tensor))
        return found if found is not None else self.add("constant", (), {}, (), tensor)

    def add(
        self, name: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any], parents: tuple[Node, ...], out: Tensor
    ) -> Node:
        """Note what an operation gave."""
        origins = frozenset(o for parent in parents for o in parent.origins)
        node = Node(len(self.nodes), name, arguments, keywords, parents, _copy(out), out, origins)
        self.nodes.append(node)
        self.known[id(out)] = node
        return node

    def origin(self, name: str, tensor: Tensor) -> Node:
        """Note an input whose influence is followed."""
        node = self.add("input", (), {}, (), tensor)
        node.origins = frozenset({name})
        return node

    def replaced(self, value: Any) -> Any:
        """The value with nodes in place of tensors."""
        if isinstance(value, Tensor):
            return self.node(value)
        if isinstance(value, tuple | list):
            return tuple(self.replaced(item) for item in value)
        return value

    def keys(self, length: int) -> set[int]:
        """How many keys are seen by as many queries: the widths of all softmaxes but those of shares that a projection gives to a few things."""
        looks = [n for n in self.nodes if n.name == "softmax" and n.value.dim() > 2 and n.shape[-2] == length]
        return {node.shape[-1] for node in looks if not _projected(node)}

    def ancestors(self, node: Node) -> set[Node]:
        """Everything that it came from, itself included."""
        seen, todo = {node}, [node]
        while todo:
            for parent in todo.pop().parents:
                if parent not in seen:
                    seen.add(parent)
                    todo.append(parent)
        return seen


def graphed(module: Any, inputs: Mapping[str, Tensor], call: Callable[[], Any]) -> Graph:
    """Run `call` and note what came from what.

    Args:
        module: whose inner modules are told apart.
        inputs: by name, the tensors whose influence is followed; `call` gives them to the module.
        call: runs the code under check.
    """
    graph = Graph()
    for name, tensor in inputs.items():
        graph.origin(name, tensor)
    with _entered(module, graph) as running, _Follow(graph, running):
        graph.result = call()
    return graph


class _Follow(TorchFunctionMode):
    """Notes each function as it is called."""

    def __init__(self, graph: Graph, running: list[str]) -> None:
        super().__init__()
        self.graph, self.running = graph, running

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords = kwargs or {}
        name = str(getattr(func, "__name__", func))
        if name in ("__get__", "__set__"):
            name = str(getattr(getattr(func, "__self__", None), "__name__", name))
            result = func(*args, **keywords)
            if not isinstance(result, Tensor) or name == "grad":
                return result
            self._noted(name, self.graph.replaced(args), {}, result)
            return result
        given = self.graph.replaced(args)
        named = {key: self.graph.replaced(value) for key, value in keywords.items()}
        result = func(*args, **keywords)
        changed = args[0] if name == "__setitem__" else result
        self._noted(name, given, named, changed)
        first = args[0] if args else None
        in_place = name == "__setitem__" or (isinstance(result, Tensor) and result is first)
        if in_place and isinstance(first, Tensor) and first._base is not None:
            self._noted("changed", (self.graph.node(first._base), self.graph.node(first)), {}, first._base)
        return result

    def _noted(self, name: str, given: Any, named: Mapping[str, Any], result: Any) -> None:
        parents = tuple(_nodes((given, tuple(named.values()))))
        for out in _tensors(result):
            node = self.graph.add(name, tuple(given), named, parents, out)
            node.where, node.module = _line(), self.running[-1] if self.running else ""


@contextmanager
def _entered(module: Any, graph: Graph) -> Iterator[list[str]]:
    """Which modules run, innermost last; what each is given and gives is noted."""
    running: list[str] = []
    handles: list[Any] = []
    open_runs: list[Entered] = []

    def hook(inner: nn.Module, name: str) -> None:
        def enter(_: nn.Module, args: Any, keywords: Any) -> None:
            running.append(name)
            inputs = tuple(graph.node(t) for t in _tensors((args, keywords)))
            open_runs.append(Entered(name, inputs, len(graph.nodes)))

        def leave(_: nn.Module, _args: Any, _keywords: Any, output: Any) -> None:
            running.pop()
            run = open_runs.pop()
            run.stop = len(graph.nodes)
            run.outputs = tuple(graph.node(t) for t in _tensors(output))
            graph.runs.append(run)

        handles.append(inner.register_forward_pre_hook(enter, with_kwargs=True))
        handles.append(inner.register_forward_hook(leave, with_kwargs=True))

    for name, inner in module.named_modules() if isinstance(module, nn.Module) else ():
        hook(inner, name)
    try:
        yield running
    finally:
        for handle in handles:
            handle.remove()


def _copy(value: Tensor) -> Tensor:
    with torch._C.DisableTorchFunction():
        return value.detach().clone()


def _tensors(value: Any, depth: int = 0) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists, dictionaries and objects."""
    if isinstance(value, Tensor):
        yield value
    elif depth < 4:
        inner = value if isinstance(value, tuple | list | Mapping) else getattr(value, "__dict__", ())
        for item in inner.values() if isinstance(inner, Mapping) else inner:
            yield from _tensors(item, depth + 1)


def _nodes(value: Any) -> Iterator[Node]:
    """The nodes in nested tuples."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)
