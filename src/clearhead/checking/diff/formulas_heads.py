"""The same numbers arranged otherwise: heads split or merged by a reshape, heads, features or positions in another order, queries and keys exchanged, other numbers of heads."""

from __future__ import annotations

from torch import Tensor

from clearhead.checking.diff.formulas_attention import as_scaled
from clearhead.checking.diff.formulas_sums import where_of
from clearhead.checking.diff.numbers import alike, constant, gap, plain, rearranged, unsized
from clearhead.checking.diff.reading import Placed, Reading, Scene, reason
from clearhead.messages import say

PRODUCTS = frozenset(("matmul", "bmm", "einsum", "baddbmm", "scores", "scaled_dot_product_attention"))

LINEAR = frozenset(("linear", "Linear", "addmm"))
"""Products with a matrix of weights, whose first operand is what they are given."""


def operands(reading: Reading, place: int) -> tuple[int | None, ...]:
    """Which sources the two factors of a product are, by places in A."""
    if not reading.stage(place).made_by and reading.stage(place).name.endswith(".scores"):
        # In a model of ours the names of what it is made of tell: q, then k.
        return tuple(reading.known.get(at) for at in reading.parents[place])
    if reading.stage(place).made_by not in PRODUCTS:
        return ()
    sources = reading.sources(place)
    if place in reading.known:
        sources = sorted({at for parent in reading.parents[place] for at in reading.sources(parent)})
    marks = {at: unsized(reading.value(at)) for at in sources}
    pair = [unsized(plain(x)) for x in reading.stage(place).inputs if x.dim() >= 3][:2]
    return tuple(next((reading.known[at] for at, own in marks.items() if alike(own, m)), None) for m in pair)


def arranged(scene: Scene) -> Placed | None:
    """The same numbers, arranged otherwise: in the stage itself, or in what a product is made of."""
    for i, j in scene.pairs():
        x, y = scene.a.value(i), scene.b.value(j)
        between, kinds = [(x, y)], (scene.a.stage(i).made_by, scene.b.stage(j).made_by)
        inputs = list(zip(scene.a.stage(i).inputs, scene.b.stage(j).inputs, strict=False))
        if set(kinds) <= PRODUCTS:
            between += [_beside(plain(one), plain(other), scene.length) for one, other in inputs]
        elif set(kinds) <= LINEAR:
            between += [(plain(one), plain(other)) for one, other in inputs[:1]]
        for n, (one, other) in enumerate(between):
            found = _arranged(one, other, scene.a.near, scene.length)
            if found is not None:
                text = say("diff.arranged", what=found[1], where=where_of(scene, i, j))
                at = as_scaled(scene, i, j) if n else (i, j)
                return reason(found[0], scene, at, text, 0.0)
    return None


def reordered(scene: Scene) -> Placed | None:
    """What one goes on with as it is, and the other puts in another order first."""
    for mirrored in (False, True):
        plainly, orders = (scene.b, scene.a) if mirrored else (scene.a, scene.b)
        for place in orders.looked:
            for at in (at for at in orders.sources(place) if at != place):
                found = _arranged(orders.value(at), orders.value(place), scene.a.near, scene.length)
                other = next((n for n, own in plainly.known.items() if own == orders.known[at]), None)
                if found is None or other is None:
                    continue
                i, j = (place, other) if mirrored else (other, place)
                text = say(
                    "diff.reordered",
                    who="A" if mirrored else "B",
                    source=scene.place(orders.known[at]),
                    what=found[1],
                    where=orders.stage(place).where or "-",
                )
                return reason(found[0], scene, (i, j), text, 0.0)
    return None


def _arranged(x: Tensor, y: Tensor, near: float, length: int) -> tuple[str, str] | None:
    """How the numbers of x lie in y; None if they are not the same numbers, lie the same way, or in no way that is known."""
    if x.shape != y.shape or x.dim() < 3 or constant(x) or gap(x, y) <= near or not rearranged(x, y, near):
        return None
    for axis in range(1, x.dim()):
        order = _order(x, y, axis, near)
        if order is not None:
            words = say("diff.arranged_axis", axis=axis, order=_shown(order))
            return _name_of(x, axis, near, length), words
    if x.shape[-1] == x.shape[-2] == length and gap(x, y.transpose(-2, -1)) <= near:
        return "scores.transposed", say("diff.arranged_turned")
    return _grouped(x, y, near) or _reshaped(x, y, near)


def _grouped(x: Tensor, y: Tensor, near: float) -> tuple[str, str] | None:
    """Features (B,T,H,d) of which one gives each head d that follow each other, and the other every H-th."""
    heads, width = x.shape[-2:]
    if x.dim() != 4 or min(heads, width) < 2:
        return None
    for one, other in ((x, y), (y, x)):
        if gap(one.flatten(2), other.transpose(-2, -1).flatten(2)) <= near:
            return "heads.grouping", say("diff.arranged_grouped", heads=heads, width=width)
    return None


