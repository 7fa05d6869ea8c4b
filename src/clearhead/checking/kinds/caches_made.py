"""How a language model's cache begins: found by trying what people's code offers."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from clearhead.checking.claims import size
from clearhead.checking.constructing import CONFIGS, MEANING
from clearhead.checking.kinds.lm_calling import Given, Style
from clearhead.checking.kinds.lm_case import CacheUse, LmCase, Session, raw
from clearhead.checking.settings import Settings
from clearhead.checking.strangers import Attempt
from clearhead.generation.stores.growing import GrowingStore
from clearhead.models.decoder import Decoder

MAKER = r"(new|init|make|empty|create|build|alloc|allocate|get|fresh|start|setup)_?(\w+_)?(kv)?_?(cache|caches|state|states|store|past)|(kv_?)?cache_?(new|init|empty)"
RESET = r"(reset|clear|empty|flush|drop|init|setup|start)_?(\w+_)?(kv)?_?(cache|caches|state|states|past)|reset"
ROWS_NAMES = (
    "batch_size",
    "batch",
    "b",
    "bsz",
    "rows",
    "max_batch_size",
    "max_batch",
    "n",
    "bs",
    "batch_len",
    "num_rows",
    "n_batch",
)


def with_cache(case: LmCase, settings: Settings) -> LmCase:
    """The case with its cache, if it has one that can be used."""
    roles = dict(case.style.roles).values()
    taken = {"cache", "use", "start"} | ({"places"} if _methods(case.case.target.make()) else set())
    if case.call is not None or not taken & set(roles):
        return case
    tried = []
    for use in _uses(case, settings):
        for style in _ways(case.style):
            found = replace(case, cache=use, style=style)
            reason = _works(found)
            if not reason:
                return found
            tried.append(f"{use.described}: {reason}")
    return replace(case, cache_tried="; ".join(dict.fromkeys(tried))[:300] or "-")


def _ways(style: Style) -> Iterator[Style]:
    """Ways to say how much came before; a forward without a cache may not have shown which is meant."""
    yield style
    if style.name("places"):
        yield replace(style, places_rows=not style.places_rows)
    if style.name("start"):
        for start_as in ("tensor", "range"):
            yield replace(style, start_as=start_as)


def _works(case: LmCase) -> str:
    """Why no text can be read in two pieces with this cache, "" if it can."""
    ids = case.ids(2, 5)
    with Attempt() as attempt, torch.no_grad():
        module = case.case.ready()
        session = Session(case, module, 2)
        session.feed(ids[:, :4])
        assert case.cache is not None
        if not case.cache.internal and session.cache is None:
            return "no cache comes back"
        second = session.feed(ids[:, 4:])
        # At its own place, so that positions are not taken for something that is kept.
        place = torch.tensor([4]).expand(2, 1) if case.style.places_rows else torch.tensor([4])
        at = Given() if case.style.name("start") else Given(4, places=place if case.style.name("places") else None)
        alone = raw(case, case.case.ready(), ids[:, 4:], at).logits
        if case.cache.internal and case.style.name("start") is None and torch.equal(second[:, -1], alone[:, -1]):
            return "nothing is kept"
        if not case.cache.internal and _empty(session.cache):
            return "nothing is kept"
        return ""
    return attempt.reason


def _empty(cache: Any) -> bool:
    """Whether what was passed holds nothing still."""
    if isinstance(cache, tuple | list):
        return all(each is None or (isinstance(each, tuple | list | dict) and _empty(each)) for each in cache)
    return isinstance(cache, dict) and (not cache or all(value is None for value in cache.values()))


def _uses(case: LmCase, settings: Settings) -> Iterator[CacheUse]:
    """Ways in which a cache may begin, the likeliest first."""
    name = case.style.name("cache")
    made = case.case.target.make()
    methods = _methods(made)
    if name is None:
        yield CacheUse(_resetting(made, case, settings), "kept inside", internal=True)
        return
    for method in methods:
        yield CacheUse(partial(_filled_by_name, method, case, settings), f"{method}()")
    if isinstance(made, Decoder):
        yield CacheUse(lambda m, rows: GrowingStore(m), "GrowingStore")
        return
    yield CacheUse(lambda m, rows: None, f"{name}=None")
    for label, maker in _named(case, name):
        yield CacheUse(partial(_filled, maker, case, settings), f"{label}()")
    layers = layers_of(case, settings)
    yield CacheUse(lambda m, rows: [], f"{name}=[]")
    yield CacheUse(lambda m, rows: [None] * layers, f"{name}=[None] * {layers}")
    yield CacheUse(lambda m, rows: {}, f"{name}={{}}")
    yield CacheUse(lambda m, rows: [{} for _ in range(layers)], f"{name}=[{{}}, ...]")
    yield CacheUse(lambda m, rows: [[] for _ in range(layers)], f"{name}=[[], ...]")
    for label, maker in _named(case, name):
        one = partial(_filled, maker, case, settings)
        yield CacheUse(partial(_each, one, layers), f"[{label}(), ...]")


def _filled_by_name(method: str, case: LmCase, settings: Settings, module: Any, rows: int) -> Any:
    return _filled(getattr(module, method), case, settings, module, rows)


def _each(one: Callable[[Any, int], Any], layers: int, module: Any, rows: int) -> list[Any]:
    """A cache of its own for each block."""
    return [one(module, rows) for _ in range(layers)]


def _methods(made: Any) -> list[str]:
    """The methods whose names say that they make a cache."""
    return [
        name for name in dir(type(made)) if re.fullmatch(MAKER, name.lower()) and callable(getattr(made, name, None))
    ]


def _resetting(made: Any, case: LmCase, settings: Settings) -> Callable[[Any, int], Any]:
    """What begins a text where the module keeps its own cache: its method for that, if it has one."""
    method = next((each for each in dir(type(made)) if re.fullmatch(RESET, each.lower())), None)

    def begin(module: Any, rows: int) -> None:
        if method is not None:
            with Attempt():
                _filled_by_name(method, case, settings, module, rows)

    return begin


def _named(case: LmCase, parameter: str) -> Iterator[tuple[str, Any]]:
    """Classes of caches, and functions that make them, beside the target's class."""
    kind_of = case.case.target.kind_of
    home = sys.modules.get(getattr(kind_of, "__module__", ""))
    known = {**getattr(home, "__dict__", {}), **getattr(getattr(kind_of, "forward", None), "__globals__", {})}
    signature = case.case.target.signature.parameters.get(parameter)
    wanted = str(getattr(signature, "annotation", ""))
    found: list[tuple[str, Any]] = [(name, value) for name, value in known.items() if _begins(name.lower(), value)]
    yield from sorted(found, key=lambda pair: pair[0] not in wanted)


