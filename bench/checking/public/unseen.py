"""The planted faults that were not seen, by what the check said of them: written to unseen.md from results.json by `run --plant --write`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("unseen.md")
HEAD = """# Planted faults that were not seen

Written by `python -m bench.checking.public.run --plant --write`. A plant is counted where it changes the output of a call. *Could not be asked*: the check
was skipped, and the report says why; nobody takes it for consent. *Passed*: the check looked and let it pass. These are counted as misses. *Not asked of
it*: the class claims nothing that the fault would contradict. A plant that makes a formula that is right is void and not counted: where a bias of positions
is taken and no scale is kept, scores without a scale are those of T5.

"""


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The table: what was planted, what the check said, how many classes, and which.

    Args:
        results: by package what `run` counted, with "unseen": [class, fault, what was said] of each.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for package, row in results.items():
        for name, fault, said in row.get("unseen", ()):
            groups.setdefault((fault, _short(said)), []).append(f"{package} {name}")
    lines = ["| planted | what the check said | classes | which |", "|---|---|---|---|"]
    for (fault, said), names in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1])):
        lines.append(f"| `{fault}` | {said} | {len(names)} | {'; '.join(names)} |")
    total = sum(map(len, groups.values()))
    planted = sum(row["planted"] for row in results.values())
    named = sum(row.get("named", 0) for row in results.values())
    other = planted - total - named
    seen = f"Of those seen, {named} were named as what was planted and {other} as something else that is wrong with the class then."
    return f"{HEAD}{total} of {planted}. {seen}\n\n" + "\n".join(lines) + "\n"


def _short(said: str) -> str:
    """What was said, without what differs from class to class."""
    first = next(iter(said.splitlines()), "") or "passed"
    return re.sub(r"\s*\(.*", "", first).replace("|", "/")
