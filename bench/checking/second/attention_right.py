"""Attention without a mistake: every convention that looks like one."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


def heads_of(x: Tensor, count: int) -> Tensor:
    return x.view(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def merged(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


class GPTAttention(nn.Module):
    def __init__(self, n_embd: int = 24, n_head: int = 3, dropout: float = 0.1, bias: bool = False):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.resid_dropout = nn.Dropout(dropout)
        self.n_head, self.n_embd, self.dropout = n_head, n_embd, dropout

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads_of(t, self.n_head) for t in self.c_attn(x).split(self.n_embd, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0, is_causal=True)
        return self.resid_dropout(self.c_proj(merged(y)))


class CourseHead(nn.Module):
    def __init__(self, n_embd: int, head_size: int, dropout: float):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(n_embd, head_size, bias=False) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(torch.tril(torch.ones(T, T, device=x.device)) == 0, float("-inf"))
        return self.dropout(F.softmax(wei, dim=-1)) @ self.value(x)


class CourseMultiHead(nn.Module):
    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.2):
        super().__init__()
        self.heads = nn.ModuleList([CourseHead(n_embd, n_embd // n_head, dropout) for _ in range(n_head)])
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class HFAttention(nn.Module):
    """Causal; `attention_mask` (B, S) is 1 at real tokens. Softmax in float32."""

    def __init__(self, hidden_size: int = 32, num_attention_heads: int = 4, num_key_value_heads: int = 2):
        super().__init__()
        self.num_heads, self.num_kv_heads = num_attention_heads, num_key_value_heads
        self.head_dim = hidden_size // num_attention_heads
        self.q_proj = nn.Linear(hidden_size, num_attention_heads * self.head_dim, bias=True)
        self.k_proj = nn.Linear(hidden_size, num_key_value_heads * self.head_dim, bias=True)
        self.v_proj = nn.Linear(hidden_size, num_key_value_heads * self.head_dim, bias=True)
        self.o_proj = nn.Linear(num_attention_heads * self.head_dim, hidden_size, bias=False)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        T = hidden_states.shape[1]
        q = heads_of(self.q_proj(hidden_states), self.num_heads)
        k = heads_of(self.k_proj(hidden_states), self.num_kv_heads)
        v = heads_of(self.v_proj(hidden_states), self.num_kv_heads)
        k, v = (t.repeat_interleave(self.num_heads // self.num_kv_heads, dim=1) for t in (k, v))
        keep = torch.ones(T, T, dtype=torch.bool, device=q.device).tril()[None, None]
        if attention_mask is not None:
            keep = keep & attention_mask[:, None, None, :].bool()
        scores = (q @ k.mT / math.sqrt(self.head_dim)).masked_fill(~keep, torch.finfo(q.dtype).min)
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype).masked_fill(~keep, 0.0)
        return self.o_proj(merged(weights @ v)), weights


class TorchSelfAttention(nn.Module):
    """`key_padding_mask` (B, S): True is ignored. Rows without a key give the bias alone."""

    def __init__(self, embed_dim: int = 24, num_heads: int = 4):
        super().__init__()
        self.mha = nn.MultiheadAttention(embed_dim, num_heads, dropout=0.1, batch_first=True)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if key_padding_mask is not None:
            empty = key_padding_mask.all(dim=-1, keepdim=True)
            out, weights = self.mha(x, x, x, key_padding_mask=key_padding_mask & ~empty)
            return torch.where(empty[:, :, None], self.mha.out_proj.bias, out), weights
        return self.mha(x, x, x)


class MultiQuery(nn.Module):
    def __init__(self, dim: int = 32, heads: int = 4, dim_head: int = 8):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        q = heads_of(self.to_q(x), self.heads) * self.scale
        k, v = self.to_kv(x).chunk(2, dim=-1)
        sim = torch.einsum("bhid,bjd->bhij", q, k)
        sim = sim.masked_fill(torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1), -torch.finfo(sim.dtype).max)
        return self.to_out(merged(torch.einsum("bhij,bjd->bhid", sim.softmax(dim=-1), v)))


class WindowAttention(nn.Module):
    def __init__(self, d_model: int = 24, num_heads: int = 2, sliding_window: int = 4):
        super().__init__()
        self.num_heads, self.sliding_window = num_heads, sliding_window
        self.qkv, self.proj = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads_of(t, self.num_heads) for t in self.qkv(x).chunk(3, -1))
        pos = torch.arange(x.shape[1], device=x.device)
        back = pos[:, None] - pos
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=(back >= 0) & (back < self.sliding_window))
        return self.proj(merged(y))


class AlibiAttention(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)
        slopes = 2.0 ** (-8.0 * torch.arange(1, num_heads + 1) / num_heads)
        self.register_buffer("slopes", slopes.view(1, num_heads, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        q, k, v = (heads_of(t, self.num_heads) for t in self.query_key_value(x).chunk(3, -1))
        pos = torch.arange(T, device=x.device)
        bias = self.slopes * (pos[None, :] - pos[:, None]).to(x.dtype)
        scores = q @ k.mT / math.sqrt(q.size(-1)) + bias
        scores = scores.masked_fill(pos[None, :] > pos[:, None], float("-inf"))
        return self.dense(merged(scores.softmax(-1) @ v))


class T5Attention(nn.Module):
    """No scale, a learned bias for each distance up to a limit; the scale is in the first weights."""

    scale = 1.0

    def __init__(self, d_model: int = 32, num_heads: int = 4, max_distance: int = 8):
        super().__init__()
        self.n_heads, self.max_distance = num_heads, max_distance
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.relative_attention_bias = nn.Embedding(2 * max_distance + 1, num_heads)
        nn.init.normal_(self.q.weight, std=(d_model * d_model // num_heads) ** -0.5)

    def forward(self, hidden_states: Tensor) -> Tensor:
        q, k, v = (heads_of(f(hidden_states), self.n_heads) for f in (self.q, self.k, self.v))
        pos = torch.arange(q.size(-2), device=q.device)
        distance = (pos[None, :] - pos[:, None]).clamp(-self.max_distance, self.max_distance) + self.max_distance
        scores = q @ k.mT + self.relative_attention_bias(distance).permute(2, 0, 1)
        return self.o(merged(scores.softmax(-1) @ v))


class RelativeAttention(nn.Module):
    def __init__(self, d_model: int = 24, num_heads: int = 3, max_len: int = 64):
        super().__init__()
        self.num_heads, self.max_len = num_heads, max_len
        self.in_proj, self.out_proj = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.bias = nn.Parameter(0.1 * torch.randn(num_heads, max_len))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads_of(t, self.num_heads) for t in self.in_proj(x).chunk(3, -1))
        pos = torch.arange(x.shape[1], device=x.device)
        back = pos[:, None] - pos
        bias = self.bias[:, back.clamp(min=0)].masked_fill(back < 0, float("-inf"))
        return self.out_proj(merged(F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None].to(q.dtype))))


class SoftCapped(nn.Module):
    def __init__(self, dim: int = 32, num_heads: int = 4, num_kv_heads: int = 2, softcap: float = 20.0):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.softcap = num_heads, num_kv_heads, softcap
        d = dim // num_heads
        self.q, self.kv = nn.Linear(dim, dim, bias=False), nn.Linear(dim, 2 * num_kv_heads * d, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        K, G = self.num_kv_heads, self.num_heads // self.num_kv_heads
        q = self.q(x).view(B, T, K, G, -1)
        k, v = (t.view(B, T, K, -1) for t in self.kv(x).chunk(2, -1))
        s = torch.einsum("btkgd,bskd->bkgts", q, k) * q.size(-1) ** -0.5
        s = torch.tanh(s / self.softcap) * self.softcap
        s = s.masked_fill(torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1), float("-inf"))
        return self.o(torch.einsum("bkgts,bskd->btkgd", s.softmax(-1), v).reshape(B, T, D))


class SinkAttention(nn.Module):
    def __init__(self, hidden_size: int = 24, num_heads: int = 4):
        super().__init__()
        self.num_heads = num_heads
        self.sinks = nn.Parameter(torch.randn(num_heads))
        self.qkv, self.o = nn.Linear(hidden_size, 3 * hidden_size), nn.Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        B, T, _ = x.shape
        q, k, v = (heads_of(t, self.num_heads) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT / math.sqrt(q.size(-1))
        scores = scores.masked_fill(torch.ones(T, T, device=x.device).triu(1).bool(), float("-inf"))
        sinks = self.sinks.view(1, -1, 1, 1).expand(B, -1, T, 1)
        weights = torch.cat([scores, sinks], dim=-1).softmax(dim=-1)[..., :-1]
        return self.o(merged(weights @ v)), weights


class QuietSoftmax(nn.Module):
    """Softmax with one more in the sum: a head may read nothing."""

    def __init__(self, dim: int = 16, heads: int = 2):
        super().__init__()
        self.heads = heads
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads_of(t, self.heads) for t in self.to_qkv(x).chunk(3, -1))
        scores = q @ k.mT / math.sqrt(q.size(-1))
        top = scores.amax(-1, keepdim=True).clamp(min=0).detach()
        e = (scores - top).exp()
        return self.to_out(merged(e / (e.sum(-1, keepdim=True) + (-top).exp()) @ v))


class NormedHeads(nn.Module):
    def __init__(self, dim: int = 32, n_heads: int = 4):
        super().__init__()
        self.n_heads = n_heads
        self.wqkv, self.wo = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.q_norm, self.k_norm = nn.RMSNorm(dim // n_heads, eps=1e-6), nn.RMSNorm(dim // n_heads, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads_of(t, self.n_heads) for t in self.wqkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v, is_causal=True)
        return self.wo(merged(y))


class CrossAttention(nn.Module):
    """Reads `context` if there is one, else x."""

    def __init__(self, dim: int = 24, num_heads: int = 3):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.kv, self.out = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        source = x if context is None else context
        k, v = (heads_of(t, self.num_heads) for t in self.kv(source).chunk(2, -1))
        return self.out(merged(F.scaled_dot_product_attention(heads_of(self.q(x), self.num_heads), k, v)))


CASES = [
    Case("GPTAttention", "attention", guess=True),
    Case("CourseMultiHead", "attention", guess=True),
    Case("HFAttention", "attention"),
    Case("TorchSelfAttention", "attention"),
    Case("MultiQuery", "attention"),
    Case("WindowAttention", "attention"),
    Case("AlibiAttention", "attention"),
    Case("T5Attention", "attention"),
    Case("RelativeAttention", "attention"),
    Case("SoftCapped", "attention"),
    Case("SinkAttention", "attention"),
    Case("QuietSoftmax", "attention"),
    Case("NormedHeads", "attention"),
    Case("CrossAttention", "attention"),
]
