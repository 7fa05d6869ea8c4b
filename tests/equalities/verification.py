"""Writes docs/verification.md and its Chinese twin: `python -m tests.equalities.verification --write`.

Every claim is run over all its cases, and every planted fault under its check; only what was seen to hold and to be caught
is written so. The largest differences found go to the console: they belong to one machine.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.equalities import registry
from tests.equalities.checks_found import section
from tests.equalities.registry import Claim, Fault
from tests.house.source import ROOT

HERE = Path(__file__).parent
PAGES = {"en": ROOT / "docs" / "verification.md", "zh": ROOT / "docs" / "verification.zh-CN.md"}
COMMAND = "python -m tests.equalities.verification --write"
HEADS = {
    "en": f"""# What is verified

[中文](verification.zh-CN.md) · written by `{COMMAND}`; not by hand.

Each line is a claim about every model that clearhead builds, proved over a grid of small models in float64 (differences of
at most 1e-12 unless the test says otherwise), and the mistakes that were put into the package by hand to see the very same
check fail. Mistakes that `clearhead check` looks for bear the names it gives them. To run all of it:
`python -m pytest tests/equalities`.

| claim | test | cases | planted fault | caught |
|---|---|---|---|---|
""",
    "zh": f"""# 验证了什么

[English](verification.md) · 由 `{COMMAND}` 写成，不是手写的。

每一行是对 clearhead 所构建的每个模型的一条断言，在一组小模型上用 float64 证明（除非测试另有说明，差异不超过 1e-12）；
旁边是为检验这条断言而亲手放进代码的错误：同一个检查必须因它而失败。`clearhead check` 所查找的错误沿用它的命名。
全部运行：`python -m pytest tests/equalities`。

| 断言 | 测试 | 情形数 | 放入的错误 | 抓到 |
|---|---|---|---|---|
""",
}
YES = {"en": "yes", "zh": "是"}
NO = {"en": "NO", "zh": "否"}


def claims() -> list[Claim]:
    """All claims of this folder, file by file."""
    for path in sorted(HERE.glob("test_*.py")):
        if path.stem not in ("test_faults", "test_verification"):
            importlib.import_module(f"tests.equalities.{path.stem}")
    return sorted(registry.CLAIMS, key=lambda claim: claim.where.partition("::")[0])


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """The package with the fault in it."""
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        yield


def holds(claim: Claim, case: str) -> bool:
    """Whether the check passes; any other error than a failed assertion is an error."""
    try:
        claim.run(case)
    except (AssertionError, pytest.fail.Exception):
        return False
    return True


def page(language: str, caught: dict[tuple[str, str], bool] | None = None) -> str:
    """The page; `caught` says by claim's test and fault's id what was seen, all caught if None."""
    lines = []
    for claim in claims():
        first = [
            getattr(claim, "english" if language == "en" else "chinese"),
            f"`{claim.where}`",
            f"{len(claim.cases) or 1}",
        ]
        for fault in claim.faults:
            seen = True if caught is None else caught[claim.where, fault.id]
            said = fault.english if language == "en" else fault.chinese
            lines.append([*first, f"`{fault.id}`: {said}", (YES if seen else NO)[language]])
            first = ["", "", ""]
    return (
        HEADS[language]
        + "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
        + section(language)
    )


def verify() -> dict[tuple[str, str], bool]:
    """Run everything, say what was found, and give back which faults were caught."""
    caught = {}
    for claim in claims():
        registry.differences.clear()
        begun = time.perf_counter()
        failed = [case for case in claim.cases or [""] if not holds(claim, case)]
        if failed:
            raise SystemExit(f"{claim.where} does not hold for: {', '.join(failed)}")
        largest = max(registry.differences, default=0.0)
        for fault, case in claim.faults.items():
            with planted(fault):
                caught[claim.where, fault.id] = not holds(claim, case)
        missed = [fault.id for fault in claim.faults if not caught[claim.where, fault.id]]
        end = f" MISSED: {', '.join(missed)}" if missed else ""
        print(f"{claim.where}  {largest:.1e}  {time.perf_counter() - begun:.1f} s{end}", flush=True)  # noqa: T201
    return caught


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the pages after running everything")
    wanted = parser.parse_args()
    caught = verify()
    if wanted.write:
        for language, path in PAGES.items():
            path.write_text(page(language, caught), encoding="utf-8")
    return 0 if all(caught.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
