"""Multi-head attention: several projections of the same input, each attending on its own, then mixed.

In self-attention a sequence asks itself; in cross-attention it asks another, whose keys and values are computed once.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.layers.memory import Memory
from clearhead.layers.store import NO_STORE, LayerStore
from clearhead.ops.attention import Attend, attend_fused
from clearhead.ops.heads import merge_heads, split_heads
from clearhead.ops.masks import Mask
from clearhead.ops.rotary import Rotate, unrotated
from clearhead.ops.tap import NO_TAP, Tap


class MultiHeadAttention(nn.Module):
    """MHA(x) = [head_1, ..., head_H] W_O with head_h = attend(x W_Q^h, x W_K^h, x W_V^h).

    One linear layer projects to all queries, keys and values; its output holds H·d query features, then K·d key
    features, then K·d value features. Every head reads all D features of the input. `forward` is self-attention; in
    `across`, with `keys_values`, the same layer asks another sequence.

    Args:
        width: D, the features of input and output.
        heads: H query heads.
        kv_heads: K key/value heads; K divides H. K = H is the attention of the notes, fewer are grouped queries.
        head_width: d, the features of one head.
        bias: whether the projection to q, k and v has a bias.
        output_bias: whether the output projection has one.
        dropout: probability, in training, of dropping an attention weight and a feature of the output.
        scale: multiplies q kᵀ; 1/√d if None.
        q_norm: normalises each query over its d features before it is turned; identity if None.
        k_norm: the same for keys.
        attend: the kernel.

    Names for a tap: `q`, `k`, `v` (as projected, normed and turned), `scores` and `weights` (kernels that hold them),
    `mixed`, `output`.

    Source: Vaswani et al. 2017 §3.2.2; chapter 19 §19.1-19.2; transformer-notes §10-11.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        kv_heads: int,
        head_width: int,
        *,
        bias: bool = True,
        output_bias: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
        q_norm: nn.Module | None = None,
        k_norm: nn.Module | None = None,
        attend: Attend = attend_fused,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.scale, self.attend = heads, kv_heads, scale, attend
        self.sizes = [heads * head_width, kv_heads * head_width, kv_heads * head_width]
        self.qkv = nn.Linear(width, sum(self.sizes), bias=bias)
        self.q_norm, self.k_norm = q_norm or nn.Identity(), k_norm or nn.Identity()
        self.output = nn.Linear(heads * head_width, width, bias=output_bias)
        self.weight_dropout = dropout
        self.output_dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        visible: Mask,
        *,
        rotate: Rotate = unrotated,
        bias: Tensor | None = None,
        store: LayerStore = NO_STORE,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """Self-attention, (B,T,D) -> (B,T,D).

        Args:
            x: the positions that ask and are asked, (B,T,D).
            visible: which query may look at which key.
            rotate: turns queries and keys; keys are stored turned.
            bias: added to the scores, broadcasts to (B,H,T,S).
            store: keeps keys and values of the tokens before.
            tap: sees, or replaces, the named tensors.
        """
        q, k, v = self.qkv(x).split(self.sizes, dim=-1)
        q = tap("q", rotate(self.q_norm(split_heads(q, self.heads))))
        k = tap("k", rotate(self.k_norm(split_heads(k, self.kv_heads))))
        v = tap("v", split_heads(v, self.kv_heads))
        k, v = store.append(k, v)
        return self._mixed(q, k, v, visible, bias=bias, tap=tap)

    def keys_values(self, memory: Tensor, *, tap: Tap = NO_TAP) -> tuple[Tensor, Tensor]:
        """What `across` asks of another sequence, computed once however often it is asked: (B,M,D) -> two (B,K,M,d).

        Args:
            memory: the sequence that is asked, such as the output of an encoder.
            tap: sees, or replaces, `k` and `v`.
        """
        queries = self.sizes[0]
        bias = None if self.qkv.bias is None else self.qkv.bias[queries:]
        both: Tensor = F.linear(memory, self.qkv.weight[queries:], bias)
        k, v = torch.split(both, self.sizes[1:], dim=-1)
        return tap("k", self.k_norm(split_heads(k, self.kv_heads))), tap("v", split_heads(v, self.kv_heads))

    def across(self, x: Tensor, memory: Memory, *, tap: Tap = NO_TAP) -> Tensor:
        """Cross-attention, (B,T,D) -> (B,T,D): queries of `x`, keys and values of another sequence, weights T×M.

        Every query may look at every real position of the memory; order is known to neither.

        Args:
            x: the positions that ask, (B,T,D).
            memory: what `keys_values` gave, and which of it is real.
            tap: sees, or replaces, the named tensors; `k` and `v` have passed in `keys_values`.

        Source: transformer-notes §13; Vaswani et al. 2017 §3.2.3.
        """
        queries = self.sizes[0]
        bias = None if self.qkv.bias is None else self.qkv.bias[:queries]
        q = tap("q", self.q_norm(split_heads(F.linear(x, self.qkv.weight[:queries], bias), self.heads)))
        return self._mixed(q, memory.k, memory.v, memory.visible, tap=tap)

    def _mixed(self, q: Tensor, k: Tensor, v: Tensor, visible: Mask, *, bias: Tensor | None = None, tap: Tap) -> Tensor:
        """Attend, merge the heads, project: (B,H,T,d), two (B,K,S,d) -> (B,T,D)."""
        # A function has no training mode: it must be told that evaluation drops nothing.
        dropout = self.weight_dropout * self.training
        mixed = self.attend(q, k, v, visible, bias=bias, scale=self.scale, dropout=dropout, tap=tap)
        return tap("output", self.output_dropout(self.output(merge_heads(tap("mixed", mixed)))))
