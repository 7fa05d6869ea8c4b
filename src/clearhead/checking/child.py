"""The other process of a check or a comparison: reads what is asked, writes the report."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clearhead.messages import UserError


def main() -> None:
    """Do what standard input asks for, and write the report, or why there is none, where it says."""
    wanted = json.loads(sys.stdin.read())
    import torch  # noqa: PLC0415 - what is asked is read first

    # Small sizes: threads would wait for each other longer than they work.
    torch.set_num_threads(wanted["asked"].get("threads") or 1)
    try:
        made = {"check": _check, "diff": _diff}[wanted["task"]](wanted["asked"])
    except UserError as error:
        made = {"refused": str(error)}
    Path(wanted["answer"]).write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")


def _check(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The report on somebody's code."""
    from clearhead.checking.check import check_target  # noqa: PLC0415
    from clearhead.checking.settings import Settings  # noqa: PLC0415
    from clearhead.checking.target import caller, resolve  # noqa: PLC0415

    settings = dict(asked["settings"])
    call = None if settings.get("call") is None else caller(settings["call"])
    known = Settings(**settings | {"only": frozenset(settings.get("only", ())), "call": call})
    return check_target(resolve(asked["target"], known), known).to_dict()


def _diff(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What parts two that have names."""
    from clearhead.checking.diff.diff import diff  # noqa: PLC0415
    from clearhead.checking.target import caller  # noqa: PLC0415

    tuned = dict(asked["tuned"])
    if "call" in tuned:
        tuned["call"] = caller(tuned["call"])
    return diff(asked["a"], asked["b"], **tuned).to_dict()
