"""Language models with a tuple for a cache, with a start position, with a window, and written with parameter dicts."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case

KV = tuple[Tensor, Tensor]


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.k_norm = nn.LayerNorm(dim // heads)

    def heads_of(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor, past: KV | None = None) -> tuple[Tensor, KV]:
        q, k, v = self.heads_of(self.wq(x)), self.k_norm(self.heads_of(self.wk(x))), self.heads_of(self.wv(x))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=-2), torch.cat((past[1], v), dim=-2)
        T, S = q.size(-2), k.size(-2)
        scores = q @ k.mT / math.sqrt(q.size(-1))
        ahead = torch.ones(T, S, dtype=torch.bool, device=x.device).triu(S - T + 1)
        w = scores.masked_fill(ahead, float("-inf")).softmax(dim=-1)
        return self.wo((w @ v).transpose(1, 2).flatten(2)), (k, v)


class Attention2(Attention):
    def forward(self, x: Tensor, past: KV | None = None) -> tuple[Tensor, KV]:
        q, k, v = self.heads_of(self.wq(x)), self.heads_of(self.wk(x)), self.heads_of(self.wv(x))
        kept = (k, v)
        k = self.k_norm(k)
        if past is not None:
            k, v = torch.cat((past[0], k), dim=-2), torch.cat((past[1], v), dim=-2)
            kept = (torch.cat((past[0], kept[0]), dim=-2), v)
        T, S = q.size(-2), k.size(-2)
        scores = q @ k.mT / math.sqrt(q.size(-1))
        ahead = torch.ones(T, S, dtype=torch.bool, device=x.device).triu(S - T + 1)
        w = scores.masked_fill(ahead, float("-inf")).softmax(dim=-1)
        return self.wo((w @ v).transpose(1, 2).flatten(2)), kept


class TransformerLM(nn.Module):
    """m(ids, cache=None) gives (logits, cache)."""

    attention: type[nn.Module] = Attention

    def __init__(self, vocab: int = 59, dim: int = 24, heads: int = 3, depth: int = 2, max_len: int = 64) -> None:
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, dim), nn.Embedding(max_len, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth))
        self.attns = nn.ModuleList(self.attention(dim, heads) for _ in range(depth))
        self.ffs = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim)) for _ in range(depth)
        )
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab)

    def place(self, past: int, T: int, device: torch.device) -> Tensor:
        return torch.arange(past, past + T, device=device)

    def finish(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x))

    def forward(self, ids: Tensor, cache: list[KV] | None = None) -> tuple[Tensor, list[KV]]:
        past = cache[0][0].size(-2) if cache else 0
        x = self.emb(ids) + self.pos(self.place(past, ids.size(1), ids.device))
        out = []
        for i, (attn, ff) in enumerate(zip(self.attns, self.ffs, strict=True)):
            y, kv = attn(self.norms[2 * i](x), cache[i] if cache else None)
            x = x + y
            x = x + ff(self.norms[2 * i + 1](x))
            out.append(kv)
        return self.finish(x), out


class TransformerLM2(TransformerLM):
    attention = Attention2


class TransformerLM3(TransformerLM):
    def place(self, past: int, T: int, device: torch.device) -> Tensor:
        return torch.arange(past, past + T, device=device) - int(past > 0)


class TransformerLM4(TransformerLM):
    def finish(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x)).squeeze(0)


class WindowAttention(nn.Module):
    """Causal, the last `window` keys; the cache holds the last ones, and how many there were."""

    def __init__(self, dim: int, heads: int, window: int = 6) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
        self.register_buffer("slopes", 0.5 ** torch.arange(1, heads + 1)[:, None, None], persistent=False)

    def room(self) -> int:
        return self.window - 1

    def forward(self, x: Tensor, past: KV | None = None) -> tuple[Tensor, KV]:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=-2), torch.cat((past[1], v), dim=-2)
        T, S = q.size(-2), k.size(-2)
        gap = torch.arange(S - T, S, device=x.device)[:, None] - torch.arange(S, device=x.device)
        scores = q @ k.mT / math.sqrt(q.size(-1)) - self.slopes.to(x.dtype) * gap
        if T > 1:
            scores = scores.masked_fill((gap < 0) | (gap >= self.window), float("-inf"))
        y = self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return y, (k[..., -self.room() :, :], v[..., -self.room() :, :])


class WindowAttention2(WindowAttention):
    def room(self) -> int:
        return self.window


class WindowLM(TransformerLM):
    """The order of tokens is in the attention's slopes; no other positions."""

    attention = WindowAttention

    def __init__(self, vocab: int = 59, dim: int = 24, heads: int = 3, depth: int = 2) -> None:
        super().__init__(vocab, dim, heads, depth)
        del self.pos

    def forward(self, ids: Tensor, cache: list[KV] | None = None) -> tuple[Tensor, list[KV]]:
        x, out = self.emb(ids), []
        for i, (attn, ff) in enumerate(zip(self.attns, self.ffs, strict=True)):
            y, kv = attn(self.norms[2 * i](x), cache[i] if cache else None)
            x = x + y
            x = x + ff(self.norms[2 * i + 1](x))
            out.append(kv)
        return self.finish(x), out


