"""Opening an encoder and a decoder as one: how it is called, and which masks it takes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case, Inputs
from clearhead.checking.claims import size, stated
from clearhead.checking.constructing import USUAL
from clearhead.checking.kinds.calling import output_of
from clearhead.checking.kinds.kind import NoInterfaceError
from clearhead.checking.kinds.seeing import moved, size_of
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.target import Target

ROWS, SOURCE, LENGTH = 3, 9, 7
ABOVE = 1e-9
SOURCE_MASK = r"(src|source|encoder|enc|input|memory)\w*mask|attention_mask|src_valid|source_valid|padding_mask|mask"
TARGET_MASK = r"(tgt|target|trg|dec(oder)?)_?(attn|attention|self|causal|look_?ahead)?_?mask"
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
        pairs: the parameter that is a mask of the target's pairs, by which the caller may hide the future; "" if there is none.
        triangle: the form that it has to have for that, "" as long as it is not given.
    """

    case: Case
    ids: bool
    batch_first: bool
    mask: str = ""
    keeps: bool = True
    pairs: str = ""
    triangle: str = ""


def open_pair(target: Target, settings: Settings) -> Pair:
    """How the target is called, found by trial.

    Raises:
        NoInterfaceError: if no known way fits.
    """
    tried: list[str] = []
    width = size(target, settings, "width") or USUAL["width"]
    vocab = size(target, settings, "vocab") or USUAL["vocab"]
    made = target.make()
    embeds = isinstance(made, nn.Module) and any(isinstance(m, nn.Embedding) for m in made.modules())
    batch_first = stated(target, "batch_first") is not False
    for dtype in (torch.float64, torch.float32):
        for ids in (embeds, not embeds):
            sizes = (vocab if ids else 0, width)
            pair = _pair(target, settings, dtype, sizes, batch_first)
            with Attempt() as attempt, torch.no_grad():
                out = pair.case.run(pair.case.ready(), pair.case.inputs(ROWS, LENGTH, 1, dtype))
                if out.shape[:2] == (ROWS, LENGTH):
                    return _with_triangle(pair, partial(_pair, target, settings, dtype, sizes, batch_first))
                tried.append(f"gives {tuple(out.shape)}")
            tried += [attempt.reason] if attempt.error else []
    raise NoInterfaceError(tried)


def _pair(
    target: Target,
    settings: Settings,
    dtype: torch.dtype,
    sizes: tuple[int, int],
    batch_first: bool,
    *,
    triangle: str = "",
) -> Pair:
    vocab, width = sizes

    def inputs(count: int, length: int, seed: int, kind: torch.dtype) -> Inputs:
        drawn = torch.Generator().manual_seed(settings.seed * 1000 + seed)
        lengths = (length + 2, length)
        if vocab:
            return tuple(torch.randint(3, vocab, (count, n), generator=drawn) for n in lengths)
        return tuple(torch.randn(count, n, width, generator=drawn, dtype=torch.float64).to(kind) for n in lengths)

    def run(module: Any, given: Inputs) -> Tensor:
        if settings.call is not None:
            return stream(settings.call(module, given), given[1], batch_first)
        more = {found.pairs: triangle_of(found.triangle, given[1])} if found.triangle else {}
        return stream(called(target, module, given, batch_first, more), given[1], batch_first)

    others = [n for n in _names(target)[1:] if n != _second(target)]
    mask = next((n for n in others if re.fullmatch(SOURCE_MASK, n.lower())), "")
    keeps = re.search(r"padding_mask|pad_mask", mask.lower()) is None
    signature = target.signature.parameters
    pairs = next((n for n in others if re.fullmatch(TARGET_MASK, n.lower()) and signature[n].default is None), "")
    found = Pair(Case(target, inputs, run, dtype), vocab > 0, batch_first, mask, keeps, pairs, triangle)
    return found


def triangle_of(form: str, wanted: Tensor) -> Tensor:
    """A mask (T,T), or one with axes before it, that hides the future: by True for what is kept, for what is hidden, or by -inf."""
    rows, length = wanted.shape[:2]
    values, shape = form.split(" ")
    keep = torch.ones(length, length, dtype=torch.bool).tril()
    kind = wanted.dtype if wanted.is_floating_point() else torch.get_default_dtype()
    added = torch.zeros(length, length, dtype=kind).masked_fill(~keep, float("-inf"))
    mask = {"keep": keep, "hide": ~keep, "add": added}[values]
    return {"TT": mask, "BTT": mask.expand(rows, length, length), "B1TT": mask.expand(rows, 1, length, length)}[shape]


FORMS = [f"{values} {shape}" for shape in ("TT", "BTT", "B1TT") for values in ("add", "hide", "keep")]


def _with_triangle(pair: Pair, made: Callable[..., Pair]) -> Pair:
    """The pair with a mask of the target's pairs that hides the future, where it is the caller's to give and does so."""
    if not pair.pairs or not _ahead(pair):
        return pair
    for form in FORMS:
        with Attempt(), torch.no_grad():
            given = made(triangle=form)
            if not _ahead(given):
                return given
    return pair


@torch.no_grad()
def _ahead(pair: Pair) -> bool:
    """Whether the first target tokens see the last one, or nothing at all depends on the first."""
    module, (source, wanted) = pair.case.ready(), pair.case.inputs(ROWS, LENGTH, 4, pair.case.dtype)
    with Seeded():
        base = pair.case.run(module, (source, wanted))
        last, first = (pair.case.run(module, (source, changed(wanted, at))) for at in (LENGTH - 1, 0))
    above = (ABOVE if pair.case.dtype == torch.float64 else 2e-5) * size_of(base)
    future, past = moved(base, last)[:, :-1], moved(base, first)[:, 1:]
    return not bool(base.isfinite().all()) or float(future.max()) > above or float(past.max()) <= above


def _names(target: Target) -> list[str]:
    return [p.name for p in target.signature.parameters.values() if p.kind is not p.VAR_KEYWORD]


def _second(target: Target) -> str:
    """The parameter of the other sequence: the one that is said to be the decoder's, else the second."""
    names = _names(target)
    return next((n for n in names[1:] if re.fullmatch(DECODED, n.lower())), names[1] if len(names) > 1 else "")


def called(target: Target, module: Any, given: Inputs, batch_first: bool, more: dict[str, Any]) -> Any:
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


def stream(result: Any, wanted: Tensor, batch_first: bool) -> Tensor:
    """(B,T,D) of what a module returned."""
    rows_first = (wanted.shape[0], wanted.shape[1])
    found = output_of(result, *(rows_first if batch_first else rows_first[::-1]), None)
    if found is None:
        assert isinstance(result, Tensor)
        return result
    return found if batch_first else found.transpose(0, 1)


def changed(x: Tensor, position: int) -> Tensor:
    """The input with another token at one position."""
    other = x.clone()
    other[:, position] = x[:, position] - 1 if not x.is_floating_point() else x[:, position].flip(-1) * 0.9
    return other
