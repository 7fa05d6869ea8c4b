"""A module of sequences, (B,T,D) -> (B,T,D) or ids (B,T) -> (B,T,D), and one way to run it, whatever its interface."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.case import Case
from clearhead.checking.kinds.calling import Style, called, first_of, output_of
from clearhead.checking.kinds.masks_found import MaskUse, encoded
from clearhead.checking.strangers import Seeded
from clearhead.checking.target import Target


@dataclass(frozen=True)
class SequenceCase:
    """A module of sequences and how it is called.

    Args:
        case: the target, its inputs (rows first, whatever the module wants) and one way to run it without mask or memory.
        style: how it is called.
        width: D.
        batch_first: whether it wants the rows first; its own claim alone decides.
        takes_mask: its first mask; None if it takes none.
        masks: all of its masks.
        needs: the masks without which it cannot be called; None does not do in their place.
        takes_memory: whether keys and values may come from elsewhere.
        causal: whether the code claims that a position sees no later one; None if it says nothing.
        window: how many keys it claims that a query sees; None if it says nothing.
        returns_weights: whether it returns more than the stream.
        heads: H, if it is known.
        kv_heads: K, if it is known.
        ids: whether it is fed with ids.
        vocab: how many ids there are.
        pad: the id of padding, which is given to no real position; None if there is none.
        limit: the longest input, if there is a limit below 64.
        fixed: the one length that it takes; None if it takes several.
        call: the user's own way to call it.
        remembers: whether a second call differs from the first, so that each needs a copy of its own.
    """

    case: Case
    style: Style
    width: int
    batch_first: bool = True
    takes_mask: MaskUse | None = None
    masks: tuple[MaskUse, ...] = ()
    needs: frozenset[str] = frozenset()
    takes_memory: bool = False
    causal: bool | None = None
    window: int | None = None
    returns_weights: bool = False
    heads: int | None = None
    kv_heads: int | None = None
    ids: bool = False
    vocab: int = 61
    pad: int | None = None
    limit: int | None = None
    fixed: int | None = None
    call: Any = None
    remembers: bool = False

    def length(self, wanted: int) -> int:
        """A length near the wanted one that the module takes."""
        return self.fixed or min(wanted, self.limit or wanted)

    def inputs(self, rows: int, length: int, seed: int = 0) -> Tensor:
        """Random input of that size."""
        return self.case.inputs(rows, length, seed, self.case.dtype)[0]


def real_ids(ids: Tensor, vocab: int, pad: int | None) -> Tensor:
    """The ids with the next one in the place of padding: code may count positions by it."""
    return ids if pad is None else torch.where(ids == pad, (ids + 1) % vocab, ids)


def run(
    case: SequenceCase,
    module: Any,
    x: Tensor,
    keep: Tensor | None = None,
    memory: Tensor | None = None,
    *,
    memory_keep: Tensor | None = None,
    use: MaskUse | None = None,
) -> Tensor:
    """The output (B,T,D) of a module, rows first.

    Args:
        case: how it is called.
        module: a copy of the target, or another module with its interface.
        x: (B,T,D), or ids (B,T).
        keep: (B,S) or (B,T,S), True where a key is kept; needs a mask.
        memory: (B,S,D) for keys and values.
        memory_keep: (B,S), True where a position of the memory is kept.
        use: the mask that is used, the case's first if None.
    """
    with Seeded():
        # What is random is the same at each call: noise is another question than who sees whom.
        return stream_of(case, run_all(case, module, x, keep, memory, memory_keep=memory_keep, use=use), x)


def run_all(
    case: SequenceCase,
    module: Any,
    x: Tensor,
    keep: Tensor | None = None,
    memory: Tensor | None = None,
    *,
    memory_keep: Tensor | None = None,
    use: MaskUse | None = None,
) -> Any:
    """All that the module returns; as `run`."""
    if case.call is not None:
        return case.call(module, x) if keep is None else case.call(module, x, keep)
    masks = {}
    use = use or case.takes_mask
    if keep is not None and use is not None:
        masks[use.name] = encoded(use, keep, x.shape[1], case.case.dtype)
    if memory_keep is not None and case.style.names("memory_mask"):
        name = case.style.names("memory_mask")[0]
        like = replace(use, name=name) if use else MaskUse(name, "BS", "bool", True)
        masks[name] = encoded(like, memory_keep, x.shape[1], case.case.dtype)
    needed = [u for u in case.masks if u.name not in masks and u.name in case.needs]
    for other in needed:
        keys = memory.shape[1] if memory is not None else x.shape[1]
        masks[other.name] = encoded(other, torch.ones(x.shape[0], keys, dtype=torch.bool), x.shape[1], case.case.dtype)
    return called(case.style, module, x, masks, memory)


def stream_of(case: SequenceCase, result: Any, x: Tensor) -> Tensor:
    """The (B,T,D) output among what the module returned; the first tensor if none is shaped like that."""
    rows, length = (x.shape[0], x.shape[1]) if case.style.batch_first else (x.shape[1], x.shape[0])
    found = output_of(result, rows, length, case.width)
    if found is None:
        return first_of(result)
    return found if case.style.batch_first else found.transpose(0, 1)


def required(target: Target) -> frozenset[str]:
    """The parameters without default."""
    return frozenset(p.name for p in target.signature.parameters.values() if p.default is inspect.Parameter.empty)
