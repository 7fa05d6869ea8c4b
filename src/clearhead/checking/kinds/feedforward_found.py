"""The feed-forward of a block: what bends in it, and whether it stays with each position."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.checking.kinds.block_claims import activation_claim, texts_of
from clearhead.checking.kinds.block_graph import Node
from clearhead.checking.kinds.block_ops import ADDED, LINEAR, PASSING, TIMES
from clearhead.checking.kinds.block_words import branch_name, place
from clearhead.checking.kinds.branches import Branch, Chain, after, bends, weighted
from clearhead.checking.report import Fault
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target
from clearhead.messages import say

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu-squared": lambda x: F.relu(x).square(),
    "relu": F.relu,
    "gelu-erf": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu-quick": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "leaky-relu": F.leaky_relu,
    "elu": F.elu,
    "mish": F.mish,
    "softplus": F.softplus,
}
"""Functions of one number that feed-forwards bend with."""

MIXES = r"\bconv(1d|2d|olution\w*)?\b|nn\.Conv|mixer|(token|time)[-_ ]?shift|token[-_ ]?mix|gmlp|spatial|\baft\b|fourier|\bfft\b|neighbo"
"""Words of a feed-forward that is meant to look at neighbours."""

SIZED = 1e-3
"""How large an input must be, beside the largest, for two functions to be told apart."""


def feed_forwards(chain: Chain) -> list[Branch]:
    """The branches in which positions do not attend, and two products with constant matrices stand."""
    found = {b.out: b for v in chain.merges() for b in v.branches if not b.attends}
    return [
        b
        for b in found.values()
        if sum(weighted(n, chain.reader) for n in b.inside) >= 2 and not _called_attention(chain, b)
    ]


def _called_attention(chain: Chain, branch: Branch) -> bool:
    """Whether what runs in a branch is called an attention and multiplies what it reads with itself, though no scores are seen: a linear one."""
    pairs = [n for n in branch.inside if n.name in LINEAR and sum(chain.reader.depends(p) for p in n.parents) >= 2]
    return bool(pairs) and any(re.search("att(entio)?n", n.module, re.IGNORECASE) for n in branch.inside)


def faults_of(chain: Chain, target: Target, prefix: str) -> Iterator[Fault]:
    """The mistakes in the feed-forwards of a chain."""
    text = texts_of(target)
    for branch in feed_forwards(chain):
        straight = _straight(chain, branch, prefix) or _unbent(chain, branch, target, prefix)
        if straight is not None:
            yield straight
        # A convolution that is meant to look at neighbours must not look ahead where attention does not.
        meant = re.search(MIXES, text, re.IGNORECASE) is not None
        if not meant or causal(chain):
            yield from mixing(chain, branch, prefix, ahead=meant)


def _straight(chain: Chain, branch: Branch, prefix: str) -> Fault | None:
    """The fault of a feed-forward in which nothing bends; None if something may."""
    reader = chain.reader
    if _bending(chain, branch):
        return None
    matrices = sorted((n for n in branch.inside if weighted(n, reader)), key=lambda n: n.index)
    if max((n.shape[-1] for n in matrices[:-1]), default=0) < branch.out.shape[-1]:
        return None  # A matrix of low rank, in two factors.
    sizes = "→".join(str(n.shape[-1]) for n in matrices)
    evidence = say("block.straight", branch=branch_name(chain, branch), count=len(matrices), sizes=sizes)
    return Fault(
        "activation.missing", "reproduced", evidence, place(matrices[-1], prefix), say("block.fix_straight"), None
    )


def _bending(chain: Chain, branch: Branch) -> list[Node]:
    """What bends between two matrices of a branch: a norm before the first or after the last is none."""
    reader = chain.reader
    bent = [n for n in branch.inside if bends(n, reader) and reader.normed(n) is None]
    matrices = [n for n in branch.inside if weighted(n, reader)]
    fed = {n for matrix in matrices for n in after(branch.inside, matrix)}
    return [n for n in bent if n in fed and any(m in matrices for m in after(branch.inside, n))]


def _unbent(chain: Chain, branch: Branch, target: Target, prefix: str) -> Fault | None:
    """The fault of a gate without the function that the code claims: nothing but products of two matrices' results."""
    bent = _bending(chain, branch)
    claim = activation_claim(target, bent[0].module) if bent else None
    if claim is None or any(n.name not in TIMES for n in bent):
        return None
    if not all(_straight_to(chain, parent) for n in bent for parent in n.parents):
        return None
    evidence = say("block.unbent", claim=claim[1], claimed=claim[0], branch=branch_name(chain, branch))
    fix = say("block.fix_unbent", claimed=claim[0])
    return Fault("activation.missing", "reproduced", evidence, place(bent[0], prefix), fix, None)


def _straight_to(chain: Chain, node: Node) -> bool:
    """Whether a value is what a matrix gave, with nothing but a bias or a part taken of it since."""
    while not weighted(node, chain.reader):
        found = [p for p in node.parents if chain.reader.depends(p)]
        if len(found) != 1 or node.name not in ADDED | PASSING | {"chunk", "split", "unbind", "tensor_split"}:
            return False
        node = found[0]
    return True


def causal(chain: Chain) -> bool:
    """Whether each attention of a chain was seen to look back, and none ahead."""
    branches = {b.out: b for v in chain.merges() for b in v.branches if b.attends}.values()
    at = min(2, chain.reader.length - 1)
    looks = [[r for s in b.sources if (r := reach(s, b.out, chain.reader.length)) is not None] for b in branches]
    return bool(looks) and all(seen and all(others and max(others) < at for others, _ in seen) for seen in looks)


