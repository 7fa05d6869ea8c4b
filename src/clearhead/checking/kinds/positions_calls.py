"""How positions are called: what adds them to x, or gives their table, found by trial."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case, Inputs
from clearhead.checking.claims import size
from clearhead.checking.constructing import MEANING, USUAL
from clearhead.checking.guess import IDS, PLACING
from clearhead.checking.kinds.kind import NoInterfaceError
from clearhead.checking.kinds.norm_words import class_name
from clearhead.checking.kinds.rotary_calls import BASES, LENGTHS, PLACES, STARTS
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target

WIDTH_NAMES = r"d|D|dim|d_hid|d_emb|d_word_vec|hid_dim|d_model|hidden(_size)?|width|embed_dim|emb(edding)?_dim|n_embd|channels|dmodel|features"
ROW_NAMES, AXIS_NAMES = r"B|b|bs|bsz|batch(_size)?|n_batch|num_rows", r"(seq|time|length|token|pos)_?(dim|axis)"
SHAPES = r"(in|inputs?|input_ids|ids|x|token\w*)_(shape|size)"
MORE_LENGTHS = LENGTHS + r"|(n|num|max)_?(pos(ition)?|pos|steps|tokens|patches|rows)s?|num_pos|max_pos|tokens|steps"
ROWS, LENGTH = 3, 7


@dataclass(frozen=True)
class PositionsCase:
    """Positions and how they are called.

    Args:
        case: the target; its input is (B,T,D), its output x with positions, or the table for it.
        width: D.
        roles: (parameter, role): x, ids, places, length, shape, width, base, start.
        adds: whether positions are added to x; otherwise the table comes back.
        seq_first: whether x is (T,B,D).
        rows: B that it takes.
        limit: the longest T tried that it takes.
        call: the user's own way to call it.
    """

    case: Case
    width: int
    roles: tuple[tuple[str, str], ...]
    adds: bool = False
    seq_first: bool = False
    rows: int = ROWS
    limit: int = LENGTH
    call: Any = None

    @property
    def target(self) -> Target:
        """The code under check."""
        return self.case.target

    @property
    def places(self) -> bool:
        """Whether a start, or positions, can be given."""
        return any(found in ("start", "places") for _, found in self.roles)

    def __call__(self, module: Any, x: Tensor, start: int = 0) -> Tensor:
        """(B,T,D): what the code gives for x (B,T,D), a table's one row repeated."""
        seen = x.transpose(0, 1) if self.seq_first else x
        result = self.call(module, seen) if self.call is not None else module(**self._arguments(x, seen, start))
        if isinstance(result, tuple | list):
            result = _one_table([item for item in result if isinstance(item, Tensor)])
        if isinstance(result, nn.Embedding):
            result = result.weight
        if hasattr(result, "__array__") and not isinstance(result, Tensor):
            # NumPy's.
            result = torch.as_tensor(result)
        assert isinstance(result, Tensor)
        if not result.is_floating_point():
            raise ValueError(f"gives {result.dtype}")
        if self.adds:
            # Axes that are lost must be seen.
            return result.transpose(0, 1) if self.seq_first and result.dim() == 3 else result
        return _laid(result, x, self.seq_first)

    def _arguments(self, x: Tensor, seen: Tensor, start: int) -> dict[str, Any]:
        length = x.shape[1]
        places = torch.arange(start, start + length, device=x.device)
        values = {
            "x": seen, "ids": torch.full(seen.shape[:2], 3, device=x.device), "length": length, "width": self.width,
            "places": places, "row_places": places.repeat(x.shape[0], 1), "base": 10_000.0, "start": start,
            "rows": x.shape[0], "shape": seen.shape[:2], "mask": torch.ones(seen.shape[:2], dtype=torch.long, device=x.device), "axis": 0 if self.seq_first else 1, "device": x.device, "dtype": x.dtype,
        }  # fmt: skip
        return {name: values[found] for name, found in self.roles}

    def table(self, module: Any, length: int, start: int = 0, rows: int | None = None) -> Tensor:
        """(B,T,D): what is added to a stream of zeros, in float64."""
        x = torch.zeros(rows or self.rows, length, self.width, dtype=self.case.dtype)
        return self(module, x, start).detach().double()

    def ready(self) -> Any:
        """A copy whose tables that start at zero are filled, so that a position can be told from another."""
        made = self.case.ready()
        if isinstance(made, nn.Module):
            drawn = torch.Generator().manual_seed(4)
            with torch.no_grad():
                for parameter in made.parameters():
                    if parameter.dim() >= 2 and not bool(parameter.any()):
                        parameter.copy_(torch.randn(parameter.shape, generator=drawn, dtype=torch.float64))
        return made


