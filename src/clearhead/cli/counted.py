"""What a tokenizer makes of texts, told: in words, as a table of scripts, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from clearhead.messages import say
from clearhead.text.columns import columns_of

if TYPE_CHECKING:
    from clearhead.text.statistics import Statistics


def numbers(found: Statistics) -> dict[str, object]:
    """What was counted, as JSON knows it."""
    return {
        "documents": found.documents,
        "tokens": found.tokens,
        "characters": found.characters,
        "bytes": found.bytes,
        "characters_per_token": found.characters_per_token,
        "bytes_per_token": found.bytes_per_token,
        "scripts": {
            script: {
                "characters": count.characters,
                "tokens": _counted(count.tokens),
                "characters_per_token": count.characters_per_token,
            }
            for script, count in found.scripts.items()
        },
        "characters_not_aligned": found.apart,
        "words": found.words,
        "tokens_per_word": found.tokens_per_word,
        "vocabulary": found.size,
        "used": found.used,
        "unknown": found.unknown,
        "longest": list(found.longest),
    }


def _counted(tokens: float) -> float:
    """The tokens of a script without what adding thirds has left behind; a whole number as one."""
    near = round(tokens, 3)
    return int(near) if near.is_integer() else near


def sentences(found: Statistics) -> Iterator[str]:
    """What was counted, a line each."""
    yield say(
        "cli.tokenizer.counted",
        tokens=f"{found.tokens:,}",
        documents=f"{found.documents:,}",
        characters=f"{found.characters:,}",
        bytes=f"{found.bytes:,}",
    )
    characters, size = f"{found.characters_per_token:.3f}", f"{found.bytes_per_token:.3f}"
    yield say("cli.tokenizer.per_token", characters=characters, bytes=size)
    if found.tokens_per_word is not None:
        yield say("cli.tokenizer.per_word", tokens=f"{found.tokens_per_word:.3f}", words=f"{found.words:,}")
    used = f"{found.used / found.size:.1%}"
    yield say("cli.tokenizer.used", size=f"{found.size:,}", used=f"{found.used:,}", share=used)
    if found.unknown is not None:
        share = f"{found.unknown / max(found.tokens, 1):.2%}"
        yield say("cli.tokenizer.unknown", unknown=f"{found.unknown:,}", share=share)
    if found.longest:
        yield say(
            "cli.tokenizer.longest", tokens=" ".join(json.dumps(each, ensure_ascii=False) for each in found.longest)
        )
    if found.apart:
        yield say("cli.tokenizer.not_aligned", characters=f"{found.apart:,}")


def scripts_table(found: Statistics) -> list[str]:
    """The table of scripts, an empty line before it."""
    if not found.scripts:
        return []
    rows = [[say(f"cli.tokenizer.column.{name}") for name in ("script", "characters", "tokens", "per_token")]]
    for script, count in found.scripts.items():
        name = say(f"cli.tokenizer.script.{script.lower().replace(' ', '_')}")
        rows.append([name, f"{count.characters:,}", f"{count.tokens:,.0f}", f"{count.characters_per_token:.3f}"])
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [" " * (width - columns_of(cell)) + cell for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join(["", first + " " * (widths[0] - columns_of(first)), *cells]))
    return ["", *lines]
