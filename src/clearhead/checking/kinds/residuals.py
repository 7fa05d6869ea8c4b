"""The residual equation that a block obeys, and what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

import torch
from torch import nn

from clearhead.checking.claims import stated
from clearhead.checking.constructing import CONFIGS
from clearhead.checking.kinds.block_graph import Node
from clearhead.checking.kinds.block_terms import Terms, Way, alike, summed
from clearhead.checking.kinds.block_words import branch_name, place, term_name, text_of
from clearhead.checking.kinds.branches import Branch, Chain, Value, in_parts, weighted
from clearhead.checking.kinds.series import in_series
from clearhead.checking.report import Certainty, Fault
from clearhead.checking.target import Target
from clearhead.messages import say

SCALES = (
    r"alpha|beta|res|skip|scale|gamma|lambda|layer|depth|mult|weight|gain|coef|factor|branch|lam|eta|tau|rho|mup|ratio"
)
STATED = (
    r"macaron|conformer|half[- _]step|deep.?norm|\bmup\b|µp|rezero|layer.?scale|fixup|admin|(residual|skip|branch|depth|stream)\w*[ _-]*(is |are )?"
    r"(scal|multipl|weight|divid|halv|factor|gain)|(scal|multipl|weight|divid|halv)\w*( \w+){0,3} (residual|skip|branch|stream)|variance[- ]preserving"
)
SEVERAL = r"dual|resi_?dual|b2t|bottom-to-top|hyper.?connection|dense.?former|u-?net|highway"


def faults_of(chain: Chain, target: Target, prefix: str, embeds: bool) -> Iterator[Fault]:
    """The mistakes in the residual equations of a chain.

    Args:
        chain: the stream from its beginning to its end.
        target: the code, for its claims.
        prefix: the block in which it is, "" if it is the target itself.
        embeds: whether the stream begins with an embedding, which may be scaled.
    """
    # Streams that learned weights mix before and after each sublayer have no skip of their own.
    lost = [] if _says(target, r"hyper.?conn") else list(missing(chain, prefix))
    yield from lost
    if lost:
        return
    yield from _doubled(chain, target, prefix)
    yield from _from_norm(chain, target, prefix)
    yield from _stale(chain, prefix)
    yield from _scaled(chain, target, prefix, embeds)


def missing(chain: Chain, prefix: str) -> Iterator[Fault]:
    """Sublayers around which there is no skip."""
    reader = chain.reader
    if not reader.stream(chain.end):
        if in_parts(chain):
            return
        ends = [chain.branch(t) for t in reader.terms(chain.end) if reader.depends(t)]
        normed = [reader.normed(branch.out) for branch in ends]
        ends += [chain.branch(t) for n in normed if n is not None for t in reader.terms(n) if reader.depends(t)]
        bare = [b for b in ends if b.attends] or [b for b in ends if _feeds(chain, b)]
        if bare:
            yield _lost(chain, bare[0], bare[0].attends, prefix)
        return
    for value in chain.merges():
        for branch in value.branches:
            first = in_series(chain, branch)
            if first is not None:
                yield _lost(chain, branch, True, prefix, first)


def _feeds(chain: Chain, branch: Branch) -> bool:
    """Whether a branch is a feed-forward: two products with constant matrices."""
    return sum(weighted(node, chain.reader) for node in branch.inside) >= 2


def _lost(chain: Chain, branch: Branch, attends: bool, prefix: str, first: Node | None = None) -> Fault:
    which = say("block.attention") if attends else say("block.feed_forward")
    equation = text_of(chain, chain.end)
    at = first if first is not None else branch.out
    evidence = say("block.residual_missing", which=which, equation=equation)
    size = float(chain.end.value.norm()) + 1e-30
    effect = max((float(s.value.norm()) / size for s in branch.sources), default=None)
    return Fault("residual.missing", "reproduced", evidence, place(at, prefix), say("block.fix_missing"), effect)


def _certain(value: Value) -> Certainty:
    """Whether the terms give the value to rounding."""
    made = summed(value.terms)
    if made is None or made.numel() != value.node.value.numel():
        return "consistent"
    apart = float((alike(made, value.node.value) - value.node.value).abs().max())
    return "reproduced" if apart <= 1e-9 * (1 + float(value.node.value.abs().max())) else "consistent"


def _plain(ways: Iterable[Way]) -> bool:
    return all(way.scale == 1 and not way.stated for way in ways)


def _doubled(chain: Chain, target: Target, prefix: str) -> Iterator[Fault]:
    if _says(target, SEVERAL):
        return
    for value in chain.values:
        twice = [t for t, ways in value.terms.items() if len(ways) > 1 and _plain(ways) and t not in value.tables]
        twice = [t for t in twice if t in value.skips or t in {b.out for b in value.branches}]
        both = [
            s
            for s in value.skips
            if (n := chain.reader.normed(s)) is not None and _within(chain.reader.terms(n), value.terms)
        ]
        if len(value.skips) >= 2 and both and value.branches:
            twice += both
        if twice:
            evidence = say("block.residual_doubled", equation=text_of(chain, value.node))
            size = float(value.node.value.norm()) + 1e-30
            effect = float(twice[0].value.norm()) / size
            yield Fault(
                "residual.doubled",
                _certain(value),
                evidence,
                place(value.node, prefix),
                say("block.fix_doubled"),
                effect,
            )
            return


def _within(inner: Terms, outer: Terms) -> bool:
    return bool(inner) and all(term in outer for term in inner)


def _from_norm(chain: Chain, target: Target, prefix: str) -> Iterator[Fault]:
    reader = chain.reader
    if ends_normed(chain) or claims_after_norm(target):
        return  # A post-norm block: the stream itself is normalised.
    raw = [v for v in chain.merges() if any(s in reader.begins for s in v.skips)]
    for value in chain.merges():
        for skip in value.skips:
            normed = reader.normed(skip)
            if normed is None or len(value.skips) > 1:
                continue
            read = [b for b in value.branches if any(skip in reader.terms(s) for s in b.sources)]
            bare = not chain.content(normed)
            before = [b for v in raw for b in v.branches if reads_norm(chain, b)]
            if read and (bare or before):
                evidence = say(
                    "block.from_norm", equation=text_of(chain, value.node), branch=branch_name(chain, read[0])
                )
                apart = float((skip.value - alike(normed.value, skip.value)).norm())
                effect = apart / (float(value.node.value.norm()) + 1e-30)
                yield Fault(
                    "residual.from-norm",
                    _certain(value),
                    evidence,
                    place(value.node, prefix),
                    say("block.fix_from_norm"),
                    effect,
                )
                return


def ends_normed(chain: Chain) -> bool:
    """Whether the end is a norm's output, nothing added."""
    terms = [term for term in chain.reader.terms(chain.end) if chain.reader.depends(term)]
    return len(terms) == 1 and chain.reader.normed(terms[0]) is not None


