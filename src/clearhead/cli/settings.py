"""Settings that are changed while a conversation goes on."""

from __future__ import annotations

import difflib
import json

from jsonargparse import Namespace

from clearhead.cli.sampling import sampling_of
from clearhead.messages import UserError, say

KINDS: dict[str, type] = {
    "max_tokens": int,
    "temperature": float,
    "top_k": int,
    "top_p": float,
    "min_p": float,
    "repetition_penalty": float,
    "presence_penalty": float,
    "frequency_penalty": float,
    "seed": int,
    "stop": str,
    "overflow": str,
}
"""The settings, and what kind of value they take."""

UNSET = ("top_k", "overflow")
"""The settings that may be null: what suits the model."""


def shown(asked: Namespace) -> str:
    """All settings, one a line, as they can be typed."""
    return "\n".join(f"  {name} {_typed(name, asked[name])}".rstrip() for name in KINDS)


def _typed(name: str, value: object) -> str:
    if name == "stop" and isinstance(value, list) and len(value) < 2:
        return "".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def changed(asked: Namespace, typed: str) -> None:
    """Change one setting, typed as `temperature 0.5`.

    Raises:
        UserError: if there is no such setting or the value is out of range; nothing is changed then.
    """
    typed_name, _, value = typed.partition(" ")
    name = typed_name.lstrip("-").replace("-", "_")
    if name not in KINDS:
        near = difflib.get_close_matches(name, KINDS, 1, cutoff=0.0)[0]
        raise UserError(say("cli.chat.unknown_setting", name=typed_name, near=near))
    before = asked[name]
    asked[name] = [value] if name == "stop" and value else [] if name == "stop" else _read(name, value.strip())
    try:
        check(asked)
    except UserError:
        asked[name] = before
        raise


def _read(name: str, value: str) -> object:
    if name in UNSET and value == "null":
        return None
    try:
        return KINDS[name](value)
    except ValueError:
        raise UserError(say("cli.wrong_value", flag=name, value=value or '""', wanted=KINDS[name].__name__)) from None


def check(asked: Namespace) -> None:
    """Raise a UserError unless every setting is within its range."""
    from clearhead.generation.request import Request  # noqa: PLC0415 - torch comes after the flags are right
    from clearhead.generation.writing import check_overflow  # noqa: PLC0415

    sampling_of(asked)
    Request("", asked.max_tokens)
    check_overflow(asked.overflow)
