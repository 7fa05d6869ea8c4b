"""`clearhead diff`: where two models, or two pieces of anybody's code, first part, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from clearhead.checking.diff.said import comparable, lines
from clearhead.checking.guard import guarded_diff
from clearhead.cli.check_shared import GUARD, KINDS, as_json, is_code, must_be_possible, pair, refusing
from clearhead.cli.diff_page import page
from clearhead.cli.loading import loaded_model
from clearhead.cli.options import MODEL, parse, parser, tell, use_threads
from clearhead.messages import UserError, say

MOMENT = 2.0
"""A comparison of two models that takes longer than so many seconds says that it is at work."""


def options() -> ArgumentParser:
    """The flags of `clearhead diff`."""
    made = parser("diff")
    made.add_argument("a", type=str, help=f"FILE.py:NAME or package.module:NAME, or a model: {MODEL}")
    made.add_argument("b", type=str, help="another one, of either sort")
    made.add_argument("-p", "--prompt", type=str, default=None, help="a text that both read; random ids if not given")
    made.add_argument(
        "--weights",
        type=str,
        default=None,
        help="own: each its own, a: B gets those of A; if not given, B gets A's where it is a class",
    )
    made.add_argument("--kind", type=str, default=None, help=f"of code: {KINDS}; guessed if not given")
    made.add_argument(
        "--set",
        type=str,
        action="append",
        default=[],
        help="KEY=VALUE, an argument of the constructors; may be given again",
    )
    made.add_argument(
        "--call", type=str, default=None, help="FILE.py:NAME of a function, call(module, input), that runs code"
    )
    made.add_argument("--seed", type=int, default=0, help="of all random inputs")
    made.add_argument("--threads", type=int, default=None, help="CPU threads; for models as many as PyTorch picks")
    made.add_argument("--time-limit", type=float, default=120.0, help=GUARD)
    made.add_argument("--all", action="store_true", help="print every stage and every tensor that is not the same")
    made.add_argument("--html", type=str, default=None, help="write the comparison as a page that needs nothing else")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def run(arguments: Sequence[str]) -> int:
    """Compare; 0 if the two are equal to rounding, 1 if they part, 2 if they could not be compared."""
    with refusing(arguments):
        return _run(parse(options(), arguments))


def _run(asked: Namespace) -> int:
    must_be_possible(asked)
    found = _found(asked)
    if found["ok"] and not comparable(found):
        raise UserError(say("diff.nothing", a=asked.a, b=asked.b))
    # The page first: whoever reads the lines may stop reading before they end.
    if asked.html is not None:
        Path(asked.html).write_text(page(found), encoding="utf-8")
        tell(say("cli.diff.page", path=asked.html))
    print(as_json(found) if asked.json else "\n".join(lines(found, every=asked.all)))
    return 0 if found["ok"] else 1


def _found(asked: Namespace) -> dict[str, Any]:
    """The difference as plain data; somebody's code runs in another process, models, which are data, in this one."""
    code, tuned = [is_code(name) for name in (asked.a, asked.b)], _tuned(asked)
    if _resolved(asked.a) == _resolved(asked.b):
        raise UserError(say("cli.diff.itself", name=asked.a))
    if all(code) and asked.prompt is not None:
        raise UserError(say("cli.diff.no_words", a=asked.a, b=asked.b))
    if any(code):
        working = say("cli.diff.working", a=asked.a, b=asked.b)
        return guarded_diff(asked.a, asked.b, tuned, asked.time_limit, lambda: tell(working), threads=_threads(asked))
    if given := [f"--{name}" for name in ("kind", "set", "call") if asked[name]]:
        raise UserError(say("cli.diff.not_code", flags=", ".join(given), a=asked.a, b=asked.b))
    use_threads(asked.threads)
    a, b = (loaded_model(name, "float64", "cpu") for name in (asked.a, asked.b))
    from clearhead.checking.diff.diff import diff  # noqa: PLC0415 - torch comes after the flags are right

    slow = Timer(MOMENT, lambda: tell(say("cli.diff.comparing", a=asked.a, b=asked.b)))
    slow.daemon = True
    slow.start()
    try:
        return replace(diff(a, b, **tuned), a=asked.a, b=asked.b).to_dict()
    finally:
        slow.cancel()


def _resolved(name: str) -> str:
    """The same for two ways to write one name."""
    place, colon, attribute = name.rpartition(":")
    if colon and Path(place).exists():
        return f"{Path(place).resolve()}:{attribute}"
    return str(Path(name).resolve()) if Path(name).exists() else name


def _threads(asked: Namespace) -> int | None:
    if asked.threads is not None and asked.threads < 1:
        raise UserError(say("training.setting", name="threads", value=asked.threads, wanted="≥ 1"))
    threads: int | None = asked.threads
    return threads


def _tuned(asked: Namespace) -> dict[str, Any]:
    """The arguments of `diff` that were given."""
    if asked.weights not in (None, "own", "a"):
        raise UserError(say("cli.unknown_choice", flag="--weights", value=asked.weights, known="own, a"))
    if asked.prompt == "":
        raise UserError(say("cli.diff.no_text"))
    values = dict(map(pair, asked.set))
    named = {"text": asked.prompt, "weights": asked.weights, "kind": asked.kind, "values": values, "seed": asked.seed}
    return named if asked.call is None else named | {"call": asked.call}
