"""From logits to the distribution that the next token is drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.messages import UserError, say
from clearhead.ops.softmax import at_least_float32, softmax


@dataclass(frozen=True)
class SamplingSettings:
    """How to choose.

    Args:
        temperature: τ >= 0; 1 is the model's own distribution, 0 always takes the best token.
        top_k: only the k best tokens can be drawn; None allows the whole vocabulary.

    Raises:
        UserError: if a setting is out of range.
    """

    temperature: float = 1.0
    top_k: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise UserError(say("generation.temperature", value=self.temperature))
        if self.top_k is not None and self.top_k < 1:
            raise UserError(say("generation.top_k", value=self.top_k))


def probabilities(logits: Tensor, settings: SamplingSettings) -> Tensor:
    """p = softmax(z / τ) over the k best tokens, 0 elsewhere.

    At τ = 0 the distribution is one-hot on the best token, the first of equals, so that drawing from it is greedy
    decoding. Of tokens tied at the k-th place the ones with the lowest ids stay, so exactly k are left.

    Args:
        logits: z (..., V).
        settings: τ and k.

    Returns:
        (..., V), in the wider of float32 and the type of the logits; each row sums to 1.

    Source: transformer-notes §14; Fan et al. 2018 (arXiv:1805.04833) for top-k.
    """
    logits = logits.to(at_least_float32(logits.dtype))
    if settings.temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    if settings.top_k is not None and settings.top_k < logits.shape[-1]:
        order = logits.sort(dim=-1, descending=True, stable=True).indices
        logits = logits.scatter(-1, order[..., settings.top_k :], -torch.inf)
    # Shifted by the best logit first: a tiny τ must not turn it into infinity; nor may τ round to 0 in this type.
    temperature = max(settings.temperature, torch.finfo(logits.dtype).tiny)
    return softmax((logits - logits.amax(-1, keepdim=True)) / temperature)
