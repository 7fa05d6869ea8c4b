"""A tap that keeps what passes."""

from __future__ import annotations

import re
from fnmatch import translate

from torch import Tensor

from clearhead.ops.tap import Scoped, Tap


class Recorder:
    """A tap that keeps the named tensors of a forward and changes nothing.

        recorder = Recorder("blocks.*.attention.weights")
        model(ids, tap=recorder)
        recorder.tensors["blocks.0.attention.weights"]  # (B,H,T,S)

    Args:
        names: which names to keep, as a pattern of `fnmatch`, where `*` stands for anything, dots included.
        detach: cut the tensors from the graph of gradients; without it, a loss can be differentiated to them.

    Attributes:
        tensors: name -> tensor, in the order of the forward; a name that passes again replaces what was kept. The
            memory is the forward's own, nothing is copied.
    """

    def __init__(self, names: str = "*", *, detach: bool = True) -> None:
        self.names, self.detach = re.compile(translate(names)), detach
        self.tensors: dict[str, Tensor] = {}

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """`tensor`, untouched; kept under `name` if the pattern allows."""
        if self.names.match(name):
            self.tensors[name] = tensor.detach() if self.detach else tensor
        return tensor

    def within(self, scope: str) -> Tap:
        """A tap that records into the same `tensors`, its names prefixed with `scope` and a dot."""
        return Scoped(self, f"{scope}.")
