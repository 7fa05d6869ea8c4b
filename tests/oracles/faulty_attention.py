"""Attention with one mistake planted: each has the right signature and the right shapes, and must be caught."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.ops import NO_TAP, Mask, Tap


class Sound:
    """Attention written once more, step by step, so that a fault can replace one step."""

    def share(self, x: Tensor, heads: int) -> Tensor:
        return x.repeat_interleave(heads // x.shape[-3], dim=-3)

    def scale(self, q: Tensor, k: Tensor) -> float:
        return q.shape[-1] ** -0.5

    def allowed(self, visible: Mask, scores: Tensor) -> Tensor:
        return visible.matrix().expand(scores.shape)

    def weights(self, scores: Tensor, allowed: Tensor) -> Tensor:
        hidden = scores.masked_fill(~allowed, -torch.inf)
        return torch.where(allowed.any(-1, keepdim=True), hidden, 0.0).softmax(-1) * allowed.any(-1, keepdim=True)

    def drop(self, weights: Tensor, p: float) -> Tensor:
        return F.dropout(weights, p)

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        visible: Mask,
        *,
        bias: Tensor | None = None,
        scale: float | None = None,
        dropout: float = 0.0,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        scale = self.scale(q, k) if scale is None else scale
        k, v = self.share(k, q.shape[-3]), self.share(v, q.shape[-3])
        scores = q @ k.transpose(-2, -1) * scale
        scores = scores if bias is None else scores + bias
        weights = tap("weights", self.weights(scores, self.allowed(visible, scores)))
        return self.drop(weights, dropout) @ v


class NoScale(Sound):
    def scale(self, q: Tensor, k: Tensor) -> float:
        return 1.0


class ScaledByLength(Sound):
    def scale(self, q: Tensor, k: Tensor) -> float:
        return k.shape[-2] ** -0.5


class MaskAfterSoftmax(Sound):
    def weights(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return scores.softmax(-1) * allowed


class NoMask(Sound):
    def weights(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return scores.softmax(-1)


class MaskReversed(Sound):
    def allowed(self, visible: Mask, scores: Tensor) -> Tensor:
        return ~super().allowed(visible, scores)


class FiniteMask(Sound):
    """An empty row becomes the mean of v."""

    def weights(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return scores.masked_fill(~allowed, -1e9).softmax(-1)


class EmptyRowIsNaN(Sound):
    def weights(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return scores.masked_fill(~allowed, -torch.inf).softmax(-1)


class TopLeft(Sound):
    """The triangle starts at the first key, also where the queries are the last positions."""

    def allowed(self, visible: Mask, scores: Tensor) -> Tensor:
        return torch.ones_like(scores, dtype=torch.bool).tril()


class StrictTriangle(Sound):
    """A query does not see its own position."""

    def allowed(self, visible: Mask, scores: Tensor) -> Tensor:
        return torch.ones_like(scores, dtype=torch.bool).tril(scores.shape[-1] - scores.shape[-2] - 1)


class SelfOnly(Sound):
    """A query sees nothing but its own position: no future, and no past."""

    def allowed(self, visible: Mask, scores: Tensor) -> Tensor:
        return torch.eye(*scores.shape[-2:], dtype=torch.bool).expand(scores.shape)


class SoftmaxOverQueries(Sound):
    def weights(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return scores.masked_fill(~allowed, -torch.inf).softmax(-2).nan_to_num()


class HeadsTiled(Sound):
    """Key/value heads 0,1,0,1 in place of 0,0,1,1."""

    def share(self, x: Tensor, heads: int) -> Tensor:
        return x.repeat(1, heads // x.shape[-3], 1, 1)


class DropBeforeSoftmax(Sound):
    """What is left sums to 1 again: nothing was dropped, the scores were changed."""

    def drop(self, weights: Tensor, p: float) -> Tensor:
        return F.dropout(weights.log(), p).softmax(-1)


class DropWithoutRescale(Sound):
    def drop(self, weights: Tensor, p: float) -> Tensor:
        return weights * (torch.rand_like(weights) >= p)


class NeverDrops(Sound):
    def drop(self, weights: Tensor, p: float) -> Tensor:
        return weights


def faults(*kinds: type[Sound]) -> list[Callable[..., Tensor]]:
    """One kernel of each kind, for `pytest.mark.parametrize`."""
    return [kind() for kind in kinds]


def name_of(kernel: object) -> str:
    """How a kernel is called in the report of a test."""
    return getattr(kernel, "__name__", type(kernel).__name__)
