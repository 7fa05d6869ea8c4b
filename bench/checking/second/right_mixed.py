"""More of every kind without a mistake."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.second.parts import MLP, Attention, Block, causal, rotate, weigh


def sdpa_two_masks(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """Causal, and a mask that is True at what takes part."""
    keep = causal(q.size(-2), k.size(-2), q.device)
    return weigh(q, k, v, keep if attn_mask is None else keep & attn_mask)


def sdpa_logsumexp(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * query.size(-1) ** -0.5
    weights = (scores - scores.logsumexp(dim=-1, keepdim=True)).exp()
    return torch.einsum("bhqk,bhkd->bhqd", weights, value), weights


def sdpa_kernel_causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The mask aligned to the last key, grouped heads left to the kernel."""
    keep = causal(q.size(2), k.size(2), q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=keep, enable_gqa=True)


class Float32LayerNorm(nn.Module):
    """Layer norm with float32 statistics."""

    def __init__(self, dim: int = 16, eps: float = 1e-5):
        super().__init__()
        self.eps, self.weight, self.bias = eps, nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        h = x.float()
        mean = h.mean(-1, keepdim=True)
        var = (h - mean).square().mean(-1, keepdim=True)
        return ((h - mean) * torch.rsqrt(var + self.eps)).to(x.dtype) * self.weight + self.bias


