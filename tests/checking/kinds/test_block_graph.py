"""What a graph of a forward takes for keys."""

import pytest
import torch
from torch import Tensor, nn

from clearhead.checking.kinds.block_graph import graphed


class Shares(nn.Module):
    """A softmax over what one projection makes of each position."""

    def __init__(self, width: int, heads: int, features: int) -> None:
        super().__init__()
        self.heads, self.project = heads, nn.Linear(width, heads * features)

    def forward(self, x: Tensor) -> Tensor:
        return self.project(x).unflatten(-1, (self.heads, -1)).transpose(1, 2).softmax(-1)


@pytest.mark.parametrize(
    ("heads", "features", "seen"),
    [(4, 6, {6}), (2, 3, set())],
    ids=["queries of linear attention", "shares of three things"],
)
def test_a_softmax_of_a_projection_is_of_keys_only_where_it_has_all_features(
    heads: int, features: int, seen: set[int]
) -> None:
    module, x = Shares(24, heads, features), torch.randn(2, 5, 24)
    assert graphed(module, {"x": x}, lambda: module(x)).keys(5) == seen


def test_a_softmax_of_scores_is_of_keys() -> None:
    module, x = nn.Linear(24, 24), torch.randn(2, 5, 24)
    assert graphed(module, {"x": x}, lambda: (module(x) @ x.mT).softmax(-1)).keys(5) == {5}
