"""`clearhead check`: whether a model, or anybody's attention code, does what it should, and what the mistake is called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from clearhead.checking.guard import guarded
from clearhead.cli.check_page import page
from clearhead.cli.check_shared import GUARD, KINDS, as_json, is_code, must_be_possible, pair, refusing
from clearhead.cli.check_text import lines
from clearhead.cli.loading import loaded_model
from clearhead.cli.options import MODEL, parse, parser, tell, use_threads
from clearhead.messages import UserError, say

SIZES = {
    "width": "features of a position, where that cannot be found out",
    "heads": "query heads",
    "kv-heads": "key/value heads",
    "vocab": "token ids",
    "context": "the most positions",
    "window": "how many keys a query sees, itself included",
}


def options() -> ArgumentParser:
    """The flags of `clearhead check`."""
    made = parser("check")
    made.add_argument(
        "target",
        type=str,
        help=f"FILE.py:NAME or package.module:NAME (a class, an instance or a factory); or a model: {MODEL}",
    )
    made.add_argument("--kind", type=str, default=None, help=f"{KINDS}; guessed if not given")
    for name, meaning in SIZES.items():
        made.add_argument(f"--{name}", type=int, default=None, help=meaning)
    made.add_argument("--causal", action="store_true", help="a position may not see later ones")
    made.add_argument("--no-causal", action="store_true", help="it may")
    made.add_argument("--mask-true", type=str, default=None, help="what True in a mask means: keep or drop")
    made.add_argument(
        "--set",
        type=str,
        action="append",
        default=[],
        help="KEY=VALUE, an argument of the constructor; may be given again",
    )
    made.add_argument(
        "--call", type=str, default=None, help="FILE.py:NAME of a function, call(module, input), that runs the code"
    )
    made.add_argument(
        "--against",
        type=str,
        default=None,
        help="the original, a model, whose weights it should have; says what was changed",
    )
    made.add_argument("--only", type=str, default=None, help="ids of the checks to run, with commas")
    made.add_argument(
        "--threads", type=int, default=None, help="CPU threads for a model; as many as PyTorch picks if not given"
    )
    made.add_argument("--rounding", action="store_true", help="print what float32 and bfloat16 do to it")
    made.add_argument("--seed", type=int, default=0, help="of all random inputs")
    made.add_argument(
        "--time-limit",
        type=float,
        default=120.0,
        help=GUARD,
    )
    made.add_argument("--html", type=str, default=None, help="write the report as a page that needs nothing else")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def run(arguments: Sequence[str]) -> int:
    """Check; 0 if all is right, 1 if a fault was found, 2 if it could not be checked."""
    with refusing(arguments):
        return _run(parse(options(), arguments))


def _run(asked: Namespace) -> int:
    must_be_possible(asked)
    report = _report(asked)
    # The page first: whoever reads the lines may stop reading before they end.
    if asked.html is not None:
        Path(asked.html).write_text(page(report), encoding="utf-8")
        tell(say("cli.check.page", path=asked.html))
    status = _status(report)
    failed = {"error": _failed(report)[0]} if status == 2 else {}
    print(as_json(report | failed) if asked.json else "\n".join(lines(report)))
    return status


def _report(asked: Namespace) -> dict[str, Any]:
    """The report as plain data; somebody's code runs in another process, a model, which is data, in this one."""
    working, settings = say("cli.check.working", target=asked.target), _settings(asked)
    if is_code(asked.target):
        return guarded(asked.target, settings, asked.time_limit, lambda: tell(working))
    use_threads(asked.threads)
    loaded = loaded_model(asked.target, "float32", "cpu")
    from clearhead.checking.decoder import is_large  # noqa: PLC0415
    from clearhead.checking.model import model_report  # noqa: PLC0415 - torch comes after the flags are right
    from clearhead.checking.settings import Settings  # noqa: PLC0415

    if is_large(loaded.model):
        tell(working)
    known = Settings(seed=asked.seed, only=frozenset(settings["only"]), against=asked.against)
    report = model_report(asked.target, loaded, known).to_dict()
    return report | {"notes": [*_idle(asked), *report["notes"]]}


def _idle(asked: Namespace) -> list[str]:
    """What to say of flags about code that were given with a model."""
    flags = [*("kind", "causal", "no_causal", "mask_true", "set", "call", "rounding"), *SIZES]
    given = [f"--{name.replace('_', '-')}" for name in flags if asked[name.replace("-", "_")] not in (None, False, [])]
    return [say("cli.check.model_says", flags=", ".join(given))] if given else []


def _status(report: dict[str, Any]) -> int:
    if _failed(report) and not report["faults"]:
        return 2
    return 0 if report["ok"] else 1


def _failed(report: dict[str, Any]) -> list[str]:
    """Why checks could not be made."""
    return [check["evidence"] for check in report["checks"] if check["verdict"] == "error"]


def _settings(asked: Namespace) -> dict[str, Any]:
    """The fields of `Settings` that were given."""
    if asked.causal and asked.no_causal:
        raise UserError(say("cli.check.both_causal"))
    if asked.mask_true not in (None, "keep", "drop"):
        raise UserError(say("cli.unknown_choice", flag="--mask-true", value=asked.mask_true, known="keep, drop"))
    given = {name.replace("-", "_"): asked[name.replace("-", "_")] for name in SIZES}
    for name, value in given.items():
        if value is not None and value < 1:
            raise UserError(say("models.too_small", field=name, value=value, least=1))
    return {
        **given,
        "kind": asked.kind,
        "causal": True if asked.causal else False if asked.no_causal else None,
        "mask_true": asked.mask_true,
        "values": dict(map(pair, asked.set)),
        "call": asked.call,
        "against": asked.against,
        "only": [] if asked.only is None else [each.strip() for each in asked.only.split(",") if each.strip()],
        "seed": asked.seed,
        "rounding": asked.rounding,
    }
