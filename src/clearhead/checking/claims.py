"""What code says about itself: attributes, constructor values, names, words of its source. Never a verdict by themselves."""

from __future__ import annotations

import re
from typing import Any

from torch import nn

from clearhead.checking.constructing import CONFIGS, NAMES
from clearhead.checking.settings import Settings
from clearhead.checking.target import Target

_MISSING = object()


def stated(target: Target, *names: str) -> Any:
    """The value that the code states under any of these names; None if it states none.

    Looked for in the attributes of the module, then of its configuration object, then among the values its constructor was given.
    """
    made = target.sample
    places = [made, *(getattr(made, name, None) for name in CONFIGS)]
    for place in places:
        for name in names:
            value = getattr(place, name, _MISSING) if place is not None else _MISSING
            if value is not _MISSING and value is not None and not callable(value):
                return value
    return next((target.values[name] for name in names if target.values.get(name) is not None), None)


def positions_first(target: Target) -> bool:
    """Whether a docstring says that positions come before rows: "Time x Batch x Channel", "(seq_len, batch, dim)"."""
    words = r"\b(time|(tgt_|src_)?(seq\w*|len\w*))( x |\s*[×,]\s*)(batch\w*|bsz)\b"
    return any(re.search(words, each, re.IGNORECASE) for each in re.findall(r'"""(.*?)"""', target.source, re.DOTALL))


def size(target: Target, settings: Settings, meaning: str) -> int | None:
    """A size by its meaning ("width", "heads", "kv_heads", "vocab", "context", "window", "head_width"): what the user said, or what the code states."""
    said = getattr(settings, meaning, None)
    if said is not None:
        return int(said)
    value = stated(target, *NAMES[meaning])
    if isinstance(value, tuple | list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def says(target: Target, *words: str) -> bool:
    """Whether the name, the docstring or the source of the code, or the name of a submodule or buffer, has one of these words as part of a word."""
    made = target.sample
    names = [name for name, _ in (*made.named_modules(), *made.named_buffers())] if isinstance(made, nn.Module) else []
    text = " ".join([getattr(target.kind_of, "__name__", ""), target.source, *names])
    return re.search("|".join(map(re.escape, words)), text, re.IGNORECASE) is not None
