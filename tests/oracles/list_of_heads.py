"""Multi-head attention as the course writes it first: a list of heads, each on its own, then joined and mixed.

Nothing here is shared with the package: three small projections a head, a triangle of ones, and softmax as the formula
says it (a kernel for softmax adds and divides in an order of its own, which costs the last bit).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.layers import MultiHeadAttention


class Head(nn.Module):
    """One head: its own q, k and v, and a triangle that hides the future."""

    def __init__(self, width: int, head_width: int, context: int, *, bias: bool) -> None:
        super().__init__()
        self.query = nn.Linear(width, head_width, bias=bias)
        self.key = nn.Linear(width, head_width, bias=bias)
        self.value = nn.Linear(width, head_width, bias=bias)
        self.register_buffer("triangle", torch.tril(torch.ones(context, context)))

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        scores = scores.masked_fill(self.triangle[:T, :T] == 0, float("-inf"))
        exponentials = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        return exponentials / exponentials.sum(dim=-1, keepdim=True) @ v


class ListOfHeads(nn.Module):
    """The heads one after the other, their outputs side by side, then the output projection."""

    def __init__(
        self, width: int, heads: int, head_width: int, context: int, *, bias: bool = False, output_bias: bool = True
    ) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head(width, head_width, context, bias=bias) for _ in range(heads))
        self.output = nn.Linear(heads * head_width, width, bias=output_bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(torch.cat([head(x) for head in self.heads], dim=-1))


def list_of_heads(parallel: MultiHeadAttention, context: int) -> ListOfHeads:
    """The list of heads with a copy of the weights of `parallel`, in its number type.

    The rows of the fused projection are: d rows for each of H query heads, d for each of K key heads, d for each of K
    value heads. Query head h reads key/value head h // (H/K), so grouped heads become H heads, some with equal k and v.
    """
    fused, output = parallel.qkv, parallel.output
    H, K = parallel.heads, parallel.kv_heads
    d = output.in_features // H
    made = ListOfHeads(
        output.out_features, H, d, context, bias=fused.bias is not None, output_bias=output.bias is not None
    ).to(fused.weight.dtype)
    with torch.no_grad():
        for h, head in enumerate(made.heads):
            shared = h // (H // K)
            firsts = (h * d, (H + shared) * d, (H + K + shared) * d)
            for linear, first in zip((head.query, head.key, head.value), firsts, strict=True):
                linear.weight.copy_(fused.weight[first : first + d])
                if fused.bias is not None:
                    linear.bias.copy_(fused.bias[first : first + d])
        made.output.load_state_dict(output.state_dict())
    return made
