"""What a comparison found, for a reader at a console or of a failed test. Imports without torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clearhead.messages import say
from clearhead.text.columns import columns_of
from clearhead.text.lines import shown

AROUND = 3
"""Pairs before and after the parting that are shown."""
MOST_TENSORS = 10
STATES = ("same", "related", "changed", "missing", "unexpected")


def lines(found: Mapping[str, Any], *, every: bool = False) -> Iterator[str]:
    """The difference, a line at a time: the verdict, why, the stages around the parting, the weights, notes.

    Args:
        found: what `Difference.to_dict` gave.
        every: whether all pairs and tensors are shown.
    """
    yield verdict(found)
    for reason in found["reasons"]:
        yield from _reason(reason)
    yield ""
    yield from table(found, every=every)
    yield ""
    yield from _weights(found, every)
    for note in found["notes"]:
        yield f"  {say('diff.note')} {note}"


def comparable(found: Mapping[str, Any]) -> bool:
    """Whether anything was shown: the results of the two stand beside each other."""
    return bool(found["pairs"]) and found["pairs"][-1]["held"] != "unpaired"


def verdict(found: Mapping[str, Any]) -> str:
    """One sentence: equal, with the evidence, or where the two part."""
    compared = [pair for pair in found["pairs"] if pair["held"] != "unpaired"]
    if found["first"] is None:
        worst = max(compared, key=_beside_allowed, default=None)
        if worst is None or not comparable(found):
            return say("diff.nothing", a=found["a"], b=found["b"])
        if found.get("unreached"):
            names = ", ".join(word(name) for name in found["unreached"][:AROUND])
            names += f" + {len(found['unreached']) - AROUND}" if len(found["unreached"]) > AROUND else ""
            return say(
                "diff.unreached",
                names=names,
                stages=_stages(len(compared)),
                a=found["a"],
                b=found["b"],
                given=found["given"],
            )
        largest, allowed = number(worst["largest"]), number(worst["allowed"])
        return say(
            "diff.equal",
            a=found["a"],
            b=found["b"],
            stages=_stages(len(compared)),
            given=found["given"],
            largest=largest,
            allowed=allowed,
        )
    first = found["first"]
    before = compared[: next((n for n, pair in enumerate(compared) if is_first(pair, first)), 0)]
    if math.isnan(first["largest"]):
        text = next((each["text"] for each in found["reasons"]), say("diff.no_size"))
        return say(
            "diff.parts_in_numbers", place=place(first), text=text, before=_before(len(before)), given=found["given"]
        )
    if math.isinf(first["largest"]):
        return say("diff.parts_in_shape", place=place(first), before=_before(len(before)), given=found["given"])
    return say(
        "diff.parts",
        place=place(first),
        before=_before(len(before)),
        given=found["given"],
        largest=number(first["largest"]),
        allowed=number(first["allowed"]),
    )


def _stages(count: int) -> str:
    return say("diff.stages_one") if count == 1 else say("diff.stages_many", count=count)


def _before(count: int) -> str:
    return say("diff.before_one") if count == 1 else say("diff.before_many", count=count)


def is_first(pair: Mapping[str, Any], first: Mapping[str, Any]) -> bool:
    """Whether a pair is the one at which the two part; NaN is not equal to itself."""
    return all(pair[key] == first[key] for key in ("a", "b", "held", "where"))


def _beside_allowed(pair: Mapping[str, Any]) -> float:
    """How much of what rounding explains a difference takes up."""
    return float(pair["largest"]) / float(pair["allowed"]) if pair["allowed"] else float(pair["largest"])


def place(pair: Mapping[str, Any]) -> str:
    """A stage by its name in A, the one in B if that is another, and the line."""
    names = dict.fromkeys(word(name) for name in (pair["a"], pair["b"]) if name)
    where = f" ({word(pair['where'])})" if pair["where"] and pair["where"] not in pair["a"] + pair["b"] else ""
    return " / ".join(names) + where


def word(name: str) -> str:
    """A name out of somebody's code or file, as a console may show it."""
    return shown(name, 200) if name else "-"


def number(value: float) -> str:
    """A difference: "0", "3.1e-15", or that it has no size."""
    if value == 0:
        return "0"
    return format(value, ".1e") if math.isfinite(value) else say("diff.no_size")


def held(name: str) -> str:
    """What came out for a pair of stages."""
    words = {
        "equal": say("diff.held_equal"),
        "island": say("diff.held_island"),
        "differs": say("diff.held_differs"),
        "unpaired": say("diff.held_unpaired"),
    }
    return words[name]


