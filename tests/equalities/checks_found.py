"""What `clearhead check` finds, as a section of docs/verification.md: the counts that bench/checking wrote."""

from __future__ import annotations

import json

from tests.house.source import ROOT

RESULTS = ROOT / "bench" / "checking" / "results.json"
HEADS = {
    "en": """
## What `clearhead check` finds

Counted by `python -m bench.checking.run --write` over modules with one planted fault each and over right ones. The *first* set was written beside the checks and
used to build them. The *second* and the *third* were written from the dictionary of faults alone, by people who had not seen the checks; their rows marked *blind*
are the counts of the first run, before anything was mended after them.

| set | kind | planted | detected | first name right | right modules | false alarms | not run |
|---|---|---|---|---|---|---|---|
""",
    "zh": """
## `clearhead check` 能找出什么

由 `python -m bench.checking.run --write` 统计：一部分模块各放入一个错误，一部分是正确的。*first* 组与检查一起编写，用于构建检查。*second* 与 *third* 组只依据错误词典写成，
作者没有看过检查的代码；标有 *blind* 的行是首次运行的计数，此后才据此修补。

| 组 | 类别 | 放入 | 发现 | 首个名字正确 | 正确的模块 | 误报 | 未能运行 |
|---|---|---|---|---|---|---|---|
""",
}


def section(language: str) -> str:
    """The section; "" if nothing was counted yet."""
    if not RESULTS.exists():
        return ""
    counts = json.loads(RESULTS.read_text(encoding="utf-8"))
    lines = [_line(name, kind, row) for name, kinds in counts.items() for kind, row in kinds.items()]
    return HEADS[language] + "".join(lines)


def _line(name: str, kind: str, row: dict[str, float]) -> str:
    numbers = " | ".join(str(row[key]) for key in ("planted", "detected", "first", "right", "alarms", "not_run"))
    return f"| {name} | {kind} | {numbers} |\n"
