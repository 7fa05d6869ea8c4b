"""docs/proofs.md and its Chinese twin, written from what ran: one table of claims, two languages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proofs.claims import Report, Table, Words

HEADING = Words("# Small trained proofs", "# 训练出来的小证明")
OTHER = Words("[中文](proofs.zh-CN.md)", "[English](proofs.md)")
INTRODUCTION = Words(
    "What the notes say about Transformers, each as a small training or a measurement that anybody can repeat: `make proofs` runs all, "
    "`python -m proofs induction` one of them; `python -m proofs --write` writes this page and its pictures from what ran. Every claim has a bar, "
    "set from two or three seeds with a margin; a claim that misses its bar makes the command fail. The numbers are those of seed 0 on "
    "one thread of a CPU; another processor may round otherwise and give slightly different ones.",
    "笔记里关于 Transformer 的说法，每一条都是一次人人可以重复的小训练或测量：`make proofs` 全部运行，`python -m proofs induction` 只运行一个；"
    "`python -m proofs --write` 用运行的结果写出本页和图。每个论断都有一条界线，由两三个随机种子测出并留有余量；有一条没达到，命令就以失败结束。"
    "这里的数字来自种子 0、一个 CPU 线程；别的处理器舍入不同，数字会略有差别。",
)
COLUMNS = (Words("claim", "论断"), Words("measured", "测得"), Words("bar", "界线"), Words("", ""))
VERDICT = {True: Words("right", "成立"), False: Words("**WRONG**", "**不成立**")}
COLON = {"en": ":", "zh": "："}
PAGES = {"en": "proofs.md", "zh": "proofs.zh-CN.md"}


def page(language: str, found: Mapping[str, tuple[Words, Words, Report]]) -> str:
    """The page in one language: name of a proof -> its title, what it is about, what it found."""

    def said(words: Words) -> str:
        return words.en if language == "en" else words.zh

    parts = [said(HEADING), said(OTHER), said(INTRODUCTION)]
    for name, (title, about, report) in found.items():
        parts += [f"## {said(title)}", f"`python -m proofs {name}`", said(about)]
        rows = [[said(claim.words), claim.found, claim.wanted, said(VERDICT[claim.right])] for claim in report.claims]
        parts.append(_table([said(column) for column in COLUMNS], rows))
        parts += [_captioned(table, language) for table in report.tables]
        for picture in report.pictures:
            caption = said(picture.caption)
            parts.append(f"{caption}{COLON[language]}\n\n![{caption}](proofs/{picture.name}.svg)")
    return "\n\n".join(parts) + "\n"


def write(folder: Path, found: Mapping[str, tuple[Words, Words, Report]]) -> None:
    """Write both pages and all pictures under `folder`, and remove pictures that are no more."""
    pictures = folder / "proofs"
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    for _, _, report in found.values():
        for picture in report.pictures:
            (pictures / f"{picture.name}.svg").write_text(picture.svg, encoding="utf-8", newline="\n")
    for language, name in PAGES.items():
        (folder / name).write_text(page(language, found), encoding="utf-8", newline="\n")


def _captioned(table: Table, language: str) -> str:
    head = [column[language == "zh"] for column in table.head]
    caption = table.caption.en if language == "en" else table.caption.zh
    return f"{caption}{COLON[language]}\n\n{_table(head, table.rows)}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)
