"""What a forward gives: the tensor that is the result, whatever it lies in, and the tensors beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from clearhead.messages import UserError, say

DEEP = 4
"""So many containers may lie in each other."""

MANY = 64
"""So many things are looked at, no more."""


class NoTensorError(UserError):
    """A forward gives nothing that could be compared."""


def tensors_in(result: Any, name: str = "", depth: int = DEEP) -> Iterator[tuple[str, Tensor]]:
    """The tensors of what a forward gave with where they lie: ("logits", ...), ("[1]", ...), ("[1][0]", ...); "" is the result itself.

    Args:
        result: a tensor, or tuples, lists and mappings of tensors.
        name: where it lies.
        depth: how far it is looked into.
    """
    if isinstance(result, Tensor):
        yield name, result
    elif isinstance(result, Mapping | tuple | list) and depth:
        # Anything else may go on for ever, as each letter of a text is a text.
        inside = result.items() if isinstance(result, Mapping) else enumerate(result)
        for (key, value), _ in zip(inside, range(MANY), strict=False):
            own = str(key) if isinstance(key, str) and not name else f"[{key}]"
            yield from tensors_in(value, f"{name}{own}", depth - 1)


def first_tensor(result: Any, name: str) -> Tensor:
    """The first tensor of what a forward gave.

    Args:
        result: what it gave.
        name: of the side, for the message.

    Raises:
        NoTensorError: if there is none.
    """
    for _, tensor in tensors_in(result):
        return tensor
    raise NoTensorError(say("diff.no_tensor", name=name, kind=type(result).__name__))


def beside(result: Any, taken: Tensor) -> dict[str, Tensor]:
    """The tensors of what a forward gave, but for the one that was taken as its result and for single numbers.

    Args:
        result: what it gave.
        taken: the result.
    """
    found = {name: each for name, each in tensors_in(result) if each.dim()}
    own = next((name for name, each in found.items() if _same(each, taken)), None)
    return {name: each.detach().clone() for name, each in found.items() if name != own}


def _same(one: Tensor, other: Tensor) -> bool:
    if one.numel() != other.numel():
        return False
    return one.data_ptr() == other.data_ptr() or torch.equal(one.flatten(), other.flatten())
