"""Finding the blocks in a watched forward, and asking each of them everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.kinds import block_norms, feedforward_found, residuals
from clearhead.checking.kinds.block_claims import activation_claim, norm_first
from clearhead.checking.kinds.block_dead import dead_faults
from clearhead.checking.kinds.block_graph import Entered, Graph, Node
from clearhead.checking.kinds.block_ops import ADDED
from clearhead.checking.kinds.block_terms import Reader
from clearhead.checking.kinds.block_words import place
from clearhead.checking.kinds.branches import Chain, after, bends, scoring, weighted
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.target import Target
from clearhead.messages import say

RESIDUAL = ("residual.missing", "residual.doubled", "residual.from-norm", "residual.stale", "residual.scale")
FORWARD = ("activation.missing", "feedforward.mixes-positions", "activation.variant")


@dataclass(frozen=True)
class Block:
    """A block that ran.

    Args:
        module: its name, "" for the target itself.
        chain: its stream.
    """

    module: str
    chain: Chain


@dataclass(frozen=True)
class Watched:
    """A forward that was followed.

    Args:
        graph: what came from what.
        out: the stream as the code gave it.
        stream: the inputs that are the stream, by name.
        length: T.
        keys: the lengths of the stream and of a memory.
        embeds: whether ids came in.
    """

    graph: Graph
    out: Node
    stream: frozenset[str]
    length: int
    keys: frozenset[int]
    embeds: bool


def blocks_in(seen: Watched, module: Any, *, whole: bool) -> list[Block]:
    """The blocks of a forward: inner modules with attention and a feed-forward; without such, all as one.

    Args:
        seen: the forward.
        module: the target.
        whole: whether the target itself is one block, so that none is looked for inside.
    """
    if not whole and isinstance(module, nn.Module):
        runs = _candidates(seen)
        minimal = [r for r in runs if not any(_within(o, r) for o in runs if o is not r)]
        found = [Block(run.module, chain) for run in minimal if (chain := _chain_of(seen, run)) is not None]
        if found:
            return found
    chain = _whole(seen)
    return [Block("", chain)] if chain is not None else []


def _within(inner: Entered, outer: Entered) -> bool:
    return outer.start <= inner.start and inner.stop <= outer.stop and len(inner.module) > len(outer.module)


def _candidates(seen: Watched) -> list[Entered]:
    reader = Reader([], _all(seen), seen.length)
    nodes = seen.graph.nodes
    out = []
    for run in seen.graph.runs:
        inside = nodes[run.start : run.stop]
        scores = [n for n in inside if scoring(n, reader, seen.keys)] if run.module else []
        if not scores:
            continue
        looked = frozenset(n for score in scores for n in (score, *after(inside, score)))
        bent = [n for n in inside if _bending(n, reader, seen.keys)]
        if any(_feeds(inside, n, reader, frozenset(scores), looked) for n in bent):
            out.append(run)
    return out


def _bending(node: Node, reader: Reader, keys: frozenset[int]) -> bool:
    """Whether an operation bends features: none of scores, and none of a norm."""
    if node.name in ("softmax", "exp") or node.value.dim() < 2 or node.shape[-1] == 1 or not bends(node, reader):
        return False
    return reader.normed(node) is None and not scoring(node, reader, keys)


def _feeds(inside: list[Node], bend: Node, reader: Reader, scores: frozenset[Node], looked: frozenset[Node]) -> bool:
    """Whether a function stands between two products with matrices and is no part of attention: a feed-forward.

    What bends queries, keys, values or scores leads to another look of positions at each other; what gates the result of
    attention meets it before the next matrix. `scores` are the looks of a run, `looked` what comes of them.
    """
    later = after(inside, bend)
    if later & scores:
        return False
    before = [p for p in _near(bend, reader) if weighted(p, reader)]
    beyond = [n for n in later if weighted(n, reader) and _leads(bend, n, reader)]
    if bend in looked:
        return bool(beyond) and any(p in looked for p in before)
    return bool(before) and any(not any(p in looked for p in n.parents) for n in beyond)


def _leads(bend: Node, matrix: Node, reader: Reader) -> bool:
    """Whether a function's result comes to a matrix without another matrix between."""
    return any(p is bend for p in _near(matrix, reader))


