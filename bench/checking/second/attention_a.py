"""Self-attention: who sees which position."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd: int = 24, n_head: int = 3, block_size: int = 32, dropout: float = 0.0):
        super().__init__()
        assert n_embd % n_head == 0
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.attn_dropout = nn.Dropout(dropout)
        self.n_head = n_head
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size), diagonal=1))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.bias[:T, :T] == 0, float("-inf"))
        att = self.attn_dropout(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class DecoderSelfAttention(nn.Module):
    """Causal self-attention; `attention_mask` is 1 at real tokens and 0 at padding."""

    is_causal = True

    def __init__(self, hidden_size: int, num_attention_heads: int):
        super().__init__()
        self.num_heads = num_attention_heads
        self.head_dim = hidden_size // num_attention_heads
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.v_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        batch, length, width = hidden_states.shape
        shape = (batch, length, self.num_heads, self.head_dim)
        query = self.q_proj(hidden_states).view(shape).transpose(1, 2)
        key = self.k_proj(hidden_states).view(shape).transpose(1, 2)
        value = self.v_proj(hidden_states).view(shape).transpose(1, 2)
        keep = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=keep, is_causal=keep is None)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, width))


class Head(nn.Module):
    """One head of causal self-attention."""

    def __init__(self, n_embd: int, head_size: int, block_size: int):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size, dtype=torch.bool), diagonal=-1))

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        k, q, v = self.key(x), self.query(x), self.value(x)
        keep = self.tril[:T, :T]
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = F.softmax(wei.masked_fill(~keep, torch.finfo(wei.dtype).min), dim=-1)
        return wei.masked_fill(~keep, 0.0) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, n_embd: int = 16, n_head: int = 4, block_size: int = 24):
        super().__init__()
        self.heads = nn.ModuleList([Head(n_embd, n_embd // n_head, block_size) for _ in range(n_head)])
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class LlamaAttention(nn.Module):
    def __init__(self, dim: int = 32, n_heads: int = 4):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, dim // n_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        bsz, seqlen, _ = x.shape
        xq, xk, xv = (w(x).view(bsz, seqlen, self.n_heads, self.head_dim) for w in (self.wq, self.wk, self.wv))
        xq, xk, xv = xq.transpose(1, 2), xk.transpose(1, 2), xv.transpose(1, 2)
        mask = torch.full((seqlen, seqlen), torch.finfo(x.dtype).min, device=x.device, dtype=x.dtype)
        mask = torch.triu(mask)
        scores = torch.matmul(xq, xk.transpose(2, 3)) / math.sqrt(self.head_dim)
        scores = F.softmax(scores + mask, dim=-1)
        return self.wo((scores @ xv).transpose(1, 2).reshape(bsz, seqlen, -1))


def look_ahead_mask(size: int, device: torch.device) -> Tensor:
    return torch.triu(torch.ones(size, size, device=device))


class MaskedMultiHead(nn.Module):
    def __init__(self, d_model: int = 24, num_heads: int = 2):
        super().__init__()
        self.h, self.d_k = num_heads, d_model // num_heads
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), self.h, self.d_k).transpose(1, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        T = x.size(1)
        q, k, v = self.split(self.w_q(x)), self.split(self.w_k(x)), self.split(self.w_v(x))
        keep = torch.tril(torch.ones(T, T, device=x.device)) * look_ahead_mask(T, x.device)
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.d_k)
        p_attn = scores.masked_fill(keep == 0, -1e9).softmax(dim=-1)
        out = (p_attn @ v).transpose(1, 2).contiguous().view(x.size(0), T, -1)
        return self.w_o(out), p_attn


class AttentionBias(nn.Module):
    """Causal attention whose mask is a bias made once."""

    def __init__(self, dim: int, heads: int = 4, dim_head: int = 8, max_seq_len: int = 40):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_qkv = nn.Linear(dim, heads * dim_head * 3, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim)
        future = torch.full((max_seq_len, max_seq_len), float("-inf")).triu(1)
        past = torch.full((max_seq_len, max_seq_len), float("-inf")).tril(-1)
        self.register_buffer("causal_bias", future + past, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (t.reshape(b, n, self.heads, -1).permute(0, 2, 1, 3) for t in self.to_qkv(x).chunk(3, dim=-1))
        sim = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale + self.causal_bias[:n, :n]
        out = torch.einsum("bhij,bhjd->bhid", sim.softmax(dim=-1), v)
        return self.to_out(out.permute(0, 2, 1, 3).reshape(b, n, -1))


class MinAttention(nn.Module):
    def __init__(self, n_embd: int = 32, n_head: int = 4, attn_pdrop: float = 0.1, block_size: int = 32):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(n_embd, n_embd) for _ in range(3))
        self.attn_drop = nn.Dropout(attn_pdrop)
        self.proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))
        self.n_head = n_head

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        k = self.key(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = self.query(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = self.value(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = F.softmax((q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1))), dim=-1)
        att = self.attn_drop(att * self.mask[:, :, :T, :T])
        return self.proj((att @ v).transpose(1, 2).contiguous().view(B, T, C))


class EncoderSelfAttention(nn.Module):
    """Bidirectional; `mask` is True at the tokens to read."""

    def __init__(self, dim: int = 24, num_heads: int = 4):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        B, T, D = x.shape
        q, k, v = self.qkv(x).reshape(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        if mask is not None:
            weights = weights * mask[:, None, None, :].to(weights.dtype)
        return self.out((weights @ v).transpose(1, 2).reshape(B, T, D)), weights


class GPT2Attention(nn.Module):
    def __init__(self, n_embd: int = 24, n_head: int = 2, n_positions: int = 32):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.n_head = n_head
        self.register_buffer("bias", torch.tril(torch.ones(n_positions, n_positions)))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.c_attn(x).chunk(3, dim=-1))
        w = q @ k.transpose(-1, -2) / math.sqrt(v.size(-1))
        b = self.bias[:T, :T]
        w = torch.softmax(w * b - 1e4 * (1 - b), dim=-1)
        return self.c_proj((w @ v).transpose(1, 2).reshape(B, T, C))


class BertSelfAttention(nn.Module):
    """`attention_mask` is 1 at real tokens; a row without any gives zeros."""

    def __init__(self, hidden_size: int = 32, num_attention_heads: int = 4):
        super().__init__()
        self.num_attention_heads = num_attention_heads
        self.attention_head_size = hidden_size // num_attention_heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def transpose_for_scores(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.num_attention_heads, self.attention_head_size).permute(0, 2, 1, 3)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q = self.transpose_for_scores(self.query(hidden_states))
        k = self.transpose_for_scores(self.key(hidden_states))
        v = self.transpose_for_scores(self.value(hidden_states))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.attention_head_size)
        if attention_mask is not None:
            scores = scores + (1.0 - attention_mask[:, None, None, :].to(scores.dtype)) * -10000.0
        probs = scores.softmax(-1)
        if attention_mask is not None:
            probs = probs * attention_mask.bool().any(-1)[:, None, None, None]
        context = torch.matmul(probs, v).permute(0, 2, 1, 3).flatten(2)
        return self.dense(context), probs


class SlidingWindowAttention(nn.Module):
    """Causal attention to the last `window` positions, the own one among them."""

    def __init__(self, embed_dim: int = 24, num_heads: int = 3, window: int = 4):
        super().__init__()
        self.num_heads, self.window = num_heads, window
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=False)
        self.proj = nn.Linear(embed_dim, embed_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.num_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        pos = torch.arange(T, device=x.device)
        distance = pos[:, None] - pos[None, :]
        keep = (distance >= 0) & (distance <= self.window)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        return self.proj(y.transpose(1, 2).reshape(B, T, D))


class LocalAttention(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int, sliding_window: int = 5):
        super().__init__()
        self.num_heads, self.sliding_window = num_heads, sliding_window
        self.q, self.k, self.v = (nn.Linear(hidden_size, hidden_size) for _ in range(3))
        self.o = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        B, T, _ = hidden_states.shape
        q, k, v = (f(hidden_states).view(B, T, self.num_heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        ones = torch.ones(T, T, dtype=torch.bool, device=q.device)
        keep = ones.tril() & ones.triu(2 - self.sliding_window)
        scores = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(~keep, float("-inf"))
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


CASES = [
    Case("CausalSelfAttention", "attention", "causal.future-leak", guess=True),
    Case("DecoderSelfAttention", "attention", "causal.future-leak"),
    Case("MultiHeadAttention", "attention", "causal.self-masked"),
    Case("LlamaAttention", "attention", "causal.self-masked", guess=True),
    Case("MaskedMultiHead", "attention", "causal.past-lost"),
    Case("AttentionBias", "attention", "causal.past-lost"),
    Case("MinAttention", "attention", "causal.after-softmax", guess=True),
    Case("EncoderSelfAttention", "attention", "causal.after-softmax"),
    Case("GPT2Attention", "attention", "causal.finite-mask"),
    Case("BertSelfAttention", "attention", "causal.finite-mask"),
    Case("SlidingWindowAttention", "attention", "window.off-by-one"),
    Case("LocalAttention", "attention", "window.off-by-one"),
]
