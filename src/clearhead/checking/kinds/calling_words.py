"""What the names of parameters say of each other."""

from __future__ import annotations

import re


def of_another(mask: str, names: list[str], given: set[str]) -> bool:
    """Whether a mask is named after a parameter that is left to its default: `extra_key_mask` beside `extra_keys`.

    Args:
        mask: the parameter.
        names: of all parameters.
        given: those that are given something.
    """
    stem = re.sub(r"_?mask$", "", mask.lower()).rstrip("s")
    others = [name.lower().rstrip("s") for name in names if name != mask and name not in given]
    return len(stem) > 3 and any(other == stem or other.endswith(f"_{stem}") for other in others)
