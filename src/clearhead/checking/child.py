"""The other process of a check: reads what is asked, writes the report."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from clearhead.messages import UserError


def main() -> None:
    """Check what standard input asks for, and write the report, or why there is none, where it says."""
    asked = json.loads(sys.stdin.read())
    try:
        made = _report(asked["target"], asked["settings"])
    except UserError as error:
        made = {"refused": str(error)}
    Path(asked["answer"]).write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")


def _report(target: str, settings: dict[str, Any]) -> dict[str, Any]:
    import torch  # noqa: PLC0415 - what is asked is read first

    from clearhead.checking.check import check_target  # noqa: PLC0415
    from clearhead.checking.settings import Settings  # noqa: PLC0415
    from clearhead.checking.target import resolve  # noqa: PLC0415

    # Small sizes: threads would wait for each other longer than they work.
    torch.set_num_threads(1)
    known = Settings(**settings | {"only": frozenset(settings.get("only", ()))})
    return check_target(resolve(target, known), known).to_dict()
