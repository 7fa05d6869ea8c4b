"""The norms of a block: where they stand, over what they average, and the one at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch import nn

from clearhead.checking.kinds.block_claims import norm_first, say_place, texts_of
from clearhead.checking.kinds.block_graph import Node
from clearhead.checking.kinds.block_words import place, text_of
from clearhead.checking.kinds.branches import Chain, Value
from clearhead.checking.kinds.feedforward_found import reach
from clearhead.checking.kinds.residuals import SEVERAL, ends_normed, reads_norm
from clearhead.checking.report import Fault
from clearhead.checking.target import Target
from clearhead.messages import say

WHOLE = frozenset({"batch_norm", "instance_norm", "group_norm"})
"""Norms that average over more than the features by their very name."""

TIMING = r"universal|timing|time.?step|coordinate|conditional position|\bcpe\b|\bpeg\b"
"""Words of architectures that add positions at each step."""


def norms_of(chain: Chain) -> list[tuple[Node, Node]]:
    """(what is normalised, the norm) of each norm of the stream, and of what branches give back."""
    reader = chain.reader
    found: dict[Node, Node] = {}
    for value in chain.values:
        for term in value.terms:
            normed = reader.normed(term)
            if normed is not None:
                found[term] = normed
        for branch in value.branches:
            for node in branch.inside:
                normed = reader.normed(node)
                if normed is not None and node.value.dim() == 3:
                    found[node] = normed
    return [(normed, node) for node, normed in found.items()]


def axis_faults(chain: Chain, prefix: str) -> Iterator[Fault]:
    """The fault of a norm that averages over positions or rows."""
    for normed, node in norms_of(chain):
        if node.name in WHOLE:
            continue
        seen = reach(_first(chain, normed), node, chain.reader.length)
        if seen is None or not (seen[0] or seen[1]):
            continue
        over = say("block.positions", moved=", ".join(map(str, seen[0]))) if seen[0] else say("block.rows")
        evidence = say("block.norm_axis", over=over)
        module = node.module if node.module else prefix
        yield Fault("norm.axis", "consistent", evidence, place(node, module), say("block.fix_norm_axis"), None)
        return


def blind(chain: Chain) -> bool:
    """Whether no gradient shows over what some norm averages, as where tensors are changed in place."""
    length = chain.reader.length
    return any(n.name not in WHOLE and reach(_first(chain, given), n, length) is None for given, n in norms_of(chain))


def _first(chain: Chain, node: Node) -> Node:
    """The stream before its mean was taken off."""
    terms = [t for t in chain.reader.terms(node) if t.value.numel() == node.value.numel()]
    return terms[0] if len(terms) == 1 and chain.reader.depends(terms[0]) else _whole(chain, node)


def _whole(chain: Chain, node: Node) -> Node:
    """The operand of a difference that is no statistic."""
    if node.name in ("sub", "__sub__") and isinstance(node.argument(0, "input"), Node):
        first = node.argument(0, "input")
        if isinstance(first, Node) and first.value.numel() == node.value.numel():
            return first
    return node


def placement(chain: Chain, *, whole: bool = False) -> set[str]:
    """Where the norms stand: "pre" if a branch reads a norm beside an untouched skip, "post" if the sum is normalised.

    Args:
        chain: of a block, or of a whole stack.
        whole: whether the last norm is one of the stack, not of a block.
    """
    reader, found = chain.reader, set[str]()
    for value in chain.merges():
        normed = [n for skip in value.skips if (n := reader.normed(skip)) is not None]
        if any(chain.content(n) for n in normed):
            found.add("post")
        raw = any(skip in reader.begins for skip in value.skips)
        if raw and any(
            reads_norm(chain, branch) and not _reads_skip(chain, branch, value) for branch in value.branches
        ):
            found.add("pre")
    if not whole and "pre" not in found and _sum_normed(chain):
        found.add("post")
    return found


def _sum_normed(chain: Chain) -> bool:
    """Whether the end is a norm of a sum, and a branch of it reads the very skip with no norm of its own before or behind what it does."""
    if not ends_normed(chain):
        return False
    reader = chain.reader
    normed = [n for term in reader.terms(chain.end) if (n := reader.normed(term)) is not None]
    merges = [value for value in chain.merges() if any(set(value.terms) == set(reader.terms(n)) for n in normed)]
    plain = [
        branch
        for value in merges
        for branch in value.branches
        if _reads_skip(chain, branch, value)
        and not any(n.shape[-3:] == branch.out.shape[-3:] and reader.normed(n) is not None for n in branch.inside)
    ]
    return bool(plain)


def _reads_skip(chain: Chain, branch: object, value: Value) -> bool:
    """Whether a branch reads the very skip of its sum, as in a post-norm block."""
    sources = getattr(branch, "sources", ())
    return any(skip in chain.reader.terms(source) for source in sources for skip in value.skips)


def _mixed(chain: Chain) -> bool:
    """Whether, of one attention and one feed-forward, one reads a norm beside a skip that has none, and the other the stream itself, which is normalised after the sum."""
    reader, kinds, known = chain.reader, list[tuple[str, bool]](), set[Node]()
    normed = [n for value in chain.values for term in value.terms if (n := reader.normed(term)) is not None]
    for value in chain.merges():
        for branch in (b for b in value.branches if b.out not in known):
            known.add(branch.out)
            own = _reads_skip(chain, branch, value)
            summed = any(skip in reader.begins for skip in value.skips) and any(
                set(reader.terms(n)) == set(value.terms) for n in normed
            )
            kind = "pre" if reads_norm(chain, branch) and not own else "post" if own and summed else ""
            kinds.append((kind, branch.attends))
    return {kind for kind, _ in kinds} == {"pre", "post"} and sorted(attends for _, attends in kinds) == [False, True]


def _left_out(target: Target, prefix: str) -> bool:
    """Whether an identity stands in the place of a norm: its author left it out, as after embeddings that are normalised."""
    made = target.sample
    named = made.named_modules() if isinstance(made, nn.Module) else []
    return any(
        isinstance(m, nn.Identity) and name.startswith(prefix) and re.search(r"norm|(^|\.)ln", name) is not None
        for name, m in named
    )


def placement_fault(chain: Chain, target: Target, prefix: str) -> Iterator[Fault]:
    """The fault of norms that stand elsewhere than the code claims."""
    claimed = norm_first(target)
    found = placement(chain)
    meant = _left_out(target, prefix) or re.search(SEVERAL, texts_of(target), re.IGNORECASE) is not None
    if claimed is None and not meant and _mixed(chain):
        evidence = say("block.mixed", equation=text_of(chain, chain.end))
        yield Fault("norm.placement", "consistent", evidence, place(chain.end, prefix), say("block.fix_mixed"), None)
        return
    if claimed is None or not found or _mixes_streams(target):
        return
    wrong = "post" if claimed else "pre"
    if wrong not in found or ("post" in found and not claimed):
        return
    names = {True: say("block.pre"), False: say("block.post")}
    evidence = say(
        "block.placement",
        name=say_place(target),
        claimed=names[claimed],
        found=names[not claimed],
        equation=text_of(chain, chain.end),
    )
    fix = say("block.fix_pre") if claimed else say("block.fix_post")
    yield Fault("norm.placement", "consistent", evidence, place(chain.end, prefix), fix, None)


def _mixes_streams(target: Target) -> bool:
    """Whether a part that is there mixes several streams before and after each sublayer: no single stream has a norm before or behind it."""
    made = target.sample
    parts = made.modules() if isinstance(made, nn.Module) else ()
    return any(re.search(r"hyper.?conn", type(part).__name__, re.IGNORECASE) is not None for part in parts)


def final_fault(chain: Chain, out: Node, spare: list[str]) -> Iterator[Fault]:
    """The fault of a pre-norm stack whose last sum nothing normalises.

    Args:
        chain: of the last block, or of the whole stack.
        out: what the whole code gives.
        spare: norms that nothing calls.
    """
    if placement(chain, whole=True) != {"pre"} or ends_normed(chain):
        return
    if any(_normalises(chain, n) for n in between(chain.end, out)):
        return
    unused = say("block.spare", names=", ".join(spare)) if spare else ""
    evidence = say("block.final", equation=text_of(chain, chain.end), unused=unused)
    yield Fault("norm.final-missing", "consistent", evidence, place(chain.end), say("block.fix_final"), None)


def between(start: Node, out: Node) -> set[Node]:
    """Everything between two nodes, the last included."""
    seen, todo = set[Node](), [out]
    while todo:
        node = todo.pop()
        if node in seen or node is start or node.index < start.index:
            continue
        seen.add(node)
        todo += node.parents
    return seen


def _normalises(chain: Chain, node: Node) -> bool:
    return chain.reader.normed(node) is not None


def tables_in(chain: Chain) -> list[Node]:
    """The tables of positions that are added to the stream itself, not only to what a branch reads."""
    reader = chain.reader
    values = {value.node: value for value in chain.values}
    todo, seen, found = [chain.end], set[Node](), list[Node]()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        value = values.get(node) or chain._value(node)
        found += [table for table in value.tables for _ in value.terms[table]]
        todo += [n for skip in value.skips if (n := reader.normed(skip)) is not None]
    return found


def timed(target: Target) -> bool:
    """Whether the code says that positions are added at each step."""
    return re.search(TIMING, texts_of(target), re.IGNORECASE) is not None
