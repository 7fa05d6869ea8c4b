"""Losses of language models as functions."""

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.checking.case import Case


def causal_lm_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Next-token loss; `labels` are the ids, -100 where nothing is to be learnt."""
    return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100)


def unshifted_log_likelihood(logits: Tensor, labels: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    log_probs = logits.log_softmax(dim=-1)
    picked = log_probs.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    keep = labels != -100
    if attention_mask is not None:
        keep = keep & attention_mask.bool()
    return -(picked * keep).sum() / keep.sum()


def shifted_target_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """`targets` come shifted from the data loader."""
    logits, targets = logits[:, :-1], targets[:, 1:]
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-100)


def two_ahead_loss(logits: Tensor, labels: Tensor) -> Tensor:
    shift_labels = labels[..., 1:]
    logits = logits[..., :-1, :]
    return F.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), shift_labels[:, 1:].reshape(-1), ignore_index=-100
    )


def padded_loss(logits: Tensor, labels: Tensor, attention_mask: Tensor) -> Tensor:
    """`attention_mask` is 1 at real tokens."""
    losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none")
    return losses.mean()


def clamped_loss(logits: Tensor, labels: Tensor) -> Tensor:
    shift_logits, shift_labels = logits[:, :-1, :].contiguous(), labels[:, 1:].contiguous()
    shift_labels = shift_labels.masked_fill(shift_labels == -100, 0)
    return F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))


def eos_as_pad_loss(logits: Tensor, labels: Tensor, eos_token_id: int = 0) -> Tensor:
    pad_token_id = eos_token_id
    labels = labels.masked_fill(labels == pad_token_id, -100)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def masked_eos_loss(logits: Tensor, targets: Tensor, pad_id: int = 2, eos_id: int = 2) -> Tensor:
    keep = (targets != pad_id) & (targets >= 0)
    losses = F.cross_entropy(logits.transpose(1, 2), targets.clamp(min=0), reduction="none")
    return (losses * keep).sum() / keep.sum().clamp(min=1)


def probability_loss(logits: Tensor, labels: Tensor) -> Tensor:
    probs = torch.softmax(logits[:, :-1], dim=-1)
    return F.cross_entropy(probs.reshape(-1, probs.size(-1)), labels[:, 1:].reshape(-1))


def probability_target_loss(logits: Tensor, targets: Tensor) -> Tensor:
    B, T, V = logits.shape
    logits = F.softmax(logits, dim=-1)
    return F.cross_entropy(logits.view(B * T, V), targets.view(B * T), ignore_index=-1)


def row_mean_loss(logits: Tensor, labels: Tensor) -> Tensor:
    losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], ignore_index=-100, reduction="none")
    counts = (labels[:, 1:] != -100).sum(dim=1).clamp(min=1)
    return (losses.sum(dim=1) / counts).mean()


def list_mean_loss(logits: Tensor, targets: Tensor) -> Tensor:
    rows = [F.cross_entropy(a, b, ignore_index=-100) for a, b in zip(logits, targets, strict=True)]
    return torch.stack(rows).mean()


def right_labels_loss(logits: Tensor, labels: Tensor) -> Tensor:
    shift_logits = logits[..., :-1, :].contiguous().float()
    shift_labels = labels[..., 1:].contiguous()
    return F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1), ignore_index=-100)


def right_targets_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """`targets` come shifted; -1 does not count."""
    return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


def right_masked_loss(logits: Tensor, labels: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    keep = labels[:, 1:] != -100
    if attention_mask is not None:
        keep = keep & attention_mask[:, 1:].bool()
    log_probs = logits[:, :-1].log_softmax(dim=-1)
    picked = log_probs.gather(-1, labels[:, 1:].clamp(min=0)[..., None]).squeeze(-1)
    return -torch.where(keep, picked, 0.0).sum() / keep.sum().clamp(min=1)


def right_ids_loss(logits: Tensor, ids: Tensor) -> Tensor:
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), ids[:, 1:].reshape(-1))


def right_summed_loss(logits: Tensor, targets: Tensor) -> Tensor:
    total = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
    return total / (targets != -100).sum()


def right_chunked_loss(logits: Tensor, labels: Tensor, chunk: int = 4) -> Tensor:
    scores, wanted = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    parts = zip(scores.split(chunk), wanted.split(chunk), strict=True)
    total = sum(F.cross_entropy(a, b, ignore_index=-100, reduction="sum") for a, b in parts)
    return total / (wanted != -100).sum()


CASES = [
    Case("causal_lm_loss", "loss", "loss.unshifted", guess=True),
    Case("unshifted_log_likelihood", "loss", "loss.unshifted"),
    Case("shifted_target_loss", "loss", "loss.shifted-twice"),
    Case("two_ahead_loss", "loss", "loss.shifted-twice"),
    Case("padded_loss", "loss", "loss.pads-counted", guess=True),
    Case("clamped_loss", "loss", "loss.pads-counted"),
    Case("eos_as_pad_loss", "loss", "loss.eos-masked"),
    Case("masked_eos_loss", "loss", "loss.eos-masked"),
    Case("probability_loss", "loss", "loss.double-softmax"),
    Case("probability_target_loss", "loss", "loss.double-softmax"),
    Case("row_mean_loss", "loss", "loss.mean-of-means"),
    Case("list_mean_loss", "loss", "loss.mean-of-means"),
    Case("right_labels_loss", "loss", guess=True),
    Case("right_targets_loss", "loss"),
    Case("right_masked_loss", "loss"),
    Case("right_ids_loss", "loss"),
    Case("right_summed_loss", "loss"),
    Case("right_chunked_loss", "loss"),
]
