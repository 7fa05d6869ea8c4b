"""Which table and which layer are a pair that could be tied, and whose option it is."""

from __future__ import annotations

import pytest
from torch import Tensor, nn

from clearhead.checking.common.shared import tying
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of


class Chosen(nn.Module):
    """A table, positions and a head, tied if asked."""

    def __init__(self, *, eps: float = 1e-5, tied: bool = False) -> None:
        super().__init__()
        self.wte, self.norm, self.head = nn.Embedding(29, 12), nn.LayerNorm(12, eps=eps), nn.Linear(12, 29, bias=False)
        if tied:
            self.head.weight = self.wte.weight

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.norm(self.wte(x)))
        return logits


class Derived(Chosen):
    """Says nothing of the option that its base has."""

    def __init__(self) -> None:
        super().__init__(eps=1e-6)


class Inner(nn.Module):
    """Says that it is tied, and has layers inside that are as large as its tables."""

    def __init__(self, *, own: bool, listed: bool) -> None:
        super().__init__()
        self.wte, self.position_embeddings = nn.Embedding(29, 12), nn.Embedding(20, 12)
        self.up, self.down = nn.Linear(12, 29 if listed else 20), nn.Linear(29 if listed else 20, 12)
        self.layers = nn.ModuleList([nn.Linear(12, 29) for _ in range(2)])
        self.head = nn.Linear(12, 29, bias=False)
        if not own:
            self.head.weight = self.wte.weight


def found(code: type[nn.Module] | nn.Module) -> list[str]:
    target = target_of(code, "code", Settings())
    return [fault.where for fault in tying(target, target.make()).faults]


@pytest.mark.parametrize("code", [Chosen, Derived])
def test_an_option_that_is_off_is_off_in_derived_classes_too(code: type[nn.Module]) -> None:
    assert found(code) == []


@pytest.mark.parametrize("listed", [True, False])
def test_positions_and_inner_layers_are_no_pair_and_a_lost_head_is(listed: bool) -> None:
    assert found(Inner(own=False, listed=listed)) == []
    assert found(Inner(own=True, listed=listed)) == ["head"]
