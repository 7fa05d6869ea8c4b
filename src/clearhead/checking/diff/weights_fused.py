"""q, k, v, gate and up: fused on one side and separate on the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from clearhead.checking.diff.weights_recipes import Lengths, Named, Piece, Recipe
from clearhead.checking.diff.weights_roles import Role

Spaces = dict[tuple[object, ...], dict[str, list[Piece]]]
"""By block and kind: for each of q, k, v, gate and up the rows that it is made of."""

FUSED = {"qkv": ("q", "k", "v"), "kv": ("k", "v"), "gate_up": ("gate", "up")}


def regrouped(a: Named, b: Named, left: Lengths) -> Iterator[Recipe]:
    """Tensors of B that are several of A's, or a part of one."""
    mine, theirs = _spaces(a, b), _spaces(b, a)
    for place, parts in theirs.items():
        held = mine.get(place, {})
        wanted: dict[str, list[Piece]] = defaultdict(list)
        for part, pieces in parts.items():
            start = 0
            for name, first, last in pieces:
                if part in held:
                    wanted[name] += _slice(held[part], start, start + last - first)
                start += last - first
        for name, pieces in wanted.items():
            if name in left and sum(last - first for _, first, last in pieces) == b.rows(name):
                yield Recipe(name, tuple(_merged(pieces)), False, "role")


def _spaces(side: Named, other: Named) -> Spaces:
    found: Spaces = {}
    ordered = sorted(side.roles.items(), key=lambda item: item[1].numbers)
    for name, role in ordered:
        cross = "cross." if role.part.startswith("cross.") else ""
        part = role.part.removeprefix("cross.")
        place = (role.stack, role.numbers[:1], cross, role.kind)
        rows = side.rows(name)
        if part == "up" and _is_both(role, rows, side, other):
            # In which order they lie is a guess: the gate first, as most have it.
            part = "gate_up"
        if part in ("q", "k", "v", "gate", "up"):
            found.setdefault(place, {}).setdefault(part, []).append(Piece(name, 0, rows))
        elif part in FUSED:
            sizes = _sizes(part, rows, other, role)
            start = 0
            for each, size in zip(FUSED[part], sizes, strict=False):
                found.setdefault(place, {}).setdefault(each, []).append(Piece(name, start, start + size))
                start += size
    return found


def _is_both(role: Role, rows: int, side: Named, other: Named) -> bool:
    """Whether what is called up is gate and up, as many rows as the two of the other side have."""
    gate = role._replace(part=role.part.replace("up", "gate"))
    if gate in side.roles.values():
        return False
    parts = [other.rows(name) for name, each in other.roles.items() if each in (role, gate)]
    return len(parts) == 2 and sum(parts) == rows


def _sizes(part: str, rows: int, other: Named, role: Role) -> list[int]:
    """How many rows of a fused tensor are q, k and v: what the other side's keys have, or a third each."""
    count = len(FUSED[part])
    key = role._replace(part=role.part.replace("qkv", "k"))
    keys = [other.rows(name) for name, each in other.roles.items() if each == key and part == "qkv"]
    if len(keys) == 1 and rows > 2 * keys[0]:
        return [rows - 2 * keys[0], keys[0], keys[0]]
    return [rows // count] * count if rows % count == 0 else []


def _slice(pieces: list[Piece], first: int, last: int) -> list[Piece]:
    """Rows `first` to before `last` of pieces that lie one below the other."""
    found, start = [], 0
    for name, low, high in pieces:
        begin, end = max(first, start), min(last, start + high - low)
        if begin < end:
            found.append(Piece(name, low + begin - start, low + end - start))
        start += high - low
    return found


def _merged(pieces: list[Piece]) -> Iterator[Piece]:
    """The same rows in as few pieces as there can be."""
    last: Piece | None = None
    for piece in pieces:
        if last is not None and (last.name, last.last) == (piece.name, piece.first):
            last = Piece(last.name, last.first, piece.last)
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last
