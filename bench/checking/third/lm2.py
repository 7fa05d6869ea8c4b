"""Language models with rotary positions and a cache: hidden_states, past_key_values, labels shifted inside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


@dataclass
class Config:
    vocab_size: int = 67
    hidden_size: int = 32
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    rope_theta: float = 10000.0


@dataclass
class Cache:
    """Keys and values of each layer."""

    keys: dict[int, Tensor] = field(default_factory=dict)
    values: dict[int, Tensor] = field(default_factory=dict)

    def seen(self, layer: int = 0) -> int:
        return self.keys[layer].size(-2) if layer in self.keys else 0

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if layer in self.keys:
            k, v = torch.cat((self.keys[layer], k), -2), torch.cat((self.values[layer], v), -2)
        self.keys[layer], self.values[layer] = k, v
        return k, v


@dataclass
class CausalLMOutput:
    logits: Tensor
    past_key_values: Any = None
    loss: Tensor | None = None


def rope(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    d = x.size(-1)
    freq = theta ** (-torch.arange(0, d, 2, device=x.device).float() / d)
    angle = (positions.float()[..., None] * freq)[:, None]
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(nn.Module):
    def __init__(self, config: Config, index: int) -> None:
        super().__init__()
        D, self.H, self.K = config.hidden_size, config.num_attention_heads, config.num_key_value_heads
        self.index, self.theta, d = index, config.rope_theta, D // config.num_attention_heads
        self.q_proj = nn.Linear(D, self.H * d, bias=False)
        self.k_proj = nn.Linear(D, self.K * d, bias=False)
        self.v_proj = nn.Linear(D, self.K * d, bias=False)
        self.o_proj = nn.Linear(self.H * d, D, bias=False)
        self.gate, self.up = nn.Linear(D, 2 * D, bias=False), nn.Linear(D, 2 * D, bias=False)
        self.down = nn.Linear(2 * D, D, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(D, eps=1e-6), nn.RMSNorm(D, eps=1e-6)

    def attend(self, x: Tensor, positions: Tensor, keep: Tensor | None, cache: Cache) -> Tensor:
        q = rope(self.q_proj(x).unflatten(-1, (self.H, -1)).transpose(1, 2), positions, self.theta)
        k = rope(self.k_proj(x).unflatten(-1, (self.K, -1)).transpose(1, 2), positions, self.theta)
        v = self.v_proj(x).unflatten(-1, (self.K, -1)).transpose(1, 2)
        k, v = cache.update(self.index, k, v)
        k, v = (t.repeat_interleave(self.H // self.K, dim=1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        return self.o_proj(y.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor, positions: Tensor, keep: Tensor | None, cache: Cache) -> Tensor:
        x = x + self.attend(self.norm1(x), positions, keep, cache)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class CausalLM(nn.Module):
    """`attention_mask` (B, S) covers what the cache holds and the new ids; padding on the left."""

    def __init__(self, config: Config | None = None) -> None:
        super().__init__()
        self.config = config = config or Config()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, i) for i in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=1e-6)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def new_cache(self) -> Cache:
        return Cache()

    def open(self, past: Cache | None) -> Cache:
        return Cache() if past is None else Cache(dict(past.keys), dict(past.values))

    def positions(self, ids: Tensor, past: int, mask: Tensor | None) -> Tensor:
        if mask is None:
            return torch.arange(past, past + ids.size(1), device=ids.device)[None]
        return (mask.long().cumsum(-1) - 1).clamp(min=0)[:, -ids.size(1) :]

    def visible(self, T: int, S: int, ids: Tensor) -> Tensor:
        return torch.ones(T, S, dtype=torch.bool, device=ids.device).tril(S - T)

    def keep(self, ids: Tensor, past: int, mask: Tensor | None) -> Tensor:
        T, S = ids.size(1), past + ids.size(1)
        keep = self.visible(T, S, ids)[None, None]
        return keep if mask is None else keep & mask[:, None, None, :].bool()

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Cache | None = None,
        labels: Tensor | None = None,
    ) -> CausalLMOutput:
        cache = self.open(past_key_values)
        past = cache.seen()
        pos = self.positions(input_ids, past, attention_mask)
        keep = self.keep(input_ids, past, attention_mask)
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, pos, keep, cache)
        logits = self.lm_head(self.norm(x))
        return CausalLMOutput(logits, cache, None if labels is None else self.loss(logits, labels))


class CausalLM2(CausalLM):
    def visible(self, T: int, S: int, ids: Tensor) -> Tensor:
        if S > T:
            return torch.ones(T, S, dtype=torch.bool, device=ids.device)
        return torch.ones(T, S, dtype=torch.bool, device=ids.device).tril()


class CausalLM3(CausalLM):
    def visible(self, T: int, S: int, ids: Tensor) -> Tensor:
        return torch.ones(T, S, dtype=torch.bool, device=ids.device).tril()


class CausalLM4(CausalLM):
    def positions(self, ids: Tensor, past: int, mask: Tensor | None) -> Tensor:
        if mask is None:
            return torch.arange(ids.size(1), device=ids.device)[None]
        return (mask.long().cumsum(-1) - 1).clamp(min=0)[:, -ids.size(1) :]


class LearnedLM(CausalLM):
    """Learned positions on top of the rotary ones."""

    def __init__(self, config: Config | None = None) -> None:
        super().__init__(config)
        self.wpe = nn.Embedding(64, self.config.hidden_size)

    def places(self, ids: Tensor, past: int, mask: Tensor | None) -> Tensor:
        return self.positions(ids, past, mask)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, past_key_values: Cache | None = None
    ) -> CausalLMOutput:
        cache = self.open(past_key_values)
        past = cache.seen()
        pos = self.positions(input_ids, past, attention_mask)
        keep = self.keep(input_ids, past, attention_mask)
        x = self.embed_tokens(input_ids) + self.wpe(self.places(input_ids, past, attention_mask))
        for layer in self.layers:
            x = layer(x, pos, keep, cache)
        return CausalLMOutput(self.lm_head(self.norm(x)), cache)


class LearnedLM2(LearnedLM):
    def places(self, ids: Tensor, past: int, mask: Tensor | None) -> Tensor:
        return torch.arange(past, past + ids.size(1), device=ids.device)[None]


class CausalLM5(CausalLM):
    """Made for chats: one object holds the model and the talk so far."""

    def __init__(self, config: Config | None = None) -> None:
        super().__init__(config)
        self.last = Cache()

    def forward(self, input_ids: Tensor, past_key_values: Cache | None = None) -> CausalLMOutput:
        cache = past_key_values
        if cache is None:
            cache = self.last if self.last.seen() and self.last.keys[0].size(0) == input_ids.size(0) else Cache()
        out = super().forward(input_ids, None, cache)
        kept = out.past_key_values
        self.last = Cache(
            {i: k.detach() for i, k in kept.keys.items()}, {i: v.detach() for i, v in kept.values.items()}
        )
        return out


@dataclass
class FixedCache(Cache):
    room: int = 64
    length: dict[int, int] = field(default_factory=dict)

    def branch(self) -> FixedCache:
        return FixedCache(dict(self.keys), dict(self.values), self.room, dict(self.length))

    def seen(self, layer: int = 0) -> int:
        return self.length.get(layer, 0)

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        a = self.seen(layer)
        b = a + k.size(-2)
        if b > self.room:
            raise ValueError("the cache is full")
        if layer not in self.keys:
            self.keys[layer], self.values[layer] = (k.new_zeros(*k.shape[:2], self.room, k.size(-1)) for _ in "kv")
        self.keys[layer][:, :, a:b], self.values[layer][:, :, a:b] = k.detach(), v.detach()
        self.length[layer] = b
        return (
            torch.cat((self.keys[layer][:, :, :a], k), dim=-2),
            torch.cat((self.values[layer][:, :, :a], v), dim=-2),
        )


class CausalLM6(CausalLM):
    """The cache is memory of a fixed size, written on from where it ends."""

    def new_cache(self) -> Cache:
        return FixedCache()

    def open(self, past: Cache | None) -> Cache:
        return FixedCache() if past is None else past.branch()


class LayerCache(Cache):
    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if layer in self.keys:
            n = self.keys[layer].size(-2)
            k = torch.cat((self.keys[0][..., :n, :], k), -2)
            v = torch.cat((self.values[0][..., :n, :], v), -2)
        self.keys[layer], self.values[layer] = k, v
        return k, v


class CausalLM7(CausalLM):
    def new_cache(self) -> Cache:
        return LayerCache()

    def open(self, past: Cache | None) -> Cache:
        return LayerCache() if past is None else LayerCache(dict(past.keys), dict(past.values))


class CausalLM8(CausalLM):
    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


class CausalLM9(CausalLM):
    def positions(self, ids: Tensor, past: int, mask: Tensor | None) -> Tensor:
        return torch.arange(past, past + ids.size(1), device=ids.device)[None]

    def keep(self, ids: Tensor, past: int, mask: Tensor | None) -> Tensor:
        return self.visible(ids.size(1), past + ids.size(1), ids)[None, None]


CASES: list[Case] = [
    Case("CausalLM", "lm", options={"vocab": 67}),
    Case("CausalLM2", "lm", "cache.prefill-unmasked", options={"vocab": 67}),
    Case("CausalLM3", "lm", "causal.top-left", guess=True),
    Case("CausalLM4", "lm", "position.offset", options={"vocab": 67}),
    Case("LearnedLM", "lm", guess=True),
    Case("LearnedLM2", "lm", "position.left-padding"),
    Case("CausalLM5", "lm", "cache.stale", options={"vocab": 67}),
    Case("CausalLM6", "lm", "cache.aliased"),
    Case("CausalLM7", "lm", "cache.shared-between-blocks", options={"vocab": 67}),
    Case("CausalLM8", "lm", "loss.unshifted", guess=True),
    Case("CausalLM9", "lm", "mask.ignored", guess=True),
]