def _near(node: Node, reader: Reader) -> Iterator[Node]:
    """The operations shortly before one."""
    todo = [(node, 0)]
    while todo:
        each, depth = todo.pop()
        for parent in each.parents:
            if reader.depends(parent) and depth < 6:
                yield parent
                if not weighted(parent, reader):
                    todo.append((parent, depth + 1))


def _all(seen: Watched) -> frozenset[str]:
    return frozenset(o for node in seen.graph.nodes for o in node.origins)


def _chain_of(seen: Watched, run: Entered) -> Chain | None:
    """The chain of an inner block; None if it cannot be told which of its inputs is the stream."""
    size = seen.out.value.numel()
    reader = Reader([], seen.stream, seen.length)
    inputs = [n for n in run.inputs if reader.depends(n) and n.value.is_floating_point() and n.value.dim() == 3]
    outputs = [n for n in run.outputs if reader.depends(n) and n.value.dim() == 3]
    if not inputs or not outputs or outputs[0].value.numel() < size / 4:
        return None
    begins = [n for n in dict.fromkeys(inputs) if n.shape == outputs[0].shape][:1]
    return Chain(Reader(begins, _all(seen), seen.length), outputs[0], seen.keys, run.start) if begins else None


def _whole(seen: Watched) -> Chain | None:
    """The chain of the whole code; its beginning is its input, or what an embedding or a first projection makes of it."""
    nodes, everything = seen.graph.nodes, _all(seen)
    starts: list[list[Node]] = [[n for n in nodes if n.name == "input" and n.origins & seen.stream]]
    if seen.embeds:
        starts = [[n for n in nodes if n.origins & seen.stream and _first(n)]]
    reader = Reader(starts[0], everything, seen.length)
    first = next((n for n in nodes if scoring(n, reader, seen.keys)), None)
    if first is not None and not seen.embeds:
        before = seen.graph.ancestors(first)
        rows = [n for n in nodes if n in before and weighted(n, reader) and n.value.numel() == seen.out.value.numel()]
        starts += [[n] for n in reversed(rows)]
    chains = [_ended(seen, Reader(begins, everything, seen.length)) for begins in starts if begins]
    for chain in chains:
        if chain.reader.stream(chain.end) and chain.merges():
            return chain
    return chains[0] if chains else None


def _first(node: Node) -> bool:
    """Whether a node turns ids into vectors: it is the first of real numbers."""
    fed = [p for p in node.parents if p.origins]
    return (
        node.value.dim() == 3 and node.value.is_floating_point() and not any(p.value.is_floating_point() for p in fed)
    )


def _ended(seen: Watched, reader: Reader) -> Chain:
    """The chain, up to the last value of the stream before a head."""
    chain = Chain(reader, seen.out, seen.keys)
    if reader.stream(seen.out):
        return chain
    tail = chain.branch(seen.out)
    if not tail.attends and tail.sources and sum(weighted(n, reader) for n in tail.inside) < 2:
        return Chain(reader, max(tail.sources, key=lambda n: n.index), seen.keys)
    return chain


def asked_of(blocks: list[Block], target: Target, seen: Watched, *, several: bool) -> Found:
    """What is asked of each block: residuals, norms, feed-forward; each fault once.

    Args:
        blocks: that were found.
        target: the code.
        seen: the forward.
        several: whether the target is a stack, so that faults name their block.
    """
    faults: list[Fault] = []
    for block in blocks:
        prefix = block.module if several else ""
        embeds = several and not block.module
        faults += residuals.faults_of(block.chain, target, prefix, embeds)
        faults += block_norms.axis_faults(block.chain, prefix)
        faults += block_norms.placement_fault(block.chain, target, prefix)
        faults += feedforward_found.faults_of(block.chain, target, prefix)
        faults += feedforward_found.variant(block.chain, target, prefix)
        faults += dead_faults(block.chain, prefix)
    faults += _tables(blocks, target, seen, several)
    return Found(tuple(_checks(blocks, target, faults)), tuple({f.id: f for f in reversed(faults)}.values()))


