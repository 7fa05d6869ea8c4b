"""Models as courses write them: logits flattened beside targets, the last position alone, lists of heads, their own `generate`."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case


class Head(nn.Module):
    def __init__(self, n_embd, head_size, block_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", self.triangle(block_size))

    def triangle(self, size):
        return torch.tril(torch.ones(size, size))

    def forward(self, x):
        T = x.shape[1]
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return F.softmax(wei, dim=-1) @ self.value(x)


class MultiHead(nn.Module):
    def __init__(self, n_embd, n_head, block_size, head):
        super().__init__()
        self.heads = nn.ModuleList(head(n_embd, n_embd // n_head, block_size) for _ in range(n_head))
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, block_size, head):
        super().__init__()
        self.sa = MultiHead(n_embd, n_head, block_size, head)
        self.ffwd = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.ReLU(), nn.Linear(4 * n_embd, n_embd))
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd(self.ln2(x))


class Bigram(nn.Module):
    head = Head

    def __init__(self, vocab_size=41, n_embd=24, n_head=4, n_layer=2, block_size=16):
        super().__init__()
        self.block_size = block_size
        self.token_embedding_table = nn.Embedding(vocab_size, n_embd)
        self.position_embedding_table = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block(n_embd, n_head, block_size, self.head) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def hidden(self, idx):
        pos = torch.arange(idx.shape[1], device=idx.device)
        return self.blocks(self.token_embedding_table(idx) + self.position_embedding_table(pos))

    def score(self, logits, targets):
        return F.cross_entropy(logits, targets)

    def forward(self, idx, targets=None):
        logits = self.lm_head(self.ln_f(self.hidden(idx)))
        if targets is None:
            return logits, None
        B, T, C = logits.shape
        logits = logits.view(B * T, C)
        return logits, self.score(logits, targets.view(B * T))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -self.block_size :])
            probs = F.softmax(self.choose(logits[:, -1, :]), dim=-1)
            idx = torch.cat((idx, torch.multinomial(probs, num_samples=1)), dim=1)
        return idx

    def choose(self, logits):
        return logits


class NoMask(Head):
    def triangle(self, size):
        return torch.ones(size, size)


class Below(Head):
    def triangle(self, size):
        triangle = torch.tril(torch.ones(size, size), diagonal=-1)
        triangle[0, 0] = 1
        return triangle


class Upper(Head):
    def triangle(self, size):
        return torch.triu(torch.ones(size, size))


class ShiftsAgain(Bigram):
    """Gets the next tokens and shifts them once more."""

    def forward(self, idx, targets=None):
        logits = self.lm_head(self.ln_f(self.hidden(idx)))
        loss = None if targets is None else F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())
        return logits, loss


class Reads(Bigram):
    """`labels` are the ids themselves."""

    def forward(self, idx, labels=None):
        logits = self.lm_head(self.ln_f(self.hidden(idx)))
        return logits, None if labels is None else F.cross_entropy(logits.transpose(1, 2), labels)


class Inverted(Head):
    """The triangle keeps the diagonal alone: two masks meet."""

    def triangle(self, size):
        return torch.tril(torch.ones(size, size)) * torch.triu(torch.ones(size, size))


class Twice(Bigram):
    def score(self, logits, targets):
        return F.cross_entropy(F.softmax(logits, dim=-1), targets)


class RowMeans(Bigram):
    def forward(self, idx, targets=None):
        logits = self.lm_head(self.ln_f(self.hidden(idx)))
        if targets is None:
            return logits, None
        rows = [F.cross_entropy(a, b, ignore_index=-1) for a, b in zip(logits, targets, strict=True)]
        return logits, torch.stack(rows).mean()


class Raw(Bigram):
    """No norm before the head."""

    def forward(self, idx, targets=None):
        logits = self.lm_head(self.hidden(idx))
        return logits, None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Lost(Bigram):
    def hidden(self, idx):
        return self.blocks(self.token_embedding_table(idx))


class Forty(Bigram):
    def choose(self, logits):
        v, _ = torch.topk(logits, 20)
        return logits.masked_fill(logits < v[:, [-1]], -float("inf"))


class Ten(Bigram):
    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0):
        for _ in range(max_new_tokens):
            logits = self(idx)[0][:, -1] / temperature
            best, where = logits.topk(10)
            choice = torch.multinomial(best.softmax(-1), 1)
            idx = torch.cat([idx, where.gather(1, choice)], 1)
        return idx


class Padded(Bigram):
    """Its loss knows the pad and the end."""

    def __init__(self, pad_id=0, eos_id=2):
        super().__init__()
        self.pad_id, self.eos_id = pad_id, eos_id

    def score(self, logits, targets):
        return F.cross_entropy(logits, targets, ignore_index=self.pad_id)

    @torch.no_grad()
    def generate(self, ids, max_new_tokens, eos_id=None, attention_mask=None):
        lengths = torch.full((ids.shape[0],), ids.shape[1]) if attention_mask is None else attention_mask.sum(1)
        rows = [
            self.solo(row[:n].tolist(), max_new_tokens, eos_id) for row, n in zip(ids, lengths.tolist(), strict=True)
        ]
        longest = max(len(row) for row in rows)
        return torch.tensor([row + [self.pad_id] * (longest - len(row)) for row in rows])

    def solo(self, ids, steps, eos_id):
        out = []
        for _ in range(steps):
            out.append(int(self(torch.tensor([ids + out]))[0][0, -1].argmax()))
            if out[-1] == eos_id:
                break
        return out


class PadsIn(Padded):
    def score(self, logits, targets):
        return F.cross_entropy(logits, targets)


class Denominator(Padded):
    def score(self, logits, targets):
        return (F.cross_entropy(logits, targets, reduction="none") * (targets != self.pad_id)).mean()


class EndIsPad(Padded):
    def __init__(self):
        super().__init__(pad_id=2, eos_id=2)


class EndIgnored(Padded):
    def score(self, logits, targets):
        return F.cross_entropy(logits, targets, ignore_index=self.eos_id)


class GoesOn(Padded):
    @torch.no_grad()
    def generate(self, ids, max_new_tokens, eos_id=None):
        for _ in range(max_new_tokens):
            ids = torch.cat([ids, self(ids)[0][:, -1].argmax(-1, keepdim=True)], 1)
            if eos_id is not None and (ids[:, -1] == eos_id).all():
                break
        return ids


class StopsAll(Padded):
    @torch.no_grad()
    def generate(self, ids, max_new_tokens, eos_token_id=None):
        for _ in range(max_new_tokens):
            ids = torch.cat([ids, self(ids)[0][:, -1].argmax(-1, keepdim=True)], 1)
            if eos_token_id is not None and (ids[:, -1] == eos_token_id).any():
                break
        return ids


class ReadsPads(Padded):
    @torch.no_grad()
    def generate(self, ids, max_new_tokens, attention_mask=None):
        for _ in range(max_new_tokens):
            ids = torch.cat([ids, self(ids)[0][:, -1].argmax(-1, keepdim=True)], 1)
        return ids


class ReadsLastColumn(Padded):
    @torch.no_grad()
    def generate(self, ids, lengths=None, max_new_tokens=4):
        out = []
        for _ in range(max_new_tokens):
            out.append(self(torch.cat([ids, *out], 1))[0][:, -1:].argmax(-1))
        return torch.cat(out, 1)


def bigram(head):
    return type("Bigram", (Bigram,), {"head": head})


no_mask, below, upper, inverted = bigram(NoMask), bigram(Below), bigram(Upper), bigram(Inverted)

CASES = [
    Case("Bigram", "lm"),
    Case("Padded", "lm"),
    Case("no_mask", "lm", "causal.future-leak"),
    Case("below", "lm", "causal.self-masked"),
    Case("upper", "lm", "causal.future-leak"),
    Case("inverted", "lm", "causal.past-lost"),
    Case("Reads", "lm", "loss.unshifted"),
    Case("ShiftsAgain", "lm", "loss.shifted-twice"),
    Case("Twice", "lm", "loss.double-softmax"),
    Case("RowMeans", "lm", "loss.mean-of-means"),
    Case("Raw", "lm", "norm.final-missing", also=("parameter.unused",)),
    Case("Lost", "lm", "position.unused", also=("parameter.unused",)),
    Case("Forty", "lm", "sampling.hidden-default"),
    Case("Ten", "lm", "sampling.hidden-default"),
    Case("PadsIn", "lm", "loss.pads-counted"),
    Case("Denominator", "lm", "loss.pads-counted"),
    Case("EndIsPad", "lm", "loss.eos-masked"),
    Case("EndIgnored", "lm", "loss.eos-masked"),
    Case("GoesOn", "lm", "generate.finished-rows"),
    Case("StopsAll", "lm", "generate.finished-rows"),
    Case("ReadsPads", "lm", "generate.pad-read"),
    Case("ReadsLastColumn", "lm", "generate.pad-read"),
]
