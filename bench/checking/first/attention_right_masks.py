"""Attention with masks that are right: both polarities, every shape, rows that see nothing."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class _Heads(nn.Module):
    def __init__(self, d_model=32, num_heads=4):
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def split(self, x):
        return x.view(x.shape[0], -1, self.num_heads, self.d_k).transpose(1, 2)

    def merge(self, x):
        return self.W_o(x.transpose(1, 2).reshape(x.shape[0], -1, self.num_heads * self.d_k))

    def attend(self, query, key, value, visible):
        s = self.split(self.W_q(query)) @ self.split(self.W_k(key)).transpose(-2, -1) / math.sqrt(self.d_k)
        if visible is None:
            return self.merge(s.softmax(-1) @ self.split(self.W_v(value)))
        some = visible.any(-1, keepdim=True)
        w = s.masked_fill(~visible, torch.finfo(s.dtype).min).softmax(-1) * some
        return self.merge(w @ self.split(self.W_v(value)))


class KeepHF(_Heads):
    def forward(self, hidden_states, attention_mask=None):
        mask = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        return self.attend(hidden_states, hidden_states, hidden_states, mask)


class DropTorch(_Heads):
    def forward(self, x, key_padding_mask=None):
        mask = None if key_padding_mask is None else ~key_padding_mask[:, None, None, :]
        return self.attend(x, x, x, mask)


class DropDocumented(_Heads):
    def forward(self, x, attention_mask=None):
        """attention_mask: (batch, length), True where a key is padding and must not be seen."""
        mask = None if attention_mask is None else ~attention_mask[:, None, None, :]
        return self.attend(x, x, x, mask)


class PlainDrop(_Heads):
    def forward(self, x, mask=None):
        return self.attend(x, x, x, None if mask is None else ~mask.bool()[:, None, None, :])


class Annotated(_Heads):
    """query, key, value, and a mask (B,1,1,S) that is 0 where nothing is seen; -1e9."""

    def forward(self, query, key, value, mask=None):
        s = self.split(self.W_q(query)) @ self.split(self.W_k(key)).transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            s = s.masked_fill(mask == 0, -1e9)
        return self.merge(s.softmax(-1) @ self.split(self.W_v(value)))


class Additive(_Heads):
    """Hugging Face's inner interface: a float mask (B,1,T,S), 0 or the lowest number, is added."""

    def forward(self, hidden_states, attention_mask=None, output_attentions=False):
        s = self.split(self.W_q(hidden_states)) @ self.split(self.W_k(hidden_states)).transpose(2, 3) * self.d_k**-0.5
        if attention_mask is not None:
            s = s + attention_mask[:, :, :, : s.shape[-1]]
        w = s.softmax(-1)
        out = self.merge(w @ self.split(self.W_v(hidden_states)))
        return (out, w) if output_attentions else (out,)


class CausalPadded(_Heads):
    """Causal and padded at once; SDPA gives zeros to rows that see nothing."""

    def forward(self, x, attention_mask=None):
        T = x.shape[1]
        q, k, v = (self.split(w(x)) for w in (self.W_q, self.W_k, self.W_v))
        visible = torch.ones(T, T, dtype=torch.bool).tril()[None, None]
        if attention_mask is not None:
            visible = visible & attention_mask.bool()[:, None, None, :]
        some = visible.any(-1, keepdim=True)
        return self.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=visible | ~some) * some)


class Pairs(_Heads):
    def forward(self, x, attn_mask=None):
        """attn_mask: (T, S), True where a query may look."""
        return self.attend(x, x, x, attn_mask)


class Memory(_Heads):
    """Cross-attention: keys from a context, whose mask keeps."""

    def forward(self, x, context=None, mask=None):
        context = x if context is None else context
        return self.attend(x, context, context, None if mask is None else mask.bool()[:, None, None, :])


class Wrapped(nn.Module):
    """PyTorch's own, rows first."""

    def __init__(self, d_model=32, nhead=4):
        super().__init__()
        self.mha = nn.MultiheadAttention(d_model, nhead, batch_first=True)

    def forward(self, x, key_padding_mask=None):
        return self.mha(x, x, x, key_padding_mask=key_padding_mask, need_weights=False)[0]


def torch_own():
    """The module itself, (T,B,D)."""
    return nn.MultiheadAttention(32, 4)


class Converted(_Heads):
    """0/1 turned into 0 and the lowest number before it is added."""

    def forward(self, x, attention_mask=None):
        s = self.split(self.W_q(x)) @ self.split(self.W_k(x)).transpose(-2, -1) / math.sqrt(self.d_k)
        if attention_mask is not None:
            s = s + (1.0 - attention_mask[:, None, None, :].to(s.dtype)) * torch.finfo(s.dtype).min
        return self.merge(s.softmax(-1) @ self.split(self.W_v(x)))


class Folded(nn.Module):
    """Batch and heads folded, the mask repeated the same way."""

    def __init__(self, d_model=32, n_head=4):
        super().__init__()
        self.n_head = n_head
        self.w_qs, self.w_ks, self.w_vs, self.fc = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, mask=None):
        B, T, D = x.shape

        def fold(t):
            return t.view(B, T, self.n_head, -1).transpose(1, 2).reshape(B * self.n_head, T, -1)

        s = torch.bmm(fold(self.w_qs(x)), fold(self.w_ks(x)).transpose(1, 2)) / math.sqrt(D // self.n_head)
        if mask is not None:
            s = s.masked_fill(mask.repeat_interleave(self.n_head, 0)[:, None, :] == 0, -1e9)
        y = torch.bmm(s.softmax(-1), fold(self.w_vs(x))).view(B, self.n_head, T, -1)
        return self.fc(y.transpose(1, 2).reshape(B, T, D))


CASES = [
    Case(name, "attention")
    for name in (
        "KeepHF", "DropTorch", "DropDocumented", "PlainDrop", "Annotated", "Additive", "CausalPadded", "Pairs",
        "Memory", "Wrapped", "torch_own", "Converted", "Folded",
    )
]  # fmt: skip
