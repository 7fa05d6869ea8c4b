"""Right language models of many styles: what they do is a convention, or a choice, and no fault."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case
from bench.checking.first.lm_llama import RMSNorm, rotate


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.n_head, self.dropout = config.n_head, config.dropout

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (z.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for z in self.c_attn(x).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class NanoBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(config.n_embd), CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = nn.Sequential(nn.Linear(config.n_embd, 48), nn.GELU(), nn.Linear(48, config.n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Nano(nn.Module):
    """Logits of the last position alone where there are no targets; tied; -1 is ignored."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.block_size, config.n_embd),
                "drop": nn.Dropout(config.dropout),
                "h": nn.ModuleList([NanoBlock(config) for _ in range(config.n_layer)]),
                "ln_f": nn.LayerNorm(config.n_embd),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        t = idx.size(1)
        assert t <= self.config.block_size
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return self.lm_head(x[:, [-1], :]), None

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None):
        for _ in range(max_new_tokens):
            logits = self(idx[:, -self.config.block_size :])[0][:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("Inf")
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return idx


class KVCache(nn.Module):
    def __init__(self, rows, length, heads, width):
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(rows, heads, length, width), persistent=False)
        self.register_buffer("v_cache", torch.zeros(rows, heads, length, width), persistent=False)

    def update(self, input_pos, k, v):
        self.k_cache[:, :, input_pos], self.v_cache[:, :, input_pos] = k, v
        return self.k_cache, self.v_cache


class FastAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.kv_cache = heads, None
        self.wqkv, self.wo = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x, input_pos, mask):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.wqkv(x).chunk(3, -1))
        q, k = rotate(q, input_pos), rotate(k, input_pos)
        if self.kv_cache is not None:
            k, v = self.kv_cache.update(input_pos, k, v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(y.transpose(1, 2).reshape(b, t, c))


class Fast(nn.Module):
    """Fixed caches are set up first; the places of the new tokens are given."""

    def __init__(self, vocab_size=45, dim=24, n_layer=2, n_head=3, max_seq_length=24):
        super().__init__()
        self.n_head, self.max_seq_length = n_head, max_seq_length
        self.tok_embeddings = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(FastAttention(dim, n_head) for _ in range(n_layer))
        self.norms = nn.ModuleList(RMSNorm(dim) for _ in range(n_layer + 1))
        self.output = nn.Linear(dim, vocab_size, bias=False)

    def setup_caches(self, max_batch_size, max_seq_length):
        width = self.layers[0].wo.weight.shape[0] // self.n_head
        for layer in self.layers:
            layer.kv_cache = KVCache(max_batch_size, max_seq_length, self.n_head, width).to(layer.wo.weight)

    def forward(self, idx, input_pos=None):
        cached = self.layers[0].kv_cache is not None
        places = torch.arange(idx.shape[1], device=idx.device) if input_pos is None else input_pos
        keys = torch.arange(self.max_seq_length if cached else idx.shape[1], device=idx.device)
        x = self.tok_embeddings(idx)
        for layer, norm in zip(self.layers, self.norms, strict=False):
            x = x + layer(norm(x), places, keys <= places[:, None])
        return self.output(self.norms[-1](x))


class Odd(nn.Module):
    """Parallel branches, soft-capped logits, sinks, squared ReLU, norms of q and k, one key/value head, rotary on a part."""

    def __init__(self, vocab_size=39, dim=32, depth=2, heads=4):
        super().__init__()
        self.heads, self.d = heads, dim // heads
        self.embed = nn.Embedding(vocab_size, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth + 1))
        self.qs = nn.ModuleList(nn.Linear(dim, dim, bias=False) for _ in range(depth))
        self.kvs = nn.ModuleList(nn.Linear(dim, 2 * self.d, bias=False) for _ in range(depth))
        self.outs = nn.ModuleList(nn.Linear(dim, dim, bias=False) for _ in range(depth))
        self.ups = nn.ModuleList(nn.Linear(dim, 2 * dim, bias=False) for _ in range(depth))
        self.downs = nn.ModuleList(nn.Linear(2 * dim, dim, bias=False) for _ in range(depth))
        self.sinks = nn.Parameter(torch.randn(depth, heads))
        self.lm_head = nn.Linear(dim, vocab_size, bias=False)

    def attend(self, x, i):
        b, t, c = x.shape
        places = torch.arange(t, device=x.device)
        q = F.normalize(self.qs[i](x).view(b, t, self.heads, self.d).transpose(1, 2), dim=-1) * 4
        k, v = self.kvs[i](x)[:, None].chunk(2, -1)
        k = F.normalize(k, dim=-1) * 4
        q, k = (torch.cat([rotate(z[..., :4], places), z[..., 4:]], -1) for z in (q, k))
        scores = 5 * torch.tanh(q @ k.transpose(-2, -1) / math.sqrt(self.d) / 5)
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1), -1e9)
        sink = self.sinks[i][None, :, None, None].expand(b, -1, t, 1)
        weights = torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
        return self.outs[i]((weights @ v).transpose(1, 2).reshape(b, t, c))

    def forward(self, input_ids):
        x = self.embed(input_ids) * math.sqrt(self.embed.embedding_dim)
        for i in range(len(self.qs)):
            n = self.norms[i](x)
            x = x + self.attend(n, i) + self.downs[i](F.relu(self.ups[i](n)) ** 2)
        return {"logits": 30 * torch.tanh(self.lm_head(self.norms[-1](x)) / 30)}


