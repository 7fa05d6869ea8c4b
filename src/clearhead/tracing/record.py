"""A tap that keeps what passes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.ops.recompute import mixed_by, scores_of, weights_of
from clearhead.ops.tap import Ran, Scoped, Tap
from clearhead.tracing.select import Heads, Selection


class Recorder(Tap):
    """A tap that keeps the named tensors of a forward and changes nothing.

        recorder = Recorder("blocks.*.attention.weights", heads={3: [2]})
        model(ids, tap=recorder)
        recorder.tensors["blocks.3.attention.weights"]  # (B,1,T,S)

    Scores and weights of a kernel that does not hold them are computed again, for the heads and positions asked, from the q and k
    that ran.

    Args:
        names: which names to keep, as patterns of `fnmatch`, where `*` stands for anything, dots included.
        heads: which heads, of all blocks or for each block; all if None.
        positions: which queries; all if None.
        detach: cut the tensors from the graph of gradients; without it a loss can be differentiated to them, and heads whose weights
            are computed again go on with those.

    Attributes:
        tensors: name -> tensor, in the order of the forward; a name that passes again replaces what was kept. What was asked in part
            is copied, so that no more than that stays in memory.
        differences: name of weights that were computed again -> the largest difference between what they mix and what ran, over
            the heads and queries asked; not there where weights were dropped.
    """

    def __init__(
        self,
        names: str | Sequence[str] = "*",
        *,
        heads: Heads = None,
        positions: Sequence[int] | None = None,
        detach: bool = True,
    ) -> None:
        self.selection, self.detach = Selection(names, heads, positions), detach
        self.tensors: dict[str, Tensor] = {}
        self.differences: dict[str, Tensor] = {}

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """`tensor`, untouched; kept under `name` if it is asked for."""
        if self.selection.wants(name):
            self._keep(name, self._part(name, tensor))
        return tensor

    def within(self, scope: str) -> Tap:
        """A tap that records into the same `tensors`, its names prefixed with `scope` and a dot."""
        return Scoped(self, f"{scope}.")

    def attended(self, name: str, ran: Ran) -> Ran:
        """`ran`, untouched if `detach`; the weights that were not shown are computed again where they are asked for."""
        of_scores = f"{name.removesuffix('weights')}scores"
        if not (self.selection.wants(name) or self.selection.wants(of_scores)):
            return ran
        mixed = ran.mixed
        chosen = self.selection.heads_of(name, mixed.shape[-3])
        heads = list(range(mixed.shape[-3])) if chosen is None else chosen
        queries = self.selection.places(mixed.shape[-2])
        scores = scores_of(ran, heads, queries)
        weights = weights_of(ran, scores, heads, queries)
        for each, tensor in ((of_scores, scores), (name, weights)):
            if self.selection.wants(each):
                self._keep(each, tensor)
        again = mixed_by(ran, weights, heads)
        index = crossed(mixed, heads, queries)
        if not ran.dropout and again.numel():
            self.differences[name] = (again - mixed[index]).detach().abs().amax()
        return ran if self.detach else ran._replace(mixed=mixed.index_put(index, again))

    def _part(self, name: str, tensor: Tensor) -> Tensor:
        index = self.selection.index(name, tensor)
        return tensor if all(isinstance(each, slice) for each in index) else tensor[index]

    def _keep(self, name: str, tensor: Tensor) -> None:
        self.tensors[name] = tensor.detach() if self.detach else tensor


def crossed(mixed: Tensor, heads: Sequence[int], queries: Sequence[int] | None) -> tuple[Tensor, ...]:
    """The index of these heads and queries in (B,H,T,·): all rows, each head with each query."""
    places = list(range(mixed.shape[-2]) if queries is None else queries)
    rows = torch.arange(mixed.shape[0], device=mixed.device)[:, None, None]
    return (
        rows,
        torch.tensor(heads, device=mixed.device)[:, None],
        torch.tensor(places, dtype=torch.long, device=mixed.device),
    )
