"""Embeddings, hidden units, lists of blocks and ties as they are found."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.first.weights import Heads

VOCAB, WIDTH = 61, 16


class Block(nn.Module):
    """Pre-norm, one head."""

    def __init__(self, dim: int = WIDTH) -> None:
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.n1(x)).chunk(3, -1)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.fc2(F.gelu(self.fc1(self.n2(x))))


class Model(nn.Module):
    """A small causal language model."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(32, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.finish()

    def finish(self) -> None:
        """What subclasses change."""

    def forward(self, idx: Tensor) -> Tensor:
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1], device=idx.device))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class RowsZero(Model):
    """Ids 5 to 8 mean nothing."""

    def finish(self) -> None:
        with torch.no_grad():
            self.wte.weight[5:9] = 0


class RowsCut(Model):
    """The end of a vocabulary that was made larger was never filled."""

    def finish(self) -> None:
        self.wte.weight.data[50:].zero_()


class PadRow(Model):
    """The row of the padding is zero, as it is said."""

    def finish(self) -> None:
        self.wte = nn.Embedding(VOCAB, WIDTH, padding_idx=0)


class DeadUnits(Model):
    """Hidden units that take in nothing."""

    def finish(self) -> None:
        with torch.no_grad():
            self.blocks[0].fc1.weight[10:20] = 0
            self.blocks[0].fc1.bias[10:20] = 0


class UnusedUnits(Model):
    """Hidden units that give nothing."""

    def finish(self) -> None:
        with torch.no_grad():
            self.blocks[1].fc2.weight[:, 3:5] = 0


class ZeroUp(Model):
    """The first layer of a branch is zero."""

    def finish(self) -> None:
        nn.init.zeros_(self.blocks[1].fc1.weight)


class ZeroLast(Model):
    """The last projections are zero at the start: a known choice."""

    def finish(self) -> None:
        for block in self.blocks:
            nn.init.zeros_(block.proj.weight)
            nn.init.zeros_(block.fc2.weight)


class ListOfOne(Model):
    """[block] * 3."""

    def finish(self) -> None:
        self.blocks = nn.ModuleList([Block()] * 3)


class LayersOfOne(Model):
    """The same block runs for each of the layers that are stated."""

    def finish(self) -> None:
        self.n_layers, self.blocks, self.block = 3, nn.ModuleList(), Block()

    def forward(self, idx: Tensor) -> Tensor:
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1], device=idx.device))
        for _ in range(self.n_layers):
            x = self.block(x)
        return self.lm_head(self.ln_f(x))


class SharedOnPurpose(Model):
    """Parameters are shared across layers, as in ALBERT."""

    def finish(self) -> None:
        self.blocks = nn.ModuleList([Block()] * 3)


class TiedByCopy(Model):
    """Weights are tied: the head takes a copy of the embedding."""

    def finish(self) -> None:
        self.lm_head.weight = nn.Parameter(self.wte.weight.detach().clone())


class TiedThenReplaced(Model):
    """tie_weights is called too early."""

    def finish(self) -> None:
        self.tie_weights = True
        self.lm_head.weight = self.wte.weight
        self.wte = nn.Embedding(VOCAB, WIDTH)


class Tied(Model):
    """Tied, right."""

    def finish(self) -> None:
        self.lm_head.weight = self.wte.weight


class TyingAsked(Model):
    """Tied if that is asked for, which it is not."""

    def __init__(self, tie_embeddings: bool = False) -> None:
        super().__init__()
        if tie_embeddings:
            self.lm_head.weight = self.wte.weight


class Untied(Model):
    """Untied head."""


class FrozenPositions(Model):
    """Sinusoidal positions that do not train."""

    def finish(self) -> None:
        angles = torch.arange(32)[:, None] / 100 ** (torch.arange(WIDTH) / WIDTH)
        self.wpe = nn.Embedding.from_pretrained(angles.sin(), freeze=True)


def frozen_block() -> Any:
    """The first block was switched off, and nobody says why."""
    made = Model()
    for parameter in made.blocks[0].parameters():
        parameter.requires_grad_(False)
    return made


class SqueezedFirst(Heads):
    """A batch of one loses its axis."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        return super().forward(hidden_states).squeeze(0)


CASES = [
    Case("SqueezedFirst", "attention", "shape.squeezed"),
    Case("RowsZero", "lm", "weights.rows-zero"),
    Case("RowsCut", "lm", "weights.rows-zero"),
    Case("DeadUnits", "lm", "weights.dead-units"),
    Case("UnusedUnits", "lm", "weights.dead-units"),
    Case("ZeroUp", "lm", "weights.zero"),
    Case("ListOfOne", "lm", "blocks.shared"),
    Case("LayersOfOne", "lm", "blocks.shared"),
    Case("TiedByCopy", "lm", "tying.lost"),
    Case("TiedThenReplaced", "lm", "tying.lost"),
    Case("frozen_block", "lm", "weights.frozen"),
    Case("PadRow", "lm"),
    Case("ZeroLast", "lm"),
    Case("SharedOnPurpose", "lm"),
    Case("Tied", "lm"),
    Case("TyingAsked", "lm"),
    Case("Untied", "lm"),
    Case("FrozenPositions", "lm"),
    Case("Model", "lm"),
]
