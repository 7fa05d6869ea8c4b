"""An encoder and a decoder as one: m(source, target) gives a vector or logits for each position of the target."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case, Inputs
from clearhead.checking.claims import size, stated
from clearhead.checking.common.modes import modes
from clearhead.checking.common.precision import precision
from clearhead.checking.common.rows import rows
from clearhead.checking.common.unused import unused
from clearhead.checking.common.weights import weights
from clearhead.checking.constructing import USUAL
from clearhead.checking.kinds.attention import asked
from clearhead.checking.kinds.block_found import Watched, asked_of, blocks_in
from clearhead.checking.kinds.block_graph import graphed
from clearhead.checking.kinds.calling import output_of
from clearhead.checking.kinds.kind import Found, Kind, NoInterfaceError
from clearhead.checking.kinds.seeing import moved, size_of
from clearhead.checking.report import Check, Fault
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.target import Target
from clearhead.messages import say

ROWS, SOURCE, LENGTH = 3, 9, 7
ABOVE = 1e-9
SOURCE_MASK = r"(src|source|encoder|enc|input|memory)\w*mask|attention_mask|src_valid|source_valid|padding_mask|mask"
DECODED = r"(decoder|dec)_(input_?ids|inputs?|ids|tokens)"


@dataclass(frozen=True)
class Pair:
    """A module of two sequences and how it is called.

    Args:
        case: with inputs (source, target).
        ids: whether both are ids.
        batch_first: whether rows come first.
        mask: the parameter that is a mask of the source, "" if there is none.
        keeps: whether True in it means that a position is kept.
    """

    case: Case
    ids: bool
    batch_first: bool
    mask: str = ""
    keeps: bool = True


def _open(target: Target, settings: Settings) -> Pair:
    tried: list[str] = []
    width = size(target, settings, "width") or USUAL["width"]
    vocab = size(target, settings, "vocab") or USUAL["vocab"]
    made = target.make()
    embeds = isinstance(made, nn.Module) and any(isinstance(m, nn.Embedding) for m in made.modules())
    batch_first = stated(target, "batch_first") is not False
    for dtype in (torch.float64, torch.float32):
        for ids in (embeds, not embeds):
            pair = _pair(target, settings, dtype, (vocab if ids else 0, width), batch_first)
            with Attempt() as attempt, torch.no_grad():
                out = pair.case.run(pair.case.ready(), pair.case.inputs(ROWS, LENGTH, 1, dtype))
                if out.shape[:2] == (ROWS, LENGTH):
                    return pair
                tried.append(f"gives {tuple(out.shape)}")
            tried += [attempt.reason] if attempt.error else []
    raise NoInterfaceError(tried)


def _pair(target: Target, settings: Settings, dtype: torch.dtype, sizes: tuple[int, int], batch_first: bool) -> Pair:
    vocab, width = sizes

    def inputs(count: int, length: int, seed: int, kind: torch.dtype) -> Inputs:
        drawn = torch.Generator().manual_seed(settings.seed * 1000 + seed)
        lengths = (length + 2, length)
        if vocab:
            return tuple(torch.randint(3, vocab, (count, n), generator=drawn) for n in lengths)
        return tuple(torch.randn(count, n, width, generator=drawn, dtype=torch.float64).to(kind) for n in lengths)

    def run(module: Any, given: Inputs) -> Tensor:
        if settings.call is not None:
            return _stream(settings.call(module, given), given[1], batch_first)
        return _stream(_called(target, module, given, batch_first, {}), given[1], batch_first)

    others = [n for n in _names(target)[1:] if n != _second(target)]
    mask = next((n for n in others if re.fullmatch(SOURCE_MASK, n.lower())), "")
    keeps = re.search(r"padding_mask|pad_mask", mask.lower()) is None
    return Pair(Case(target, inputs, run, dtype), vocab > 0, batch_first, mask, keeps)


def _names(target: Target) -> list[str]:
    return [p.name for p in target.signature.parameters.values() if p.kind is not p.VAR_KEYWORD]


def _second(target: Target) -> str:
    """The parameter of the other sequence: the one that is said to be the decoder's, else the second."""
    names = _names(target)
    return next((n for n in names[1:] if re.fullmatch(DECODED, n.lower())), names[1] if len(names) > 1 else "")


