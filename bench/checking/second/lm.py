"""Language models without a cache."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.second.parts import MLP, Attention, Block, causal, rotate, weigh


class GPT(nn.Module):
    """`targets` are shifted by the caller; -1 does not count."""

    def __init__(self, vocab_size: int = 48, n_embd: int = 24, n_head: int = 3, n_layer: int = 2, block_size: int = 32):
        super().__init__()
        self.block_size = block_size
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block(n_embd, n_head, dropout=0.1) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.apply(self._init)

    def _init(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)

    def embed(self, idx: Tensor) -> Tensor:
        return self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))

    def blocks(self, x: Tensor) -> Tensor:
        keep = causal(x.size(1), x.size(1), x.device)
        for block in self.h:
            x = block(x, keep)
        return x

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        logits = self.lm_head(self.ln_f(self.blocks(self.embed(idx))))
        return logits, None if targets is None else self.loss(logits, targets)


class GPTLastOpen(GPT):
    def blocks(self, x: Tensor) -> Tensor:
        keep = causal(x.size(1), x.size(1), x.device)
        for block in self.h[:-1]:
            x = block(x, keep)
        return self.h[-1](x)


class GPTBlockMeans(GPT):
    def blocks(self, x: Tensor) -> Tensor:
        means = torch.cat([part.mean(1, keepdim=True).expand_as(part) for part in x.split(4, dim=1)], dim=1)
        return super().blocks(x + means)


class GPTNoFinalNorm(GPT):
    def __init__(self, vocab_size: int = 48, n_embd: int = 24, n_head: int = 3, n_layer: int = 2):
        super().__init__(vocab_size, n_embd, n_head, n_layer)
        self.ln_f = nn.Identity()


class GPTPositionless(GPT):
    def embed(self, idx: Tensor) -> Tensor:
        return self.wte(idx)


class GPTPositionsAgain(GPT):
    def blocks(self, x: Tensor) -> Tensor:
        keep = causal(x.size(1), x.size(1), x.device)
        for i, block in enumerate(self.h):
            x = block(x if i == 0 else x + self.wpe(torch.arange(x.size(1), device=x.device)), keep)
        return x


class GPTShared(GPT):
    def __init__(self, vocab_size: int = 48, n_embd: int = 24, n_head: int = 3, n_layer: int = 3):
        super().__init__(vocab_size, n_embd, n_head, n_layer)
        self.h = nn.ModuleList([Block(n_embd, n_head)] * n_layer)


class GPTShiftedTwice(GPT):
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten(), ignore_index=-1)


class GPTProbabilities(GPT):
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits.softmax(-1).flatten(0, 1), targets.flatten(), ignore_index=-1)


class GPTCopiedHead(GPT):
    tie_weights = True

    def __init__(self, vocab_size: int = 48, n_embd: int = 24, n_head: int = 3, n_layer: int = 2):
        super().__init__(vocab_size, n_embd, n_head, n_layer)
        self.lm_head.weight = nn.Parameter(self.wte.weight.detach().clone())


class GPTTied(GPT):
    tie_weights = True

    def __init__(self, vocab_size: int = 48, n_embd: int = 24, n_head: int = 3, n_layer: int = 2):
        super().__init__(vocab_size, n_embd, n_head, n_layer)
        self.lm_head.weight = self.wte.weight


class GPTTiedThenInit(GPTTied):
    def __init__(self, vocab_size: int = 48, n_embd: int = 24, n_head: int = 3, n_layer: int = 2):
        super().__init__(vocab_size, n_embd, n_head, n_layer)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                module.reset_parameters()


class GPTMasked(GPT):
    """`attention_mask` (B, T) is 1 at real tokens; padding may be on either side."""

    def positions(self, attention_mask: Tensor) -> Tensor:
        return (attention_mask.long().cumsum(-1) - 1).clamp(min=0)

    def forward(self, idx: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        mask = torch.ones_like(idx) if attention_mask is None else attention_mask
        x = self.wte(idx) + self.wpe(self.positions(mask))
        keep = causal(idx.size(1), idx.size(1), idx.device) & mask.bool()[:, None, None]
        for block in self.h:
            x = block(x, keep)
        return self.lm_head(self.ln_f(x))


class GPTLeftPadded(GPTMasked):
    def positions(self, attention_mask: Tensor) -> Tensor:
        return torch.arange(attention_mask.size(1), device=attention_mask.device).expand_as(attention_mask)


@dataclass
class Output:
    logits: Tensor
    loss: Tensor | None = None


@dataclass
class Config:
    vocab_size: int = 40
    hidden_size: int = 32
    num_hidden_layers: int = 2
    num_attention_heads: int = 4


class LlamaForCausalLM(nn.Module):
    """`labels` are the ids and are shifted inside; -100 does not count."""

    def __init__(self, config: Config | None = None):
        super().__init__()
        self.config = config = config or Config()
        width, layers = config.hidden_size, config.num_hidden_layers
        self.embed_tokens = nn.Embedding(config.vocab_size, width)
        self.attns = nn.ModuleList(Attention(width, config.num_attention_heads) for _ in range(layers))
        self.mlps = nn.ModuleList(MLP(width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.RMSNorm(width, eps=1e-6) for _ in range(2 * layers))
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.lm_head = nn.Linear(width, config.vocab_size, bias=False)

    def attend(self, attn: Attention, x: Tensor, keep: Tensor) -> Tensor:
        q, k, v = attn.split(x)
        t = torch.arange(x.size(1), device=x.device)
        return attn.merge(weigh(rotate(q, t), rotate(k, t), v, keep))

    def finish(self, x: Tensor) -> Tensor:
        return self.lm_head(self.norm(x))

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None) -> Output:
        x = self.embed_tokens(input_ids)
        keep = causal(x.size(1), x.size(1), x.device)[None, None]
        if attention_mask is not None:
            keep = keep & attention_mask[:, None, None].bool()
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps, strict=True)):
            x = x + self.attend(attn, self.norms[2 * i](x), keep)
            x = x + mlp(self.norms[2 * i + 1](x))
        logits = self.finish(x)
        return Output(logits, None if labels is None else self.loss(logits, labels))


class LlamaUnfinished(LlamaForCausalLM):
    def finish(self, x: Tensor) -> Tensor:
        return self.lm_head(x)


class LlamaUnshifted(LlamaForCausalLM):
    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


class LlamaTurnedValues(LlamaForCausalLM):
    def attend(self, attn: Attention, x: Tensor, keep: Tensor) -> Tensor:
        t = torch.arange(x.size(1), device=x.device)
        q, k, v = (rotate(part, t) for part in attn.split(x))
        return attn.merge(weigh(q, k, v, keep))


class LlamaKeysUnturned(LlamaForCausalLM):
    def attend(self, attn: Attention, x: Tensor, keep: Tensor) -> Tensor:
        q, k, v = attn.split(x)
        return attn.merge(weigh(rotate(q, torch.arange(x.size(1), device=x.device)), k, v, keep))


class LlamaFewPads(LlamaForCausalLM):
    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        losses = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), reduction="none")
        return losses.mean()


class NoPositions(GPT):
    """The causal mask alone tells the order, on purpose: there is no table of positions."""

    def __init__(self, vocab_size: int = 48, n_embd: int = 24, n_head: int = 3, n_layer: int = 3):
        super().__init__(vocab_size, n_embd, n_head, n_layer)
        del self.wpe

    def embed(self, idx: Tensor) -> Tensor:
        return self.wte(idx)


CASES = [
    Case("GPTLastOpen", "lm", "causal.future-leak", guess=True),
    Case("GPTBlockMeans", "lm", "causal.future-leak"),
    Case("GPTNoFinalNorm", "lm", "norm.final-missing"),
    Case("GPTPositionless", "lm", "position.unused", ("parameter.unused",)),
    Case("GPTPositionsAgain", "lm", "position.every-block"),
    Case("GPTShared", "lm", "blocks.shared"),
    Case("GPTShiftedTwice", "lm", "loss.shifted-twice"),
    Case("GPTProbabilities", "lm", "loss.double-softmax"),
    Case("GPTCopiedHead", "lm", "tying.lost"),
    Case("GPTTiedThenInit", "lm", "init.after-tying"),
    Case("GPTLeftPadded", "lm", "position.left-padding"),
    Case("LlamaUnfinished", "lm", "norm.final-missing", ("parameter.unused",)),
    Case("LlamaUnshifted", "lm", "loss.unshifted"),
    Case("LlamaTurnedValues", "lm", "rotary.values"),
    Case("LlamaKeysUnturned", "lm", "rotary.one-side", ("rotary.not-relative",)),
    Case("LlamaFewPads", "lm", "loss.pads-counted"),
    Case("GPT", "lm", guess=True),
    Case("GPTTied", "lm"),
    Case("GPTMasked", "lm"),
    Case("LlamaForCausalLM", "lm", guess=True),
    Case("NoPositions", "lm"),
]
