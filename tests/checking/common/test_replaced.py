"""What a base class says is no claim of a class that replaces it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.checking.common.shared import tying
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of, without_methods


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte, self.lm_head = nn.Embedding(13, 8), nn.Linear(8, 13, bias=False)
        self.tie()

    def tie(self) -> None:
        self.lm_head.weight = self.wte.weight

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.lm_head(self.wte(ids))
        return logits


class OwnHead(Tied):
    def tie(self) -> None:
        pass


class Lost(Tied):
    def __init__(self) -> None:
        super().__init__()
        self.lm_head.weight = nn.Parameter(torch.randn(13, 8))


def test_a_class_that_does_not_tie_says_so_by_an_empty_method() -> None:
    for kind, wanted in ((Tied, True), (OwnHead, True), (Lost, False)):
        target = target_of(kind, kind.__name__, Settings())
        assert (tying(target, target.make()).faults == ()) is wanted


def test_methods_that_are_replaced_are_not_read() -> None:
    text = "class A:\n    def f(self):\n        return 'tied'\n\n    def g(self):\n        return 2\n"
    assert "tied" not in without_methods(text, {"f"})
    assert "return 2" in without_methods(text, {"f"})
    assert without_methods(text, set()) == text.rstrip("\n")
    assert without_methods("not python (", {"f"}) == "not python ("
