"""Opening a module of sequences: how it is called, its sizes, its masks and its claims are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case, Inputs
from clearhead.checking.claims import positions_first, size, stated
from clearhead.checking.constructing import USUAL
from clearhead.checking.guess import attentions
from clearhead.checking.kinds import claimed
from clearhead.checking.kinds.calling import Style, output_of, styles
from clearhead.checking.kinds.kind import NoInterfaceError
from clearhead.checking.kinds.masks_found import MaskUse
from clearhead.checking.kinds.masks_tried import SHAPES, VALUES, masks_of
from clearhead.checking.kinds.sequence_case import SequenceCase, real_ids, required, run, run_all, stream_of
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target

__all__ = ["MaskUse", "SequenceCase", "open_sequence", "required", "run", "run_all", "stream_of"]

ROWS, LENGTH = 3, 5
"""Of trial calls: unlike each other, the usual numbers of heads, and the usual widths."""


def open_sequence(target: Target, settings: Settings, *, ids: bool = False) -> SequenceCase:
    """How the target is called, found by trial; masks and claims with it.

    Args:
        target: the code under check, a module.
        settings: what the user says of it.
        ids: whether it is to be fed with ids.

    Raises:
        NoInterfaceError: if no known way fits.
    """
    opened = _apart(_called(target, settings, ids))
    limited = _limited(replace(opened, remembers=_remembers(opened)), settings)
    masks = masks_of(limited, settings) if settings.call is None else ()
    claim = claimed.causal(target, settings)
    if claim and not claimed.by_itself(target, settings) and _pairs(limited, masks, settings):
        # Whoever calls it may hide the future by the mask of pairs that it takes.
        claim = None
    return _running(
        replace(
            limited,
            takes_mask=masks[0] if masks else None,
            masks=masks,
            causal=claim,
            window=claimed.window(target, settings),
        )
    )


def _apart(case: SequenceCase) -> SequenceCase:
    """The case of several attentions with a memory of its own, where one has to be given: the stream itself would show what masks hide."""
    made = case.case.target.sample
    several = isinstance(made, nn.Module) and attentions(made) > 1
    needed = any(role == "memory" and name not in case.style.by_name for name, role in case.style.roles)
    apart = replace(case, style=replace(case.style, elsewhere=case.width))
    return apart if several and needed and not _tries(apart, case.length(LENGTH))[0] else case


def _pairs(case: SequenceCase, masks: tuple[MaskUse, ...], settings: Settings) -> bool:
    """Whether a mask of pairs is taken; in float32 at least, for code whose lowest number is that of its own type."""
    if not masks and case.style.names("mask") and case.case.dtype == torch.float64 and settings.call is None:
        masks = masks_of(replace(case, case=replace(case.case, dtype=torch.float32)), settings)
    return any(use.pairs_too and use.vanishes for use in masks)


def _called(target: Target, settings: Settings, ids: bool) -> SequenceCase:
    """The first way of calling that gives (B,T,D)."""
    tried: list[str] = []
    own = stated(target, "batch_first")
    if own is None:
        own = False if positions_first(target) else _of_torch(target)
    batch_first = own is not False
    heads, kv_heads = size(target, settings, "heads"), size(target, settings, "kv_heads")
    vocab = size(target, settings, "vocab") or _ids(target) or USUAL["vocab"]
    for dtype in (torch.float64, torch.float32):
        for width in _widths(target, settings):
            angles = size(target, settings, "head_width") or (width // heads if heads else width)
            for plain in styles(target, angles, batch_first, bool(settings.causal)):
                style = replace(plain, heads=heads or 1)
                for length, masks in product(_lengths(target, settings), _needed(target, style)):
                    built = _case(target, settings, style, width, vocab=vocab if ids else None, dtype=dtype)
                    fixed = None if length == LENGTH else length
                    found = replace(built, heads=heads, kv_heads=kv_heads, fixed=fixed, masks=masks)
                    found = replace(found, needs=frozenset(use.name for use in masks))
                    reason, more = _tries(found, length)
                    if not reason:
                        return replace(found, returns_weights=more)
                    tried.append(f"{tuple(style.roles)} D={width} T={length} {dtype}: {reason}")
    raise NoInterfaceError(list(dict.fromkeys(tried))[:6])


def _needed(target: Target, style: Style) -> Iterator[tuple[MaskUse, ...]]:
    """Nothing for masks that have no default; then each form of them, for code that cannot do without."""
    yield ()
    names = [name for name in style.names("mask") if name in required(target)]
    if names:
        for shape, values in product(SHAPES, VALUES):
            yield tuple(MaskUse(name, shape, values, True) for name in names)


def _of_torch(target: Target) -> bool | None:
    """What PyTorch's own layers of a Transformer, and classes derived from them, say of their inner attention; None of others."""
    ours = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer, nn.TransformerEncoder, nn.TransformerDecoder)
    made = target.make()
    inner = made.modules() if isinstance(made, ours) else ()
    return next((m.batch_first for m in inner if isinstance(m, nn.MultiheadAttention)), None)


def _case(
    target: Target, settings: Settings, style: Style, width: int, *, vocab: int | None, dtype: torch.dtype
) -> SequenceCase:
    pad = _padding(target) if vocab is not None else None

    def inputs(rows: int, length: int, seed: int, kind: torch.dtype) -> Inputs:
        drawn = torch.Generator().manual_seed(settings.seed * 1000 + seed)
        if vocab is not None:
            return (real_ids(torch.randint(0, vocab, (rows, length), generator=drawn), vocab, pad),)
        return (torch.randn(rows, length, width, generator=drawn, dtype=torch.float64).to(kind),)

    case = Case(target, inputs, lambda module, given: module(*given), dtype)
    memory = style.takes_memory
    return SequenceCase(
        case,
        style,
        width,
        style.batch_first,
        takes_memory=memory,
        ids=vocab is not None,
        vocab=vocab or 61,
        pad=pad,
        call=settings.call,
    )


