"""One object where there should be several, and two where there should be one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from clearhead.checking.constructing import CONFIGS
from clearhead.checking.kinds.kind import Found
from clearhead.checking.report import Check, Fault
from clearhead.checking.strangers import Attempt
from clearhead.checking.target import Target
from clearhead.messages import say

SHARING = r"shar(e|ed|ing)\b|albert|universal|recurren|tied[ _]layers|weight[- _]?ty|looped|cross[- _]layer"
ARCHITECTURES = r"albert|universal|recurren|looped"
TIED = r"\b(tie|ties|tied|tying)\b|_tied?\b|\btied?_|weight[ _-]?tying|tie_?weights"
OPTION = r"(^|_)(tie|tied|tying)(_|$)|share\w*_emb|^tie"
PLACES = r"(^|[._])w?(pos|position|positions|positional|pe|wpe|segments?|token_?types?)([._]|$)|pos(ition)?_?emb|_pos$"
"""Names of tables that are not of the vocabulary."""
UNTIED = r"\b(un[- ]?tied|not[ _]tied|no[ _](weight[ _])?tying|(do|does)(n't| not) tie|never tied?|without tying|instead of tying)\b"


def shared(target: Target, made: nn.Module) -> Found:
    """Whether a list of blocks has one block several times.

    Args:
        target: the code under check.
        made: a copy of it.
    """
    found = list(_repeated(made))
    if not found:
        return Found((Check("blocks.shared", "pass", say("common.not_shared")),))
    where, count, kind = found[0]
    if claims_sharing(target):
        note = say("common.shared_claimed", where=where, count=count)
        return Found((Check("blocks.shared", "skipped", note),), notes=(note,))
    evidence = say("common.shared", where=where, count=count, kind=kind)
    fault = Fault("blocks.shared", "reproduced", evidence, where, say("common.fix_shared"))
    return Found((Check("blocks.shared", "fail", evidence, 1.0),), (fault,))


def claims_sharing(target: Target) -> bool:
    """Whether the code says that its blocks share weights: in words, options or names of parts, or as an architecture that is known for it.

    The name of a class alone says too little of what is shared, unless it is that of such an architecture.
    """
    text = re.sub(r"^\s*class \w+.*$", " ", target.source, flags=re.MULTILINE)
    name = str(getattr(target.kind_of, "__name__", ""))
    return (
        re.search(SHARING, f"{text} {target.kind_of.__doc__}", re.IGNORECASE) is not None
        or re.search(ARCHITECTURES, name, re.IGNORECASE) is not None
    )


def _repeated(made: nn.Module) -> Iterator[tuple[str, int, str]]:
    """Lists in which parts with matrices have the same weights: (where, how often, of what class)."""
    for path, module in made.named_modules():
        lists: dict[str, Any] = {name: value for name, value in vars(module).items() if isinstance(value, list | tuple)}
        if isinstance(module, nn.ModuleList | nn.Sequential | nn.ModuleDict):
            lists[""] = list(module._modules.values())
        else:
            lists |= _numbered(module)
        for name, parts in lists.items():
            blocks = [part for part in parts if isinstance(part, nn.Module) and _has_matrix(part)]
            keys = [tuple(id(value) for value in part.parameters()) for part in blocks]
            again = [part for part, key in zip(blocks, keys, strict=True) if keys.count(key) > 1]
            if again:
                yield f"{path}.{name}".strip("."), len(again), type(again[0]).__name__


def _numbered(module: nn.Module) -> dict[str, list[nn.Module | None]]:
    """Children whose names differ in a number alone, such as block1 and block2."""
    groups: dict[str, list[nn.Module | None]] = {}
    for name, child in module._modules.items():
        stem = re.sub(r"\d+", "#", name)
        if stem != name:
            groups.setdefault(stem, []).append(child)
    return groups


def _has_matrix(part: nn.Module) -> bool:
    return not isinstance(part, nn.Embedding) and any(parameter.dim() >= 2 for parameter in part.parameters())


def tying(target: Target, made: nn.Module) -> Found:
    """Whether a head that is said to be tied to the embedding is the same parameter.

    Args:
        target: the code under check.
        made: a copy of it.
    """
    tables = [(name, part.weight) for name, part in made.named_modules() if isinstance(part, nn.Embedding)]
    tables = [(name, weight) for name, weight in tables if not re.search(PLACES, name, re.IGNORECASE)]
    heads = list(_heads(made))
    pairs = [(one, other) for one in tables for other in heads if _fits(one[1], other[1])]
    if not pairs or not _claims_tying(target):
        return Found()
    if any(one[1] is other[1] for one, other in pairs):
        return Found((Check("tying.lost", "pass", say("common.tied")),))
    (table, one), (head, other) = pairs[0]
    evidence = say(
        "common.tied_data" if one.data_ptr() == other.data_ptr() else "common.tying_lost", table=table, head=head
    )
    fault = Fault("tying.lost", "reproduced", evidence, head, say("common.fix_tying", table=table, head=head))
    return Found((Check("tying.lost", "fail", evidence, 1.0),), (fault,))


def _heads(made: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Linear layers that may be the last one: none of a list of blocks, and none whose features the next one beside it takes."""
    lists = [path for path, part in made.named_modules() if isinstance(part, nn.ModuleList) and len(part) > 0]
    for path, part in made.named_modules():
        if not isinstance(part, nn.Linear) or any(path.startswith(f"{each}." if each else "") for each in lists):
            continue
        beside = [
            each for each in made.get_submodule(path.rpartition(".")[0]).children() if isinstance(each, nn.Linear)
        ]
        after = next(iter(beside[beside.index(part) + 1 :]), None)
        if after is None or after.in_features != part.out_features:
            yield path, part.weight