def _called(target: Target, module: Any, given: Inputs, batch_first: bool, more: dict[str, Any]) -> Any:
    """What the module returns; parameters without default beyond the two sequences are None, a triangle, or all kept."""
    source, wanted = given if batch_first else tuple(g.transpose(0, 1) for g in given)
    extra = dict(more)
    second = _second(target)
    for parameter in list(target.signature.parameters.values())[1:]:
        if parameter.name == second:
            continue
        named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if named and parameter.default is inspect.Parameter.empty and parameter.name not in extra:
            extra[parameter.name] = _mask_for(parameter.name, given)
    if second not in _names(target)[1:2]:
        return module(source, **{second: wanted}, **extra)
    return module(source, wanted, **extra)


def _mask_for(name: str, given: Inputs) -> Tensor | None:
    """A mask of the usual form, (B,1,S) or (B,T,T), for a parameter that has to be given."""
    if "mask" not in name.lower():
        return None
    source, wanted = given
    length = wanted.shape[1]
    if re.search("tgt|target|trg|dec", name.lower()):
        return torch.ones(wanted.shape[0], length, length, dtype=torch.bool).tril()
    return torch.ones(source.shape[0], 1, source.shape[1], dtype=torch.bool)


def _stream(result: Any, wanted: Tensor, batch_first: bool) -> Tensor:
    rows_first = (wanted.shape[0], wanted.shape[1])
    found = output_of(result, *(rows_first if batch_first else rows_first[::-1]), None)
    if found is None:
        assert isinstance(result, Tensor)
        return result
    return found if batch_first else found.transpose(0, 1)


def _changed(x: Tensor, position: int) -> Tensor:
    other = x.clone()
    other[:, position] = x[:, position] - 1 if not x.is_floating_point() else x[:, position].flip(-1) * 0.9
    return other


@torch.no_grad()
def sight(pair: Pair) -> Found:
    """Whether the target sees its past and not its future, and the source from end to end."""
    case = pair.case
    module, (source, wanted) = case.ready(), case.inputs(ROWS, LENGTH, 4, case.dtype)
    with Seeded():
        base = case.run(module, (source, wanted))
        ahead, behind = 0.0, 0.0
        where = (0, 0)
        for position in range(1, LENGTH):
            out = moved(base, case.run(module, (source, _changed(wanted, position)))).amax((0, 2)) / size_of(base)
            if float(out[:position].max()) > ahead:
                ahead, where = float(out[:position].max()), (int(out[:position].argmax()), position)
        first = moved(base, case.run(module, (source, _changed(wanted, 0)))).amax((0, 2)) / size_of(base)
        behind = float(first[1:].max())
        unseen = [s for s in range(source.shape[1]) if _reach(pair, module, (source, wanted), s, base) <= ABOVE]
    found = tuple(_sighted(ahead, where, behind, pair))
    faults = [f for _, f in found if f is not None]
    checks = [c for c, _ in found]
    if len(unseen) == source.shape[1]:
        evidence = say("block.memory_unseen", length=source.shape[1])
        faults.append(Fault("parameter.unused", "consistent", evidence, "", say("block.fix_memory")))
        checks.append(Check("parameter.unused", "fail", evidence))
    return Found(tuple(checks), tuple(faults))


def _reach(pair: Pair, module: Any, given: Inputs, position: int, base: Tensor) -> float:
    out = pair.case.run(module, (_changed(given[0], position), given[1]))
    return float(moved(base, out).max()) / size_of(base)


def _sighted(ahead: float, where: tuple[int, int], behind: float, pair: Pair) -> Iterator[tuple[Check, Fault | None]]:
    evidence = say("block.target_future", length=LENGTH, ahead=f"{ahead:.1e}", seen=where[0], later=where[1])
    above = ABOVE if pair.case.dtype == torch.float64 else 2e-5
    if max(ahead, behind) <= above:
        yield Check("causal.future-leak", "skipped", say("block.no_numbers")), None
        return
    if ahead > above:
        fault = Fault("causal.future-leak", "consistent", evidence, "", say("block.fix_future"), ahead)
        yield Check("causal.future-leak", "fail", evidence, ahead), fault
    else:
        yield Check("causal.future-leak", "pass", evidence, ahead), None
    past = say("block.target_past", length=LENGTH, behind=f"{behind:.1e}")
    if behind <= above:
        yield (
            Check("causal.past-lost", "fail", past),
            Fault("causal.past-lost", "consistent", past, "", say("block.fix_past")),
        )
    else:
        yield Check("causal.past-lost", "pass", past, behind), None


