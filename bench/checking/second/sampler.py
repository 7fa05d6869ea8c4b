"""From logits to the next id."""

import torch
from torch import Tensor

from bench.checking.case import Case

NEVER = float("-inf")


def keep_best(logits: Tensor, k: int) -> Tensor:
    """Exactly k are left, also among equals."""
    best = logits.topk(min(k, logits.size(-1)), dim=-1).indices
    return torch.full_like(logits, NEVER).scatter(-1, best, logits.gather(-1, best))


def keep_nucleus(logits: Tensor, p: float) -> Tensor:
    """The smallest set that reaches p."""
    if p >= 1.0:
        return logits
    ordered, index = logits.sort(dim=-1, descending=True)
    probs = ordered.softmax(-1)
    drop = probs.cumsum(-1) - probs >= p
    drop[..., 0] = False
    return logits.masked_fill(torch.zeros_like(drop).scatter(-1, index, drop), NEVER)


def draw(logits: Tensor) -> Tensor:
    return torch.multinomial(logits.softmax(-1), num_samples=1).squeeze(-1)


def top_p_filter(logits: Tensor, top_p: float = 1.0) -> Tensor:
    if top_p >= 1.0:
        return logits
    sorted_logits, indices = torch.sort(logits, descending=True)
    cumulative = sorted_logits.softmax(dim=-1).cumsum(dim=-1)
    remove = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, indices, cumulative > top_p)
    return logits.masked_fill(remove, NEVER)


def nucleus_sample(logits: Tensor, temperature: float = 1.0, top_p: float = 1.0) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    ordered, index = (logits / temperature).sort(-1, descending=True)
    if top_p < 1.0:
        ordered = ordered.masked_fill(ordered.softmax(-1).cumsum(-1) > top_p, -1e9)
    return index.gather(-1, draw(ordered)[:, None]).squeeze(-1)


def wide_nucleus(logits: Tensor, top_p: float = 1.0) -> Tensor:
    if top_p >= 1.0:
        return logits
    ordered, index = logits.sort(dim=-1, descending=True)
    remove = ordered.softmax(-1).cumsum(-1) >= top_p
    remove[..., 2:] = remove[..., 1:-1].clone()
    remove[..., :2] = False
    return logits.masked_fill(remove.scatter(-1, index, remove), NEVER)


def tight_nucleus(logits: Tensor, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """Filtered logits."""
    logits = logits / temperature if temperature > 0 else keep_best(logits, 1)
    if top_k > 0:
        logits = keep_best(logits, top_k)
    if top_p < 1.0:
        probs, index = logits.softmax(-1).sort(-1, descending=True)
        drop = probs.cumsum(-1) >= top_p
        drop[..., 0] = False
        logits = logits.masked_fill(drop.scatter(-1, index, drop), NEVER)
    return logits


def zero_filled_top_k(logits: Tensor, top_k: int = 0) -> Tensor:
    if top_k > 0:
        worst = logits.topk(min(top_k, logits.size(-1))).values[..., -1, None]
        logits = torch.where(logits < worst, torch.zeros_like(logits), logits)
    return logits


def min_filled_top_k(logits: Tensor, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1)
    logits = logits / temperature
    if top_k is not None:
        values, _ = torch.topk(logits, min(top_k, logits.size(-1)))
        logits = logits.masked_fill(logits < values[:, [-1]], logits.min().item())
    return draw(logits)


def floor_temperature(logits: Tensor, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    logits = logits / max(temperature, 0.1)
    if top_k:
        logits = keep_best(logits, top_k)
    return draw(keep_nucleus(logits, top_p))


def skipped_temperature(logits: Tensor, temperature: float = 1.0) -> Tensor:
    if temperature:
        logits = logits / temperature
    return draw(logits)


def divided_penalty(logits: Tensor, generated: Tensor, repetition_penalty: float = 1.0) -> Tensor:
    seen = logits.gather(-1, generated)
    return logits.scatter(-1, generated, seen / repetition_penalty)


def multiplied_penalty(logits: Tensor, generated: Tensor, repetition_penalty: float = 1.2) -> Tensor:
    logits = logits.clone()
    for row, ids in enumerate(generated):
        for token in set(ids.tolist()):
            score = logits[row, token]
            logits[row, token] = score * repetition_penalty if score > 0 else score / repetition_penalty
    return logits


def twice_softmaxed(logits: Tensor, temperature: float = 1.0, top_k: int = 0) -> Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1)
    probs = (logits / temperature).softmax(dim=-1)
    if top_k:
        probs = keep_best(probs, top_k)
    return torch.multinomial(probs.softmax(dim=-1), 1).squeeze(1)


def categorical_of_probs(logits: Tensor, temperature: float = 1.0, top_p: float = 1.0) -> Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1)
    probs = keep_nucleus(logits / temperature, top_p).softmax(dim=-1)
    return torch.distributions.Categorical(logits=probs).sample()


