"""What `clearhead check` finds, as a section of docs/verification.md: the counts that bench/checking wrote, and those of published packages."""

from __future__ import annotations

import json
from typing import Any

from tests.house.source import ROOT

RESULTS = ROOT / "bench" / "checking" / "results.json"
PUBLIC = ROOT / "bench" / "checking" / "public" / "results.json"
COLUMNS = ("version", "classes", "silent", "confirmed", "alarms", "not_run", "planted", "seen")
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

PACKAGES = {
    "en": """
### In published packages

Counted by `python -m bench.checking.public.run --plant --write` over classes of packages as they are published (`clients.txt`). *Findings* are classes in which it
names a mistake that docs/findings.md describes; *alarms* are those that nobody confirmed. In classes about which it is silent, faults were *planted* in memory, of
which it named those that were *seen*.

| package | version | classes | silent | findings | alarms | not run | planted | seen |
|---|---|---|---|---|---|---|---|---|
""",
    "zh": """
### 在已发布的软件包中

由 `python -m bench.checking.public.run --plant --write` 对各软件包（`clients.txt`）发布的类统计。*发现*：检查指出了 docs/findings.md 所描述的错误的类；*警报*：未被证实的。
对检查没有异议的类，在内存中*放入*错误，其中被*看出*的见末列。

| 软件包 | 版本 | 类 | 无异议 | 发现 | 警报 | 未能运行 | 放入 | 看出 |
|---|---|---|---|---|---|---|---|---|
""",
}
ALL = {"en": "all", "zh": "合计"}
REASONS = {"en": "\nNot run:\n\n", "zh": "\n未能运行：\n\n"}
SHORT = 120
"""Letters of a reason that are shown."""


def section(language: str) -> str:
    """The section; "" if nothing was counted yet."""
    if not RESULTS.exists():
        return ""
    counts = json.loads(RESULTS.read_text(encoding="utf-8"))
    lines = [_line(name, kind, row) for name, kinds in counts.items() for kind, row in kinds.items()]
    return HEADS[language] + "".join(lines) + packages(language)


def _line(name: str, kind: str, row: dict[str, float]) -> str:
    numbers = " | ".join(str(row[key]) for key in ("planted", "detected", "first", "right", "alarms", "not_run"))
    return f"| {name} | {kind} | {numbers} |\n"


def packages(language: str) -> str:
    """The section of published packages; "" if nothing was counted yet."""
    if not PUBLIC.exists():
        return ""
    counts = json.loads(PUBLIC.read_text(encoding="utf-8"))
    lines = [_package(name, [row[key] for key in COLUMNS]) for name, row in counts.items()]
    total = [sum(row[key] for row in counts.values()) for key in COLUMNS[1:]]
    reasons = [
        f"- {name}, {kind}: {_short(reason)}\n"
        for name, row in counts.items()
        for kind, reason in row["reasons"].items()
    ]
    table = PACKAGES[language] + "".join([*lines, _package(ALL[language], ["", *total])])
    return table + (REASONS[language] + "".join(reasons) if reasons else "")


def _package(name: str, cells: list[Any]) -> str:
    return f"| {name} | {' | '.join(map(str, cells))} |\n"


def _short(reason: str) -> str:
    """The beginning of a reason, without what Markdown would take for its own."""
    plain = reason.replace("`", "").replace("|", "/").replace("<", "(").replace(">", ")")
    return plain if len(plain) <= SHORT else plain[: SHORT - 1].rstrip() + "…"
