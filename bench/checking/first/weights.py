"""Weights that cannot do anything, do the same twice or never train, and such that only look so."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class Heads(nn.Module):
    """Separate projections, four heads."""

    def __init__(self, embed_dim: int = 16, num_heads: int = 4) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, hidden_states: Tensor) -> Tensor:
        b, t, c = hidden_states.shape
        q, k, v = (
            layer(hidden_states).view(b, t, self.num_heads, -1).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        return self.out_proj((weights @ v).transpose(1, 2).reshape(b, t, c))


def _changed(change: Any) -> Heads:
    made = Heads()
    with torch.no_grad():
        change(made)
    return made


def zero_values() -> Heads:
    """Values of nothing."""
    return _changed(lambda made: made.v_proj.weight.zero_())


def zero_output() -> Heads:
    """The branch adds nothing at the start: a known choice."""
    return _changed(lambda made: (made.out_proj.weight.zero_(), made.out_proj.bias.zero_()))


def heads_copied() -> Heads:
    """Heads 0 and 2 have the same queries, keys and values."""

    def change(made: Heads) -> None:
        for layer in (made.q_proj, made.k_proj, made.v_proj):
            layer.weight[8:12] = layer.weight[0:4]
            layer.bias[8:12] = layer.bias[0:4]

    return _changed(change)


def keys_written_out() -> Heads:
    """One key/value head, written out for each query head."""

    def change(made: Heads) -> None:
        for layer in (made.k_proj, made.v_proj):
            layer.weight.copy_(layer.weight[:4].repeat(4, 1))

    return _changed(change)


def not_a_number() -> Heads:
    """One number was lost."""
    return _changed(lambda made: made.k_proj.weight[3, 2].fill_(float("nan")))


def frozen_keys() -> Heads:
    """The keys were switched off and nobody says why."""
    made = Heads()
    made.k_proj.weight.requires_grad = False
    return made


def all_frozen() -> Heads:
    """A whole model without gradients is one for inference."""
    return Heads().requires_grad_(False)


class FrozenOnPurpose(Heads):
    """The projections of queries are frozen, as in a probe."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj.requires_grad_(False)


class Infinite(Heads):
    """A scale that overflowed."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.full((16,), float("inf")))

    def forward(self, hidden_states: Tensor) -> Tensor:
        return super().forward(hidden_states) * self.gain


class Detached(Heads):
    """Values without a way back."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        x = hidden_states
        b, t, c = x.shape
        q, k = (layer(x).view(b, t, self.num_heads, -1).transpose(1, 2) for layer in (self.q_proj, self.k_proj))
        v = (
            F.linear(x, self.v_proj.weight.detach(), self.v_proj.bias.data)
            .view(b, t, self.num_heads, -1)
            .transpose(1, 2)
        )
        return self.out_proj((torch.softmax(q @ k.mT / 2, -1) @ v).transpose(1, 2).reshape(b, t, c))


class NeverCalled(Heads):
    """A gate that no line uses."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 16)


class OnDemand(Heads):
    """A projection for a memory, which need not be given."""

    def __init__(self) -> None:
        super().__init__()
        self.memory_proj = nn.Linear(16, 16)

    def forward(self, hidden_states: Tensor, memory: Tensor | None = None) -> Tensor:
        if memory is not None:
            hidden_states = hidden_states + self.memory_proj(memory).mean(1, keepdim=True)
        return super().forward(hidden_states)


class Head(nn.Module):
    """One head."""

    def __init__(self, n_embd: int, head_size: int) -> None:
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(n_embd, head_size, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ self.key(x).transpose(-2, -1) * self.key.out_features**-0.5
        return scores.softmax(-1) @ self.value(x)


class HeadsInList(nn.Module):
    """Heads in a Python list."""

    def __init__(self, n_embd: int, n_head: int) -> None:
        super().__init__()
        self.heads = [Head(n_embd, n_embd // n_head) for _ in range(n_head)]
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([head.to(x.dtype)(x) for head in self.heads], -1))


class HeadsInModuleList(nn.Module):
    """The same, right."""

    def __init__(self, n_embd: int, n_head: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head(n_embd, n_embd // n_head) for _ in range(n_head))
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([head(x) for head in self.heads], -1))


class HeadsCopied(HeadsInModuleList):
    """Each head starts as a copy of one."""

    def __init__(self, n_embd: int, n_head: int) -> None:
        super().__init__(n_embd, n_head)
        one = Head(n_embd, n_embd // n_head)
        self.heads = nn.ModuleList(copy.deepcopy(one) for _ in range(n_head))


class PlainTensorWeight(Heads):
    """A weight that is no parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = torch.randn(16, 16, requires_grad=True)

    def forward(self, hidden_states: Tensor) -> Tensor:
        return super().forward(hidden_states) @ self.mix.to(hidden_states.dtype)