def reads_norm(chain: Chain, branch: Branch) -> bool:
    """Whether a branch reads a norm of the stream."""
    reader = chain.reader
    return any(reader.normed(term) is not None for s in branch.sources for term in reader.terms(s))


def _stale(chain: Chain, prefix: str) -> Iterator[Fault]:
    for value in chain.merges():
        held = chain.content(value.node)
        for branch in value.branches:
            read = frozenset(n for source in branch.sources for n in chain.content(source))
            lost = read - held
            # Queries may come from the stream and keys from elsewhere, such as an encoder that began where the stream does.
            apart = branch.attends and any(chain.content(source) <= held for source in branch.sources)
            if not lost or apart:
                continue
            names = {b.out: branch_name(chain, b) for v in chain.values for b in v.branches}
            source = max(branch.sources, key=lambda s: len(chain.content(s)))
            evidence = say(
                "block.stale",
                equation=text_of(chain, value.node),
                branch=branch_name(chain, branch),
                read=text_of(chain, source),
                lost=", ".join(sorted(names.get(n, "?") for n in lost)),
            )
            size = float(value.node.value.norm()) + 1e-30
            effect = max(float(n.value.norm()) for n in lost) / size
            yield Fault(
                "residual.stale", _certain(value), evidence, place(value.node, prefix), say("block.fix_stale"), effect
            )
            return