def blind(chain: Chain) -> bool:
    """Whether no gradient shows which positions some feed-forward reads, as where tensors are changed in place."""
    length = chain.reader.length
    return any(all(reach(s, b.out, length) is None for s in b.sources) for b in feed_forwards(chain))


def mixing(chain: Chain, branch: Branch, prefix: str, *, ahead: bool = False) -> Iterator[Fault]:
    """The fault of a branch whose output at a position depends on what other positions, or only later ones, give it."""
    at = min(2, chain.reader.length - 1)
    for source in branch.sources:
        found = reach(source, branch.out, chain.reader.length)
        if found is None:
            continue
        others = [other for other in found[0] if not ahead or other > at]
        if others:
            evidence = say("block.mixes", branch=branch_name(chain, branch), moved=", ".join(map(str, others)))
            yield Fault(
                "feedforward.mixes-positions",
                "consistent",
                evidence,
                place(branch.out, prefix),
                say("block.fix_mixes"),
                None,
            )
            return


def reach(source: Node, out: Node, length: int) -> tuple[list[int], bool] | None:
    """On which other positions of its row, and whether on other rows, the output at one position of the first row depends.

    None if that cannot be seen: no gradient runs from one to the other.
    """
    rows = next((size for size in source.shape if size != length), 0)
    axes = [_axes(node, rows, length) for node in (source, out)]
    changed = not all(torch.equal(node.value, node.live.detach()) for node in (source, out))
    if None in axes or changed or not out.live.requires_grad or not source.live.requires_grad:
        return None
    (row_axis, places), (out_rows, out_places) = (a for a in axes if a is not None)
    at = min(2, length - 1)
    weight = torch.zeros_like(out.value)
    drawn = torch.randn(out.value.shape, generator=torch.Generator().manual_seed(5), dtype=out.value.dtype)
    chosen = weight.movedim((out_rows, out_places), (0, 1))
    chosen[0, at] = drawn.movedim((out_rows, out_places), (0, 1))[0, at]
    slope: Tensor | None = None
    with Attempt():
        # An error, as from a tensor that was changed in place, leaves it unseen.
        (slope,) = torch.autograd.grad(out.live, source.live, weight, retain_graph=True, allow_unused=True)
    if slope is None:
        return None
    seen = slope.movedim((row_axis, places), (0, 1)).flatten(2).abs().amax(-1)
    if not float(seen[0, at]) > 0:
        return None
    above = 1e-9 * float(seen.max())
    others = [t for t in range(length) if t != at and float(seen[0, t]) > above]
    return others, bool((seen[1:] > above).any())


def _axes(node: Node, rows: int, length: int) -> tuple[int, int] | None:
    """The axes of rows and of positions, of a tensor that has one of each."""
    shape = node.shape
    if node.value.dim() < 3 or shape.count(rows) != 1 or shape.count(length) != 1:
        return None
    return shape.index(rows), shape.index(length)


def used(chain: Chain, branch: Branch) -> tuple[str, Node, Node] | None:
    """The function that a feed-forward bends with, what it is given and what it gives; None if it is none that is known."""
    reader = chain.reader
    nodes = sorted(
        (n for n in branch.inside if n.value.dim() >= 2 and n.value.is_floating_point()), key=lambda n: n.index
    )
    hidden = [n for n in nodes if not n.name.startswith("layer_norm") and reader.depends(n)]
    for before in hidden:
        if float(before.value.std()) == 0 or not float(before.value.min()) < 0 < float(before.value.max()):
            continue
        for name, function in ACTIVATIONS.items():
            with torch.no_grad():
                wanted = function(before.value)
            for node in hidden:
                if node.index > before.index and node.shape == before.shape and _equal(node.value, wanted):
                    return name, before, node
    return None


def _equal(one: Tensor, other: Tensor) -> bool:
    close = 1e-10 if one.dtype == torch.float64 else 2e-6
    return float((one - other).abs().max()) <= close * (1 + float(other.abs().max()))


def _its_own(target: Target, said: str, name: str) -> bool:
    """Whether what a string names is a function of the code's own file, and that function computes what was found."""
    named = re.search(r'"(\w+)"', said)
    home = sys.modules.get(getattr(target.kind_of, "__module__", ""))
    function = getattr(home, named[1], None) if named else None
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    with Attempt(), torch.no_grad():
        return inspect.isfunction(function) and _equal(function(x), ACTIVATIONS[name](x))
    return False


def variant(chain: Chain, target: Target, prefix: str) -> Iterator[Fault]:
    """The fault of a function that is not the one that the code claims."""
    for branch in feed_forwards(chain):
        found = used(chain, branch)
        if found is None:
            continue
        name, _, node = found
        claim = activation_claim(target, node.module)
        if claim is None:
            continue
        claimed, said = claim
        family = name.startswith(claimed) if claimed == "gelu" else name == claimed
        if name == "sigmoid" or family or _its_own(target, said, name):
            continue
        with torch.no_grad():
            # How far apart the two functions are on what was really fed, beside the size of the right one.
            right = ACTIVATIONS["gelu-erf" if claimed == "gelu" else claimed]
            x = torch.linspace(-3, 3, 61, dtype=torch.float64)
            apart = float((right(x) - ACTIVATIONS[name](x)).abs().max())
        evidence = say("block.variant", claim=said, claimed=claimed, found=name, apart=f"{apart:.2g}")
        yield Fault(
            "activation.variant",
            "reproduced",
            evidence,
            place(node, prefix),
            say("block.fix_variant", claimed=claimed),
            apart,
        )
        return