def _one_table(found: list[Tensor]) -> Tensor:
    """The first of several tensors.

    Raises:
        ValueError: if there is none, or they are cosines and sines apart, which turn and are not added.
    """
    if not found:
        raise ValueError("gives no tensor")
    if len(found) > 1 and found[0].shape == found[1].shape:
        one, other = found[0].double(), found[1].double()
        if bool((one**2 + other**2 - 1).abs().max() < 1e-2):
            raise ValueError("gives cosines and sines apart")
    return found[0]


def _laid(result: Tensor, x: Tensor, seq_first: bool) -> Tensor:
    """(B,T,D) of what was given.

    Raises:
        ValueError: if it has no such axes.
    """
    B, T, D = x.shape
    if seq_first and result.dim() == 3 and result.shape[0] == T:
        result = result.transpose(0, 1)
    while result.dim() > 3 and result.shape[0] == 1:
        result = result[0]
    if result.dim() == 3 and result.shape[1] == 1 and result.shape[0] >= T > 1:
        result = result[:, 0]
    if result.dim() == 2:
        result = result[None]
    if result.dim() != 3 or result.shape[2] != D or result.shape[1] < T or result.shape[0] not in (1, B):
        raise ValueError(f"gives {tuple(result.shape)}")
    return result[:, :T].expand(B, T, D)


def open_positions(target: Target, settings: Settings) -> PositionsCase:
    """How the target is called, found by trial.

    Raises:
        NoInterfaceError: if no known way fits.
    """
    tried: list[str] = []
    # What only might be positions must tell them apart to be taken for it.
    sure = settings.kind is not None or re.search(PLACING, class_name(target), re.IGNORECASE) is not None
    for dtype in (torch.float64, torch.float32):
        for rows in (ROWS, 1):
            for width in _widths(target, settings):
                for roles in _roles(target, settings):
                    for length in dict.fromkeys([LENGTH, size(target, settings, "context") or LENGTH]):
                        case = _case(target, settings, width, roles=roles, rows=rows, dtype=dtype)
                        reason = _refusal(case, length) or ("" if sure else _still(case, length))
                        if not reason:
                            return _completed(replace(case, limit=length))
                        tried.append(f"{roles} D={width} {dtype}: {reason}")
    raise NoInterfaceError(list(dict.fromkeys(tried))[:6])


def _case(
    target: Target,
    settings: Settings,
    width: int,
    *,
    roles: tuple[tuple[str, str], ...],
    rows: int,
    dtype: torch.dtype,
) -> PositionsCase:
    def inputs(wanted: int, length: int, seed: int, kind: torch.dtype) -> Inputs:
        drawn = torch.Generator().manual_seed(settings.seed * 1000 + seed)
        return (torch.randn(wanted, length, width, generator=drawn, dtype=torch.float64).to(kind),)

    def run(module: Any, given: Inputs) -> Tensor:
        return opened(module, given[0])

    opened = PositionsCase(Case(target, inputs, run, dtype), width, roles, rows=rows, call=settings.call)
    return opened


def _refusal(case: PositionsCase, length: int) -> str:
    """Why a call gives no (B,T,D), "" if it does."""
    with Attempt() as attempt, torch.no_grad():
        x = case.case.inputs(case.rows, length, 0, case.case.dtype)[0]
        case(case.case.ready(), x)
    return attempt.reason


def _still(case: PositionsCase, length: int) -> str:
    """Why it cannot be positions: all of them get the same."""
    with torch.no_grad():
        table = case.table(case.ready(), length)
    return "" if float((table - table[:, :1]).abs().max()) > 1e-9 else "all positions get the same"


