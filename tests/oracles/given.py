"""A tap that puts tensors in the place of others: a model is run from the middle, and left in the middle."""

from __future__ import annotations

from torch import Tensor

from clearhead.ops.tap import Tap


class Given(Tap):
    """Gives tensors in place of those with the same names, and keeps the one called `output`, with its graph.

    Args:
        inputs: name -> what the computation goes on with.
        output: the name of what is wanted.
    """

    def __init__(self, inputs: dict[str, Tensor], output: str) -> None:
        self.inputs, self.output = inputs, output
        self.found: Tensor

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        if name == self.output:
            self.found = tensor
        return self.inputs.get(name, tensor)

    def within(self, scope: str) -> Given:
        return _Scoped(self, scope)


class _Scoped(Given):
    def __init__(self, given: Given, scope: str) -> None:
        self.given, self.scope = given, scope

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        return self.given(f"{self.scope}.{name}", tensor)

    def within(self, scope: str) -> Given:
        return _Scoped(self.given, f"{self.scope}.{scope}")
