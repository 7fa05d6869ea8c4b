"""Attention whose padding masks do something else than they say."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class _Heads(nn.Module):
    """Projections and heads; what is done with the mask differs below."""

    def __init__(self, d_model=32, num_heads=4):
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def split(self, x):
        return x.view(x.shape[0], -1, self.num_heads, self.d_k).transpose(1, 2)

    def merge(self, x):
        return self.W_o(x.transpose(1, 2).reshape(x.shape[0], -1, self.num_heads * self.d_k))

    def scores(self, x):
        return self.split(self.W_q(x)) @ self.split(self.W_k(x)).transpose(-2, -1) / math.sqrt(self.d_k)


class PolarityNamed(_Heads):
    """The name is PyTorch's."""

    def forward(self, x, key_padding_mask=None):
        s = self.scores(x)
        if key_padding_mask is not None:
            s = s.masked_fill(~key_padding_mask[:, None, None, :], torch.finfo(s.dtype).min)
        return self.merge(s.softmax(-1) @ self.split(self.W_v(x)))


class PolarityHF(_Heads):
    """Hugging Face's interface."""

    def forward(self, hidden_states, attention_mask=None):
        s = self.scores(hidden_states)
        if attention_mask is not None:
            s = s.masked_fill(attention_mask[:, None, None, :] != 0, -1e9)
        return self.merge(s.softmax(-1) @ self.split(self.W_v(hidden_states))), s


class PolarityDocumented(_Heads):
    def forward(self, x, mask=None):
        """Attend.

        Args:
            x: (batch, length, d_model).
            mask: (batch, length), True marks padding to be ignored.
        """
        q, k, v = (self.split(w(x)) for w in (self.W_q, self.W_k, self.W_v))
        visible = None if mask is None else mask[:, None, None, :]
        return self.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=visible))


class AddedAsNumber(_Heads):
    """Adds what it is given."""

    def forward(self, x, attention_mask=None):
        s = self.scores(x)
        if attention_mask is not None:
            s = s + attention_mask[:, None, None, :].to(s.dtype)
        return self.merge(s.softmax(-1) @ self.split(self.W_v(x)))


class AddedToSDPA(_Heads):
    """Floats on their way to SDPA."""

    def forward(self, x, mask=None):
        q, k, v = (self.split(w(x)) for w in (self.W_q, self.W_k, self.W_v))
        if mask is not None:
            mask = mask[:, None, None, :].to(q.dtype)
        return self.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


class Ignored(_Heads):
    """The mask is taken and not used."""

    def forward(self, x, attention_mask=None):
        return self.merge(self.scores(x).softmax(-1) @ self.split(self.W_v(x)))


class IgnoredResult(_Heads):
    """masked_fill without its result being kept."""

    def forward(self, x, mask=None):
        s = self.scores(x)
        if mask is not None:
            s.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        return self.merge(s.softmax(-1) @ self.split(self.W_v(x)))


class QueryAxis(_Heads):
    """unsqueeze(-1) where it must be unsqueeze(-2)."""

    def forward(self, x, padding_mask=None):
        s = self.scores(x)
        if padding_mask is not None:
            s = s.masked_fill(padding_mask.unsqueeze(1).unsqueeze(-1) == 0, -1e9)
        return self.merge(s.softmax(-1) @ self.split(self.W_v(x)))


class QueryAxisOneHead(nn.Module):
    """The same with one head."""

    def __init__(self, embed_dim=32):
        super().__init__()
        self.qkv, self.out = nn.Linear(embed_dim, 3 * embed_dim), nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        a = torch.einsum("bid,bjd->bij", q, k) / math.sqrt(q.shape[-1])
        if mask is not None:
            a = torch.where(mask[:, :, None].bool(), a, torch.full_like(a, -1e30))
        return self.out(torch.einsum("bij,bjd->bid", a.softmax(-1), v))


class EmptyRow(_Heads):
    """-inf, and nothing for a row that is all padding."""

    def forward(self, x, mask=None):
        s = self.scores(x)
        if mask is not None:
            s = s.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        return self.merge(s.softmax(-1) @ self.split(self.W_v(x)))


