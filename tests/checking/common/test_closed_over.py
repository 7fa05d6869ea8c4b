"""What a function closes over is the module's own, or it is not registered."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from clearhead.checking.common.registered import registered
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of


def patched(how: str) -> nn.Module:
    """A table whose forward was replaced by one that uses its own weight, the module, or another."""
    functions = F
    table: Any = nn.Embedding(7, 4)
    made = nn.Sequential(table, nn.Linear(4, 3))
    weight, other = table.weight, nn.Embedding(7, 4)
    table.forward = {
        "module": lambda x: functions.embedding(0 * x, table.weight),
        "weight": lambda x: functions.embedding(0 * x, weight),
        "other": lambda x: functions.embedding(x, other.weight),
    }[how]
    return made


@pytest.mark.parametrize(("how", "where"), [("module", ""), ("weight", ""), ("other", "0.forward.other")])
def test_the_modules_own_weight_is_no_lost_one(how: str, where: str) -> None:
    target = target_of(patched(how), "patched", Settings())
    found = registered(target, target.make())
    assert [fault.where for fault in found.faults] == ([where] if where else [])


def test_what_a_function_closes_over_is_made_again_not_copied() -> None:
    target = target_of(lambda: patched("module"), "patched", Settings())
    made, other = target.make(), target.make()
    assert made is not other
    made(torch.arange(3)).sum().backward()
    assert made[0].weight.grad is not None
    assert other[0].weight.grad is None
    assert torch.equal(made[0].weight, other[0].weight)
