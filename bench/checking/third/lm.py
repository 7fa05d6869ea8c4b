"""Language models with learned positions: ids, and targets already shifted by the caller."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


@dataclass
class GPTConfig:
    vocab_size: int = 61
    block_size: int = 64
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 32
    dropout: float = 0.0


class CausalSelfAttention(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.n_head, self.dropout = config.n_head, config.dropout
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for t in self.c_attn(x).chunk(3, -1))
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd),
            nn.GELU(),
            nn.Linear(4 * config.n_embd, config.n_embd),
            nn.Dropout(config.dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """The head is the embedding."""

    def __init__(self, config: GPTConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or GPTConfig()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.apply(self._init_weights)
        self.tie()

    def tie(self) -> None:
        self.lm_head.weight = self.wte.weight

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def embed(self, idx: Tensor) -> Tensor:
        return self.drop(self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device)))

    def trunk(self, x: Tensor) -> Tensor:
        for block in self.h:
            x = block(x)
        return self.ln_f(x)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        logits = self.lm_head(self.trunk(self.embed(idx)))
        return logits, None if targets is None else self.loss(logits, targets)


class GPT2(GPT):
    """The head is the embedding."""

    tie_weights = True

    def tie(self) -> None:
        self.lm_head.weight = nn.Parameter(self.wte.weight.detach().clone())


class GPT3(GPT):
    def tie(self) -> None:
        self.lm_head.weight = self.wte.weight
        self.lm_head.reset_parameters()
        nn.init.normal_(self.lm_head.weight)


class GPT4(GPT):
    def trunk(self, x: Tensor) -> Tensor:
        pos = self.wpe(torch.arange(x.size(1), device=x.device))
        for block in self.h:
            x = block(x + pos)
        return self.ln_f(x)

    def embed(self, idx: Tensor) -> Tensor:
        return self.drop(self.wte(idx))


class GPT5(GPT):
    def __init__(self, config: GPTConfig | None = None) -> None:
        super().__init__(config)
        del self.ln_f

    def trunk(self, x: Tensor) -> Tensor:
        for block in self.h:
            x = block(x)
        return x


class GPT6(GPT):
    def __init__(self, config: GPTConfig | None = None) -> None:
        super().__init__(config)
        self.h = nn.ModuleList([Block(self.config)] * self.config.n_layer)


class GPT7(GPT):
    def __init__(self, config: GPTConfig | None = None) -> None:
        super().__init__(config)
        self.drop = nn.Dropout(0.1)

    def embed(self, idx: Tensor) -> Tensor:
        pos = self.wpe(torch.zeros_like(idx))
        return self.drop(self.wte(idx) + pos)


class GPT8(GPT):
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten(), ignore_index=-1)


class GPT9(GPT):
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits.softmax(-1).flatten(0, 1), targets.flatten(), ignore_index=-1)


class GPT10(GPT):
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        nll = F.cross_entropy(logits.flatten(0, 1), targets.clamp(min=0).flatten(), reduction="none")
        return nll.mean()


class GPT11(GPT):
    def __init__(self, config: GPTConfig | None = None) -> None:
        super().__init__(config)
        del self.h
        self.h = [Block(self.config) for _ in range(self.config.n_layer)]


class GPT12(GPT):
    """A head of its own, and logits that are capped softly."""

    def tie(self) -> None:
        pass

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        logits = 15.0 * torch.tanh(self.lm_head(self.trunk(self.embed(idx))) / 15.0)
        return logits, None if targets is None else self.loss(logits, targets)


class GPT13(GPT):
    def trunk(self, x: Tensor) -> Tensor:
        for block in self.h:
            x = block(x)
        return F.layer_norm(x, x.shape[1:]) * self.ln_f.weight + self.ln_f.bias


class GPT14(GPT):
    def embed(self, idx: Tensor) -> Tensor:
        with torch.no_grad():
            pos = self.wpe(torch.arange(idx.size(1), device=idx.device))
        return self.drop(self.wte(idx) + pos)


class BigramTransformer(nn.Module):
    """The course's model: logits and a loss, a bias on the head, batches flattened for the loss."""

    def __init__(self, vocab_size: int, n_embd: int = 24, n_head: int = 3, n_layer: int = 2, block_size: int = 48):
        super().__init__()
        config = GPTConfig(vocab_size, block_size, n_layer, n_head, n_embd, 0.1)
        self.token_embedding_table = nn.Embedding(vocab_size, n_embd)
        self.position_embedding_table = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block(config) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        T = idx.size(1)
        x = self.token_embedding_table(idx) + self.position_embedding_table(torch.arange(T, device=idx.device))
        logits = self.lm_head(self.ln_f(self.blocks(x)))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class TorchLM(nn.Module):
    """nn.TransformerEncoder under a square mask."""

    def __init__(self, ntoken: int, d_model: int = 32, nhead: int = 4, nlayers: int = 2) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(d_model, nhead, 64, 0.0, activation=F.silu, batch_first=True)
        self.encoder = nn.Embedding(ntoken, d_model)
        self.position = nn.Embedding(64, d_model)
        self.transformer_encoder = nn.TransformerEncoder(layer, nlayers, enable_nested_tensor=False)
        self.decoder = nn.Linear(d_model, ntoken)

    def mask(self, x: Tensor) -> Tensor | None:
        return nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device, dtype=x.dtype)

    def forward(self, src: Tensor) -> Tensor:
        x = self.encoder(src) + self.position(torch.arange(src.size(1), device=src.device))
        return self.decoder(self.transformer_encoder(x, mask=self.mask(x)))


class TorchLM2(TorchLM):
    def mask(self, x: Tensor) -> Tensor | None:
        return None


class TorchLM3(TorchLM):
    def mask(self, x: Tensor) -> Tensor | None:
        return torch.triu(torch.ones(x.size(1), x.size(1), dtype=x.dtype, device=x.device), diagonal=1)


def gpt_loaded() -> nn.Module:
    m = GPT()
    with torch.no_grad():
        m.wte.weight[7:12] = 0.0
    return m


def gpt_loaded2() -> nn.Module:
    m = GPT()
    for p in m.h[0].parameters():
        p.requires_grad_(False)
    return m


CASES: list[Case] = [
    Case("GPT", "lm", options={"vocab": 61}),
    Case("GPT2", "lm", "tying.lost"),
    Case("GPT3", "lm", "init.after-tying", guess=True),
    Case("GPT4", "lm", "position.every-block", options={"vocab": 61}),
    Case("GPT5", "lm", "norm.final-missing"),
    Case("GPT6", "lm", "blocks.shared", guess=True),
    Case("GPT7", "lm", "position.unused"),
    Case("GPT8", "lm", "loss.shifted-twice", options={"vocab": 61}),
    Case("GPT9", "lm", "loss.double-softmax", guess=True),
    Case("GPT10", "lm", "loss.pads-counted"),
    Case("GPT11", "lm", "parameter.unregistered"),
    Case("GPT12", "lm", guess=True),
    Case("GPT13", "lm", "norm.axis", also=("causal.future-leak",)),
    Case("GPT14", "lm", "parameter.unused", also=("weights.frozen",), guess=True),
    Case("BigramTransformer", "lm", guess=True),
    Case("TorchLM", "lm", options={"vocab": 53}),
    Case("TorchLM2", "lm", "causal.future-leak", options={"vocab": 53}, guess=True),
    Case("TorchLM3", "lm", "mask.added-as-number", also=("causal.future-leak",)),
    Case("gpt_loaded", "lm", "weights.rows-zero"),
    Case("gpt_loaded2", "lm", "weights.frozen"),
]