def _tables(blocks: list[Block], target: Target, seen: Watched, several: bool) -> Iterator[Fault]:
    """The fault of positions that are added in each block, or again between blocks."""
    if block_norms.timed(target):
        return
    chain = _whole(seen) if several and any(block.module for block in blocks) else None
    sums = _sums_with(chain, seen) if chain is not None else []
    if len(sums) >= 2:
        evidence = say("block.tables", count=len(sums))
        yield Fault("position.every-block", "consistent", evidence, place(sums[1]), say("block.fix_tables"), None)
        return
    found = [(block, block_norms.tables_in(block.chain)) for block in blocks]
    having = [(block, tables) for block, tables in found if tables]
    if not having:
        return
    block, tables = having[-1]
    whole = several and not block.module
    again = len(_alike(tables)) >= 2 if whole else len(having) >= 2 or not several
    if again:
        count = len(_alike(tables)) if whole else len(having)
        evidence = say("block.tables", count=count)
        where = place(tables[-1], block.module)
        yield Fault("position.every-block", "consistent", evidence, where, say("block.fix_tables"), None)


def _sums_with(chain: Chain, seen: Watched) -> list[Node]:
    """The sums of the stream and one table: a table that comes by several ways, as through x + s * (f(x) - x), was added once."""
    reader, tables = chain.reader, set(_alike(block_norms.tables_in(chain)))

    def adds(node: Node) -> bool:
        apart = [p for p in node.parents if not reader.depends(p)]
        return any(tables & set(reader.terms(p)) for p in apart) and any(reader.stream(p) for p in node.parents)

    return [n for n in seen.graph.nodes if n.name in ADDED and adds(n)] if tables else []


def _alike(tables: list[Node]) -> list[Node]:
    """The tables that have the values of the first."""

    def same(one: Tensor, other: Tensor) -> bool:
        return one.shape[-2:] == other.shape[-2:] and bool(torch.allclose(one, other))

    return max(([t for t in tables if same(t.value, first.value)] for first in tables), key=len, default=[])


def _checks(blocks: list[Block], target: Target, faults: list[Fault]) -> Iterator[Check]:
    """A verdict for each question."""
    failed = {fault.id: fault for fault in faults}
    merged = sum(len(block.chain.merges()) for block in blocks)
    fed = sum(len(feedforward_found.feed_forwards(block.chain)) for block in blocks)
    norms = sum(len(block_norms.norms_of(block.chain)) for block in blocks)
    reasons = {name: "" if merged else say("block.no_merge") for name in RESIDUAL}
    reasons |= {name: "" if fed else say("block.no_feed_forward") for name in FORWARD}
    reasons["norm.axis"] = reasons["norm.placement"] = "" if norms else say("block.no_norm")
    reasons["position.every-block"] = "" if merged else say("block.no_merge")
    if fed and any(feedforward_found.blind(block.chain) for block in blocks):
        reasons["feedforward.mixes-positions"] = say("block.blind")
    if norms and any(block_norms.blind(block.chain) for block in blocks):
        reasons["norm.axis"] = say("block.blind")
    if activation_claim(target) is None:
        reasons["activation.variant"] = say("block.no_claim")
    if norm_first(target) is None:
        reasons["norm.placement"] = say("block.no_claim")
    seen = say("block.read", blocks=len(blocks), merges=merged, feed_forwards=fed, norms=norms)
    if "weights.dead-units" in failed:
        reasons["weights.dead-units"] = ""
    for name, reason in reasons.items():
        if name in failed:
            yield Check(name, "fail", failed[name].evidence, failed[name].effect or 0.0)
        else:
            yield Check(name, "skipped" if reason else "pass", reason or seen)
