"""What a safetensors file says about itself: for each tensor its type, its shape and its place."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from safetensors import SafetensorError, safe_open

from clearhead.messages import UserError, say
from clearhead.text.lines import reason_of, shown

__all__ = ["LONGEST", "Place", "is_name", "is_regular", "places_in"]

LONGEST = 1 << 23
"""The most bytes of a header, an index or a configuration: room for 70,000 tensors, and a bound on what parsing takes."""

_LONGEST_NAME = 500
_MOST_AXES = 8
_MOST_NUMBERS = 1 << 59
"""So many that their bytes can still be counted."""


class Place(NamedTuple):
    """Where a tensor lies, as a header says."""

    file: Path
    type: str
    """By the format's names: F32, BF16."""
    shape: tuple[int, ...]
    begin: int
    """Its first byte, counted from the beginning of the file."""
    end: int


def places_in(path: Path) -> dict[str, Place]:
    """Where each tensor of a file lies; the file is long enough for all of them, and they do not overlap.

    Raises:
        UserError: if the file is missing, cut short, damaged or not safetensors.
    """
    if not is_regular(path):
        raise UserError(say("exchange.file_missing", path=path))
    try:
        places, wanted, size = _described(path)
        if wanted != size:
            raise UserError(say("exchange.safetensors_length", path=path, found=size, wanted=wanted))
        # Overlaps, holes, shapes that do not fit their bytes, types that do not exist: the library knows them all.
        with safe_open(path, framework="numpy"):
            return places
    except (OSError, SafetensorError) as error:
        raise UserError(say("exchange.safetensors_header", path=path, reason=reason_of(error))) from error


def is_regular(path: Path) -> bool:
    """Whether there is a plain file, perhaps behind links: opening anything else may wait forever."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def is_name(name: str) -> bool:
    """Whether a tensor or a file may be called so."""
    return len(name) <= _LONGEST_NAME and name.isprintable()


def _described(path: Path) -> tuple[dict[str, Place], int, int]:
    """What the header says, how long the file is by it, and how long it is.

    Raises:
        UserError: as `places_in`.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if 8 + length > size:
            raise UserError(say("exchange.safetensors_length", path=path, found=size, wanted=8 + length))
        if length > LONGEST:
            raise UserError(say("exchange.too_long", path=path, most=LONGEST))
        raw = file.read(length)
    places = {}
    for name, entry in _entries(path, raw).items():
        place = _place(path, entry, 8 + length)
        if place is None or not is_name(name):
            raise UserError(say("exchange.safetensors_entry", path=path, name=shown(name)))
        places[name] = place
    return places, max((place.end for place in places.values()), default=8 + length), size


def _entries(path: Path, raw: bytes) -> dict[str, Any]:
    """A header's entries by the tensors' names.

    Raises:
        UserError: if it is no JSON object, or names something twice: the library would take the last.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise UserError(say("exchange.safetensors_twice", path=path, name=shown(name)))
            found[name] = value
        return found

    try:
        entries = json.loads(raw.decode(), object_pairs_hook=once)
    except UserError:
        raise
    except (ValueError, RecursionError) as error:
        raise UserError(say("exchange.safetensors_header", path=path, reason=reason_of(error))) from error
    if not isinstance(entries, dict):
        raise UserError(say("exchange.safetensors_header", path=path, reason=f"JSON {type(entries).__name__}"))
    entries.pop("__metadata__", None)
    return entries


def _place(path: Path, entry: Any, data: int) -> Place | None:
    """One entry, the tensors' bytes beginning at `data`; None if it does not say what it should."""
    if not isinstance(entry, dict):
        return None
    name, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not (isinstance(name, str) and _are_sizes(shape) and _are_sizes(offsets) and len(offsets) == 2):
        return None
    # A tensor of no numbers takes no bytes, whatever its other sizes: their product must still be one that can be counted.
    if len(shape) > _MOST_AXES or math.prod(max(1, size) for size in shape) > _MOST_NUMBERS or offsets[0] > offsets[1]:
        return None
    return Place(path, name, tuple(shape), data + offsets[0], data + offsets[1])


def _are_sizes(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)
