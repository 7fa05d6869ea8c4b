"""Models that name their tensors as nanoGPT and the course do, each with a forward of its own: a loop over heads, an explicit mask."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

NANO = {"n_layer": 2, "n_head": 3, "n_embd": 12, "block_size": 7, "bias": True, "vocab_size": 11, "dropout": 0.1}
COURSE_HEADS = 3


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One head, (B,T,d) each."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(-1) @ v


class ScaleAndShift(nn.Module):
    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        y = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * self.weight
        return y if self.bias is None else y + self.bias


class NanoBlock(nn.Module):
    def __init__(self, width: int, heads: int, context: int, bias: bool) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = ScaleAndShift(width, bias), ScaleAndShift(width, bias)
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.c_attn, self.attn.c_proj = nn.Linear(width, 3 * width, bias), nn.Linear(width, width, bias)
        # What nanoGPT keeps where PyTorch has no fused kernel: a mask that is called bias.
        self.attn.register_buffer("bias", torch.ones(context, context).tril()[None, None])
        self.mlp.c_fc, self.mlp.c_proj = nn.Linear(width, 4 * width, bias), nn.Linear(4 * width, width, bias)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        parts = [part.chunk(self.heads, -1) for part in self.attn.c_attn(self.ln_1(x)).chunk(3, -1)]
        x = x + self.attn.c_proj(torch.cat([attend(*qkv) for qkv in zip(*parts, strict=True)], -1))
        hidden = self.mlp.c_fc(self.ln_2(x))
        return x + self.mlp.c_proj(hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2))))


class Nano(nn.Module):
    """nanoGPT's names."""

    def __init__(self, **sizes: Any) -> None:
        super().__init__()
        args = NANO | sizes
        width, context, bias = args["n_embd"], args["block_size"], args["bias"]
        blocks = [NanoBlock(width, args["n_head"], context, bias) for _ in range(args["n_layer"])]
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(args["vocab_size"], width),
                "wpe": nn.Embedding(context, width),
                "h": nn.ModuleList(blocks),
                "ln_f": ScaleAndShift(width, bias),
            }
        )
        self.lm_head = nn.Linear(width, args["vocab_size"], bias=False)
        self.lm_head.weight = self.transformer["wte"].weight
        redraw(self)

    def forward(self, ids: Tensor) -> Tensor:
        parts = self.transformer
        x = parts["wte"](ids) + parts["wpe"].weight[: ids.shape[1]]
        for block in parts["h"]:
            x = block(x)
        return self.lm_head(parts["ln_f"](x))


class CourseBlock(nn.Module):
    def __init__(self, width: int, heads: int, head_width: int, hidden: int, context: int) -> None:
        super().__init__()
        self.sa, self.ffwd = nn.Module(), nn.Module()
        self.sa.heads = nn.ModuleList(nn.Module() for _ in range(heads))
        for head in self.sa.heads:
            head.key, head.query, head.value = (nn.Linear(width, head_width, bias=False) for _ in range(3))
            head.register_buffer("tril", torch.ones(context, context).tril())
        self.sa.proj = nn.Linear(heads * head_width, width)
        self.ffwd.net = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width), nn.Dropout(0.2))
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.ln1(x)
        heads = [attend(head.query(normed), head.key(normed), head.value(normed)) for head in self.sa.heads]
        x = x + self.sa.proj(torch.cat(heads, -1))
        return x + self.ffwd.net(self.ln2(x))


class Course(nn.Module):
    """The names of the course's GPT."""

    def __init__(self, width: int = 12, head_width: int = 4, hidden: int = 48) -> None:
        super().__init__()
        self.token_embedding_table = nn.Embedding(11, width)
        self.position_embedding_table = nn.Embedding(7, width)
        self.blocks = nn.Sequential(*(CourseBlock(width, COURSE_HEADS, head_width, hidden, 7) for _ in range(2)))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, 11)
        redraw(self)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embedding_table(ids) + self.position_embedding_table.weight[: ids.shape[1]]
        return self.lm_head(self.ln_f(self.blocks(x)))


def redraw(model: nn.Module) -> None:
    """Every weight in float64, large enough to matter; for use, not for training."""
    model.double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)


def nano_checkpoint(model: Nano, **more: Any) -> dict[str, Any]:
    """What nanoGPT's training saves."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    F.cross_entropy(model(torch.tensor([[1, 2, 3]])).flatten(0, 1), torch.tensor([2, 3, 4])).backward()
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimizer.step()
    model.load_state_dict(weights)
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "model_args": dict(NANO),
        "iter_num": 3,
        "best_val_loss": torch.tensor(1.5),
        "config": {"dataset": "letters", "n_head": 99, "learning_rate": 1e-3},
    } | more
