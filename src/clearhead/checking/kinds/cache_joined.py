"""One cache for two blocks shows in a plain forward, too: the second reads the keys and values of the first before its own."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.lm_case import LmCase
from clearhead.checking.kinds.lm_finding import failed, passed
from clearhead.checking.kinds.lm_watch import SDPA, Core, cores, seen_by, tensor_arguments
from clearhead.checking.watch import Record
from clearhead.messages import say

LENGTH = 7
PRODUCTS = ("matmul", "__matmul__", "einsum", "bmm", "baddbmm")


def joined(case: LmCase) -> Found:
    """Whether an attention of a forward without a cache reads what an earlier one wrote, beside its own.

    Layers that take the keys and values of another in place of their own have as many keys as they would have, and are right.

    Args:
        case: how the model is called.
    """
    if case.last_only or case.call is not None:
        return Found()
    length = case.length(LENGTH)
    record = seen_by(case, case.ids(2, length, 4))
    found = cores(record, length, any_keys=True)
    values = [_values(record, core) for core in found]
    for late, (core, value) in enumerate(zip(found, values, strict=True)):
        for early, before in zip(found[:late], values[:late], strict=True):
            if value is not None and before is not None and _begins(value, before):
                keys, first = value.shape[-2], before.shape[-2]
                evidence = say("lm.joined", length=length, keys=keys, before=first, where=early.op.where or "?")
                return failed("cache.shared-between-blocks", evidence, where=core.op.where)
    told = [value for value in values if value is not None]
    return passed("cache.shared-between-blocks", say("lm.not_joined", cores=len(told))) if len(told) > 1 else Found()


def _begins(value: Tensor, before: Tensor) -> bool:
    """Whether the values of an attention begin with all those of an earlier one, others after them."""
    same = value.dim() == before.dim() and value.shape[:-2] == before.shape[:-2] and value.shape[-1] == before.shape[-1]
    more = same and value.shape[-2] > before.shape[-2]
    return more and bool(before.any()) and torch.equal(value[..., : before.shape[-2], :], before)


def _values(record: Record, core: Core) -> Tensor | None:
    """The values (...,S,d) that the weights of an attention met; None if they cannot be told."""
    if core.op.name == SDPA:
        value = core.op.argument(2, "value")
        return value if isinstance(value, Tensor) else None
    place = next(i for i, op in enumerate(record.ops) if op is core.op)
    for op in record.ops[place + 1 :]:
        given = tensor_arguments(op)
        if op.name in PRODUCTS and len(given) == 2 and given[0].shape[-1] == core.weights.shape[-1]:
            return given[1] if given[1].dim() > 2 and given[1].shape[-2] == core.weights.shape[-1] else None
    return None
