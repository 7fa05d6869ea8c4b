"""The branches of a block: what leaves the stream, what it contains, and where it comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from clearhead.checking.kinds.block_graph import Node
from clearhead.checking.kinds.block_ops import ADDED, BENDS, FUSED, JOINING, LINEAR, PARTING, TAKEN
from clearhead.checking.kinds.block_terms import Reader, Terms


@dataclass(frozen=True, eq=False)
class Branch:
    """What leaves the stream and comes back.

    Args:
        out: the term with which it comes back.
        sources: the stream as it reads it.
        inside: all operations between.
        scores: those inside in which positions look at each other.
    """

    out: Node
    sources: tuple[Node, ...]
    inside: frozenset[Node]
    scores: tuple[Node, ...]

    @property
    def attends(self) -> bool:
        """Whether positions look at each other in it."""
        return bool(self.scores)


@dataclass
class Value:
    """The stream at one place.

    Args:
        node: the tensor.
        terms: it as a sum.
        skips: the terms that are the stream itself: its beginning, or a norm of it.
        branches: those that are added to it.
        tables: constants with a row for each position that are added to it.
    """

    node: Node
    terms: Terms
    skips: tuple[Node, ...] = ()
    branches: tuple[Branch, ...] = ()
    tables: tuple[Node, ...] = ()


@dataclass
class Chain:
    """The stream from its end back to its beginning.

    Args:
        reader: how tensors are read as sums.
        end: the last value.
        keys: the lengths of the stream and of a memory: sizes of scores.
        start: operations before this one belong to other parts, as those of an encoder whose memory is read.
    """

    reader: Reader
    end: Node
    keys: frozenset[int]
    start: int = 0
    values: list[Value] = field(default_factory=list)
    _branches: dict[Node, Branch] = field(default_factory=dict)
    _content: dict[Node, frozenset[Node]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        todo, seen = [self.end], set[Node]()
        while todo:
            node = todo.pop()
            key = self._key(node)
            if key in seen:
                continue
            seen.add(key)
            value = self._value(node)
            self.values.append(value)
            todo += [normed for skip in value.skips if (normed := self.reader.normed(skip)) is not None]
            todo += [source for branch in value.branches for source in branch.sources]
        self.values.sort(key=lambda value: value.node.index)

    def _key(self, node: Node) -> Node:
        """One node for all that have the same single term."""
        terms = self.reader.terms(node)
        (only, ways), *rest = [*terms.items()] or [(node, ())]
        return only if not rest and len(ways) == 1 and ways[0].scale == 1 else node

    def _value(self, node: Node) -> Value:
        reader, terms = self.reader, self.reader.terms(node)
        whole = [
            t for t in terms if not reader.depends(t) or t.value.numel() >= node.value.numel() or t in reader.begins
        ]
        skips = [t for t in whole if reader.depends(t) and reader.stream(t)]
        others = [t for t in whole if reader.depends(t) and t not in skips]
        tables = [t for t in whole if not reader.depends(t)]
        return Value(node, terms, tuple(skips), tuple(map(self.branch, others)), tuple(tables))

    def branch(self, out: Node) -> Branch:
        """The branch that ends at a term."""
        known = self._branches.get(out)
        if known is None:
            sources, inside, todo = set[Node](), set[Node](), [out]
            while todo:
                node = todo.pop()
                if node in inside:
                    continue
                inside.add(node)
                for parent in node.parents:
                    if not self.reader.depends(parent):
                        continue
                    if self.reader.stream(parent) and not self._spread(parent):
                        sources.add(parent)
                    elif parent.index >= self.start:
                        todo.append(parent)
            scores = sorted((n for n in inside if scoring(n, self.reader, self.keys)), key=lambda n: n.index)
            known = Branch(out, tuple(sorted(sources, key=lambda n: n.index)), frozenset(inside), tuple(scores))
            self._branches[out] = known
        return known

    def _spread(self, node: Node) -> bool:
        """Whether a value has a statistic or one row spread over it, so that it is no plain stream."""
        terms = self.reader.terms(node)
        return any(self.reader.depends(t) and t.value.numel() < node.value.numel() for t in terms)

    def content(self, node: Node) -> frozenset[Node]:
        """The branches that a value of the stream has in it, through norms."""
        key = self._key(node)
        known = self._content.get(key)
        if known is None:
            self._content[key] = frozenset()
            value = self._value(node)
            found = {branch.out for branch in value.branches}
            for skip in value.skips:
                normed = self.reader.normed(skip)
                through = [normed] if normed is not None else [p for p in skip.parents if self.reader.stream(p)]
                for inner in through if skip not in self.reader.begins else ():
                    found |= self.content(inner)
            known = frozenset(found)
            self._content[key] = known
        return known

    def merges(self) -> list[Value]:
        """The values at which a branch comes back to the stream."""
        return [value for value in self.values if value.skips and value.branches]


def scoring(node: Node, reader: Reader, keys: frozenset[int]) -> bool:
    """Whether positions look at each other in an operation; `keys` are the lengths of the stream and of a memory."""
    if node.name in FUSED:
        return True
    if node.name not in LINEAR or sum(reader.depends(p) for p in node.parents) < 2:
        return False
    return node.value.dim() >= 2 and sum(size in keys for size in node.shape[-3:]) >= 2


def weighted(node: Node, reader: Reader) -> bool:
    """Whether an operation is a product with a constant matrix."""
    return node.name in LINEAR and sum(reader.depends(p) for p in node.parents) == 1 and len(node.parents) >= 2


def bends(node: Node, reader: Reader) -> bool:
    """Whether an operation is no linear map of what depends on the input."""
    if node.name in BENDS:
        return any(reader.depends(p) for p in node.parents)
    several = sum(reader.depends(p) for p in node.parents) >= 2
    return several and node.name not in LINEAR | ADDED | TAKEN | JOINING


def after(inside: Iterable[Node], start: Node) -> set[Node]:
    """Those that come from `start`, within a branch."""
    ordered = sorted(inside, key=lambda n: n.index)
    found = {start}
    for node in ordered:
        if any(parent in found for parent in node.parents):
            found.add(node)
    return found - {start}


def in_parts(chain: Chain) -> bool:
    """Whether the stream runs in parts side by side, each with a skip of its own: halves of its features, as in reversible blocks, or pieces of the text."""
    reader, end = chain.reader, chain.end
    # A head, and the norm before it, may read what was joined.
    while end.name not in JOINING and len(read := [p for p in end.parents if reader.depends(p)]) == 1:
        end = read[0]
    parts = list(_joined(end, reader))
    return len(parts) >= 2 and all(
        any(t.name in PARTING and any(reader.stream(p) for p in t.parents) for t in reader.terms(part))
        and len(reader.terms(part)) >= 2
        for part in parts
    )


def _joined(node: Node, reader: Reader) -> Iterator[Node]:
    """What was joined, one after the other or at once; nothing if nothing was."""
    for part in node.parents if node.name in JOINING else ():
        if reader.depends(part) and part.value.numel():
            inner = list(_joined(part, reader))
            yield from inner or [part]
