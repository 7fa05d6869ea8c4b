"""What changes logits before a token is drawn: pure functions from logits (..., V) to logits, -∞ for what cannot be drawn.

Each is a step of `sampling.probabilities`; none knows of the others, and none takes a softmax of anything but its own input.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor


def biased(logits: Tensor, bias: Mapping[int, float]) -> Tensor:
    """z[i] + b[i] for the ids of `bias`; -∞ forbids one."""
    ids = torch.tensor(list(bias), dtype=torch.long, device=logits.device)
    amounts = torch.tensor(list(bias.values()), dtype=logits.dtype, device=logits.device)
    return logits.index_add(-1, ids, amounts.expand(*logits.shape[:-1], -1))


def only(logits: Tensor, allowed: Collection[int]) -> Tensor:
    """-∞ for every id that is not allowed."""
    forbidden = torch.ones(logits.shape[-1], dtype=torch.bool, device=logits.device)
    forbidden[torch.tensor(list(allowed), dtype=torch.long, device=logits.device)] = False
    return logits.masked_fill(forbidden, -torch.inf)


def penalised(logits: Tensor, counts: Tensor, *, repetition: float, presence: float, frequency: float) -> Tensor:
    """Lower the tokens that have occurred: by a factor, by a number, and by a number for each time.

    z > 0 becomes z / ρ and z < 0 becomes z · ρ, so that a token that has occurred never gains; then α_presence is taken off
    once, and α_frequency as often as it occurred.

    Args:
        logits: z (..., V).
        counts: how often each token has occurred, (..., V).
        repetition: ρ, at least 1 lowers; 1 does nothing.
        presence: α_presence.
        frequency: α_frequency.

    Source: Keskar et al. 2019 (arXiv:1909.05858) §4.1 for ρ; the OpenAI API's definition of the other two.
    """
    factored = torch.where(logits > 0, logits / repetition, logits * repetition)
    seen = counts > 0
    return torch.where(seen, factored, logits) - presence * seen - frequency * counts


def tempered(logits: Tensor, temperature: float) -> Tensor:
    """z / τ; at τ = 0 all but the best token, the first of equals, become -∞.

    The best logit is moved to 0 first: a tiny τ must not turn it into infinity; nor may τ round to 0 in this type.
    """
    if temperature == 0:
        return torch.full_like(logits, -torch.inf).scatter(-1, logits.argmax(-1, keepdim=True), 0.0)
    temperature = max(temperature, torch.finfo(logits.dtype).tiny)
    return (logits - logits.amax(-1, keepdim=True)) / temperature


def top_k(logits: Tensor, k: int) -> Tensor:
    """The k best tokens; of those tied at the k-th place the ones with the lowest ids stay, so exactly k are left.

    Source: Fan et al. 2018 (arXiv:1805.04833).
    """
    # Without sorting all of a large vocabulary.
    least = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    tied = logits == least
    places = k - (logits > least).sum(-1, keepdim=True)
    return logits.masked_fill((logits < least) | (tied & (tied.cumsum(-1) > places)), -torch.inf)


def top_p(logits: Tensor, p: float) -> Tensor:
    """The smallest set of best tokens whose probability reaches p; never empty, and all of them for p = 1.

    A token stays if the better ones together have less than p; of equals the lowest ids are better.

    Source: Holtzman et al. 2020 (arXiv:1904.09751) §3.1.
    """
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    # Shifted by one place, not taken off again: a difference of sums would be rounded, and the border would move.
    better = torch.nn.functional.pad(ordered.softmax(-1).cumsum(-1)[..., :-1], (1, 0))
    # Sums that are rounded may reach 1 before the last token has come.
    dropped = (better >= p) & (p < 1)
    dropped[..., 0] = False
    return logits.masked_fill(dropped.scatter(-1, order, dropped), -torch.inf)


def min_p(logits: Tensor, p: float) -> Tensor:
    """The tokens at least p times as probable as the best one: z ≥ z_best + ln p.

    Source: Nguyen et al. 2024 (arXiv:2407.01082).
    """
    chances = logits.softmax(-1)
    return logits.masked_fill(chances < p * chances.amax(-1, keepdim=True), -torch.inf)