def _fits(table: Tensor, head: Tensor) -> bool:
    return table.shape == head.shape and table.shape[0] != table.shape[1]


def _claims_tying(target: Target) -> bool:
    """Whether the code says that embedding and head are one."""
    made = target.make()
    places = [target.values, *(vars(each) for each in (made, *_configs(target, made)) if hasattr(each, "__dict__"))]
    for place in places:
        said = [value for name, value in place.items() if re.search(OPTION, name) and isinstance(value, bool)]
        if said:
            return said[0]
    if any(_does_nothing(value) for name, value in _methods(target) if re.search(OPTION, name)):
        return False
    if _is_option(target):
        # Whoever made it chose, and nothing tells what.
        return False
    text = re.sub(UNTIED, " ", target.source, flags=re.IGNORECASE)
    return re.search(TIED, text, re.IGNORECASE) is not None


def _is_option(target: Target) -> bool:
    """Whether tying is a choice of the constructor's that no attribute keeps, and that defaults to no."""
    for kind in inspect.getmro(target.kind_of):
        # A derived class may leave the choice of its base as it is.
        with Attempt():
            parameters = inspect.signature(vars(kind)["__init__"]).parameters.items()
            if any(re.search(OPTION, name) and each.default is False for name, each in parameters):
                return True
    return False


def _methods(target: Target) -> list[tuple[str, Any]]:
    return [(name, value) for name in dir(target.kind_of) if inspect.isfunction(value := getattr(target.kind_of, name))]


def _does_nothing(method: Any) -> bool:
    """Whether a method has no statement: a derived class that does not want what its base does."""
    # Constants and names are what an empty function has, too; an operation on either is more than that.
    return not method.__code__.co_names and not method.__code__.co_varnames[1:]


def _configs(target: Target, made: Any) -> list[Any]:
    """The configuration objects that the module holds or was given."""
    held = [getattr(made, name, None) for name in CONFIGS]
    return [each for each in (*held, *(target.values.get(name) for name in CONFIGS)) if each is not None]