def _begins(name: str, value: Any) -> bool:
    """Whether this is a class of caches, or a function that makes them."""
    if isinstance(value, type):
        return not issubclass(value, nn.Module) and re.search(r"cache|store|past|state", name) is not None
    return inspect.isfunction(value) and re.fullmatch(MAKER, name) is not None


def layers_of(case: LmCase, settings: Settings) -> int:
    """L: as stated, or the length of the longest list of modules."""
    stated = size(case.case.target, settings, "layers")
    if stated is not None:
        return stated
    made = case.case.target.make()
    lists = [len(m) for m in made.modules() if isinstance(m, nn.ModuleList)] if isinstance(made, nn.Module) else []
    return max(lists, default=2)


def _filled(function: Callable[..., Any], case: LmCase, settings: Settings, module: Any, rows: int) -> Any:
    """What a function or class that makes caches gives, its arguments filled in by their names."""
    given: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = _argument(name.lower(), case, settings, module, rows)
        if value is not None:
            given[name] = value
        elif parameter.default is parameter.empty:
            raise LookupError(f"{name} is not known")
    return function(**given)


def _argument(name: str, case: LmCase, settings: Settings, module: Any, rows: int) -> Any:
    """The value of an argument by its name; None if that is not known."""
    target, meaning = case.case.target, MEANING.get(name, "")
    if name in ROWS_NAMES or name in ("dtype", "device"):
        return {"dtype": case.case.dtype, "device": torch.device("cpu")}.get(name, rows)
    if name in ("model", "module", "lm", "net", "gpt"):
        return module
    if name in CONFIGS:
        return next((getattr(module, each) for each in CONFIGS if hasattr(module, each)), None)
    if meaning == "layers":
        return layers_of(case, settings)
    if meaning == "context" or name in ("max_tokens", "capacity", "size", "max_size"):
        return size(target, settings, "context") or case.limit or 32
    return _head_sizes(meaning, case, settings)


def _head_sizes(meaning: str, case: LmCase, settings: Settings) -> int | None:
    """A size of the attention's, as the code states it."""
    target = case.case.target
    heads, width = size(target, settings, "heads"), size(target, settings, "width")
    if meaning == "kv_heads":
        return size(target, settings, "kv_heads") or heads
    if meaning == "head_width":
        return size(target, settings, "head_width") or (width // heads if width and heads else None)
    return size(target, settings, meaning) if meaning in ("heads", "width", "window") else None
