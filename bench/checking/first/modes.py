"""Modules that do not do the same each time, mix rows, lose axes or leave tensors behind, and such that only look so."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class SdpaDropout(nn.Module):
    """The rate goes to the kernel whatever the mode."""

    p = 0.1
    after = 0.0
    scale_kept = True

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.h, self.dropout = n_heads, dropout
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def rate(self) -> float:
        return self.dropout

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.h, c // self.h).transpose(1, 2) for z in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate())
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class SdpaDropoutRight(SdpaDropout):
    """The rate is zero outside training."""

    def rate(self) -> float:
        return self.dropout if self.training else 0.0


class SdpaDropoutNever(SdpaDropout):
    """The rate that was stated goes nowhere."""

    def rate(self) -> float:
        return 0.0


class Plain(nn.Module):
    """Written out; the hooks of the subclasses are the steps that they change."""

    def __init__(self, dim: int = 24, heads: int = 3, dropout: float = 0.2) -> None:
        super().__init__()
        self.heads, self.p = heads, dropout
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def drop(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, self.p, self.training)

    def finish(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (w(x).view(b, t, self.heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        weights = (q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)).softmax(-1)
        y = (self.drop(weights) @ v).transpose(1, 2).reshape(b, t, c)
        return self.finish(self.wo(y))


class FunctionalDropout(Plain):
    """F.dropout trains unless it is told not to."""

    def drop(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, p=self.p)


class DropoutInForward(Plain):
    """A new nn.Dropout is in training mode."""

    def drop(self, weights: Tensor) -> Tensor:
        return nn.Dropout(self.p)(weights)


class DropoutThrownAway(Plain):
    """The result is not used."""

    def drop(self, weights: Tensor) -> Tensor:
        F.dropout(weights, self.p, self.training)
        return weights


class DropoutOff(Plain):
    """The mode is written down as false."""

    def drop(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, self.p, training=False)


class MaskNotRescaled(Plain):
    """A mask of one's own, without 1 / (1 - p)."""

    def drop(self, weights: Tensor) -> Tensor:
        if not self.training:
            return weights
        return weights * (torch.rand_like(weights) > self.p).to(weights.dtype)


class BernoulliNotRescaled(Plain):
    """The same with another function."""

    def drop(self, weights: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return weights
        gone = torch.bernoulli(torch.full_like(weights, self.p)).bool()
        return weights.masked_fill(gone, 0.0)


class MaskRescaled(Plain):
    """A mask of one's own, right."""

    def drop(self, weights: Tensor) -> Tensor:
        if not self.training:
            return weights
        keep = torch.bernoulli(torch.full_like(weights, 1 - self.p))
        return weights * keep / (1 - self.p)


class MaskScaledLater(Plain):
    """The first form of dropout: nothing is scaled in training, all of it in evaluation."""

    def drop(self, weights: Tensor) -> Tensor:
        if self.training:
            return weights * (torch.rand_like(weights) > self.p)
        return weights * (1 - self.p)


class NoDropoutStated(Plain):
    """A rate of zero: nothing to see."""

    def __init__(self) -> None:
        super().__init__(dropout=0.0)


class Jitter(Plain):
    """Noise at each call."""

    def finish(self, x: Tensor) -> Tensor:
        return x + 0.01 * torch.randn_like(x)


class NoisyScores(Plain):
    """Noise on the weights."""

    def drop(self, weights: Tensor) -> Tensor:
        return weights + torch.empty_like(weights).normal_(std=1e-3)


class JitterInTraining(Plain):
    """Noise in training alone."""

    def finish(self, x: Tensor) -> Tensor:
        return x + 0.01 * torch.randn_like(x) if self.training else x


class LayerInForward(Plain):
    """A projection is made at each call."""

    def finish(self, x: Tensor) -> Tensor:
        return nn.Linear(x.shape[-1], x.shape[-1]).to(x.dtype)(x)


class NormInForward(Plain):
    """A norm is made at each call: the same each time, and never trained."""

    def finish(self, x: Tensor) -> Tensor:
        return nn.LayerNorm(x.shape[-1], dtype=x.dtype)(x)


class ParameterInForward(Plain):
    """A weight is drawn at each call."""

    def finish(self, x: Tensor) -> Tensor:
        weight = nn.Parameter(torch.randn(x.shape[-1], x.shape[-1], dtype=x.dtype) * 0.1)
        return x @ weight


class FreeLayersInForward(Plain):
    """Layers without weights may be made anywhere."""

    def finish(self, x: Tensor) -> Tensor:
        return nn.LayerNorm(x.shape[-1], elementwise_affine=False)(nn.Identity()(x))


class KeepsKeys(Plain):
    """Keys of the call before stay in front of those of this one."""

    def __init__(self, dim: int = 24, heads: int = 3) -> None:
        super().__init__(dim, heads, 0.0)
        self.seen: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        known = x if self.seen is None else torch.cat([self.seen, x], 1)
        self.seen = x.detach()
        q, k, v = self.wq(x), self.wk(known), self.wv(known)
        return self.wo((q @ k.transpose(-2, -1) / math.sqrt(x.shape[-1])).softmax(-1) @ v)


class FirstCallRemembered(Plain):
    """What the first input gave is given for ever."""

    def __init__(self, dim: int = 24, heads: int = 3) -> None:
        super().__init__(dim, heads, 0.0)
        self._cache: dict[tuple[int, ...], Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        key = tuple(x.shape)
        if key not in self._cache:
            self._cache[key] = super().forward(x)
        return self._cache[key]


class TablesRemembered(Plain):
    """A table that depends on the length alone may be kept."""

    def __init__(self, dim: int = 24, heads: int = 3) -> None:
        super().__init__(dim, heads, 0.0)
        self._table: Tensor | None = None

    def finish(self, x: Tensor) -> Tensor:
        if self._table is None or self._table.shape[0] < x.shape[1] or self._table.device != x.device:
            self._table = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)[:, None].cos()
        return x + self._table[: x.shape[1]]


CASES = [
    Case("SdpaDropout", "attention", "dropout.active-in-eval"),
    Case("FunctionalDropout", "attention", "dropout.active-in-eval"),
    Case("DropoutInForward", "attention", "dropout.active-in-eval"),
    Case("SdpaDropoutNever", "attention", "dropout.never-active"),
    Case("DropoutThrownAway", "attention", "dropout.never-active"),
    Case("DropoutOff", "attention", "dropout.never-active"),
    Case("MaskNotRescaled", "attention", "dropout.no-rescale"),
    Case("BernoulliNotRescaled", "attention", "dropout.no-rescale"),
    Case("Jitter", "attention", "noise.injected"),
    Case("NoisyScores", "attention", "noise.injected"),
    Case("LayerInForward", "attention", "parameter.recreated"),
    Case("NormInForward", "attention", "parameter.recreated"),
    Case("ParameterInForward", "attention", "parameter.recreated"),
    Case("KeepsKeys", "attention", "cache.stale"),
    Case("FirstCallRemembered", "attention", "cache.stale"),
    Case("SdpaDropoutRight", "attention"),
    Case("MaskRescaled", "attention"),
    Case("MaskScaledLater", "attention"),
    Case("NoDropoutStated", "attention"),
    Case("JitterInTraining", "attention"),
    Case("FreeLayersInForward", "attention"),
    Case("TablesRemembered", "attention"),
    Case("Plain", "attention"),
]