def rotary_matrix(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Each pair of neighbours times a 2 x 2 matrix."""
    d = q.size(-1)
    rate = 10000.0 ** (-torch.arange(0, d, 2, device=q.device, dtype=q.dtype) / d)
    angles = torch.arange(q.size(-2), device=q.device, dtype=q.dtype)[:, None] * rate
    turn = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], -1).unflatten(-1, (2, 2))
    pairs = (torch.einsum("tpij,bhtpj->bhtpi", turn, x.unflatten(-1, (-1, 2))) for x in (q, k))
    first, second = (p.flatten(-2) for p in pairs)
    return first, second


class ScaledSinusoid(nn.Module):
    """A learned factor before the table."""

    def __init__(self, d_model: int = 16, max_len: int = 64):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1))
        rate = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        angles = torch.arange(max_len).float()[:, None] * rate
        self.register_buffer("table", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.alpha * self.table[: x.size(1)].to(x.dtype)


def nll_of_targets(logits: Tensor, targets: Tensor) -> Tensor:
    """`targets` come shifted; -100 does not count."""
    log_probs = F.log_softmax(logits.float(), dim=-1)
    return F.nll_loss(log_probs.flatten(0, 1), targets.flatten(), ignore_index=-100)


def padded_ids_loss(logits: Tensor, labels: Tensor, attention_mask: Tensor) -> Tensor:
    """The mask turns padding into -100; the end token is real and counts."""
    labels = labels.masked_fill(attention_mask == 0, -100)
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:])


def sample_by_cdf(logits: Tensor, temperature: float = 1.0, top_k: int = 0) -> Tensor:
    """One uniform number against the running sum."""
    if temperature == 0:
        return logits.argmax(dim=-1)
    values, index = (logits / temperature).topk(min(top_k, logits.size(-1)) if top_k else logits.size(-1), dim=-1)
    running = values.softmax(dim=-1).cumsum(dim=-1)
    place = (running < torch.rand(logits.size(0), 1, device=logits.device, dtype=logits.dtype)).sum(-1, keepdim=True)
    return index.gather(-1, place.clamp(max=index.size(-1) - 1)).squeeze(-1)


def penalised(logits: Tensor, generated: Tensor, repetition_penalty: float = 1.0) -> Tensor:
    seen = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, generated, True)
    lowered = torch.where(logits > 0, logits / repetition_penalty, logits * repetition_penalty)
    return torch.where(seen, lowered, logits)


class TorchEncoder(nn.Module):
    """`src_key_padding_mask` (B, T): True at padding."""

    def __init__(self, d_model: int = 16, nhead: int = 2, num_layers: int = 2):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d_model, nhead, 32, dropout=0.1, norm_first=True, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, nn.LayerNorm(d_model), enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)


class ScaledBlocksEncoder(nn.Module):
    """Three different blocks, each with a learned scale for its branch."""

    def __init__(self, vocab_size: int = 30, dim: int = 24, heads: int = 3, depth: int = 3):
        super().__init__()
        self.embed, self.pos = nn.Embedding(vocab_size, dim), nn.Parameter(0.3 * torch.randn(64, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.scales = nn.Parameter(torch.full((depth, dim), 0.5))
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        x = self.embed(ids) + self.pos[: ids.size(1)]
        keep = None if attention_mask is None else attention_mask.bool()[:, None, None]
        for block, scale in zip(self.blocks, self.scales, strict=True):
            x = x + scale * (block(x, keep) - x)
        return self.norm(x)


class AlibiLM(nn.Module):
    """No table of positions: a slope for each head, and logits kept within a cap."""

    def __init__(self, vocab_size: int = 40, dim: int = 24, num_heads: int = 4, num_layers: int = 2, cap: float = 30.0):
        super().__init__()
        self.cap, self.embed = cap, nn.Embedding(vocab_size, dim)
        self.attns = nn.ModuleList(Attention(dim, num_heads) for _ in range(num_layers))
        self.mlps = nn.ModuleList(MLP(dim, 0.1) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * num_layers + 1))
        self.head = nn.Linear(dim, vocab_size, bias=False)
        slopes = 2.0 ** (-8.0 * torch.arange(1, num_heads + 1) / num_heads)
        self.register_buffer("slopes", slopes[:, None, None], persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        x, t = self.embed(ids), torch.arange(ids.size(1), device=ids.device)
        bias = (self.slopes * (t[None, :] - t[:, None])).masked_fill(t[None, :] > t[:, None], float("-inf")).to(x.dtype)
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            q, k, v = attn.split(self.norms[2 * i](x))
            x = x + attn.merge((q @ k.mT / q.size(-1) ** 0.5 + bias).softmax(-1) @ v)
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.cap * torch.tanh(self.head(self.norms[-1](x)) / self.cap)


class ParallelLM(nn.Module):
    """Attention and feed-forward side by side, rotary positions, the head tied to the embedding."""

    tie_weights = True

    def __init__(self, vocab_size: int = 40, hidden_size: int = 32, num_layers: int = 2, num_heads: int = 4):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, hidden_size)
        nn.init.normal_(self.embed.weight, std=0.02)
        self.attns = nn.ModuleList(Attention(hidden_size, num_heads) for _ in range(num_layers))
        self.mlps = nn.ModuleList(MLP(hidden_size) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden_size) for _ in range(num_layers + 1))

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x, t = self.embed(ids), torch.arange(ids.size(1), device=ids.device)
        keep = causal(ids.size(1), ids.size(1), ids.device)
        for attn, mlp, norm in zip(self.attns, self.mlps, self.norms[:-1], strict=True):
            h = norm(x)
            q, k, v = attn.split(h)
            x = x + attn.merge(weigh(rotate(q, t), rotate(k, t), v, keep)) + mlp(h)
        logits = F.linear(self.norms[-1](x), self.embed.weight)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


class PostNormLM(nn.Module):
    """Post-norm: each block ends in a norm, so none is needed before the head."""

    def __init__(self, vocab_size: int = 36, d_model: int = 24, num_heads: int = 2, num_layers: int = 2):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab_size, d_model), nn.Embedding(64, d_model)
        self.attns = nn.ModuleList(Attention(d_model, num_heads) for _ in range(num_layers))
        self.mlps = nn.ModuleList(MLP(d_model) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2 * num_layers))
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tok(ids) + self.pos(torch.arange(ids.size(1), device=ids.device))
        keep = causal(ids.size(1), ids.size(1), ids.device)
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            x = self.norms[2 * i](x + attn(x, keep))
            x = self.norms[2 * i + 1](x + mlp(x))
        return self.head(x)


CASES = [
    Case("sdpa_two_masks", "sdpa"),
    Case("sdpa_logsumexp", "sdpa"),
    Case("sdpa_kernel_causal", "sdpa"),
    Case("Float32LayerNorm", "norm"),
    Case("rotary_matrix", "rotary"),
    Case("ScaledSinusoid", "positions"),
    Case("nll_of_targets", "loss"),
    Case("padded_ids_loss", "loss"),
    Case("sample_by_cdf", "sampler"),
    Case("penalised", "sampler"),
    Case("TorchEncoder", "encoder"),
    Case("ScaledBlocksEncoder", "encoder", options={"vocab": 30}),
    Case("AlibiLM", "lm"),
    Case("ParallelLM", "lm"),
    Case("PostNormLM", "lm"),
]
