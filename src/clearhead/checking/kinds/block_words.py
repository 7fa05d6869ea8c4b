"""The stream in words: as equations, with the line in which it was made."""

from __future__ import annotations

from clearhead.checking.kinds.block_graph import Node
from clearhead.checking.kinds.branches import Branch, Chain, Value


def text_of(chain: Chain, node: Node, depth: int = 3) -> str:
    """A value of the stream as an equation: "x + A + F", "N(x + A)"."""
    parts = []
    value = next((v for v in chain.values if v.node is node), None) or chain._value(node)
    for term, ways in value.terms.items():
        name = term_name(chain, value, term, depth)
        for way in ways if name else ():
            factor = "" if way.stated or way.scale == 1 else f"{way.scale:.4g}·"
            parts.append(factor + name)
    return " + ".join(parts).replace("+ -", "- ") or "0"


def term_name(chain: Chain, value: Value, term: Node, depth: int) -> str:
    """A term of a value: x, N(...), A, F, P for positions; "" for what is none of these."""
    if term in chain.reader.begins:
        return "x"
    if term in value.tables:
        return "P"
    if term in value.skips:
        normed = chain.reader.normed(term)
        return f"N({text_of(chain, normed, depth - 1) if depth and normed is not None else '…'})"
    return next((branch_name(chain, branch) for branch in value.branches if branch.out is term), "")


def branch_name(chain: Chain, branch: Branch) -> str:
    """A for what attends, F for what does not, with a number from the second on."""
    known = sorted({b.out.index: b for v in chain.values for b in v.branches if b.attends == branch.attends}.items())
    number = next((i for i, (_, b) in enumerate(known) if b.out is branch.out), 0)
    return ("A" if branch.attends else "F") + (str(number + 1) if number else "")


def place(node: Node, prefix: str = "") -> str:
    """Where a node was made: the line, with the block before it if there are several."""
    module = prefix or ""
    return f"{module} ({node.where})" if module and node.where else node.where or module or node.module
