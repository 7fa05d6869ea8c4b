"""`clearhead doctor`: what this machine can do, and whether it computes right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jsonargparse import ArgumentParser

from clearhead.cli.options import add_device, parse, parser, use_threads
from clearhead.messages import say


def options() -> ArgumentParser:
    """The flags of `clearhead doctor`."""
    made = parser("doctor")
    add_device(made)
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def run(arguments: Sequence[str]) -> int:
    """Print versions, devices, what compiles, and how far the device is from float64; 1 if that is too far."""
    asked = parse(options(), arguments)
    use_threads(asked.threads)
    from clearhead.checking.machine import examine  # noqa: PLC0415 - torch comes after the flags are right
    from clearhead.models.device import pick_device, pick_dtype  # noqa: PLC0415

    facts = examine(pick_device(asked.device), pick_dtype(asked.dtype))
    print(json.dumps(facts, ensure_ascii=False) if asked.json else _table(facts))
    return 0 if facts["parity"]["ok"] else 1


def _table(facts: dict[str, Any]) -> str:
    rows = [(name, value) for name, value in facts.items() if name != "parity"]
    parity = facts["parity"]
    verdict = say("cli.doctor.right" if parity["ok"] else "cli.doctor.wrong")
    evidence = say("cli.doctor.parity", difference=f"{parity['difference']:.1e}", allowed=f"{parity['allowed']:.1e}")
    return "\n".join([*(f"{name:<18} {value}" for name, value in rows), f"{verdict} {evidence}"])
