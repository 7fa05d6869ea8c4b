"""How a module of sequences is called: which parameter is the stream, the memory, a mask, and what the others get."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.kinds.calling_words import of_another, parameters_of
from clearhead.checking.target import Target

KEY, VALUE = r"k|keys?|x_k|k_in|key_states|input_k", r"v|values?|x_v|v_in|value_states|input_v"
QUERY = r"q|query|queries|x_q|q_in|query_states|input_q|tgt|trg|target"
MEMORY = (
    r"memory|mem|context|ctx|cond|encoder_(hidden_states|outputs?|out|states)|enc_(out|outputs?|hidden|states)|enc|xa|"
    r"key_value_states|key_value|kv|x_kv|kv_input|y|source|src|other|z|encoded|encoder_x|cross_states|memories"
)
MEMORY_MASK = r"(memory|context|ctx|encoder|enc|cross|src|source|mem|kv)_.*(mask|valid|padding|pad)|.*(memory|context|encoder)_mask"
MASK = r".*mask.*|valid|keep|(\w+_)?padding|(\w+_)?pad|visible|allowed|attend_to|key_valid|valid_keys"
EMPTY = r".*(cache|past|state).*|.*bias.*|head_mask|layer_head_mask|((from|to|band)(_blocked)?|blocked_\w+)_mask|(prefix|global|segment|document).*"
FLAG = r"need_.*|output_.*|return_.*|use_.*|is_training|training|train|deterministic|verbose|inference"
CAUSAL = r"is_causal|causal"
START = r"start_?pos|offset|start|pos_offset|seqlen_offset"
POSITIONS = r"(input_)?pos(ition)?s?(_ids?)?|cache_position|input_pos"
TABLES = r"pos(ition)?_emb(edding)?s?|rotary(_emb|_pos_emb|_embedding)?|rope|cos_sin|pe"
TURNS = r"freqs(_cis|_complex)?|freq_cis|rot"
SLOPES = r"alibi(_bias|_slopes)?"
LATER = frozenset({"positions", "tables", "cos", "sin", "turns", "start", "slopes"})
"""Roles of parameters that have a default and may be needed all the same: tried when a call without them fails."""


@dataclass(frozen=True)
class Style:
    """One way to call a module.

    Args:
        roles: (parameter, role) in the order of the signature: x, key, value, memory, memory_key, memory_value, memory_mask, mask,
            none, flag, causal, start, zeros, slopes, positions, tables, cos, sin, turns, turn_rows; a parameter that is left to its default is not named, unless
            it is a memory or a mask.
        by_name: parameters that are given by name.
        positions_rows: whether positions have an axis of rows.
        head_width: d, for tables of angles.
        batch_first: whether the module wants the rows first.
        causal: what a required flag of that name gets.
        heads: H, for a bias of each head.
        elsewhere: D of a memory that is given where one is required, the same for all rows; 0 for the stream itself.
    """

    roles: tuple[tuple[str, str], ...]
    by_name: frozenset[str] = frozenset()
    positions_rows: bool = True
    head_width: int = 8
    batch_first: bool = True
    causal: bool = False
    heads: int = 1
    elsewhere: int = 0

    def names(self, role: str) -> list[str]:
        """The parameters that have this role."""
        return [name for name, found in self.roles if found == role]

    @property
    def takes_memory(self) -> bool:
        """Whether keys and values may come from elsewhere than the stream."""
        return any(role in ("key", "memory", "memory_key") for _, role in self.roles)


def styles(target: Target, head_width: int, batch_first: bool, causal: bool) -> Iterator[Style]:
    """Ways to call the target, the likeliest first."""
    parameters = parameters_of(target)
    if not parameters:
        yield Style((("x", "x"),), batch_first=batch_first)
        return
    roles = []
    stream = _stream(parameters)
    for index, parameter in enumerate(parameters):
        role = "x" if index == stream else _role(parameter)
        if role:
            roles.append((parameter.name, role))
    if any(role in ("memory", "memory_key") for _, role in roles):
        # Only beside a memory is src_mask, or encoder_mask, one of the memory.
        roles = [(n, "memory_mask" if r == "mask" and re.fullmatch(MEMORY_MASK, n.lower()) else r) for n, r in roles]
    # The mask of an input that is not given hides nothing.
    names, known = [p.name for p in parameters if not _fits(p.name)(FLAG)], {name for name, _ in roles}
    roles = [(n, r) for n, r in roles if r != "mask" or not of_another(n, names, known)]
    by_name = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY) | _after_a_gap(parameters, roles)
    base = Style(tuple(roles), by_name, True, head_width, batch_first, causal)
    yield base
    yield from _varied(base)
    needed = {role for _, role in roles}
    if "memory" in needed and parameters[1].default is parameters[1].empty and len(parameters) >= 2:
        # A second input of unknown meaning may also be a mask.
        yield replace(base, roles=tuple((n, "mask" if r == "memory" else r) for n, r in roles))
    yield from _filled_too(base, parameters)


def _stream(parameters: list[inspect.Parameter]) -> int:
    """Which parameter is the stream: the first, but for code that asks for keys, values or a memory before its queries."""
    asks_first = any(_fits(parameters[0].name)(pattern) for pattern in (KEY, VALUE, MEMORY))
    return next((index for index, each in enumerate(parameters) if asks_first and _fits(each.name)(QUERY)), 0)


def _varied(base: Style) -> Iterator[Style]:
    """The same with positions and tables of other shapes."""
    needed = {role for _, role in base.roles}
    if needed & {"positions"}:
        yield replace(base, positions_rows=False)
    if needed & {"tables", "cos", "sin", "turns", "turn_rows"}:
        # Where the number of heads is not known, d is D; angles may turn a part of a head alone, and be numbers on the circle.
        d = base.head_width
        circle = tuple((n, "turn_rows" if r == "tables" else r) for n, r in base.roles)
        for roles in dict.fromkeys((base.roles, circle)):
            for width in dict.fromkeys(n for n in (d, d // 2, d * 2, d // 4, d // 8, d // 16) if n > 1):
                yield replace(base, roles=roles, head_width=width)


def _filled_too(base: Style, parameters: list[inspect.Parameter]) -> Iterator[Style]:
    """The same with parameters that have a default and are needed all the same, such as the angles that a model hands to its layers."""
    known, roles = dict(base.roles), []
    added: set[str] = set()
    for index, parameter in enumerate(parameters):
        role = known.get(parameter.name, "")
        if (not role or role == "none") and index > 0:
            found = _filler(_fits(parameter.name))
            role = found if found in LATER else role
            added |= {parameter.name} if found in LATER else set()
        if role:
            roles.append((parameter.name, role))
    if not added:
        return
    late = frozenset(p.name for p in parameters if p.name in added and p.default is not p.empty)
    tables = tuple((n, r) for n, r in roles if n not in added or r in ("tables", "cos", "sin", "turns", "slopes"))
    for some in dict.fromkeys((tables, tuple(roles))):
        style = replace(base, roles=some, by_name=base.by_name | _after_a_gap(parameters, list(some)) | late)
        yield style
        yield from _varied(style)


def _after_a_gap(parameters: list[inspect.Parameter], roles: list[tuple[str, str]]) -> frozenset[str]:
    """Those that must be named because one before them is left to its default, or may be left out."""
    named = {name for name, _ in roles}
    out, gap = set(), False
    for parameter in parameters:
        optional = parameter.default is not parameter.empty
        gap = gap or optional
        if gap and parameter.name in named:
            out.add(parameter.name)
    return frozenset(out)


def _role(parameter: inspect.Parameter) -> str:
    """What a parameter after the first is for; "" if it is left to its default."""
    required, fits = parameter.default is parameter.empty, _fits(parameter.name)
    if fits(KEY) or fits(VALUE):
        letter = "key" if fits(KEY) else "value"
        return letter if required else f"memory_{letter}"
    if fits(MASK) and not fits(EMPTY):
        return "mask"
    if fits(MEMORY):
        return "memory"
    # No slopes at all is the usual case where they are asked for.
    return ("none" if fits(SLOPES) else _filler(fits)) if required else ""


def _fits(name: str) -> Callable[[str], bool]:
    """Whether a pattern is the whole of a name."""
    return lambda pattern: re.fullmatch(pattern, name.lower()) is not None


def _filler(fits: Callable[[str], bool]) -> str:
    """What a required parameter that is neither input nor mask gets."""
    table = (
        (CAUSAL, "causal"),
        (FLAG, "flag"),
        (START, "start"),
        (r"residual", "zeros"),
        (TABLES, "tables"),
        (r".*cos.*", "cos"),
        (r".*sin.*", "sin"),
        (TURNS, "turns"),
        (SLOPES, "slopes"),
        (POSITIONS, "positions"),
    )
    return next((role for pattern, role in table if fits(pattern)), "none")


def called(
    style: Style,
    module: Any,
    x: Tensor,
    masks: dict[str, Tensor] | None = None,
    memory: Tensor | None = None,
) -> Any:
    """What the module returns.

    Args:
        style: how it is called.
        module: the code.
        x: (B,T,D), or ids (B,T).
        masks: by parameter, as the module wants them.
        memory: (B,S,D) from which keys and values come; the stream itself if None.
    """
    stream = x if style.batch_first else x.transpose(0, 1)
    other = memory if memory is None or style.batch_first else memory.transpose(0, 1)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, role in style.roles:
        value = _given(style, (name, role), (x, stream, other), masks or {})
        if value is _LEFT_OUT:
            continue
        if name in style.by_name:
            named[name] = value
        else:
            positional.append(value)
    return module(*positional, **named)


_LEFT_OUT = object()


def _given(
    style: Style, parameter: tuple[str, str], inputs: tuple[Tensor, Tensor, Tensor | None], masks: dict[str, Tensor]
) -> Any:
    """The value of a parameter."""
    (name, role), (x, stream, memory) = parameter, inputs
    if role == "x":
        return stream
    if role in ("key", "value"):
        return stream if memory is None else memory
    if role in ("memory_key", "memory_value", "memory"):
        needed = name not in style.by_name
        if memory is None and needed and style.elsewhere:
            return _elsewhere(style, x)
        return memory if memory is not None else stream if needed else _LEFT_OUT
    if role in ("mask", "memory_mask"):
        return masks.get(name, None if name not in style.by_name else _LEFT_OUT)
    return _filled(style, role, x)


def _elsewhere(style: Style, x: Tensor) -> Tensor:
    """A memory that has nothing to do with the stream, the same for each row."""
    drawn = torch.randn(9, style.elsewhere, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    rows = drawn.to(x.dtype if x.is_floating_point() else torch.float32).expand(x.shape[0], 9, style.elsewhere)
    return rows if style.batch_first else rows.transpose(0, 1)


def _filled(style: Style, role: str, x: Tensor) -> Any:
    """The value of a parameter that is no input."""
    length = x.shape[1]
    constants = {"none": None, "flag": False, "causal": style.causal, "start": 0}
    if role in constants:
        return constants[role]
    kind = x.dtype if x.is_floating_point() else torch.float32
    places = torch.arange(length, device=x.device)
    if role == "positions":
        return places.expand(x.shape[0], length) if style.positions_rows else places
    if role in ("zeros", "slopes"):
        of_heads = torch.zeros(x.shape[0] * style.heads, 1, length, dtype=kind)
        return of_heads if role == "slopes" else torch.zeros_like(x if style.batch_first else x.transpose(0, 1))
    return _angles(style, role, places.to(kind))


def _angles(style: Style, role: str, places: Tensor) -> Any:
    """Tables of angles, as rotary positions want them."""
    half = max(style.head_width // 2, 1)
    angles = places[:, None] * 100.0 ** (-torch.arange(half).to(places) / half)
    if role in ("turns", "turn_rows"):
        turns = torch.polar(torch.ones_like(angles), angles)
        return turns if role == "turns" else turns[None]
    doubled = torch.cat([angles, angles], -1)
    if role in ("cos", "sin"):
        return doubled.cos() if role == "cos" else doubled.sin()
    return doubled.cos()[None], doubled.sin()[None]


def output_of(result: Any, rows: int, length: int, width: int | None) -> Tensor | None:
    """The stream among what a module returned: (B,T,D) in a tensor, tuple, dictionary or object; None if there is none."""
    found = [t for t in _tensors(result) if t.is_floating_point()]
    shaped = [t for t in found if t.dim() == 3 and tuple(t.shape[:2]) == (rows, length)]
    wide = [t for t in shaped if t.shape[2] == width]
    return next(iter(wide or shaped), None)


def first_of(result: Any) -> Tensor:
    """The first tensor of real numbers among what a module returned, whatever its shape."""
    return next(t for t in _tensors(result) if t.is_floating_point())


def _tensors(value: Any, depth: int = 0) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif depth < 4:
        inner = value if isinstance(value, tuple | list | dict) else getattr(value, "__dict__", {})
        for item in inner.values() if isinstance(inner, dict) else inner:
            yield from _tensors(item, depth + 1)