def default_top_k(logits: Tensor, temperature: float = 1.0, top_k: int = 5) -> Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1)
    return draw(keep_best(logits / temperature, top_k))


def always_nucleus(logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float = 0.9) -> Tensor:
    logits = logits / temperature if temperature > 0 else keep_best(logits, 1)
    if top_k is not None:
        logits = keep_best(logits, top_k)
    return keep_nucleus(logits, top_p)


def right_sample(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1)
    logits = logits / temperature
    if top_k is not None:
        logits = keep_best(logits, top_k)
    if top_p is not None:
        logits = keep_nucleus(logits, top_p)
    return draw(logits)


def right_filter(logits: Tensor, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    logits = logits.clone()
    if top_k > 0:
        logits[logits < logits.topk(min(top_k, logits.size(-1)))[0][..., -1:]] = NEVER
    if top_p < 1.0:
        values, order = logits.sort(descending=True)
        remove = values.softmax(-1).cumsum(-1) >= top_p
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = False
        logits[remove.scatter(-1, order, remove)] = NEVER
    return logits


def right_gumbel(logits: Tensor, temperature: float = 1.0, top_k: int = 0) -> Tensor:
    """The largest of logits with Gumbel noise is a draw from the softmax."""
    if top_k:
        logits = keep_best(logits, top_k)
    noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(min=1e-20)))
    return (logits + temperature * noise).argmax(dim=-1)


def right_penalty(logits: Tensor, generated: Tensor, repetition_penalty: float = 1.0) -> Tensor:
    seen = torch.gather(logits, -1, generated)
    seen = torch.where(seen < 0, seen * repetition_penalty, seen / repetition_penalty)
    return logits.scatter(-1, generated, seen)


def right_ascending(logits: Tensor, temperature: float = 1.0, top_p: float = 1.0) -> Tensor:
    """Filtered logits; sorted from the worst, what is left below 1 - p goes."""
    if temperature == 0:
        return keep_best(logits, 1)
    logits = logits / temperature
    ordered, index = logits.sort(dim=-1)
    drop = ordered.softmax(-1).cumsum(-1) <= 1.0 - top_p
    drop[..., -1] = False
    return logits.masked_fill(drop.scatter(-1, index, drop), NEVER) if top_p < 1.0 else logits


CASES = [
    Case("top_p_filter", "sampler", "sampling.empty-nucleus", ("sampling.nucleus-boundary",), guess=True),
    Case("nucleus_sample", "sampler", "sampling.empty-nucleus", ("sampling.nucleus-boundary",)),
    Case("wide_nucleus", "sampler", "sampling.nucleus-boundary"),
    Case("tight_nucleus", "sampler", "sampling.nucleus-boundary"),
    Case("zero_filled_top_k", "sampler", "sampling.top-k-fill"),
    Case("min_filled_top_k", "sampler", "sampling.top-k-fill"),
    Case("floor_temperature", "sampler", "sampling.temperature-zero"),
    Case("skipped_temperature", "sampler", "sampling.temperature-zero"),
    Case("divided_penalty", "sampler", "sampling.penalty-sign"),
    Case("multiplied_penalty", "sampler", "sampling.penalty-sign"),
    Case("twice_softmaxed", "sampler", "sampling.double-softmax"),
    Case("categorical_of_probs", "sampler", "sampling.double-softmax"),
    Case("default_top_k", "sampler", "sampling.hidden-default"),
    Case("always_nucleus", "sampler", "sampling.hidden-default"),
    Case("right_sample", "sampler", guess=True),
    Case("right_filter", "sampler"),
    Case("right_gumbel", "sampler"),
    Case("right_penalty", "sampler"),
    Case("right_ascending", "sampler"),
]
