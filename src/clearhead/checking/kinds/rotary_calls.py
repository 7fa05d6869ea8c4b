"""How rotary code is called: tensors, tables or positions, found by trial."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checking.case import Case, Inputs
from clearhead.checking.claims import size
from clearhead.checking.constructing import MEANING, USUAL
from clearhead.checking.kinds.kind import NoInterfaceError
from clearhead.checking.kinds.norm_words import class_name
from clearhead.checking.kinds.rotary_case import HEADS, RotaryCase, matrices
from clearhead.checking.kinds.rotary_tables import applied, tables_of
from clearhead.checking.kinds.rotary_words import one_of, said_layout
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target

Q, K = r"x?_?q(uer(y|ies))?(_states|_embed|_rot|s)?|query_layer", r"x?_?k(eys?)?(_states|_embed|_rot|s)?|key_layer"
V = r"x?_?v(alues?)?(_states|s)?|value_layer"
X = r"x|t|tensor|hidden(_states)?|inp(ut)?s?|u|emb(eddings)?|qk|vec(tors?)?|z"
COS, SIN = r".*cos.*", r".*sin(?!g).*"
TURNS = r"freqs?(_?cis|_?complex)?|freq_?cis|rope(_cache)?|rot(ary)?(_emb)?|cis|phases?"
PLACES = r"(input_)?pos(ition)?s?(_?ids?)?|cache_position|input_pos|t|idx|indices|offsets?_ids|token_positions|m"
STARTS = r"offset|start(_pos(ition)?)?|pos_offset|seqlen_offset|past(_len(gth)?)?|past_key_values_length|cache_len(gth)?|shift|position_offset"
LENGTHS = r"seq_?len(gth)?|length|n|T|max_(seq_)?len(gth)?|end|max_position(s|_embeddings)?|L|S|context(_length)?|n_positions|ctx|num_positions"
WIDTHS = r"d|dim|head_dim|d_head|head_size|rotary_dim|rot_dim|d_k|dim_head|d_model|hidden|width|D"
BASES = r"base|theta|rope_theta|rotary_base|freq_base"
DEFAULT_BASE = 10_000.0


@dataclass(frozen=True)
class Way:
    """One way to call: what each parameter gets, and how axes and tables are laid out."""

    roles: tuple[tuple[str, str], ...]
    layout: str
    width: int
    table: str = "wide"
    lead: int = 0
    rows: bool = True


def role(parameter: inspect.Parameter, index: int) -> str:
    """What a parameter is for; "" if it keeps its default."""
    name, required = parameter.name, parameter.default is inspect.Parameter.empty
    table = [(Q, "q"), (K, "k"), (V, "v"), (COS, "cos"), (SIN, "sin"), (STARTS, "start"), (PLACES, "places")]
    if index == 0:
        table = [(Q, "q"), (K, "x"), (X, "x"), *table[3:]]
    found = next((meaning for pattern, meaning in table if re.fullmatch(pattern, name.lower())), "")
    if found and (required or found in ("k", "v", "start", "places")):
        return found
    return _number(name, index) if required else ""


def _number(name: str, index: int) -> str:
    """What a required parameter that is neither a vector nor a position is for."""
    if re.fullmatch(LENGTHS, name) or MEANING.get(name) == "context":
        return "length"
    table = ((TURNS, name.lower(), "turns"), (WIDTHS, name, "width"), (BASES, name.lower(), "base"))
    found = next((meaning for pattern, each, meaning in table if re.fullmatch(pattern, each)), "")
    return found or ("x" if index == 0 else "unknown")


def open_rotary(target: Target, settings: Settings) -> RotaryCase:
    """How the target is called, found by trial.

    Raises:
        NoInterfaceError: if no known way fits.
    """
    tried: list[str] = []
    # What only might be rotary must turn something to be taken for it.
    sure = settings.kind is not None or re.search(r"rot(ary|ate)|rope", class_name(target), re.IGNORECASE) is not None
    for dtype in (torch.float64, torch.float32):
        usable = None
        for way in _ways(target, settings):
            case = _case(target, settings, way, dtype)
            reason = _refusal(case)
            # Tables that are given in another order than is wanted fit, too, and turn nothing.
            if not reason and ((sure and not case.fed) or _turns(case)):
                return case
            usable = usable or (None if reason or not sure else case)
            tried.append(f"{way.roles} {way.layout} d={way.width} {dtype}: {reason}")
        if usable is not None:
            return usable
    raise NoInterfaceError(list(dict.fromkeys(tried))[:6] or ["no parameter is q, k, x, positions or a length"])


def _turns(case: RotaryCase) -> bool:
    """Whether lengths are kept."""
    turned = matrices(case, 5)[0]
    if float((turned - turned[:1]).abs().max()) < 1e-9:
        return False
    squares = torch.einsum("tij,tik->tjk", turned, turned)
    squares = squares / squares.diagonal(dim1=-2, dim2=-1).mean()
    return bool((squares - torch.eye(case.width, dtype=torch.float64)).abs().max() < 1e-4)


def _ways(target: Target, settings: Settings) -> Iterator[Way]:
    parameters = [p for p in target.signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    roles = [(p.name, role(p, index)) for index, p in enumerate(parameters)]
    if settings.call is not None:
        roles = [("x", "x")]
    used = [(name, found) for name, found in roles if found]
    needed = {p.name for p in parameters if p.default is p.empty}
    bare = [(name, found) for name, found in used if name in needed or found in ("k", "v")]
    fed = any(found in ("cos", "sin", "turns") for _, found in used)
    said = said_layout(target)
    layouts = ["BTHd", "BHTd"] if said == "BTHd" else ["BHTd", "BTHd"]
    layouts += ["BTd", "Td"]
    kinds = ("complex", "wide", "half", "pairs", "stacked") if fed else ("wide",)
    choices = [used, bare] if bare != used else [used]
    if used[:1] and used[0][1] == "x" and used[0][0].lower() in ("t", "x", "p", "m"):
        # A first input of that name may be the positions themselves.
        choices.append([(used[0][0], "places"), *used[1:]])
    if len(parameters) >= 2 and re.fullmatch(X, parameters[1].name.lower()) and not fed:
        # Angles first, then what they turn.
        fed = True
        choices.append([(parameters[0].name, "turns"), (parameters[1].name, "x")])
    leads = (0, 1, 2, 3) if fed else (0,)
    placed = (True, False) if any(found == "places" for choice in choices for _, found in choice) else (True,)
    for chosen, rows, width, layout in product(choices, placed, _widths(target, settings), layouts):
        for table, lead in product(kinds, leads):
            yield Way(tuple(chosen), layout, width, table, lead, rows)


def _widths(target: Target, settings: Settings) -> list[int]:
    """Candidates for d, the likeliest first."""
    made, seen = target.make(), []
    if isinstance(made, nn.Module):
        lists = [b for name, b in made.named_buffers() if b.dim() == 1 and b.numel() > 1]
        seen += [2 * b.numel() for b in lists]
    width, heads = size(target, settings, "width"), size(target, settings, "heads")
    head = size(target, settings, "head_width")
    seen += [head] if head else []
    seen += [width // heads] if width and heads else []
    seen += [width] if width else []
    if isinstance(made, nn.Module):
        seen += [n for b in made.buffers() if b.dim() >= 2 for n in (b.shape[-1], 2 * b.shape[-1])]
    return list(dict.fromkeys([*(n for n in seen if 2 <= n <= 256), USUAL["head_width"], 16]))


def _case(target: Target, settings: Settings, way: Way, dtype: torch.dtype) -> RotaryCase:
    """The target, called in one way."""
    meanings = {found for _, found in way.roles}

    def inputs(rows: int, length: int, seed: int, kind: torch.dtype) -> Inputs:
        drawn = torch.Generator().manual_seed(settings.seed * 1000 + seed)
        shape = (rows, HEADS, length, way.width)
        return tuple(torch.randn(shape, generator=drawn, dtype=torch.float64).to(kind) for _ in range(2))

    def run(module: Any, given: Inputs) -> Tensor:
        return opened.turn(module, given[0], given[1], None, None)[0]

    case = Case(target, inputs, run, dtype, 2)
    opened = RotaryCase(
        case,
        way.width,
        partial(_turned, way, settings.call),
        way.layout,
        both="q" in meanings and "k" in meanings,
        values="v" in meanings,
        places=bool({"places", "start"} & meanings),
        tables="" if {"q", "x"} & meanings and not _gives_tables(target, way, dtype) else "tables",
        fed=bool({"cos", "sin", "turns"} & meanings),
    )
    return opened


def _gives_tables(target: Target, way: Way, dtype: torch.dtype) -> bool:
    """Whether the call gives tables of angles, not the turned tensor."""
    with Attempt(), torch.no_grad():
        q = torch.ones(2, HEADS, 5, way.width, dtype=dtype)
        module = target.make()
        result = _called(way, module, {"q": q, "k": q, "v": q, "start": None, "length": 5})
        first = result[0] if isinstance(result, tuple | list) else result
        return isinstance(first, Tensor) and first.shape != _outside(q, way.layout).shape
    return False


def _refusal(case: RotaryCase) -> str:
    """Why a call gives no turned (B,H,T,d), "" if it does."""
    with Attempt() as attempt, torch.no_grad():
        q, k = case.case.inputs(2, 5, 0, case.case.dtype)
        v = q + k if case.values else None
        turned = case.turn(case.case.ready(), q, k, v, None)
        shapes = [tuple(each.shape) for each in turned[:2]]
        return "" if shapes == [tuple(q.shape)] * 2 else f"gives {shapes}"
    return attempt.reason


def _outside(x: Tensor, layout: str) -> Tensor:
    """(B,H,T,d) as the code wants it."""
    if layout == "BTHd":
        return x.transpose(1, 2).contiguous()
    if layout == "BTd":
        return x.flatten(0, 1)
    if layout == "Td":
        return x[0, 0]
    return x


def _inside(y: Tensor, like: Tensor, layout: str) -> Tensor:
    if layout == "BTHd":
        return y.transpose(1, 2)
    if layout == "BTd":
        return y.reshape(*like.shape[:2], *y.shape[1:])
    return y


def _turned(  # noqa: PLR0917 - the protocol of RotaryCase.turn, which is called by position
    way: Way, call: Any, module: Any, q: Tensor, k: Tensor, v: Tensor | None, start: int | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Turned q, k and v, in one call or in two."""
    if way.layout == "Td":
        rows = [[_one(way, call, module, b, start) for b in x.flatten(0, 1)] for x in (q, k)]
        turned = [torch.stack(each).reshape(x.shape) for each, x in zip(rows, (q, k), strict=True)]
        return turned[0], turned[1], v
    given = {"q": q, "k": k, "v": v, "start": start, "length": q.shape[2]}
    meanings = [found for _, found in way.roles]
    if "q" in meanings and "k" in meanings:
        result = _called(way, module, given)
        if isinstance(result, tuple | list) and result[0].shape == _outside(q, way.layout).shape:
            parts = [_inside(each, q, way.layout) for each in result]
            return parts[0], parts[1], parts[2] if v is not None and len(parts) > 2 else v
        return applied(tables_of(result), q, k)
    if "x" in meanings or "q" in meanings or call is not None:
        first = call(module, _outside(q, way.layout)) if call else _called(way, module, given)
        if isinstance(first, Tensor) and first.shape == _outside(q, way.layout).shape:
            again = call(module, _outside(k, way.layout)) if call else _called(way, module, given | {"q": k})
            return _inside(first, q, way.layout), _inside(again, k, way.layout), v
        both = applied(tables_of(first), q, k)
        return both[0], both[1], v
    both = applied(tables_of(_called(way, module, given)), q, k)
    return both[0], both[1], v


