"""Results beyond their stages: shapes, what is given beside them, numbers that are none, a second length, weights that are not reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.checking.diff.diff import diff
from clearhead.checking.diff.results import chosen
from clearhead.checking.diff.said import lines
from clearhead.checking.diff.side import Output, Stage, Walk
from tests.checking.diff.test_outputs import Line


class Nan(Line):
    def given(self, x: Tensor, y: Tensor) -> Any:
        return y * float("nan") + 1


class Infinite(Line):
    def given(self, x: Tensor, y: Tensor) -> Any:
        return y.abs() * float("inf")


class Two(Line):
    def given(self, x: Tensor, y: Tensor) -> Any:
        return y, x


class Other(Line):
    def given(self, x: Tensor, y: Tensor) -> Any:
        return y, x + 1


class Split(Line):
    def given(self, x: Tensor, y: Tensor) -> Any:
        return y[..., None]


class Summary(Line):
    def given(self, x: Tensor, y: Tensor) -> Any:
        return {"pooled": y.mean(1), "states": y}


class Window(Line):
    """Forgets what is further back than 20."""

    def given(self, x: Tensor, y: Tensor) -> Any:
        return y.cumsum(1) - torch.nn.functional.pad(y.cumsum(1), (0, 0, 20, 0))[:, : y.shape[1]]


class Whole(Line):
    def given(self, x: Tensor, y: Tensor) -> Any:
        return y.cumsum(1)


@pytest.mark.parametrize(("kind", "what"), [(Nan, "NaN"), (Infinite, "inf")])
def test_numbers_that_are_none_are_said_and_nothing_is_searched(kind: type[Line], what: str) -> None:
    found = diff(Line, kind)
    assert not found.ok
    assert found.first is not None
    assert found.first.b.startswith(("mul", "output"))
    (reason,) = found.reasons
    assert f"B gives {what} from mul" in reason.text
    said = "\n".join(lines(found.to_dict()))
    assert said.startswith(("they part at mul", "they part at fc / mul"))
    assert "shapes" not in said
    assert ">" in said


def test_what_is_given_beside_the_result() -> None:
    """Compared where both have it, else noted."""
    assert diff(Two, Two()).ok
    parted = diff(Two, Other)
    assert parted.first is not None
    assert parted.first.a == "[1]"
    found = diff(Line, Two)
    assert found.ok
    assert any("B gives more" in note and "[1]" in note for note in found.notes)


def test_a_result_of_another_shape_is_not_equal_and_one_that_lies_beside_is_compared() -> None:
    found = diff(Line, Split)
    assert not found.ok
    assert found.pairs[-1].held == "differs"
    assert diff(Summary, Line).ok
    pooled, states = torch.randn(2, 3), torch.randn(2, 5, 3)
    stages = Stage("fc", states), Stage("mean", pooled)
    both = Walk(stages, further={"states": Output(states, stages[:1])})
    walks, notes = chosen(both, Walk(stages[:1]))
    assert [walk.stages[-1].name for walk in walks] == ["fc", "fc"]
    assert any("states" in note and "A" in note for note in notes)
    walks, notes = chosen(both, both)
    assert (walks, notes) == ((both, both), ())


def test_a_second_length_shows_a_window() -> None:
    found = diff(Whole, Window)
    assert not found.ok
    assert "40" in found.given
    assert "40" in diff(Whole, Whole()).given


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.tokens, self.places, self.head = nn.Embedding(9, 6), nn.Embedding(64, 6), nn.Linear(6, 9)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.tokens(ids).cumsum(1) + self.places.weight[: ids.shape[1]])


def test_weights_that_no_input_reaches_are_not_equal() -> None:
    """The last rows of a table of positions: no stage shows them."""
    one, other = Table(), Table()
    assert diff(one, other).ok
    with torch.no_grad():
        other.places.weight[60] += 1
    found = diff(one, other)
    assert (found.ok, found.first, found.unreached) == (False, None, ("places.weight",))
    assert next(lines(found.to_dict())).startswith(
        "not equal: weights differ that these inputs do not reach (places.weight)"
    )
    with torch.no_grad():
        other.places.weight[2] += 1
    assert diff(one, other).first is not None


@pytest.mark.parametrize(
    ("change", "id"),
    [
        (lambda w: w.copy_(w.t().clone()), "weights.transposed"),
        (lambda w: w.copy_(w.bfloat16().float()), "weights.rounded"),
        (lambda w: w.zero_(), "weights.zero"),
        (lambda w: w.copy_(torch.randn_like(w)), "weights.changed"),
    ],
)
def test_weights_are_the_reason_between_two_pieces_of_code(change: Callable[[Tensor], Any], id: str) -> None:
    one, other = Line(), Line()
    with torch.no_grad():
        change(other.fc.weight)
    found = diff(one, other)
    assert [(each.id, each.certainty) for each in found.reasons] == [(id, "reproduced")]
    assert "1 of 2, fc.weight first" in found.reasons[0].text


def test_the_first_table_that_differs_is_the_place() -> None:
    """Of ids before that of positions, though only one of its rows differs."""
    one, other = Table(), Table()
    with torch.no_grad():
        other.tokens.weight[:] += 1e-3
        other.places.weight[:] += 1
    found = diff(one, other)
    assert found.first is not None
    assert found.first.a == "tokens"
    assert "0 stages before it are equal" in next(lines(found.to_dict()))
