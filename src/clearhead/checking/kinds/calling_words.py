"""What the names of parameters say of each other."""

from __future__ import annotations

import inspect
import re

from clearhead.checking.target import Target


def of_another(mask: str, names: list[str], given: set[str]) -> bool:
    """Whether a mask is named after a parameter that is left to its default: `extra_key_mask` beside `extra_keys`, `prefix_mask` beside `prefix_embeds`.

    Args:
        mask: the parameter.
        names: of all parameters.
        given: those that are given something.
    """
    stem = re.sub(r"_?mask$", "", mask.lower()).rstrip("s")
    others = [name.lower().rstrip("s") for name in names if name != mask and name not in given]
    held = rf"(\w+_)?{re.escape(stem)}|{re.escape(stem)}_(embed|embedding|token|id|key|state|vector|feature)"
    return len(stem) > 3 and any(re.fullmatch(held, other) is not None for other in others)


def parameters_of(target: Target) -> list[inspect.Parameter]:
    """What can be given; where nothing but `*args` takes the stream, it stands for that."""
    every = list(target.signature.parameters.values())
    named = [p for p in every if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    rest = [p for p in every if p.kind is p.VAR_POSITIONAL]
    if rest and named and all(p.kind is p.KEYWORD_ONLY for p in named):
        return [inspect.Parameter(rest[0].name, inspect.Parameter.POSITIONAL_ONLY), *named]
    return named