def _one(way: Way, call: Any, module: Any, x: Tensor, start: int | None) -> Tensor:
    if call is not None:
        turned: Tensor = call(module, x)
        return turned
    result = _called(way, module, {"q": x[None, None], "k": None, "v": None, "start": start, "length": x.shape[0]})
    assert isinstance(result, Tensor)
    return result


def _called(way: Way, module: Any, given: dict[str, Any]) -> Any:
    q, length, start = given["q"], given["length"], given["start"]
    first = start or 0
    places = torch.arange(first, first + length)
    angles = places[:, None].double() * DEFAULT_BASE ** (-torch.arange(0, way.width, 2).double() / way.width)
    kind = q.dtype if q.is_floating_point() else torch.float64
    values: dict[str, Any] = {
        "length": length + first, "width": way.width, "base": DEFAULT_BASE, "start": first,
        "places": places if way.layout == "Td" or not way.rows else places.expand(q.shape[0] * (q.shape[1] if way.layout == "BTd" else 1), -1),
        "turns": _turns_given(angles, kind, way),
    }  # fmt: skip
    for name in ("q", "k", "v"):
        values[name] = _outside(given[name], way.layout) if given[name] is not None else _outside(q, way.layout)
    values["x"] = values["q"]
    for name, wave in (("cos", angles.cos()), ("sin", angles.sin())):
        values[name] = _laid(wave.to(kind), way)
    if [found for _, found in way.roles] == ["places"]:
        values["places"] = places
    return module(**{n: one_of(module, n) if found == "unknown" else values[found] for n, found in way.roles})


def _laid(wave: Tensor, way: Way) -> Tensor:
    """cos or sin (T,d/2) as an apply function wants it."""
    if way.table == "pairs":
        wave = wave.repeat_interleave(2, -1)
    elif way.table == "wide":
        wave = torch.cat([wave, wave], -1)
    return _led(wave, way.lead)


def _led(table: Tensor, lead: int) -> Tensor:
    """(T,n) with further axes: (1,T,n), (1,1,T,n) or (1,T,1,n)."""
    return (table, table[None], table[None, None], table[None, :, None])[lead]


def _turns_given(angles: Tensor, kind: torch.dtype, way: Way) -> Tensor:
    """The angles (T,d/2), or their waves, as an apply function wants them."""
    if way.table == "complex":
        wide = torch.complex128 if kind == torch.float64 else torch.complex64
        return _led(torch.polar(torch.ones_like(angles), angles).to(wide), way.lead)
    if way.table == "stacked":
        return torch.stack([angles.cos(), angles.sin()], -1).to(kind)
    return _laid(angles.to(kind), way)