class EmptyRowGradient(_Heads):
    """NaN replaced after the fact: the gradient keeps it."""

    def forward(self, x, attention_mask=None):
        s = self.scores(x)
        if attention_mask is not None:
            hidden = ~attention_mask[:, None, None, :].bool()
            s = s + torch.zeros(hidden.shape, dtype=s.dtype).masked_fill(hidden, -torch.inf)
        w = s.softmax(-1)
        w = torch.where(w.isnan(), torch.zeros_like(w), w)
        return self.merge(w @ self.split(self.W_v(x)))


class WrongRow(nn.Module):
    """Batch and heads folded (B*H), the mask repeated as (H*B)."""

    def __init__(self, d_model=32, n_head=4):
        super().__init__()
        self.n_head = n_head
        self.w_qs, self.w_ks, self.w_vs, self.fc = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, mask=None):
        B, T, D = x.shape

        def fold(t):
            return t.view(B, T, self.n_head, -1).transpose(1, 2).reshape(B * self.n_head, T, -1)

        q, k, v = fold(self.w_qs(x)), fold(self.w_ks(x)), fold(self.w_vs(x))
        s = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(D // self.n_head)
        if mask is not None:
            s = s.masked_fill(mask.repeat(self.n_head, 1)[:, None, :] == 0, -1e9)
        y = torch.bmm(s.softmax(-1), v).view(B, self.n_head, T, -1)
        return self.fc(y.transpose(1, 2).reshape(B, T, D))


class FirstRow(_Heads):
    """The first row's mask for all."""

    def forward(self, x, attention_mask=None):
        s = self.scores(x)
        if attention_mask is not None:
            s = s.masked_fill(attention_mask[0] == 0, -1e9)
        return self.merge(s.softmax(-1) @ self.split(self.W_v(x)))


class MaskedAfter(_Heads):
    """Padding taken off the weights after the softmax."""

    def forward(self, x, mask=None):
        w = self.scores(x).softmax(-1)
        if mask is not None:
            w = w * mask[:, None, None, :]
        return self.merge(w @ self.split(self.W_v(x)))


class PaddingFinite(_Heads):
    """-1e4 for padding."""

    def forward(self, x, attention_mask=None):
        s = self.scores(x)
        if attention_mask is not None:
            s = s + (1.0 - attention_mask[:, None, None, :].to(s.dtype)) * -10000.0
        return self.merge(s.softmax(-1) @ self.split(self.W_v(x)))


class CausalUnlessMasked(_Heads):
    """A padding mask takes the place of the triangle."""

    is_causal = True

    def forward(self, x, mask=None):
        T = x.shape[1]
        visible = torch.ones(T, T, dtype=torch.bool).tril() if mask is None else mask[:, None, None, :].bool()
        s = self.scores(x).masked_fill(~visible, torch.finfo(x.dtype).min)
        return self.merge(s.softmax(-1) @ self.split(self.W_v(x)))


class EmptyTextMean(nn.Module):
    """`mask` (B, S) is 1 at real tokens; a text may be all padding."""

    def __init__(self, hidden_size=24, num_heads=3):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.dense = nn.Linear(hidden_size, 3 * hidden_size), nn.Linear(hidden_size, hidden_size)

    def forward(self, x, mask=None):
        B, T, D = x.shape
        q, k, v = (t.reshape(B, T, self.num_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT * q.size(-1) ** -0.5
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, None, :] == 0, -1e9)
        return self.dense((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))


CASES = [
    Case("EmptyTextMean", "attention", "mask.empty-row"),
    Case("PolarityNamed", "attention", "mask.polarity"),
    Case("PolarityHF", "attention", "mask.polarity"),
    Case("PolarityDocumented", "attention", "mask.polarity"),
    Case("AddedAsNumber", "attention", "mask.added-as-number"),
    Case("AddedToSDPA", "attention", "mask.added-as-number"),
    Case("Ignored", "attention", "mask.ignored"),
    Case("IgnoredResult", "attention", "mask.ignored"),
    Case("QueryAxis", "attention", "mask.query-axis"),
    Case("QueryAxisOneHead", "attention", "mask.query-axis"),
    Case("EmptyRow", "attention", "mask.empty-row"),
    Case("EmptyRowGradient", "attention", "mask.empty-row"),
    Case("WrongRow", "attention", "mask.wrong-row"),
    Case("FirstRow", "attention", "mask.wrong-row"),
    Case("MaskedAfter", "attention", "causal.after-softmax"),
    Case("PaddingFinite", "attention", "causal.finite-mask"),
    Case("CausalUnlessMasked", "attention", "causal.future-leak"),
]
