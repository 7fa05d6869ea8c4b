"""The tap under which a prompt is opened: it keeps what each attention worked on, and numbers of each other tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from torch import Tensor

from clearhead.ops.tap import Ran, Scoped, Tap
from clearhead.tracing.names import known_axes
from clearhead.web.session import Stage
from clearhead.web.shelf import Shelf
from clearhead.web.summing import NEVER_TAKEN, summed, summed_parts

LAST = ("norm", "decoder.norm")
"""What the head over the vocabulary reads."""


class Keeper(Tap):
    """Keeps `Ran` of every attention, a few numbers a token, and a summary of each other tensor, and changes nothing.

    Of scores and weights, T×S numbers a head, the shape alone is kept: they can be computed again from what the kernel worked on.

    Attributes:
        ran: what each attention worked on, by its name without `.weights`.
        features: what the last norm gave, (B,T,D): the decoder's in an encoder-decoder; None before it has run.
        stages: every tensor, in the order of the forward.
    """

    def __init__(self) -> None:
        self.ran: dict[str, Ran] = {}
        self.features: Tensor | None = None
        self._stages: dict[str, Stage] = {}
        self._shelf = Shelf()

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Every tensor that passed, in the order of the forward."""
        return tuple(self._stages.values())

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """`tensor`, untouched."""
        if name in LAST:
            self.features = tensor
        if _is_square(name):
            self.never(name, tensor.shape, tensor.element_size())
        else:
            self._stages[name] = Stage(name, known_axes(name), tuple(tensor.shape), summed(tensor))
        return tensor

    def within(self, scope: str) -> Tap:
        """The same keeper, with longer names."""
        return Scoped(self, f"{scope}.")

    def attended(self, name: str, ran: Ran) -> Ran:
        """`ran`, untouched; scores and weights stand where a kernel that holds them would have shown them."""
        shape = (*ran.q.shape[:-1], ran.k.shape[-2])
        self.never(f"{name.removesuffix('weights')}scores", shape, ran.q.element_size())
        self.never(name, shape, ran.q.element_size())
        self.shown(name, ran)
        return ran

    def shown(self, name: str, ran: Ran) -> None:
        """Keeps `ran`."""
        put = self._shelf.put
        kept = ran._replace(mixed=put(ran.mixed), q=put(ran.q), k=put(ran.k), v=put(ran.v))
        self.ran[name.removesuffix(".weights")] = kept

    def in_parts(self, name: str, parts: Iterable[Tensor], shape: Sequence[int], bytes_each: int) -> None:
        """A tensor that is never held whole, such as the logits of a long text.

        Args:
            name: of the tensor.
            parts: what it is made of.
            shape: of the whole.
            bytes_each: of a number.
        """
        numbers = {**summed_parts(parts), "bytes": math.prod(shape) * bytes_each}
        self._stages[name] = Stage(name, known_axes(name), tuple(shape), numbers)

    def never(self, name: str, shape: Sequence[int], bytes_each: int) -> None:
        """A tensor whose numbers are not taken: they are computed when somebody asks.

        Args:
            name: of the tensor.
            shape: of the whole.
            bytes_each: of a number.
        """
        numbers = {**NEVER_TAKEN, "bytes": math.prod(shape) * bytes_each}
        self._stages[name] = Stage(name, known_axes(name), tuple(shape), numbers)


def _is_square(name: str) -> bool:
    """Whether the tensor has T×S numbers a head."""
    return known_axes(name)[1:2] == ("H",) and name.endswith((".scores", ".weights"))


def kept_bytes(ran: Iterable[Ran]) -> int:
    """Bytes of the memory that these hold, what they share counted once."""
    held: dict[int, int] = {}
    for each in ran:
        own = [each.mixed, each.q, each.k, each.v, each.bias, each.sinks, getattr(each.visible, "allowed", None)]
        for tensor in own:
            if isinstance(tensor, Tensor):
                held[tensor.data_ptr()] = min(tensor.nbytes, tensor.untyped_storage().nbytes())
    return sum(held.values())
