"""What each stage of a walk was made of."""

from __future__ import annotations

from clearhead.checking.diff.side import Stage, Walk
from clearhead.checking.diff.stages import CodeStage

MADE_OF: dict[str, tuple[str, ...]] = {
    "scores": ("q", "k"),
    "weights": ("scores",),
    "mixed": ("weights", "v"),
    "hidden": ("gate", "up"),
    "output": ("mixed", "hidden"),
}
"""In a model of ours, by the last word of a traced name: what it is made of within its own part."""

STARTS = frozenset(("q", "k", "v", "gate", "up"))
"""What is made of the stream that comes into the part."""


def fed(stage: Stage) -> bool:
    """Whether the inputs of the forward reach a stage."""
    return stage.fed if isinstance(stage, CodeStage) else True


def embeds(stage: Stage) -> bool:
    """Whether a stage is the vectors of the tokens."""
    if isinstance(stage, CodeStage):
        return "mbedding" in stage.made_by
    return stage.name.rpartition(".")[2] == "embedding"


def parents_of(walk: Walk) -> list[tuple[int, ...]]:
    """By each stage's place, the places of the stages that it was made of; in a model of ours as its names say."""
    places: dict[str, int] = {}
    found: list[tuple[int, ...]] = []
    for place, stage in enumerate(walk.stages):
        found.append(stage.parents if isinstance(stage, CodeStage) else _of_ours(stage.name, place, places))
        places[stage.name] = place
    return found


def _of_ours(name: str, place: int, places: dict[str, int]) -> tuple[int, ...]:
    part, _, own = name.rpartition(".")
    within = [places[f"{part}.{each}"] for each in MADE_OF.get(own, ()) if f"{part}.{each}" in places]
    if within:
        return tuple(within)
    if own in STARTS:
        # The stream comes in: the last stage that belongs to no part of the same kind.
        outside = [at for known, at in places.items() if known.rpartition(".")[0] != part]
        return (max(outside),) if outside else ()
    if own in ("segments", "positions"):
        return ()
    if own == "input" or name.endswith("input"):
        return tuple(
            places[each] for each in (f"{part}.embedding".lstrip("."), "embedding", "positions") if each in places
        )
    before = (place - 1,) if place else ()
    if own in ("middle", "crossed") or (own == "output" and part.count(".") <= 2 and "." in part):
        return before + _stream(part, places)
    return before


def _stream(part: str, places: dict[str, int]) -> tuple[int, ...]:
    """The residual stream that a sum in a block adds to: its last value in the block, else the block's input."""
    own = [places[f"{part}.{each}"] for each in ("crossed", "middle") if f"{part}.{each}" in places]
    if own:
        return (max(own),)
    others = [at for name, at in places.items() if not name.startswith(f"{part}.")]
    return (max(others),) if others else ()


def known_behind(parents: list[tuple[int, ...]], place: int, known: dict[int, int]) -> set[int]:
    """What both have of what a place was made of, by places in A."""
    seen, todo = {place}, [place]
    found = {known[place]} if place in known else set()
    while todo:
        for at in parents[todo.pop()]:
            if at in known:
                found.add(known[at])
            elif at not in seen:
                seen.add(at)
                todo.append(at)
    return found
