"""Encoders with decoders: source and target, with a mistake or right."""

import torch
from torch import nn

from bench.checking.case import Case


class Translate(nn.Module):
    """PyTorch's layers, learned positions, a mask of the source's pads."""

    causal, sees, final = True, True, True

    def __init__(self, src_vocab_size=61, tgt_vocab_size=61, d_model=32, nhead=4, max_len=40):
        super().__init__()
        self.src, self.tgt = nn.Embedding(src_vocab_size, d_model), nn.Embedding(tgt_vocab_size, d_model)
        self.pos = nn.Embedding(max_len, d_model)
        enc = nn.TransformerEncoderLayer(d_model, nhead, 64, 0.0, batch_first=True)
        dec = nn.TransformerDecoderLayer(d_model, nhead, 64, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(enc, 2, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(dec, 2)
        self.out = nn.Linear(d_model, tgt_vocab_size)

    def place(self, x):
        return x + self.pos(torch.arange(x.shape[1], device=x.device))

    def forward(self, src, tgt, src_key_padding_mask=None):
        memory = self.encoder(self.place(self.src(src)), src_key_padding_mask=src_key_padding_mask)
        T = tgt.shape[1]
        mask = torch.triu(torch.ones(T, T, dtype=torch.bool, device=tgt.device), 1) if self.causal else None
        if not self.sees:
            memory = torch.zeros_like(memory)
        y = self.decoder(self.place(self.tgt(tgt)), memory, tgt_mask=mask, memory_key_padding_mask=src_key_padding_mask)
        return self.out(y)


class LooksAhead(Translate):
    causal = False


class Block(nn.Module):
    def __init__(self, d, h, cross):
        super().__init__()
        self.a = nn.MultiheadAttention(d, h, batch_first=True)
        self.c = nn.MultiheadAttention(d, h, batch_first=True) if cross else None
        self.n = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if cross else 2))
        self.f = nn.Sequential(nn.Linear(d, 80), nn.ReLU(), nn.Linear(80, d))

    def forward(self, x, mask=None, memory=None, memory_pads=None, pads=None):
        h = self.n[0](x)
        x = x + self.a(h, h, h, attn_mask=mask, key_padding_mask=pads)[0]
        if self.c is not None:
            x = x + self.c(self.n[1](x), memory, memory, key_padding_mask=memory_pads)[0]
        return x + self.f(self.n[-1](x))


class StaleBlock(Block):
    def forward(self, x, mask=None, memory=None, memory_pads=None, pads=None):
        h = self.n[0](x)
        u = x + self.a(h, h, h, attn_mask=mask, key_padding_mask=pads)[0]
        if self.c is not None:
            u = u + self.c(self.n[1](u), memory, memory, key_padding_mask=memory_pads)[0]
        return x + self.f(self.n[-1](u))


class OwnRight(nn.Module):
    """Written by hand: pre-norm, one table for both sides, a causal decoder."""

    block, masked, shift = Block, True, 1

    def __init__(self, vocab_size=61, d_model=32, heads=4):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, d_model)
        self.pe = nn.Parameter(torch.randn(64, d_model) * 0.1)
        self.enc = nn.ModuleList(self.block(d_model, heads, False) for _ in range(2))
        self.dec = nn.ModuleList(self.block(d_model, heads, True) for _ in range(2))
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, source, target, source_mask=None):
        """Args: source_mask (B,S), True for real tokens."""
        pads = None if source_mask is None or not self.masked else source_mask == 0
        x = self.emb(source) + self.pe[: source.shape[1]]
        for block in self.enc:
            x = block(x, pads=pads)
        memory, y, T = self.n1(x), self.emb(target) + self.pe[: target.shape[1]], target.shape[1]
        ahead = torch.ones(T, T, dtype=torch.bool).triu(self.shift)
        for block in self.dec:
            y = block(y, ahead, memory, pads)
        return self.n2(y) @ self.emb.weight.T


class OwnStale(OwnRight):
    block = StaleBlock


class MaskDropped(OwnRight):
    masked = False


class OneAhead(OwnRight):
    shift = 2


class CrossUnmasked(Translate):
    def forward(self, src, tgt, src_key_padding_mask=None):
        memory = self.encoder(self.place(self.src(src)), src_key_padding_mask=src_key_padding_mask)
        T = tgt.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(T, dtype=self.pos.weight.dtype)
        return self.out(self.decoder(self.place(self.tgt(tgt)), memory, tgt_mask=mask))


FAULTS = {
    "causal.future-leak": ("LooksAhead", "OneAhead"),
    "residual.stale": ("OwnStale",),
    "mask.ignored": ("MaskDropped", "CrossUnmasked"),
}
CASES = [Case(name, "seq2seq", fault) for fault, names in FAULTS.items() for name in names]
CASES += [Case("Translate", "seq2seq"), Case("OwnRight", "seq2seq", guess=True)]