class Post(nn.Module):
    """PyTorch's own layers, post-norm, with sinusoids; the mask is made inside."""

    def __init__(self, ntoken=33, d_model=24, nhead=3, nlayers=2, dropout=0.1):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d_model, nhead, 48, dropout, batch_first=True)
        self.transformer = nn.TransformerEncoder(layer, nlayers, enable_nested_tensor=False)
        self.encoder, self.decoder = nn.Embedding(ntoken, d_model), nn.Linear(d_model, ntoken)
        places, rates = torch.arange(64)[:, None], 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
        self.register_buffer("pe", torch.stack([(places * rates).sin(), (places * rates).cos()], -1).flatten(1))

    def forward(self, src):
        x = self.encoder(src) * math.sqrt(self.encoder.embedding_dim) + self.pe[: src.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(src.shape[1], device=src.device, dtype=x.dtype)
        return self.decoder(self.transformer(x, mask=mask, is_causal=True))


class NoPe(nn.Module):
    """NoPE: no positional encoding at all, by design."""

    def __init__(self, vocab_size=31, dim=24, depth=2):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocab_size, dim), nn.Linear(dim, vocab_size)
        self.parts = nn.ModuleList(nn.MultiheadAttention(dim, 3, batch_first=True) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))

    def forward(self, ids):
        x = self.embed(ids)
        future = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).triu(1)
        for part, norm in zip(self.parts, self.norms, strict=True):
            x = norm(x + part(x, x, x, attn_mask=future, need_weights=False)[0])
        return self.head(x)


class Doubled(nn.Module):
    """Keys and values of all layers in one tensor, `layer_past`; positions may be given."""

    def __init__(self, vocab_size=35, dim=24, heads=3, depth=2, n_positions=32):
        super().__init__()
        self.heads = heads
        self.wte, self.wpe = nn.Embedding(vocab_size, dim), nn.Embedding(n_positions, dim)
        self.qkv = nn.ModuleList(nn.Linear(dim, 3 * dim) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.ln = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth + 1))

    def forward(self, input_ids, layer_past=None, position_ids=None, attention_mask=None):
        b, t = input_ids.shape
        seen = 0 if layer_past is None else layer_past.shape[4]
        if position_ids is None:
            position_ids = torch.arange(seen, seen + t, device=input_ids.device).expand(b, t)
        x, presents = self.wte(input_ids) + self.wpe(position_ids), []
        for i, (qkv, out) in enumerate(zip(self.qkv, self.out, strict=True)):
            q, k, v = qkv(self.ln[i](x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            if layer_past is not None:
                k, v = torch.cat([layer_past[i, 0], k], 2), torch.cat([layer_past[i, 1], v], 2)
            presents.append(torch.stack([k, v]))
            w = q @ k.transpose(-1, -2) / math.sqrt(k.shape[-1])
            w = w.masked_fill(
                torch.ones(t, seen + t, dtype=torch.bool, device=x.device).triu(seen + 1), torch.finfo(w.dtype).min
            )
            if attention_mask is not None:
                w = w + (1 - attention_mask[:, None, None, :].to(w.dtype)) * -1e9
            x = x + out((w.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1))
        return self.ln[-1](x) @ self.wte.weight.T, torch.stack(presents)


CASES = [Case(name, "lm") for name in ("Nano", "Fast", "Odd", "Post", "NoPe", "Doubled")]
