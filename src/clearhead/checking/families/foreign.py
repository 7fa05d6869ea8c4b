"""What of a module is not its family's: a class from elsewhere, a forward or a method that was replaced, a hook."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from clearhead.checking.strangers import Attempt
from clearhead.messages import say

USUAL = ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention")


def foreign(module: nn.Module, path: str, home: type) -> tuple[str, str]:
    """What was put there from outside, in words, and its line ("patch.py:31"); ("", "") if nothing was.

    The module at the path comes first, then what is in it, then what it is in.

    Args:
        module: the whole.
        path: of the part that differs.
        home: the family's class.
    """
    modules = dict(module.named_modules(remove_duplicate=False))
    below = [name for name in modules if path and name.startswith(f"{path}.")]
    words = path.split(".") if path else []
    above = [".".join(words[:length]) for length in range(len(words) - 1, -1, -1)]
    for name in [path, *below, *above]:
        # Of a subclass of the model itself all parts would be foreign.
        found = next(_changes(modules[name], home, whole=not name), None) if name in modules else None
        if found is not None:
            return found
    return _attention_of(module)


def _changes(part: nn.Module, home: type, *, whole: bool) -> Iterator[tuple[str, str]]:
    own = {home.__module__.partition(".")[0], "torch", "clearhead"}

    def strange(code: Any) -> bool:
        return str(getattr(code, "__module__", None) or "").partition(".")[0] not in own

    if "forward" in vars(part):
        replaced = vars(part)["forward"]
        yield say("families.forward", name=type(part).__name__), line(replaced)
    for hook in (*part._forward_pre_hooks.values(), *part._forward_hooks.values()):
        if strange(_bare(hook)):
            yield say("families.hook", name=getattr(_bare(hook), "__name__", type(hook).__name__)), line(hook)
    kind = type(part)
    if strange(kind) and not whole:
        yield say("families.class", name=kind.__name__), line(kind.forward)
    for name, held in vars(kind).items() if not strange(kind) else ():
        if inspect.isfunction(held) and strange(inspect.unwrap(held)):
            yield say("families.method", name=f"{kind.__name__}.{name}"), line(held)


def _attention_of(module: nn.Module) -> tuple[str, str]:
    """A kernel that was registered under a name of its own."""
    named = getattr(getattr(module, "config", None), "_attn_implementation", None)
    if isinstance(named, str) and named not in USUAL:
        return say("families.kernel", name=named), ""
    return "", ""


def line(code: Any) -> str:
    """Where a function begins, "patch.py:31"; "" if that cannot be known."""
    with Attempt():
        inner = inspect.unwrap(_bare(code)).__code__
        return f"{Path(inner.co_filename).name}:{inner.co_firstlineno}"
    return ""


def _bare(code: Any) -> Any:
    """The function in a bound method, a partial call or an object that can be called."""
    if isinstance(code, functools.partial):
        return _bare(code.func)
    if inspect.ismethod(code):
        return code.__func__
    return code if inspect.isroutine(code) else vars(type(code)).get("__call__", code)
