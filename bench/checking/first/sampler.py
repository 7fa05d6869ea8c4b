"""Samplers: planted mistakes in several styles, and right ones."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case


def nucleus_empties(logits, top_p=1.0):
    values, order = torch.sort(logits, descending=True)
    drop = values.softmax(-1).cumsum(-1) > top_p
    return logits.masked_fill(drop.scatter(-1, order, drop), float("-inf"))


class NucleusSampler(nn.Module):
    def __init__(self, p: float = 0.9):
        super().__init__()
        self.p = p

    def forward(self, logits):
        probs = logits.softmax(-1)
        values, order = probs.sort(descending=True)
        values = values * (values.cumsum(-1) <= self.p)
        values = values / values.sum(-1, keepdim=True)
        return order.gather(-1, torch.multinomial(values, 1))


def crossing_lost(logits, p):
    values, order = torch.sort(logits, descending=True, dim=-1)
    drop = values.softmax(-1).cumsum(-1) > p
    drop[..., 0] = False
    return logits.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), -torch.inf)


def one_too_many(probs, p):
    values, order = torch.sort(probs, dim=-1, descending=True)
    drop = torch.cumsum(values, dim=-1) - values > p
    drop = drop.roll(1, -1)
    drop[..., 0] = False
    values[drop] = 0.0
    values.div_(values.sum(dim=-1, keepdim=True))
    return order.gather(-1, torch.multinomial(values, num_samples=1))


def zero_fill(logits, k):
    kth = logits.topk(k).values[..., -1:]
    return torch.where(logits < kth, torch.zeros_like(logits), logits)


def softmax_after(logits, temperature=1.0, top_k=None):
    probs = F.softmax(logits / max(temperature, 1e-6), dim=-1)
    if top_k is not None:
        v, _ = torch.topk(probs, min(top_k, probs.size(-1)))
        probs = probs.masked_fill(probs < v[:, [-1]], 0.0)
        probs = F.softmax(probs, dim=-1)
    return torch.multinomial(probs, 1)


def zero_divides(logits, temperature=1.0):
    return torch.multinomial((logits / temperature).softmax(-1), 1).squeeze(-1)


def zero_is_one(logits, temperature=1.0, top_k=None):
    if temperature > 0:
        logits = logits / temperature
    if top_k is not None:
        v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
        logits[logits < v[:, [-1]]] = -float("inf")
    return torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)


def penalty_divides(logits, generated, repetition_penalty=1.0):
    score = torch.gather(logits, 1, generated)
    return logits.scatter(1, generated, score / repetition_penalty)


class RepetitionProcessor:
    def __init__(self, penalty: float):
        self.penalty = penalty

    def __call__(self, input_ids, scores):
        score = torch.gather(scores, 1, input_ids)
        score = torch.where(score > 0, score * self.penalty, score / self.penalty)
        return scores.scatter(1, input_ids, score)


def softmax_twice(logits, temperature=1.0):
    probs = torch.softmax(logits / max(temperature, 1e-5), -1)
    return torch.distributions.Categorical(logits=probs).sample()


class Warp(nn.Module):
    def forward(self, logits, top_k: int = 0):
        logits = logits.softmax(-1)
        if top_k > 0:
            logits = logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], -torch.inf)
        return logits.softmax(-1)


def fifty_in_signature(logits, temperature=1.0, top_k=50):
    logits = logits / max(temperature, 1e-5)
    if top_k:
        top_k = min(top_k, logits.size(-1))
        logits = logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], -torch.inf)
    return torch.multinomial(logits.softmax(-1), 1)


def forty_in_body(logits, temperature=1.0):
    if temperature == 0:
        return logits.argmax(-1)
    values, order = logits.topk(min(40, logits.shape[-1]))
    picked = torch.multinomial((values / temperature).softmax(-1), 1)
    return order.gather(-1, picked).squeeze(-1)


def ranks_returned(logits, k):
    values, _ = logits.topk(k)
    return torch.multinomial(values.softmax(-1), 1).squeeze(-1)


def first_rows_threshold(logits, top_k):
    kth = logits.topk(top_k).values[0, -1]
    return logits.masked_fill(logits < kth, -torch.inf)


def over_the_batch(logits):
    return logits.softmax(0)


def two_at_least(logits, top_p=1.0):
    if top_p >= 1:
        return logits
    values, order = logits.sort(-1, descending=True)
    drop = values.softmax(-1).cumsum(-1) >= top_p
    drop = torch.cat([torch.zeros_like(drop[..., :2]), drop[..., 1:-1]], -1)
    return logits.masked_fill(drop.scatter(-1, order, drop), -torch.inf)


def evened_out(logits, top_p=1.0):
    values, order = logits.sort(-1, descending=True)
    drop = values.softmax(-1).cumsum(-1) > top_p
    return logits.masked_fill(drop.scatter(-1, order, drop), -1e9) if top_p < 1 else logits


def lowest_fill(logits, top_k=0, temperature=1.0):
    logits = logits / max(temperature, 1e-6)
    return torch.where(logits < logits.topk(top_k).values[..., -1:], logits.min(), logits) if top_k else logits


def filtered_twice(logits, top_k=None):
    if top_k is not None:
        logits = logits.masked_fill(logits < logits.topk(top_k).values[..., -1:], -torch.inf)
    return torch.distributions.Categorical(logits=logits.softmax(-1)).sample()


def eager_nucleus(logits, temperature=1.0, p=0.9):
    if temperature == 0:
        return logits.argmax(-1)
    return torch.multinomial(nucleus_filter(logits / temperature, p).softmax(-1), 1)


# Right ones.


def nucleus_filter(logits, p=0.9):
    values, order = logits.sort(-1, descending=True)
    probs = values.softmax(-1)
    drop = probs.cumsum(-1) - probs >= p
    return logits.masked_fill(drop.scatter(-1, order, drop), -torch.inf)


def top_k_sample(logits, temperature=1.0, top_k=40):
    if temperature == 0:
        return logits.argmax(-1)
    values, order = (logits / temperature).topk(min(top_k, logits.size(-1)))
    return order.gather(-1, torch.multinomial(values.softmax(-1), 1))


def nano(logits, temperature=1.0, top_k=None):
    logits = logits / max(temperature, 1e-8)
    if top_k is not None:
        v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
        logits[logits < v[:, [-1]]] = -float("Inf")
    return torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)


def llama_top_p(probs, p):
    values, order = torch.sort(probs, dim=-1, descending=True)
    values[torch.cumsum(values, dim=-1) - values > p] = 0.0
    values.div_(values.sum(dim=-1, keepdim=True))
    return torch.gather(order, -1, torch.multinomial(values, num_samples=1))


def all_of_them(logits, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    if temperature < 0:
        raise ValueError("temperature must not be negative")
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.size(-1)).to(logits.dtype)
    logits = logits / temperature
    if top_k > 0:
        logits = logits.masked_fill(logits < logits.topk(min(top_k, logits.size(-1))).values[..., -1:], -1e9)
    values, order = logits.softmax(-1).sort(dim=-1, descending=True)
    drop = F.pad(values.cumsum(-1)[..., :-1], (1, 0)) >= top_p
    probs = logits.softmax(-1).masked_fill(drop.scatter(-1, order, drop), 0)
    probs = probs.masked_fill(probs < min_p * probs.amax(-1, keepdim=True), 0)
    return probs / probs.sum(-1, keepdim=True)


def refuses_zero(logits, temperature):
    if temperature <= 0:
        raise ValueError("temperature must be positive; use argmax")
    return logits / temperature


class Penalty:
    def __init__(self, penalty: float):
        self.penalty = penalty

    def __call__(self, input_ids, scores):
        score = torch.gather(scores, 1, input_ids)
        score = torch.where(score < 0, score * self.penalty, score / self.penalty)
        return scores.scatter(1, input_ids, score)


def one_text(logits, generated, repetition_penalty=1.2):
    logits = logits.clone()
    for token in set(generated.tolist() if torch.is_tensor(generated) else generated):
        logits[token] = logits[token] / repetition_penalty if logits[token] > 0 else logits[token] * repetition_penalty
    return logits


class TopKWarper(nn.Module):
    def __init__(self, top_k: int, filter_value: float = -float("inf")):
        super().__init__()
        self.top_k, self.filter_value = top_k, filter_value

    def forward(self, logits):
        drop = logits < torch.topk(logits, min(self.top_k, logits.size(-1)))[0][..., -1, None]
        return logits.masked_fill(drop, self.filter_value)


def gumbel(logits, tau=1.0):
    if tau == 0:
        return logits.argmax(-1)
    return (logits / tau - torch.log(-torch.log(torch.rand_like(logits)))).argmax(-1)


def last_step(logits, temperature=1.0, generator=None):
    logits = logits[:, -1, :] / (temperature + 1e-9)
    return torch.multinomial(logits.softmax(-1), 1, generator=generator)


def min_p_filter(logits, p=0.05):
    probs = logits.softmax(-1)
    return logits.masked_fill(probs < p * probs.max(-1, keepdim=True).values, -torch.inf)


def greedy(logits):
    return logits.argmax(-1)


WRONG = {
    "sampling.empty-nucleus": ("nucleus_empties", "NucleusSampler", "evened_out"),
    "sampling.nucleus-boundary": ("crossing_lost", "one_too_many", "two_at_least"),
    "sampling.top-k-fill": ("zero_fill", "softmax_after", "lowest_fill"),
    "sampling.temperature-zero": ("zero_divides", "zero_is_one"),
    "sampling.penalty-sign": ("penalty_divides", "RepetitionProcessor"),
    "sampling.double-softmax": ("softmax_twice", "Warp", "filtered_twice"),
    "sampling.hidden-default": ("fifty_in_signature", "forty_in_body", "eager_nucleus"),
    "sampling.sorted-indices": ("ranks_returned",),
    "batch.mixing": ("first_rows_threshold", "over_the_batch"),
}
RIGHT = (
    "nucleus_filter", "top_k_sample", "nano", "llama_top_p", "all_of_them", "refuses_zero", "Penalty", "one_text", "TopKWarper", "gumbel", "last_step", "min_p_filter", "greedy",
)  # fmt: skip
CASES = [Case(name, "sampler", fault) for fault, names in WRONG.items() for name in names]
CASES += [Case(name, "sampler") for name in RIGHT]
