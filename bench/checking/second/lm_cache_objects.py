"""Language models whose cache is an object, or `past_key_values` beside a mask."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.second.parts import MLP, Attention, causal, rotate, weigh


class KVCache:
    """Keys and values of each block; `update` adds and gives all."""

    def __init__(self, num_layers: int):
        self.keys: list[Tensor | None] = [None] * num_layers
        self.values: list[Tensor | None] = [None] * num_layers

    @property
    def length(self) -> int:
        return 0 if self.keys[0] is None else self.keys[0].size(2)

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        old_k, old_v = self.keys[layer], self.values[layer]
        if old_k is not None and old_v is not None:
            k, v = torch.cat([old_k, k], dim=2), torch.cat([old_v, v], dim=2)
        self.keys[layer], self.values[layer] = k, v
        return k, v


class ObjectLM(nn.Module):
    """The caller makes a cache with `new_cache()` and hands it in with each call."""

    def __init__(self, vocab_size: int = 36, dim: int = 32, num_layers: int = 2, num_heads: int = 4):
        super().__init__()
        self.num_layers = num_layers
        self.embed = nn.Embedding(vocab_size, dim)
        self.attns = nn.ModuleList(Attention(dim, num_heads) for _ in range(num_layers))
        self.mlps = nn.ModuleList(MLP(dim) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.RMSNorm(dim, eps=1e-6) for _ in range(2 * num_layers + 1))
        self.head = nn.Linear(dim, vocab_size, bias=False)

    def new_cache(self) -> KVCache:
        return KVCache(self.num_layers)

    def mask(self, T: int, S: int, cache: KVCache | None) -> Tensor | None:
        return causal(T, S, self.embed.weight.device)

    def positions(self, T: int, cache: KVCache | None) -> Tensor:
        first = cache.length if cache is not None else 0
        return torch.arange(first, first + T, device=self.embed.weight.device)

    def slot(self, layer: int) -> int:
        return layer

    def forward(self, ids: Tensor, cache: KVCache | None = None) -> Tensor:
        x, t = self.embed(ids), self.positions(ids.size(1), cache)
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            q, k, v = attn.split(self.norms[2 * i](x))
            q, k = rotate(q, t), rotate(k, t)
            if cache is not None:
                k, v = cache.update(self.slot(i), k, v)
            x = x + attn.merge(weigh(q, k, v, self.mask(q.size(2), k.size(2), cache)))
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.head(self.norms[-1](x))


class UnmaskedPrefill(ObjectLM):
    def mask(self, T: int, S: int, cache: KVCache | None) -> Tensor | None:
        return causal(T, S, self.embed.weight.device) if cache is None else None


class OneCacheForAll(ObjectLM):
    def __init__(self, vocab_size: int = 36, dim: int = 32, num_layers: int = 2, num_heads: int = 4):
        super().__init__(vocab_size, dim, num_layers, num_heads)
        self.cache = KVCache(num_layers)

    def new_cache(self) -> KVCache:
        return self.cache


class RotatedFromZero(ObjectLM):
    def positions(self, T: int, cache: KVCache | None) -> Tensor:
        return torch.arange(T, device=self.embed.weight.device)


class RotatedTwice(ObjectLM):
    """Keys are kept without their positions and turned when they are read."""

    def key_positions(self, S: int, t: Tensor) -> Tensor:
        return torch.arange(S, device=t.device) + t[0]

    def forward(self, ids: Tensor, cache: KVCache | None = None) -> Tensor:
        x, t = self.embed(ids), self.positions(ids.size(1), cache)
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            q, k, v = attn.split(self.norms[2 * i](x))
            if cache is not None:
                k, v = cache.update(i, k, v)
            q, k = rotate(q, t), rotate(k, self.key_positions(k.size(2), t))
            x = x + attn.merge(weigh(q, k, v, causal(q.size(2), k.size(2), x.device)))
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.head(self.norms[-1](x))


class RotatedWhenRead(RotatedTwice):
    def key_positions(self, S: int, t: Tensor) -> Tensor:
        return torch.arange(S, device=t.device)


Pairs = tuple[tuple[Tensor, Tensor], ...]


@dataclass
class CausalLMOutput:
    logits: Tensor
    past_key_values: Pairs | None = None


class GPT2LMHeadModel(nn.Module):
    """`attention_mask` (B, S) is 1 at real tokens and covers past and new ones; positions count real tokens."""

    def __init__(self, vocab_size: int = 44, hidden_size: int = 24, num_layers: int = 2, num_heads: int = 2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, hidden_size), nn.Embedding(64, hidden_size)
        self.attns = nn.ModuleList(Attention(hidden_size, num_heads) for _ in range(num_layers))
        self.mlps = nn.ModuleList(MLP(hidden_size, 0.1) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden_size) for _ in range(2 * num_layers))
        self.ln_f, self.lm_head = nn.LayerNorm(hidden_size), nn.Linear(hidden_size, vocab_size, bias=False)

    def positions(self, mask: Tensor, T: int) -> Tensor:
        return (mask.long().cumsum(-1) - 1).clamp(min=0)[:, -T:]

    def remember(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k, v

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Pairs | None = None,
        use_cache: bool = True,
    ) -> CausalLMOutput:
        B, T = input_ids.shape
        S = T + (past_key_values[0][0].size(2) if past_key_values else 0)
        mask = input_ids.new_ones(B, S) if attention_mask is None else attention_mask
        x = self.wte(input_ids) + self.wpe(self.positions(mask, T))
        keep = causal(T, S, x.device) & mask.bool()[:, None, None]
        present = []
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            q, k, v = attn.split(self.norms[2 * i](x))
            if past_key_values:
                k, v = (torch.cat([old, new], dim=2) for old, new in zip(past_key_values[i], (k, v), strict=True))
            present.append(self.remember(k, v))
            x = x + attn.merge(weigh(q, k, v, keep))
            x = x + mlp(self.norms[2 * i + 1](x))
        return CausalLMOutput(self.lm_head(self.ln_f(x)), tuple(present) if use_cache else None)


class PositionsByColumn(GPT2LMHeadModel):
    def positions(self, mask: Tensor, T: int) -> Tensor:
        S = mask.size(1)
        return torch.arange(S - T, S, device=mask.device).expand(mask.size(0), T)


class DetachedRounded(GPT2LMHeadModel):
    def remember(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k.to(torch.bfloat16).to(k.dtype), v.to(torch.bfloat16).to(v.dtype)


CASES = [
    Case("UnmaskedPrefill", "lm", "cache.prefill-unmasked"),
    Case("OneCacheForAll", "lm", "cache.stale", ("cache.aliased",)),
    Case("RotatedFromZero", "lm", "position.offset"),
    Case("RotatedTwice", "lm", "position.offset"),
    Case("PositionsByColumn", "lm", "position.left-padding"),
    Case("DetachedRounded", "lm", "cache.mismatch"),
    Case("ObjectLM", "lm", guess=True),
    Case("RotatedWhenRead", "lm"),
    Case("GPT2LMHeadModel", "lm"),
]
