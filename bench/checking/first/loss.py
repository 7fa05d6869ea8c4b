"""Losses: planted mistakes in several styles, and right ones."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.checking.case import Case

EOS = 2
PAD = EOS
PAD_ID = 0


def unshifted(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100)


class CausalLoss(nn.Module):
    def __init__(self, vocab_size: int):
        super().__init__()
        self.vocab_size = vocab_size
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, logits, input_ids):
        return self.criterion(logits.reshape(-1, self.vocab_size), input_ids.reshape(-1))


def shifted_by_both(logits, targets):
    logits, targets = logits[:, :-1], targets[:, 1:]
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))


def shifts_twice(logits, labels):
    labels = F.pad(labels, (0, 1), value=-100)[:, 1:]
    logits, labels = logits[:, :-1].contiguous(), labels[:, 1:].contiguous()
    return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))


def clamps(logits, labels):
    shift_logits, shift_labels = logits[:, :-1], labels[:, 1:].clamp(min=0)
    logp = shift_logits.log_softmax(-1)
    return -logp.gather(-1, shift_labels.unsqueeze(-1)).mean()


def mask_off_by_one(logits, labels, attention_mask):
    loss = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none")
    mask = attention_mask[:, :-1].to(loss.dtype)
    return (loss * mask).sum() / mask.sum()


def mask_accepted(logits, labels, attention_mask=None):
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:])


def divides_by_all(logits, targets, mask):
    nll = -logits.log_softmax(-1).gather(-1, targets[..., None]).squeeze(-1)
    return (nll * mask).mean()


class PadLoss(nn.Module):
    def __init__(self, pad_id: int = 0):
        super().__init__()
        self.pad_id = pad_id

    def forward(self, logits, targets):
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        real = (targets != self.pad_id).flatten()
        return loss.sum() / real.sum()


def masks_end(logits, labels):
    labels = labels.masked_fill(labels == PAD, -100)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def masks_end_told(logits, labels, attention_mask, eos_id):
    labels = labels.clone()
    labels[labels == eos_id] = -100
    labels[attention_mask == 0] = -100
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def softmax_first(logits, targets):
    probs = torch.softmax(logits, dim=-1)
    return F.cross_entropy(probs.view(-1, probs.size(-1)), targets.view(-1))


class Probabilities(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax, self.loss = nn.Softmax(dim=-1), nn.CrossEntropyLoss(ignore_index=-100)

    def forward(self, logits, labels):
        p = self.softmax(logits[..., :-1, :].contiguous())
        return self.loss(p.view(-1, p.shape[-1]), labels[..., 1:].contiguous().view(-1)), p


def rows_then_mean(logits, labels, attention_mask):
    mask = attention_mask[:, 1:].float()
    loss = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none")
    return ((loss * mask).sum(dim=1) / mask.sum(dim=1)).mean()


def row_by_row(logits, targets):
    return torch.stack([F.cross_entropy(z, y, ignore_index=-1) for z, y in zip(logits, targets, strict=True)]).mean()


# Right ones.


def nano(logits, targets):
    return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


def hugging(logits, labels, attention_mask=None):
    labels = labels if attention_mask is None else labels.masked_fill(attention_mask == 0, -100)
    z, y = logits[..., :-1, :].contiguous().float(), labels[..., 1:].contiguous()
    return F.cross_entropy(z.view(-1, z.size(-1)), y.view(-1))


class Smoothed(nn.Module):
    def __init__(self, label_smoothing: float = 0.1):
        super().__init__()
        self.criterion = nn.CrossEntropyLoss(label_smoothing=label_smoothing, ignore_index=-100)

    def forward(self, logits, targets):
        return self.criterion(logits.transpose(1, 2), targets)


def log_softmax_twice(logits, targets):
    return F.cross_entropy(logits.log_softmax(-1).flatten(0, 1), targets.flatten())


def z_loss(logits, targets, z_weight: float = 1e-2):
    real = targets != -100
    z = logits.logsumexp(-1)
    nll = z - logits.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    return ((nll + z_weight * z**2) * real).sum() / real.sum(), real.sum()


def summed(logits, labels, mask):
    loss = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none")
    return (loss * mask[:, 1:]).sum()


def soft_capped(logits, labels):
    logits = 30 * torch.tanh(logits / 30)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def padded(logits, targets, padding_mask):
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    real = (~padding_mask.bool()).flatten()
    return loss[real].mean()


class IgnoresPad(nn.Module):
    def __init__(self, pad_id: int = 0):
        super().__init__()
        self.loss = nn.CrossEntropyLoss(ignore_index=pad_id)

    def forward(self, logits, targets):
        return {"loss": self.loss(logits.flatten(0, 1), targets.flatten())}


def keeps_first_end(logits, labels, eos_id):
    ends = labels == eos_id
    labels = labels.masked_fill(ends & (ends.cumsum(1) > 1), -100)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def flat(logits, labels):
    assert logits.dim() == 2
    return -logits.log_softmax(-1)[torch.arange(len(labels)), labels].mean()


WRONG = {
    "loss.unshifted": ("unshifted", "CausalLoss"),
    "loss.shifted-twice": ("shifted_by_both", "shifts_twice"),
    "loss.pads-counted": ("clamps", "mask_off_by_one", "mask_accepted", "divides_by_all", "PadLoss"),
    "loss.eos-masked": ("masks_end", "masks_end_told"),
    "loss.double-softmax": ("softmax_first", "Probabilities"),
    "loss.mean-of-means": ("rows_then_mean", "row_by_row"),
}
RIGHT = (
    "nano", "hugging", "Smoothed", "log_softmax_twice", "z_loss", "summed", "soft_capped", "padded", "IgnoresPad", "keeps_first_end", "flat",
)  # fmt: skip
CASES = [Case(name, "loss", fault) for fault, names in WRONG.items() for name in names]
CASES += [Case(name, "loss") for name in RIGHT]
