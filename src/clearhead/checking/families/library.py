"""A folder's own code, where the library that has it is installed: run beside ours as an instance would be."""

from __future__ import annotations

import copy
import importlib
import json
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

from torch import nn

from clearhead.checking.families.against import compared
from clearhead.checking.families.found import checked
from clearhead.checking.families.known import recognised
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.formats.load import Loaded
from clearhead.messages import say

LIBRARY = "transformers"
CHECK = "family.code"


def of_model(loaded: Loaded, settings: Settings) -> Found:
    """What a model of a known family is asked beside the checks of ours: its weights against an original, its own code.

    Args:
        loaded: what `load` gave.
        settings: the seed, and an original to hold its weights against.

    Raises:
        UserError: if the original cannot be opened.
    """
    found = Found()
    if settings.against is not None:
        kind = next(loaded.model.parameters()).dtype
        found = compared(loaded.model, loaded.config, kind, settings.against)
    if not loaded.origin.startswith("Hugging Face") or not loaded.source.is_dir():
        return found
    module = _their_module(loaded)
    if isinstance(module, str):
        return found + Found((Check(CHECK, "skipped", module),))
    known = recognised(module)
    if known is None:
        return found + Found((Check(CHECK, "skipped", say("families.no_class", name=type(module).__name__)),))
    return found + checked(known, lambda: copy.deepcopy(module), Settings(seed=settings.seed))


def _their_module(loaded: Loaded) -> nn.Module | str:
    """The module that their library makes of the folder, or why there is none."""
    # Not needed for anything else, and large: only who has it pays for it.
    with Attempt() as attempt:
        library: Any = importlib.import_module(LIBRARY)
    if attempt.error is not None:
        return say("families.no_library", reason=attempt.reason)
    data = json.loads((loaded.source / "config.json").read_text(encoding="utf-8"))
    name = str(next(iter(data.get("architectures") or ()), ""))
    kind = getattr(library, name, None) if name else None
    if kind is None:
        return say("families.no_class", name=name or "-")
    # It draws how far it is, which nobody asked for.
    with Attempt() as attempt, redirect_stderr(StringIO()):
        made = kind.from_pretrained(str(loaded.source), local_files_only=True, trust_remote_code=False)
        if isinstance(made, nn.Module):
            return made
    return say("families.not_loaded", reason=attempt.reason or name)
