"""What a user said that a check made no use of: said in the report, so that nobody takes silence for consent."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from clearhead.checking.claims import stated
from clearhead.checking.constructing import CONFIGS, MEANING, NAMES
from clearhead.checking.guess import guessed
from clearhead.checking.settings import Settings
from clearhead.checking.target import Target
from clearhead.messages import say

SIZES = ("width", "heads", "kv_heads", "vocab", "context", "window")
SEQUENCES = frozenset({"width", "heads", "kv_heads", "context", "window"})
READ = {
    "attention": SEQUENCES,
    "block": SEQUENCES,
    "encoder": SEQUENCES | {"vocab"},
    "lm": SEQUENCES | {"vocab"},
    "seq2seq": frozenset({"width", "vocab"}),
    "norm": frozenset({"width", "context"}),
    "rotary": frozenset({"width", "heads"}),
    "positions": frozenset({"width", "context"}),
    "sdpa": frozenset({"window"}),
    "loss": frozenset({"vocab"}),
    "sampler": frozenset[str](),
}
"""Which sizes each kind's questions look at."""


def unused(target: Target, kind: str, settings: Settings) -> tuple[str, ...]:
    """A sentence for each thing that the user said and that came to nothing, or that the code contradicts.

    Args:
        target: what was checked.
        kind: as what.
        settings: what the user said.
    """
    return (*_other_kind(target, kind, settings), *_sizes(target, kind, settings))


def _other_kind(target: Target, kind: str, settings: Settings) -> Iterator[str]:
    likely = guessed(target) if settings.kind is not None else []
    if likely and kind not in likely:
        yield say("check.other_kind", kind=kind, likely=likely[0])


def _sizes(target: Target, kind: str, settings: Settings) -> Iterator[str]:
    for name in SIZES:
        value = getattr(settings, name)
        if value is None or name in {MEANING.get(parameter) for parameter in target.values} or _has_config(target):
            continue
        flag, own = f"--{name.replace('_', '-')}", stated(target, *NAMES[name])
        if name not in READ[kind]:
            yield say("check.size_not_asked", flag=flag, value=value, kind=kind)
        elif isinstance(own, int) and own != value:
            yield say("check.size_contradicted", flag=flag, value=value, own=own)
        elif target.values and own is None and name not in ("width", "window"):
            names = ", ".join(target.values)
            yield say("check.size_not_built", flag=flag, value=value, parameters=names)


def _has_config(target: Target) -> bool:
    """Whether it was built from an object that has every size."""
    return any(name in CONFIGS or dataclasses.is_dataclass(value) for name, value in target.values.items())