def _scaled(chain: Chain, target: Target, prefix: str, embeds: bool) -> Iterator[Fault]:
    for value in chain.merges():
        wanted = value.skips + tuple(b.out for b in value.branches)
        scaled = [
            (t, w)
            for t in wanted
            for w in value.terms[t]
            if not w.stated and not math.isclose(w.scale, 1, rel_tol=1e-6)
        ]
        if not scaled or _normed_away(chain, value) or (embeds and _everywhere(chain, scaled)):
            continue
        if all(_is_stated(target, op, way) for _, way in scaled for op in way.by):
            continue
        term, way = scaled[0]
        name = term_name(chain, value, term, 1)
        evidence = say("block.scaled", equation=text_of(chain, value.node), term=name, factor=f"{way.scale:.6g}")
        at = way.by[0] if way.by else value.node
        effect = abs(1 - way.scale) * float(term.value.norm()) / (float(value.node.value.norm()) + 1e-30)
        yield Fault("residual.scale", _certain(value), evidence, place(at, prefix), say("block.fix_scaled"), effect)
        return


def _normed_away(chain: Chain, value: Value) -> bool:
    """Whether all terms have one factor and only a norm reads the sum, which takes it away again."""
    factors = {way.scale for ways in value.terms.values() for way in ways}
    if len(factors) > 1 or any(way.stated for ways in value.terms.values() for way in ways):
        return False
    return ends_normed(chain) and value.node is not chain.end


def _everywhere(chain: Chain, scaled: list[tuple[Node, Way]]) -> bool:
    """Whether the beginning alone is scaled, and before anything reads it."""
    if any(term not in chain.reader.begins for term, _ in scaled):
        return False
    ways = [way for value in chain.values for t, ws in value.terms.items() if t in chain.reader.begins for way in ws]
    first = [way for value in chain.values if value.node in chain.reader.begins for way in value.terms[value.node]]
    return not first and len({way.scale for way in ways}) == 1


def _is_stated(target: Target, op: Node, way: Way) -> bool:
    """Whether a factor is one that the code states: in an attribute, an option or in words."""
    if _says(target, STATED):
        return True
    numbers = [a for a in op.arguments if isinstance(a, int | float)] + [
        float(a.value) for a in op.arguments if isinstance(a, Node) and a.value.numel() == 1
    ]
    numbers += [way.scale, abs(way.scale)]
    return any(math.isclose(abs(n), held, rel_tol=1e-6) for n in numbers if n for held in _held(target))


def _held(target: Target) -> set[float]:
    """The numbers that attributes, options and configurations state under the name of a scale, and what they divide by."""
    made = target.make()
    places = list(made.modules()) if isinstance(made, nn.Module) else [made]
    places += [c for m in list(places) for name in CONFIGS if (c := getattr(m, name, None)) is not None]
    tables = [getattr(p, "__dict__", {}) for p in places] + [target.values]
    found = set()
    for table in tables:
        for name, held in table.items():
            value = float(held) if isinstance(held, torch.Tensor) and held.numel() == 1 else held
            if isinstance(value, float) and value and re.search(SCALES, str(name), re.IGNORECASE):
                found |= {abs(value), 1 / abs(value)}
    return found


def _says(target: Target, words: str) -> bool:
    """Whether the source, or a stated option, has these words."""
    names = [str(name) for name in vars(target.make())] if hasattr(target.make(), "__dict__") else []
    return re.search(words, " ".join([target.source, *names]), re.IGNORECASE) is not None


def claims_after_norm(target: Target) -> bool:
    """Whether the code states that the skip is taken after the norm."""
    return bool(stated(target, "apply_residual_connection_post_layernorm", "residual_post_norm"))
