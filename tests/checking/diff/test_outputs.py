"""What a forward gives: found within bounds, refused in one line where nothing is a tensor."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.checking.diff.diff import diff
from clearhead.checking.diff.outputs import NoTensorError, beside, first_tensor, tensors_in
from clearhead.messages import UserError


class Line(nn.Module):
    """A matrix; `given` says what comes back."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fc = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Any:
        return self.given(x, self.fc(x))

    def given(self, x: Tensor, y: Tensor) -> Any:
        return y


class Words(Line):
    def given(self, x: Tensor, y: Tensor) -> Any:
        return "hello"


class Nothing(Line):
    def given(self, x: Tensor, y: Tensor) -> Any:
        return None


class Raises(Line):
    def given(self, x: Tensor, y: Tensor) -> Any:
        raise ValueError("no such head")


@pytest.mark.parametrize(("kind", "said"), [(Words, "str"), (Nothing, "NoneType")])
def test_what_is_no_tensor_is_refused_and_the_side_is_named(kind: type[Line], said: str) -> None:
    """Each letter of a text is a text: a walk without bounds would never end."""
    for sides in ((Line, kind), (kind, Line)):
        with pytest.raises(UserError, match=f"{kind.__name__} gives no tensor, but a {said};"):
            diff(*sides)


def test_the_side_that_raised_is_named_with_its_line() -> None:
    with pytest.raises(UserError, match=r"B raised ValueError: no such head \(test_outputs.py:\d+\)"):
        diff(Line, Raises)
    with pytest.raises(UserError, match=r"A raised ValueError: no such head \(test_outputs.py:\d+\)"):
        diff(Raises, Line)
    with pytest.raises(UserError, match="no way was found to call A"):
        diff(Raises, Raises())


def test_where_tensors_lie() -> None:
    x, y = torch.ones(2, 3), torch.zeros(3)
    nested = {"logits": x, "cache": ((y, None), "words"), "loss": torch.ones(())}
    assert [name for name, _ in tensors_in(nested)] == ["logits", "cache[0][0]", "loss"]
    assert [name for name, _ in tensors_in((x, [y]))] == ["[0]", "[1][0]"]
    assert list(beside(nested, x)) == ["cache[0][0]"]
    assert first_tensor(("a", y), "m") is y
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NoTensorError):
        first_tensor(endless, "m")
