"""Losses of a language model."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.checking.case import Case


def causal_lm_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """`labels` are the ids; -100 does not count."""
    logits, labels = logits[:, :-1].contiguous(), labels[:, 1:].contiguous()
    return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100)


def causal_lm_loss2(logits: Tensor, labels: Tensor) -> Tensor:
    """`labels` are the ids; -100 does not count."""
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), labels.reshape(-1), ignore_index=-100)


def causal_lm_loss3(logits: Tensor, labels: Tensor) -> Tensor:
    """`labels` are the ids; -100 does not count."""
    return F.cross_entropy(logits[:, :-2].flatten(0, 1), labels[:, 2:].flatten(), ignore_index=-100)


def causal_lm_loss4(logits: Tensor, labels: Tensor) -> Tensor:
    """`labels` are the ids; -100 does not count."""
    targets = labels[:, 1:]
    losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), targets.clamp(min=0), reduction="none")
    return losses.mean()


def causal_lm_loss5(logits: Tensor, labels: Tensor) -> Tensor:
    """`labels` are the ids; -100 does not count."""
    p = F.softmax(logits[:, :-1], dim=-1)
    return F.cross_entropy(p.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def causal_lm_loss6(logits: Tensor, labels: Tensor) -> Tensor:
    """`labels` are the ids; -100 does not count."""
    rows = [F.cross_entropy(o[:-1], t[1:], ignore_index=-100) for o, t in zip(logits, labels, strict=True)]
    return torch.stack(rows).mean()


def causal_lm_loss7(logits: Tensor, labels: Tensor) -> Tensor:
    """`labels` are the ids; -100 does not count."""
    targets = labels[:, 1:]
    keep = targets != -100
    logp = logits[:, :-1].log_softmax(dim=-1)
    picked = logp.gather(-1, targets.masked_fill(~keep, 0)[..., None]).squeeze(-1)
    return -(picked * keep).sum() / keep.sum()


def lm_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """`targets` are the next ids; -1 does not count."""
    return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


def lm_loss2(logits: Tensor, targets: Tensor) -> Tensor:
    """`targets` are the next ids; -1 does not count."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten(), ignore_index=-1)


def lm_loss3(logits: Tensor, targets: Tensor) -> Tensor:
    """`targets` are the next ids; -1 does not count."""
    logp = torch.log_softmax(logits, dim=-1)
    return F.cross_entropy(logp.softmax(-1).flatten(0, 1), targets.flatten(), ignore_index=-1)


def lm_loss4(logits: Tensor, targets: Tensor) -> Tensor:
    """`targets` are the next ids; -1 does not count."""
    B = logits.size(0)
    total = logits.new_zeros(())
    for b in range(B):
        total = total + F.cross_entropy(logits[b], targets[b], ignore_index=-1)
    return total / B


def lm_loss5(logits: Tensor, targets: Tensor) -> Tensor:
    """`targets` are the next ids; -1 does not count. Two rows at a time, to save memory."""
    total, count = logits.new_zeros(()), (targets != -1).sum()
    for o, t in zip(logits.split(2), targets.split(2), strict=True):
        total = total + F.cross_entropy(o.flatten(0, 1), t.flatten(), ignore_index=-1, reduction="sum")
    return total / count


def masked_lm_loss(logits: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """`attention_mask` is 1 at real tokens."""
    keep = attention_mask[:, 1:].to(logits.dtype)
    nll = F.cross_entropy(logits[:, :-1].transpose(1, 2), input_ids[:, 1:], reduction="none")
    return (nll * keep).sum() / keep.sum().clamp(min=1)


def masked_lm_loss2(logits: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """`attention_mask` is 1 at real tokens."""
    keep = attention_mask[:, 1:].to(logits.dtype)
    nll = F.cross_entropy(logits[:, :-1].transpose(1, 2), input_ids[:, 1:], reduction="none")
    return (nll * keep).mean()


def masked_lm_loss3(logits: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """`attention_mask` is 1 at real tokens."""
    keep = attention_mask[:, 1:].to(logits.dtype)
    nll = F.cross_entropy(logits[:, :-1].transpose(1, 2), input_ids[:, 1:], reduction="none")
    return ((nll * keep).sum(1) / keep.sum(1).clamp(min=1)).mean()


class LMCriterion(nn.Module):
    """The padding id and the end-of-text id are one, as in GPT-2."""

    def __init__(self, eos_token_id: int = 0) -> None:
        super().__init__()
        self.eos_token_id = eos_token_id

    def forward(self, logits: Tensor, labels: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        targets = labels[:, 1:]
        targets = targets.masked_fill(targets == self.eos_token_id, -100)
        if attention_mask is not None:
            targets = targets.masked_fill(attention_mask[:, 1:] == 0, -100)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten())


class LMCriterion2(nn.Module):
    """The padding id and the end-of-text id are one, as in GPT-2."""

    def __init__(self, eos_token_id: int = 0) -> None:
        super().__init__()
        self.eos_token_id = eos_token_id

    def forward(self, logits: Tensor, labels: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        targets = labels[:, 1:]
        if attention_mask is not None:
            targets = targets.masked_fill(attention_mask[:, 1:] == 0, -100)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten())


CASES: list[Case] = [
    Case("causal_lm_loss", "loss", guess=True),
    Case("causal_lm_loss2", "loss", "loss.unshifted"),
    Case("causal_lm_loss3", "loss", "loss.shifted-twice"),
    Case("causal_lm_loss4", "loss", "loss.pads-counted"),
    Case("causal_lm_loss5", "loss", "loss.double-softmax", guess=True),
    Case("causal_lm_loss6", "loss", "loss.mean-of-means"),
    Case("causal_lm_loss7", "loss"),
    Case("lm_loss", "loss"),
    Case("lm_loss2", "loss", "loss.shifted-twice", guess=True),
    Case("lm_loss3", "loss", "loss.double-softmax"),
    Case("lm_loss4", "loss", "loss.mean-of-means", guess=True),
    Case("lm_loss5", "loss"),
    Case("masked_lm_loss", "loss"),
    Case("masked_lm_loss2", "loss", "loss.pads-counted", also=("loss.mean-of-means",)),
    Case("masked_lm_loss3", "loss", "loss.mean-of-means"),
    Case("LMCriterion", "loss", "loss.eos-masked"),
    Case("LMCriterion2", "loss"),
]