def state(name: str) -> str:
    """How two tensors are to each other."""
    words = {
        "same": say("diff.state_same"),
        "changed": say("diff.state_changed"),
        "related": say("diff.state_related"),
        "missing": say("diff.state_missing"),
        "unexpected": say("diff.state_unexpected"),
    }
    return words[name]


def certainty(name: str) -> str:
    """How a reason is known."""
    return say("diff.reproduced") if name == "reproduced" else say("diff.consistent")


def remains(reason: Mapping[str, Any]) -> str:
    """What of the difference a reason explains; "" where nothing was changed, or nothing can be said."""
    if reason["certainty"] != "reproduced" or not math.isfinite(reason["before"]):
        return ""
    return say("diff.remains", before=number(reason["before"]), after=number(reason["after"]))


def counts(found: Mapping[str, Any]) -> str:
    """How many tensors are how; and whose weights B has."""
    numbers = {name: sum(each["state"] == name for each in found["tensors"]) for name in STATES}
    told = ", ".join(f"{count} {state(name)}" for name, count in numbers.items() if count) or say("diff.no_tensors")
    return say("diff.weights_of_a", counts=told) if found["weights"] == "a" else say("diff.weights_own", counts=told)


def columns() -> list[str]:
    """The heading of the table of stages."""
    return ["A", "B", say("diff.difference"), say("diff.allowed"), "", say("diff.line")]


def row(pair: Mapping[str, Any]) -> list[str]:
    """A line of that table."""
    bare = pair["held"] == "unpaired"
    numbers = ["-", "-"] if bare else [number(pair["largest"]), number(pair["allowed"])]
    other = "=" if pair["b"] == pair["a"] else word(pair["b"])
    return [word(pair["a"]), other, *numbers, held(pair["held"]), word(pair["where"]) if pair["where"] else ""]


def around(found: Mapping[str, Any], *, every: bool = False) -> list[int]:
    """Which pairs are shown: those around the parting and the result, or the result alone if there is none."""
    pairs: Sequence[Mapping[str, Any]] = found["pairs"]
    if every or not pairs:
        return list(range(len(pairs)))
    if found["first"] is None:
        return [len(pairs) - 1]
    at = next((n for n, pair in enumerate(pairs) if is_first(pair, found["first"])), 0)
    # What has no partner says nothing of where the two part.
    before = [n for n in range(at) if pairs[n]["held"] != "unpaired"]
    after = [n for n in range(at + 1, len(pairs)) if pairs[n]["held"] != "unpaired"]
    return sorted({*before[-AROUND:], at, *after[:AROUND], len(pairs) - 1})


def table(found: Mapping[str, Any], *, every: bool = False) -> Iterator[str]:
    """Stages of A beside those of B, one a line; `>` marks where they part, `...` what is left out."""
    pairs, chosen = found["pairs"], around(found, every=every)
    rows = [columns(), *(row(pairs[n]) for n in chosen)]
    widths = [max(columns_of(each[column]) for each in rows) for column in range(len(columns()))]
    for n, cells in zip([None, *chosen], rows, strict=True):
        if n is not None and n not in {0, chosen[0]} and n - 1 not in chosen:
            yield "    ..."
        mark = ">" if n is not None and found["first"] is not None and is_first(pairs[n], found["first"]) else " "
        padded = (cell + " " * (width - columns_of(cell)) for cell, width in zip(cells, widths, strict=True))
        yield f"  {mark} {'  '.join(padded)}".rstrip()


def _reason(reason: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"{reason['id']}  ({word(reason['place'])}): {certainty(reason['certainty'])}"
    yield f"  {reason['text']}"
    if told := remains(reason):
        yield f"  {told}"


def _weights(found: Mapping[str, Any], every: bool) -> Iterator[str]:
    yield counts(found)
    other = [each for each in found["tensors"] if each["state"] != "same"]
    told = other if every else other[:MOST_TENSORS]
    for each in told:
        yield f"  {state(each['state'])}: {tensor(each)}"
    if len(told) < len(other):
        yield f"  {say('diff.more_tensors', count=len(other) - len(told))}"


def tensor(row: Mapping[str, Any]) -> str:
    """A tensor by its names, and what relates them."""
    names = " / ".join(dict.fromkeys(word(name) for name in (row["a"], row["b"]) if name))
    return f"{names}: {row['text']}" if row["text"] else names