def _beside(x: Tensor, y: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Two operands (B,T,H,d), whichever of T and H each has first."""
    four = [
        z.transpose(1, 2) if z.dim() == 4 and z.shape[2] == length != z.shape[1] and z.shape[-1] != length else z
        for z in (x, y)
    ]
    return four[0], four[1]


def _shown(order: list[int]) -> str:
    return ", ".join(map(str, order[:12])) + (" ..." if len(order) > 12 else "")


def _name_of(x: Tensor, axis: int, near: float, length: int) -> str:
    """What it is called that the slices along an axis stand in another order."""
    last = axis == x.dim() - 1
    if x.shape[axis] == length and not (last and x.dim() == 3):
        return "position.order"
    if last:
        return "projection.order"
    return "heads.kv-tiled" if len(_kinds(x, axis, near)) < x.shape[axis] else "heads.order"


def _reshaped(x: Tensor, y: Tensor, near: float) -> tuple[str, str] | None:
    """An axis of heads that was split off or merged by a reshape alone, where the other moves it."""
    if x.dim() == 4:
        pairs = ((x.transpose(1, 2), y), (x, y.transpose(1, 2)))
        if any(gap(one.reshape(-1), other.reshape(-1)) <= near for one, other in pairs):
            return "heads.split-without-transpose", say("diff.arranged_split")
    if x.dim() != 3:
        return None
    for heads in (n for n in range(2, x.shape[-1] + 1) if x.shape[-1] % n == 0):
        for one, other in ((x, y), (y, x)):
            merged = one.reshape(*one.shape[:2], heads, -1).transpose(1, 2)
            if gap(merged.reshape(-1), other.reshape(-1)) <= near:
                return "heads.merge-without-transpose", say("diff.arranged_merged", heads=heads)
    return None


def _order(x: Tensor, y: Tensor, axis: int, near: float) -> list[int] | None:
    """For each slice of y along an axis, which slice of x it is."""
    found = []
    for n in range(y.shape[axis]):
        own = y.select(axis, n)
        at = next((m for m in range(x.shape[axis]) if gap(x.select(axis, m), own) <= near), None)
        if at is None:
            return None
        found.append(at)
    return found


def _kinds(x: Tensor, axis: int, near: float) -> list[int]:
    """The slices that are not a copy of an earlier one."""
    slices = [x.select(axis, n) for n in range(x.shape[axis])]
    return [n for n, own in enumerate(slices) if all(gap(own, other) > near for other in slices[:n])]


def turned_round(scene: Scene) -> Placed | None:
    """Scores that both have, with queries where the other has keys: q and k are exchanged."""
    for i, j in scene.found.parted.items():
        back = {scene.b.known[at]: at for at in scene.b.sources(j)}
        for at in (at for at in scene.a.sources(i) if scene.a.known[at] in back):
            other = back[scene.a.known[at]]
            x, y = scene.a.value(at), scene.b.value(other)
            if x.dim() < 3 or x.shape != y.shape or gap(x, y) <= scene.a.near:
                continue
            left = gap(x, y.transpose(-2, -1).reshape(x.shape)) if x.shape[-1] == x.shape[-2] else 1.0
            if left <= scene.a.near:
                return _exchanged(scene, (at, other), left)
    return None


def _exchanged(scene: Scene, at: tuple[int, int], left: float) -> Placed:
    one, other = operands(scene.a, at[0]), operands(scene.b, at[1])
    where = where_of(scene, *at)
    if one and other and None not in (*one, *other) and one == other[::-1]:
        names = [", ".join(scene.place(n) for n in each if n is not None) for each in (one, other)]
        return reason("qkv.layout", scene, at, say("diff.exchanged", a=names[0], b=names[1], where=where), left)
    # A product that lies the other way round is one of keys and queries, whatever they are called.
    text = say("diff.arranged", what=say("diff.arranged_turned"), where=where)
    return reason("qkv.layout", scene, at, text, left)


def numbered(scene: Scene) -> Placed | None:
    """Products of the same queries and keys, shared out to another number of heads."""
    for i in scene.a.looked:
        for j in scene.b.looked:
            one, other = _shared_out(scene.a, i), _shared_out(scene.b, j)
            if one is None or other is None or one[0] == other[0] or one[1].shape != other[1].shape:
                continue
            left = gap(one[1], other[1])
            if left <= scene.a.near:
                text = say(
                    "diff.heads",
                    a=one[0],
                    b=other[0],
                    width_a=one[1].shape[-1] // one[0],
                    width_b=one[1].shape[-1] // other[0],
                    where=where_of(scene, i, j),
                )
                return reason("heads.number", scene, (i, j), text, left)
    return None


def _shared_out(reading: Reading, place: int) -> tuple[int, Tensor] | None:
    """How many heads a product of queries and keys has, and its queries (B,T,D) with the heads side by side again."""
    y = reading.value(place)
    pair = [plain(x) for x in reading.stage(place).inputs if x.dim() == 4][:2]
    if reading.stage(place).made_by not in PRODUCTS or y.dim() != 4 or len(pair) != 2:
        return None
    q = pair[0]
    if y.shape[:3] != q.shape[:3] or y.shape[-1] == q.shape[-1] or constant(q):
        return None
    return q.shape[1], q.transpose(1, 2).flatten(2)
