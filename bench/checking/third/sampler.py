"""Samplers: filtered logits, or ids."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.checking.case import Case


def _kth(logits: Tensor, k: int) -> Tensor:
    return logits.topk(min(k, logits.size(-1)), dim=-1).values[..., -1:]


def top_k_filter(logits: Tensor, top_k: int = 0) -> Tensor:
    if top_k <= 0:
        return logits
    best = logits.topk(min(top_k, logits.size(-1)), dim=-1)
    return torch.full_like(logits, float("-inf")).scatter(-1, best.indices, best.values)


def top_k_filter2(logits: Tensor, top_k: int = 0) -> Tensor:
    if top_k <= 0:
        return logits
    return torch.where(logits < _kth(logits, top_k), torch.zeros_like(logits), logits)


def top_k_filter3(logits: Tensor, top_k: int = 0) -> Tensor:
    if top_k <= 0:
        return logits
    return torch.where(logits < _kth(logits, top_k), torch.full_like(logits, -10.0), logits)


def top_p_filter(logits: Tensor, top_p: float = 1.0) -> Tensor:
    if top_p >= 1.0:
        return logits
    order = logits.sort(dim=-1, descending=True)
    cum = order.values.softmax(-1).cumsum(-1)
    drop = cum - order.values.softmax(-1) >= top_p
    return logits.masked_fill(drop.scatter(-1, order.indices, drop), float("-inf"))


def top_p_filter2(logits: Tensor, top_p: float = 1.0) -> Tensor:
    if top_p >= 1.0:
        return logits
    order = logits.sort(dim=-1, descending=True)
    drop = order.values.softmax(-1).cumsum(-1) > top_p
    return logits.masked_fill(drop.scatter(-1, order.indices, drop), float("-inf"))


def top_p_filter3(logits: Tensor, top_p: float = 1.0) -> Tensor:
    if top_p >= 1.0:
        return logits
    order = logits.sort(dim=-1, descending=True)
    drop = order.values.softmax(-1).cumsum(-1) > top_p
    drop[..., 0] = False
    return logits.masked_fill(drop.scatter(-1, order.indices, drop), float("-inf"))


def top_p_filter4(logits: Tensor, top_p: float = 1.0) -> Tensor:
    """From the smallest: what lies in the last 1 - p of the mass goes."""
    if top_p >= 1.0:
        return logits
    order = logits.sort(dim=-1, descending=False)
    drop = order.values.softmax(-1).cumsum(-1) <= 1.0 - top_p
    drop[..., -1] = False
    return logits.masked_fill(drop.scatter(-1, order.indices, drop), float("-inf"))


def top_k_top_p_filter(logits: Tensor, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    if top_k > 0:
        logits = logits.masked_fill(logits < _kth(logits, top_k), float("-inf"))
    if top_p < 1.0:
        values, indices = logits.sort(dim=-1, descending=True)
        drop = values.softmax(-1).cumsum(-1) > top_p
        drop[..., 1:] = drop[..., :-1].clone()
        drop[..., 0] = False
        logits = logits.masked_fill(torch.zeros_like(drop).scatter(-1, indices, drop), float("-inf"))
    return logits


def top_k_top_p_filter2(logits: Tensor, top_k: int = 50, top_p: float = 1.0) -> Tensor:
    if top_k > 0:
        logits = logits.masked_fill(logits < _kth(logits, top_k), float("-inf"))
    if top_p < 1.0:
        values, indices = logits.sort(dim=-1, descending=True)
        p = values.softmax(-1)
        drop = p.cumsum(-1) - p >= top_p
        logits = logits.masked_fill(torch.zeros_like(drop).scatter(-1, indices, drop), float("-inf"))
    return logits


def sample(logits: Tensor, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    logits = logits / temperature
    if top_k is not None:
        logits = logits.masked_fill(logits < _kth(logits, top_k), -float("inf"))
    return torch.multinomial(logits.softmax(dim=-1), num_samples=1)


def sample2(logits: Tensor, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
    logits = logits / temperature
    if top_k is not None:
        logits = logits.masked_fill(logits < _kth(logits, top_k), -float("inf"))
    return torch.multinomial(logits.softmax(dim=-1), num_samples=1)


def sample3(logits: Tensor, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    probs = (logits / temperature).softmax(dim=-1)
    if top_k is not None:
        probs = probs.masked_fill(probs < _kth(probs, top_k), -float("inf"))
    return torch.multinomial(probs.softmax(dim=-1), num_samples=1)


def sample4(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """The largest of the logits with Gumbel noise."""
    if temperature < 1e-5:
        return logits.argmax(-1)
    noise = -torch.empty_like(logits).exponential_().log()
    return (logits / temperature + noise).argmax(-1)


def sample5(logits: Tensor, temperature: float = 1.0) -> Tensor:
    if temperature == 0:
        temperature = 1.0
    return torch.multinomial((logits / temperature).softmax(-1), 1).squeeze(-1)


def repetition(logits: Tensor, generated: Tensor, repetition_penalty: float = 1.2) -> Tensor:
    score = logits.gather(1, generated)
    score = torch.where(score < 0, score * repetition_penalty, score / repetition_penalty)
    return logits.scatter(1, generated, score)


def repetition2(logits: Tensor, generated: Tensor, repetition_penalty: float = 1.2) -> Tensor:
    score = logits.gather(1, generated)
    return logits.scatter(1, generated, score / repetition_penalty)


def repetition3(logits: Tensor, generated: Tensor, repetition_penalty: float = 1.2) -> Tensor:
    out = logits.clone()
    for b, row in enumerate(generated):
        for t in set(row.tolist()):
            if out[b, t] > 0:
                out[b, t] = out[b, t] / repetition_penalty
            else:
                out[b, t] = out[b, t] * repetition_penalty
    return out


CASES: list[Case] = [
    Case("top_k_filter", "sampler", guess=True),
    Case("top_k_filter2", "sampler", "sampling.top-k-fill"),
    Case("top_k_filter3", "sampler", "sampling.top-k-fill", guess=True),
    Case("top_p_filter", "sampler", guess=True),
    Case("top_p_filter2", "sampler", "sampling.empty-nucleus", also=("sampling.nucleus-boundary",)),
    Case("top_p_filter3", "sampler", "sampling.nucleus-boundary"),
    Case("top_p_filter4", "sampler"),
    Case("top_k_top_p_filter", "sampler"),
    Case("top_k_top_p_filter2", "sampler", "sampling.hidden-default", guess=True),
    Case("sample", "sampler"),
    Case("sample2", "sampler", "sampling.temperature-zero", guess=True),
    Case("sample3", "sampler", "sampling.double-softmax"),
    Case("sample4", "sampler"),
    Case("sample5", "sampler", "sampling.temperature-zero"),
    Case("repetition", "sampler", guess=True),
    Case("repetition2", "sampler", "sampling.penalty-sign"),
    Case("repetition3", "sampler"),
]
