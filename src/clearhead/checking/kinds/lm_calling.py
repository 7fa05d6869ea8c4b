"""How a language model is called: which parameter is the targets, the mask, the cache, the positions; and what it gives back."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from clearhead.checking.target import Target

ROLES = (
    ("use", r"(use|return|want|keep|with)_?(kv_?)?(cache|caches|past|present|presents|state|kv|past_key_values)s?"),
    ("places", r"position_?ids?|pos_?ids?|positions|cache_positions?|input_pos|pos_idx"),
    (
        "start",
        r"start_?(pos|position|index|idx)?|(pos|position|seqlen|cache|past|kv|seq|time)_?(offset|start|len|length)|offset|cur_?pos"
        r"|pos|past_?(len|length|tokens)|n_?past|prefix_len|position|step|t0",
    ),
    ("targets", r"targets?|target_ids|tgt|y|next_(ids|tokens)|target_tokens|gold"),
    ("labels", r"labels?|lm_labels|label_ids"),
    ("mask", r".*mask.*|keep|pad(ding)?|valid|real|is_pad"),
    ("cache", r".*cache.*|.*past.*|kv|kvs|store|state|states|memory|mems?|presents?|layer_past|inference_params|ctx"),
)
"""What parameters after the ids are for, by their names, the more telling first."""

FLAG = r"return_.*|output_.*|need_.*|training|train|verbose|inference|is_.*|deterministic|use_.*|last_only|only_last"


@dataclass(frozen=True)
class Style:
    """One way to call a language model.

    Args:
        roles: (parameter, role): targets, labels, mask, cache, use, start, places, flag, ones, triangle, ids, none.
        required: the parameters that have no default.
        start_as: how a start is given: as a whole number, as a tensor of one, as the places of the new tokens.
        places_rows: whether positions have an axis of rows.
    """

    roles: tuple[tuple[str, str], ...] = ()
    required: frozenset[str] = frozenset()
    start_as: str = "int"
    places_rows: bool = True

    def name(self, *wanted: str) -> str | None:
        """The first parameter that has one of these roles."""
        return next((name for name, role in self.roles if role in wanted), None)


class Output(NamedTuple):
    """What a language model gave."""

    logits: Tensor
    """(B,T,V), or (B,1,V) if it gives the last position alone."""
    loss: Tensor | None
    cache: Any


def style_of(target: Target) -> Style:
    """The style that the names of a target's parameters tell."""
    plain = [p for p in target.signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    roles = tuple((p.name, _role(p)) for p in plain[1:])
    return Style(roles, frozenset(p.name for p in plain[1:] if p.default is p.empty))


def _role(parameter: inspect.Parameter) -> str:
    name = parameter.name.lower()
    found = next((role for role, pattern in ROLES if re.fullmatch(pattern, name)), None)
    if found == "cache" and isinstance(parameter.default, bool):
        return "use"
    if found is not None:
        return found
    return "flag" if isinstance(parameter.default, bool) or re.fullmatch(FLAG, name) else "none"


class Given(NamedTuple):
    """What a call gives beside the ids."""

    seen: int = 0
    """How many tokens came before."""
    cached: bool = False
    cache: Any = None
    targets: Tensor | None = None
    mask: Tensor | None = None
    places: Tensor | None = None


def arguments(style: Style, ids: Tensor, given: Given) -> dict[str, Any]:
    """The keyword arguments of a call; a parameter with a default that is not needed is left to it."""
    out: dict[str, Any] = {}
    for name, role in style.roles:
        needed = name in style.required
        value, wanted = _value(style, role, ids, given)
        if wanted or needed:
            out[name] = value
    return out


def _value(style: Style, role: str, ids: Tensor, given: Given) -> tuple[Any, bool]:
    """The value of a parameter, and whether the call wants it even where there is a default."""
    if role == "start":
        return _start(style, ids, given), given.cached
    if role == "places":
        places = torch.arange(ids.shape[1]) + given.seen
        shaped = places.expand(ids.shape) if style.places_rows else places
        # Where the model keeps its own cache, the places alone say how much came before.
        alone = given.cached and style.name("cache", "start") is None
        return (shaped, alone) if given.places is None else (given.places, True)
    table: dict[str, tuple[Any, bool]] = {
        "targets": (given.targets, given.targets is not None),
        "labels": (given.targets, given.targets is not None),
        "mask": (given.mask, given.mask is not None),
        "cache": (given.cache, given.cached),
        "use": (given.cached, given.cached),
        "flag": (False, False),
        "ones": (torch.ones_like(ids), False),
        "triangle": (torch.full((ids.shape[1], ids.shape[1]), float("-inf")).triu(1), False),
        "ids": (ids, False),
    }
    return table.get(role, (None, False))


def _start(style: Style, ids: Tensor, given: Given) -> Any:
    if style.start_as == "tensor":
        return torch.tensor(given.seen)
    if style.start_as == "range":
        return torch.arange(given.seen, given.seen + ids.shape[1])
    return given.seen


def outcome(result: Any, ids: Tensor, passed: Any = None) -> Output | None:
    """The parts of what a model gave; None if there are no logits among it."""
    parts = named_parts(result)
    rows, length = ids.shape
    logits, key = None, None
    for name, value in sorted(parts, key=lambda part: "logit" not in part[0]):
        logits = _logits(value, rows, length)
        if logits is not None:
            key = name
            break
    if logits is None:
        return None
    loss = next(
        (v for n, v in parts if n != key and isinstance(v, Tensor) and v.dim() == 0 and v.is_floating_point()), None
    )
    rest = [(n, v) for n, v in parts if n != key and v is not None and v is not loss and not _scalar(v)]
    telling = [v for n, v in rest if re.search(r"cache|past|kv|present|state", n) and "hidden" not in n] or [
        v for _, v in rest
    ]
    kept = next((v for v in telling if v is passed and passed is not None), telling[-1] if telling else None)
    return Output(logits, loss, kept)


def _logits(value: Any, rows: int, length: int) -> Tensor | None:
    """(B,T,V) or (B,1,V), whatever its axes were; None if the value is none."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return None
    if value.dim() == 3 and value.shape[0] == rows and value.shape[1] in (length, 1):
        return value
    if value.dim() == 2 and value.shape[0] == rows * length:
        return value.reshape(rows, length, -1)
    if value.dim() == 2 and value.shape[0] == rows:
        return value[:, None]
    return None


def _scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float | str) or (isinstance(value, Tensor) and value.dim() == 0)


def named_parts(result: Any) -> list[tuple[str, Any]]:
    """What a model gave, by name where it has names, else by place."""
    if isinstance(result, Tensor):
        return [("0", result)]
    if isinstance(result, Mapping):
        return [(str(name), value) for name, value in result.items()]
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return list(zip(result._fields, result, strict=True))
    if isinstance(result, tuple | list):
        return [(str(place), value) for place, value in enumerate(result)]
    if is_dataclass(result):
        return [(field.name, getattr(result, field.name)) for field in fields(result)]
    return list(getattr(result, "__dict__", {}).items())