def _completed(case: PositionsCase) -> PositionsCase:
    """The case with what its behaviour tells: whether it adds, and how long it may be."""
    with torch.no_grad():
        x, y = (case.case.inputs(case.rows, case.limit, seed, case.case.dtype)[0] for seed in (0, 1))
        module = case.case.ready()
        adds = bool((case(module, x) - case(module, y)).abs().max() > 1e-12) and any(f == "x" for _, f in case.roles)
    stated = size(case.target, Settings(), "context")
    lengths = (64, *([stated] if stated and LENGTH < stated < 64 else []), 32, 16)
    limit = next((length for length in lengths if length > case.limit and not _refusal(case, length)), case.limit)
    made = replace(case, adds=adds, limit=limit)
    return replace(made, case=replace(case.case, run=lambda module, given: made(module, given[0])))


def fitting(case: PositionsCase) -> PositionsCase:
    """The case with the longest T that it takes as its axes are now known."""
    lengths = (case.limit, 48, 32, 16)
    return replace(case, limit=next((n for n in lengths if n <= case.limit and not _refusal(case, n)), LENGTH))


def _roles(target: Target, settings: Settings) -> Iterator[tuple[tuple[str, str], ...]]:
    """What the parameters may be for, the likeliest first."""
    if settings.call is not None:
        yield (("x", "x"),)
        return
    parameters = [p for p in target.signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not parameters:
        yield ()
        return
    named = [(p, _role(p)) for p in parameters]
    later = [(p.name, found) for p, found in named[1:] if found]
    needed = [(p.name, found) for p, found in named[1:] if found and p.default is inspect.Parameter.empty]
    first = named[0][0].name
    own = [named[0][1], *(["row_places"] if named[0][1] == "places" else [])]
    choices = dict.fromkeys([*own, "x", "ids", "length", "places", "row_places"])
    rests = [later, needed] if later != needed else [later]
    unknown = [p for p, found in named if not found and p.default is inspect.Parameter.empty]
    if len(named) >= 2 and unknown and len(needed) <= 1:
        # Two numbers whose names say nothing.
        second = named[1][0].name
        yield ((first, "length"), (second, "width"))
        yield ((first, "width"), (second, "length"))
    for rest in rests:
        for choice in choices:
            if choice:
                yield ((first, choice), *rest)
                if any(found == "places" for _, found in rest):
                    yield ((first, choice), *((n, "row_places" if f == "places" else f) for n, f in rest))


def _role(parameter: inspect.Parameter) -> str:
    """What a parameter is for; "" if it keeps its default or nothing is known."""
    name, required = parameter.name, parameter.default is inspect.Parameter.empty
    low = name.lower()
    if re.fullmatch(STARTS, low):
        return "start"
    if low != "t" and low not in IDS and re.fullmatch(PLACES, low):
        return "places"
    known = (
        (WIDTH_NAMES, name, "width"), ("|".join(IDS), low, "ids"), (MORE_LENGTHS, name, "length"), (BASES, low, "base"),
        (ROW_NAMES, name, "rows"), (SHAPES, low, "shape"), (AXIS_NAMES, low, "axis"), (r"(att\w*_)?mask", low, "mask"), ("device", low, "device"), ("dtype", low, "dtype"),
    )  # fmt: skip
    found = next((meaning for pattern, each, meaning in known if re.fullmatch(pattern, each)), "")
    if not found:
        found = {"context": "length", "width": "width"}.get(MEANING.get(name, ""), "")
    # A width that has a default need not be the one that is tried.
    wide = found == "width" and isinstance(parameter.default, int) and parameter.default > 1
    return found if required or wide else ""


def _widths(target: Target, settings: Settings) -> list[int]:
    """Candidates for D, the likeliest first."""
    if settings.width:
        return [settings.width]
    made, named = target.make(), size(target, settings, "width")
    seen = [named] if named else []
    if isinstance(made, nn.Module):
        held = [*made.parameters(), *made.buffers(), *(v for v in vars(made).values() if isinstance(v, Tensor))]
        seen += [t.shape[-1] for t in held if t.dim() >= 2 and t.shape[-1] > 1]
        # Of frequencies there is one for a sine and a cosine.
        seen += [2 * len(b) for b in made.buffers() if b.dim() == 1 and b.is_floating_point() and len(b) > 1]
    defaults = [p.default for p in target.signature.parameters.values()]
    seen += [n for n in defaults if isinstance(n, int) and not isinstance(n, bool) and 2 <= n <= 1024]
    return list(dict.fromkeys([*seen, USUAL["width"], USUAL["head_width"]]))
