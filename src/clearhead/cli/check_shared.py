"""What `clearhead check` and `clearhead diff` have in common: what is typed, and how a program reads the answer. Imports without torch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jsonargparse import Namespace

from clearhead.messages import UserError, say

KINDS = "attention, sdpa, block, encoder, lm, seq2seq, norm, rotary, positions, loss or sampler"
GUARD = (
    "seconds; the code runs in a process of its own, which is a guard against crashes and endless loops, not a sandbox"
)


@contextmanager
def refusing(arguments: Sequence[str]) -> Iterator[None]:
    """A command in which a program that asked for JSON gets it, too, where there is no answer: {"error": the line}."""
    try:
        yield
    except UserError as error:
        if "--json" in arguments:
            print(as_json({"error": str(error)}))
        raise


def as_json(made: Mapping[str, Any]) -> str:
    """One line of JSON that every program can read: what is no number, or has no bounds, is null."""
    return json.dumps(_plain(made), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def must_be_possible(asked: Namespace) -> None:
    """Raise a UserError before anything is run if the page has no folder, or no time was given."""
    if asked.html is not None and not Path(asked.html).parent.is_dir():
        raise UserError(say("cli.check.no_folder", path=asked.html, folder=Path(asked.html).parent))
    if not asked.time_limit > 0:
        raise UserError(say("training.setting", name="time-limit", value=asked.time_limit, wanted="> 0"))


def is_code(name: str) -> bool:
    """Whether FILE.py:NAME or package.module:NAME is meant, not a model.

    Raises:
        UserError: if it is a Python file in which nothing is named.
    """
    if name.endswith(".py"):
        raise UserError(say("check.no_name", name=name))
    return ":" in name and not Path(name).exists()


def pair(written: str) -> tuple[str, Any]:
    """KEY=VALUE; the value as JSON if it is that, otherwise as a word. Python's own words for true, false and nothing are understood.

    Raises:
        UserError: if there is no key or no `=`.
    """
    key, found, value = written.partition("=")
    if not found or not key:
        raise UserError(say("cli.check.set", written=written))
    value = {"True": "true", "False": "false", "None": "null"}.get(value, value)
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