class MaskOnProcessor(Heads):
    """A constant that does not follow the module."""

    def __init__(self) -> None:
        super().__init__()
        self.weighting = torch.linspace(0.5, 1.5, 16)

    def forward(self, hidden_states: Tensor) -> Tensor:
        return super().forward(hidden_states) * self.weighting


class MadeOnProcessor(Heads):
    """A tensor made on a fixed device in forward."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        steps = torch.arange(hidden_states.shape[1], device="cpu") / 100
        return super().forward(hidden_states) + steps[None, :, None]


class MadeWithInput(Heads):
    """The same, right."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        steps = torch.arange(hidden_states.shape[1], device=hidden_states.device) / 100
        return super().forward(hidden_states) + steps[None, :, None]


class RowsMixed(Heads):
    """The mean of the batch is taken off."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        out = super().forward(hidden_states)
        return out - out.mean(0, keepdim=True)


class RowsFolded(Heads):
    """Heads are folded into the batch in one order and taken out in another."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        out = super().forward(hidden_states)
        b, t, c = out.shape
        return (
            out.reshape(b, t, 4, c // 4)
            .permute(2, 0, 1, 3)
            .reshape(b * 4, t, -1)
            .reshape(b, 4, t, -1)
            .transpose(1, 2)
            .reshape(b, t, c)
        )


class Squeezed(Heads):
    """All axes of one are lost."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        return super().forward(hidden_states).squeeze()


class BatchNormed(Heads):
    """Statistics of the batch, as is said."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(16)

    def forward(self, hidden_states: Tensor) -> Tensor:
        return self.norm(super().forward(hidden_states).transpose(1, 2)).transpose(1, 2)


CASES = [
    Case("zero_values", "attention", "weights.zero"),
    Case("heads_copied", "attention", "weights.heads-tied"),
    Case("HeadsCopied", "attention", "weights.heads-tied"),
    Case("not_a_number", "attention", "weights.non-finite"),
    Case("Infinite", "attention", "weights.non-finite"),
    Case("frozen_keys", "attention", "weights.frozen"),
    Case("Detached", "attention", "parameter.unused", ("weights.frozen",)),
    Case("NeverCalled", "attention", "parameter.unused"),
    Case("HeadsInList", "attention", "parameter.unregistered"),
    Case("PlainTensorWeight", "attention", "parameter.unregistered"),
    Case("MaskOnProcessor", "attention", "device.hard-coded", ("parameter.unregistered",)),
    Case("MadeOnProcessor", "attention", "device.hard-coded"),
    Case("RowsMixed", "attention", "batch.mixing"),
    Case("RowsFolded", "attention", "batch.mixing", ("heads.merge-without-transpose",)),
    Case("Squeezed", "attention", "shape.squeezed"),
    Case("zero_output", "attention"),
    Case("keys_written_out", "attention"),
    Case("all_frozen", "attention"),
    Case("FrozenOnPurpose", "attention"),
    Case("OnDemand", "attention"),
    Case("HeadsInModuleList", "attention"),
    Case("MadeWithInput", "attention"),
    Case("BatchNormed", "attention"),
    Case("Heads", "attention"),
]
