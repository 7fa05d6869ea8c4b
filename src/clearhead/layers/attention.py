"""Multi-head attention: several projections of the same input, each attending on its own, then mixed."""

from __future__ import annotations

from torch import Tensor, nn

from clearhead.layers.store import NO_STORE, LayerStore
from clearhead.ops.attention import Attend, attend_fused
from clearhead.ops.heads import merge_heads, split_heads
from clearhead.ops.masks import Mask
from clearhead.ops.rotary import Rotate, unrotated
from clearhead.ops.tap import NO_TAP, Tap


class MultiHeadAttention(nn.Module):
    """MHA(x) = [head_1, ..., head_H] W_O with head_h = attend(x W_Q^h, x W_K^h, x W_V^h).

    One linear layer projects to all queries, keys and values; its output holds H·d query features, then K·d key
    features, then K·d value features. Every head reads all D features of the input.

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
        """(B,T,D) -> (B,T,D).

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
        # A function has no training mode: it must be told that evaluation drops nothing.
        dropout = self.weight_dropout * self.training
        mixed = self.attend(q, k, v, visible, bias=bias, scale=self.scale, dropout=dropout, tap=tap)
        return tap("output", self.output_dropout(self.output(merge_heads(tap("mixed", mixed)))))