@torch.no_grad()
def padding(pair: Pair) -> Found:
    """Whether a source position that the mask hides has no influence; either polarity will do where none is known."""
    name, case = "mask.ignored", pair.case
    if not pair.mask:
        return Found((Check(name, "skipped", say("block.no_mask")),))
    module, given = case.ready(), case.inputs(ROWS, LENGTH, 6, case.dtype)
    tried: list[tuple[float, float]] = []
    for shaped in ("BS", "B1S", "B11S"):
        for keeps in (pair.keeps, not pair.keeps):
            with Attempt():
                tried.append(_hidden(pair, module, given, shaped, keeps))
    usable = [t for t in tried if t[1] > ABOVE]
    if not usable:
        return Found((Check(name, "skipped", say("block.no_mask")),))
    least = min(t[0] for t in usable)
    evidence = say("block.source_mask", mask=pair.mask, moved=f"{least:.1e}")
    if least <= ABOVE:
        return Found((Check(name, "pass", evidence, least),))
    return Found(
        (Check(name, "fail", evidence, least),),
        (Fault(name, "consistent", evidence, "", say("block.fix_mask"), least),),
    )


def _hidden(pair: Pair, module: Any, given: Inputs, shaped: str, keeps: bool) -> tuple[float, float]:
    """How far the output moves when a hidden position is changed, and when a kept one is."""
    source, wanted = given
    keep = torch.ones(source.shape[:2], dtype=torch.bool)
    keep[:, -2:] = False
    mask = keep if keeps else ~keep
    mask = {"BS": mask, "B1S": mask[:, None], "B11S": mask[:, None, None]}[shaped]

    def out(x: Tensor) -> Tensor:
        more = {pair.mask: mask}
        return _stream(_called(pair.case.target, module, (x, wanted), pair.batch_first, more), wanted, pair.batch_first)

    base = out(source)
    if base.shape[:2] != wanted.shape[:2] or not bool(base.isfinite().all()):
        return 0.0, 0.0
    hidden, kept = (float(moved(base, out(_changed(source, at))).max()) / size_of(base) for at in (-1, 1))
    return hidden, kept


def blocks(pair: Pair) -> Found:
    """What is asked of the blocks of both sides."""
    case = pair.case
    module, given = case.ready(), case.inputs(ROWS, LENGTH, 8, case.dtype)
    if not pair.ids:
        given = tuple(each.requires_grad_().clone() for each in given)
    inputs = dict(zip(("source", "target"), given, strict=True))
    with Seeded(), torch.enable_grad():
        graph = graphed(module, inputs, lambda: case.run(module, given))
    found = Found()
    for name, length in (("source", SOURCE), ("target", LENGTH)):
        seen = Watched(
            graph, graph.node(graph.result), frozenset({name}), length, frozenset({LENGTH, SOURCE}), pair.ids
        )
        inner = [b for b in blocks_in(seen, module, whole=False) if b.module and b.chain.end.shape[1:2] == (length,)]
        if inner:
            found += asked_of(inner, case.target, seen, several=True)
    return found


def _check(pair: Pair, settings: Settings) -> Found:
    case = pair.case
    found = asked("weights.zero", lambda: weights(case.target))
    found += asked("causal.future-leak", lambda: sight(pair))
    found += asked("mask.ignored", lambda: padding(pair))
    found += asked("residual.missing", lambda: blocks(pair))
    found += asked("parameter.unused", lambda: unused(case))
    found += asked("batch.mixing", lambda: rows(case))
    found += asked("dropout.active-in-eval", lambda: modes(case))
    return found + asked("score.precision", lambda: precision(case, settings))


KIND = Kind("seq2seq", _open, _check)