class WindowLM2(WindowLM):
    attention = WindowAttention2


class ConvLM(nn.Module):
    """A short convolution along the tokens before the blocks."""

    def __init__(self, vocab_size: int, dim: int = 24, kernel: int = 3) -> None:
        super().__init__()
        self.kernel = kernel
        self.embed = nn.Embedding(vocab_size, dim)
        self.conv = nn.Conv1d(dim, dim, kernel)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, 4)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
        self.unembed = nn.Linear(dim, vocab_size, bias=False)

    def pad(self, x: Tensor) -> Tensor:
        return F.pad(x, (self.kernel - 1, 0))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        x = x + self.conv(self.pad(x.transpose(1, 2))).transpose(1, 2)
        x = x + self.attn(self.norm1(x))[0]
        return self.unembed(self.norm3(x + self.ff(self.norm2(x))))


class ConvLM2(ConvLM):
    def pad(self, x: Tensor) -> Tensor:
        return F.pad(x, (self.kernel // 2, self.kernel // 2))


def layer_norm(params: nn.ParameterDict, name: str, x: Tensor) -> Tensor:
    x = x - x.mean(-1, keepdim=True)
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
    return x * params[f"{name}_g"] + params[f"{name}_b"]


def attend(params: nn.ParameterDict, i: int, x: Tensor) -> Tensor:
    q, k, v = (torch.einsum("btd,dhk->bthk", x, params[f"{n}{i}"]) for n in "qkv")
    logits = torch.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    t = torch.arange(x.shape[1], device=x.device)
    weights = torch.where(t[:, None] >= t, logits, torch.finfo(x.dtype).min).softmax(-1)
    return torch.einsum("bthk,hkd->btd", torch.einsum("bhts,bshk->bthk", weights, v), params[f"o{i}"])


def attend2(params: nn.ParameterDict, i: int, x: Tensor) -> Tensor:
    q, k, v = (torch.einsum("btd,dhk->bthk", x, params[f"{n}{i}"]) for n in "qkv")
    logits = torch.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    t = torch.arange(x.shape[1], device=x.device)
    weights = torch.where(t[:, None] <= t, logits, torch.finfo(x.dtype).min).softmax(-1)
    return torch.einsum("bthk,hkd->btd", torch.einsum("bhts,bshk->bthk", weights, v), params[f"o{i}"])


class FunctionalLM(nn.Module):
    """Pure functions over one dict of parameters; the embedding is the head."""

    attend = staticmethod(attend)

    def __init__(self, n_vocab: int = 43, n_ctx: int = 64, d: int = 24, n_head: int = 3, n_layer: int = 2) -> None:
        super().__init__()
        self.n_layer = n_layer
        p = {"wte": torch.randn(n_vocab, d) * 0.02, "wpe": torch.randn(n_ctx, d) * 0.02}
        for i in range(n_layer):
            p |= {f"{n}{i}": torch.randn(d, n_head, d // n_head) * d**-0.5 for n in "qkv"}
            p[f"o{i}"] = torch.randn(n_head, d // n_head, d) * d**-0.5
            p |= {f"up{i}": torch.randn(d, 4 * d) * d**-0.5, f"down{i}": torch.randn(4 * d, d) * (4 * d) ** -0.5}
        for name in ["f", *(f"{a}{i}" for a in "ab" for i in range(n_layer))]:
            p |= {f"{name}_g": torch.ones(d), f"{name}_b": torch.zeros(d)}
        self.params = nn.ParameterDict(p)

    def forward(self, ids: Tensor) -> Tensor:
        p = self.params
        x = p["wte"][ids] + p["wpe"][: ids.shape[1]]
        for i in range(self.n_layer):
            x = x + self.attend(p, i, layer_norm(p, f"a{i}", x))
            x = x + F.gelu(layer_norm(p, f"b{i}", x) @ p[f"up{i}"], approximate="tanh") @ p[f"down{i}"]
        return layer_norm(p, "f", x) @ p["wte"].T


class FunctionalLM2(FunctionalLM):
    attend = staticmethod(attend2)


CASES: list[Case] = [
    Case("TransformerLM", "lm", options={"vocab": 59}),
    Case("TransformerLM2", "lm", "cache.mismatch", options={"vocab": 59}),
    Case("TransformerLM3", "lm", "position.offset", guess=True),
    Case("TransformerLM4", "lm", "shape.squeezed"),
    Case("WindowLM", "lm"),
    Case("WindowLM2", "lm", "cache.overflow", also=("window.off-by-one", "cache.mismatch")),
    Case("ConvLM", "lm", guess=True),
    Case("ConvLM2", "lm", "causal.future-leak", options={"vocab": 61}),
    Case("FunctionalLM", "lm"),
    Case("FunctionalLM2", "lm", "causal.future-leak", also=("causal.past-lost",), guess=True),
]