def _running(case: SequenceCase) -> SequenceCase:
    """The case whose way to run it knows all that was found."""
    dtype = case.case.dtype

    def runs(module: Any, given: Inputs) -> Tensor:
        kind = (
            next((p.dtype for p in module.parameters() if p.is_floating_point()), dtype)
            if isinstance(module, nn.Module)
            else dtype
        )
        plain = replace(case, case=replace(case.case, dtype=kind))
        return stream_of(plain, run_all(plain, module, given[0]), given[0])

    return replace(case, case=replace(case.case, run=runs, fixed=case.fixed))


def _tries(case: SequenceCase, length: int) -> tuple[str, bool]:
    """Why a call does not give (B,T,D), "" if it does, and whether it gives more than that."""
    with Attempt() as attempt, torch.no_grad():
        x = case.inputs(ROWS, length)
        result = run_all(case, case.case.ready(), x)
        rows = (ROWS, length) if case.style.batch_first else (length, ROWS)
        found = output_of(result, *rows, case.width)
        if found is None:
            shapes = result.shape if isinstance(result, Tensor) else type(result).__name__
            return f"gives {shapes}", False
        return "", not isinstance(result, Tensor)
    return attempt.reason, False


def _remembers(case: SequenceCase) -> bool:
    """Whether the second of two equal calls gives something else, though randomness is the same."""
    with Attempt(), torch.no_grad():
        module, x = case.case.ready(), case.inputs(ROWS, case.length(LENGTH))
        one, other = run(case, module, x), run(case, module, x)
        return one.shape != other.shape or not torch.equal(one.nan_to_num(), other.nan_to_num())
    return True


def _widths(target: Target, settings: Settings) -> list[int]:
    """Candidates for D, the likeliest first."""
    if settings.width:
        return [settings.width]
    made = target.make()
    if not isinstance(made, nn.Module):
        return [USUAL["width"]]
    named, parts = size(target, settings, "width"), list(made.modules())
    seen = [named] if named is not None else []
    seen += [m.in_features for m in parts if isinstance(m, nn.Linear)][:1]
    seen += [int(m.normalized_shape[-1]) for m in parts if isinstance(m, nn.LayerNorm)][:1]
    seen += [m.embed_dim for m in parts if isinstance(m, nn.MultiheadAttention)][:1]
    seen += [m.in_channels for m in parts if isinstance(m, nn.Conv1d)][:1]
    matrices = [p for p in made.parameters() if p.dim() >= 2]
    seen += [n for p in matrices[:1] for n in (p.shape[-2], p.shape[-1])]
    # Layers of one head alone come first in some code; another layer then has the whole width, or all of a list have it together.
    linear = [m for m in parts if isinstance(m, nn.Linear)]
    lists = [m for m in parts if isinstance(m, nn.ModuleList) and all(isinstance(each, nn.Linear) for each in m)]
    seen += [n for m in linear for n in (m.in_features, m.out_features)]
    seen += [sum(each.in_features for each in every if isinstance(each, nn.Linear)) for every in lists]
    return list(dict.fromkeys(n for n in [*seen, USUAL["width"]] if n > 0))


def _lengths(target: Target, settings: Settings) -> list[int]:
    """Lengths to try: a short one, then the one length that a buffer of fixed size may want."""
    context = size(target, settings, "context")
    made = target.make()
    squares = [b.shape[-1] for b in made.buffers() if b.dim() >= 2] if isinstance(made, nn.Module) else []
    areas = [each[0] * each[1] for each in getattr(made, "__dict__", {}).values() if _pair(each)]
    wanted = [*squares, *areas] if context is None else [context, *squares, *areas]
    return list(dict.fromkeys([LENGTH, *(n for n in wanted if 1 < n <= 128)]))


def _pair(value: Any) -> bool:
    """Whether it may be the height and the width of a window, which are one sequence."""
    return isinstance(value, tuple) and len(value) == 2 and all(type(each) is int for each in value)


def _ids(target: Target) -> int | None:
    """How many ids the first embedding that is none of positions has."""
    made = target.make()
    named = made.named_modules() if isinstance(made, nn.Module) else []
    return next((m.num_embeddings for name, m in named if isinstance(m, nn.Embedding) and "pos" not in name), None)


def _padding(target: Target) -> int | None:
    """The id of padding, as an embedding of ids states it."""
    made = target.sample
    named = made.named_modules() if isinstance(made, nn.Module) else []
    found = (m.padding_idx for name, m in named if isinstance(m, nn.Embedding) and "pos" not in name)
    return next((pad for pad in found if pad is not None), None)


def _limited(case: SequenceCase, settings: Settings) -> SequenceCase:
    """The case with its longest input, where it takes no more than a few."""
    if case.fixed is not None or not _tries(case, 64)[0]:
        return case
    stated_context = size(case.case.target, settings, "context")
    if stated_context is not None and stated_context < 64 and not _tries(case, stated_context)[0]:
        return replace(case, limit=stated_context)
    low, high = LENGTH, 64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _tries(case, middle)[0] else (middle, high)
    return replace(case, limit=low)
