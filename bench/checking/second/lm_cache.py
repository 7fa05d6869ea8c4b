"""Language models with a cache that is handed in and out: tuples, dictionaries, tensors made once."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.second.parts import MLP, Attention, causal, rotate, weigh

Pair = tuple[Tensor, Tensor]


class CachedGPT(nn.Module):
    """`cache` holds keys and values of each block; a new one comes back, the old one stays as it was."""

    def __init__(self, vocab_size: int = 40, n_embd: int = 24, n_head: int = 3, n_layer: int = 2, block_size: int = 64):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.attns = nn.ModuleList(Attention(n_embd, n_head) for _ in range(n_layer))
        self.mlps = nn.ModuleList(MLP(n_embd) for _ in range(n_layer))
        self.norms = nn.ModuleList(nn.LayerNorm(n_embd) for _ in range(2 * n_layer))
        self.ln_f, self.head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab_size, bias=False)

    def start(self, cache: list[Pair] | None) -> int:
        return cache[0][0].size(2) if cache else 0

    def attend(self, attn: Attention, x: Tensor, past: Pair | None) -> tuple[Tensor, Pair]:
        q, k, v = attn.split(x)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        return attn.merge(weigh(q, k, v, causal(q.size(2), k.size(2), q.device))), (k, v)

    def past_of(self, cache: list[Pair] | None, layer: int) -> Pair | None:
        return cache[layer] if cache else None

    def keep_pairs(self, cache: list[Pair] | None, pairs: list[Pair]) -> list[Pair]:
        return pairs

    def forward(self, ids: Tensor, cache: list[Pair] | None = None) -> tuple[Tensor, list[Pair]]:
        first = self.start(cache)
        x = self.wte(ids) + self.wpe(torch.arange(first, first + ids.size(1), device=ids.device))
        pairs = []
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            y, pair = self.attend(attn, self.norms[2 * i](x), self.past_of(cache, i))
            x = x + y
            x = x + mlp(self.norms[2 * i + 1](x))
            pairs.append(pair)
        return self.head(self.ln_f(x)), self.keep_pairs(cache, pairs)


class OpenChunks(CachedGPT):
    def attend(self, attn: Attention, x: Tensor, past: Pair | None) -> tuple[Tensor, Pair]:
        q, k, v = attn.split(x)
        keep = causal(q.size(2), q.size(2), q.device) if past is None else None
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        return attn.merge(weigh(q, k, v, keep)), (k, v)


class TopLeftDecoding(CachedGPT):
    def attend(self, attn: Attention, x: Tensor, past: Pair | None) -> tuple[Tensor, Pair]:
        q, k, v = attn.split(x)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        return attn.merge(F.scaled_dot_product_attention(q, k, v, is_causal=True)), (k, v)


class RestartedPositions(CachedGPT):
    def start(self, cache: list[Pair] | None) -> int:
        return 0


class LateByOne(CachedGPT):
    def start(self, cache: list[Pair] | None) -> int:
        return cache[0][0].size(2) + 1 if cache else 0


class ExtendedInPlace(CachedGPT):
    def keep_pairs(self, cache: list[Pair] | None, pairs: list[Pair]) -> list[Pair]:
        if cache is None:
            return pairs
        cache[:] = pairs
        return cache


class FirstLayerOnly(CachedGPT):
    def past_of(self, cache: list[Pair] | None, layer: int) -> Pair | None:
        return cache[0] if cache else None


class PastWithoutSelf(CachedGPT):
    def attend(self, attn: Attention, x: Tensor, past: Pair | None) -> tuple[Tensor, Pair]:
        q, k, v = attn.split(x)
        if past is None:
            return attn.merge(weigh(q, k, v, causal(q.size(2), k.size(2), q.device))), (k, v)
        y = weigh(q, past[0], past[1], None)
        return attn.merge(y), (torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2))


class UnscaledDecoding(CachedGPT):
    def attend(self, attn: Attention, x: Tensor, past: Pair | None) -> tuple[Tensor, Pair]:
        q, k, v = attn.split(x)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
            q = q * q.size(-1) ** 0.5
        return attn.merge(weigh(q, k, v, causal(q.size(2), k.size(2), q.device))), (k, v)


class RememberingGPT(CachedGPT):
    """Keeps the last cache itself when none is given."""

    def __init__(self, vocab_size: int = 40, n_embd: int = 24, n_head: int = 3, n_layer: int = 2):
        super().__init__(vocab_size, n_embd, n_head, n_layer, block_size=1024)
        self.last: list[Pair] | None = None

    def forward(self, ids: Tensor, cache: list[Pair] | None = None) -> tuple[Tensor, list[Pair]]:
        if cache is None and not self.training and self.last is not None and self.last[0][0].size(0) == ids.size(0):
            cache = self.last
        logits, pairs = super().forward(ids, cache)
        self.last = [(k.detach(), v.detach()) for k, v in pairs]
        return logits, pairs


class WindowGPT(CachedGPT):
    """Rotary positions, the last `window` tokens read, no more than these kept."""

    def __init__(self, vocab_size: int = 40, n_embd: int = 32, n_head: int = 2, n_layer: int = 2, window: int = 4):
        super().__init__(vocab_size, n_embd, n_head, n_layer)
        del self.wpe
        self.window = window

    def crop(self, past: Pair) -> Pair:
        kept = self.window - 1
        return past[0][:, :, -kept:], past[1][:, :, -kept:]

    def read(self, attn: Attention, x: Tensor, past: Pair | None, first: int) -> tuple[Tensor, Pair]:
        q, k, v = attn.split(x)
        t = torch.arange(first, first + x.size(1), device=x.device)
        q, k = rotate(q, t), rotate(k, t)
        if past is not None:
            past = self.crop(past)
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, S = q.size(2), k.size(2)
        return attn.merge(weigh(q, k, v, self.visible(T, S, x.device))), (k, v)

    def visible(self, T: int, S: int, device: torch.device) -> Tensor:
        return causal(T, S, device) & ~torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T - self.window)

    def forward(
        self, ids: Tensor, cache: tuple[int, list[Pair]] | None = None
    ) -> tuple[Tensor, tuple[int, list[Pair]]]:
        first = cache[0] if cache else 0
        x, pairs = self.wte(ids), []
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            y, pair = self.read(attn, self.norms[2 * i](x), cache[1][i] if cache else None, first)
            x = x + y
            x = x + mlp(self.norms[2 * i + 1](x))
            pairs.append(pair)
        return self.head(self.ln_f(x)), (first + ids.size(1), pairs)


class WindowOneMore(WindowGPT):
    def crop(self, past: Pair) -> Pair:
        return past[0][:, :, -self.window :], past[1][:, :, -self.window :]

    def visible(self, T: int, S: int, device: torch.device) -> Tensor:
        if T > 1:
            return super().visible(T, S, device)
        return torch.ones(T, S, dtype=torch.bool, device=device)


class DictGPT(CachedGPT):
    """The caller owns a dictionary and hands it in; it grows."""

    def name(self, layer: int) -> str:
        return f"layers.{layer}"

    def forward(self, ids: Tensor, cache: dict[str, Pair] | None = None) -> Tensor:
        cache = {} if cache is None else cache
        first = next(iter(cache.values()))[0].size(2) if cache else 0
        x = self.wte(ids) + self.wpe(torch.arange(first, first + ids.size(1), device=ids.device))
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            y, cache[self.name(i)] = self.attend(attn, self.norms[2 * i](x), cache.get(self.name(i)))
            x = x + y
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.head(self.ln_f(x))

    def new_cache(self) -> dict[str, Pair]:
        return {}


class DictSameName(DictGPT):
    def __init__(self, vocab_size: int = 40, n_embd: int = 24, n_head: int = 3, n_layer: int = 2):
        super().__init__(vocab_size, n_embd, n_head, n_layer, block_size=256)

    def name(self, layer: int) -> str:
        return "kv"


class BufferGPT(CachedGPT):
    """The cache is (keys, values, length), the tensors made once with room for `block_size`."""

    def __init__(self, vocab_size: int = 40, n_embd: int = 24, n_head: int = 3, n_layer: int = 2, block_size: int = 48):
        super().__init__(vocab_size, n_embd, n_head, n_layer, block_size)
        self.block_size = block_size

    def own(self, k: Tensor, v: Tensor) -> Pair:
        return k.clone(), v.clone()

    def slot(self, length: int, T: int) -> int:
        if length + T > self.block_size:
            raise ValueError(f"the cache has room for {self.block_size}, not for {length + T}")
        return length

    def forward(
        self, ids: Tensor, cache: tuple[Tensor, Tensor, int] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor, int]]:
        B, T = ids.shape
        if cache is None:
            heads = self.attns[0].heads
            shape = (len(self.attns), B, heads, self.block_size, self.wte.embedding_dim // heads)
            cache = (self.wte.weight.new_zeros(shape), self.wte.weight.new_zeros(shape), 0)
        keys, values = self.own(cache[0], cache[1])
        first = self.slot(cache[2], T)
        end = first + T
        x = self.wte(ids) + self.wpe(torch.arange(first, end, device=ids.device))
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            q, k, v = attn.split(self.norms[2 * i](x))
            keys[i, :, :, first:end], values[i, :, :, first:end] = k.detach(), v.detach()
            k, v = torch.cat([keys[i, :, :, :first], k], dim=2), torch.cat([values[i, :, :, :first], v], dim=2)
            x = x + attn.merge(weigh(q, k, v, causal(T, end, x.device)))
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.head(self.ln_f(x)), (keys, values, end)


class BufferInPlace(BufferGPT):
    def own(self, k: Tensor, v: Tensor) -> Pair:
        return k, v


class BufferLastSlot(BufferGPT):
    def __init__(self, vocab_size: int = 40, n_embd: int = 24, n_head: int = 3, n_layer: int = 2, block_size: int = 12):
        super().__init__(vocab_size, n_embd, n_head, n_layer, block_size)

    def slot(self, length: int, T: int) -> int:
        if self.block_size < T:
            raise ValueError(f"a prompt of {T} is longer than {self.block_size}")
        return min(length, self.block_size - T)


CASES = [
    Case("OpenChunks", "lm", "cache.prefill-unmasked"),
    Case("TopLeftDecoding", "lm", "causal.top-left"),
    Case("RestartedPositions", "lm", "position.offset"),
    Case("LateByOne", "lm", "position.offset"),
    Case("ExtendedInPlace", "lm", "cache.aliased"),
    Case("BufferInPlace", "lm", "cache.aliased"),
    Case("FirstLayerOnly", "lm", "cache.shared-between-blocks"),
    Case("DictSameName", "lm", "cache.shared-between-blocks"),
    Case("PastWithoutSelf", "lm", "cache.mismatch", ("causal.self-masked",)),
    Case("UnscaledDecoding", "lm", "cache.mismatch", ("scale.missing",)),
    Case("RememberingGPT", "lm", "cache.stale"),
    Case("WindowOneMore", "lm", "cache.overflow", ("window.off-by-one",)),
    Case("BufferLastSlot", "lm", "cache.overflow"),
    Case("CachedGPT", "lm", guess=True),
    Case("WindowGPT", "lm"),
    Case("DictGPT", "lm"),
    Case("BufferGPT", "lm"),
]
