"""From logits to the distribution that the next token is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from clearhead.generation import filters
from clearhead.messages import UserError, say
from clearhead.ops.softmax import at_least_float32, softmax

STEPS = ("penalties", "temperature", "top_k", "top_p", "min_p")
"""The steps of `probabilities`, in the order in which they are taken unless the settings say otherwise."""

STRONGEST = 1e6
"""The largest penalty and bias: far beyond any logit, and far from where float32, counts and all, ends."""

RANGES = (
    ("top_p", 0, 1, "0 ≤ p ≤ 1"),
    ("min_p", 0, 1, "0 ≤ p ≤ 1"),
    ("repetition_penalty", 1, STRONGEST, f"≥ 1, ≤ {STRONGEST:,.0f}"),
    ("presence_penalty", 0, STRONGEST, f"≥ 0, ≤ {STRONGEST:,.0f}"),
    ("frequency_penalty", 0, STRONGEST, f"≥ 0, ≤ {STRONGEST:,.0f}"),
)
"""Setting, smallest and largest value, and the range in words."""


@dataclass(frozen=True)
class SamplingSettings:
    """How to choose. What is not given does nothing; the plain settings draw from the model's own distribution.

    Args:
        temperature: τ >= 0; 1 is the model's own distribution, 0 always takes the best token.
        top_k: only the k best tokens can be drawn; None or 0 allows the whole vocabulary.
        top_p: only the smallest set of best tokens that reaches this probability; 0 is the best token alone.
        min_p: only tokens at least so many times as probable as the best one.
        repetition_penalty: what a token that has occurred is divided by (or multiplied, if below 0); 1 to `STRONGEST`.
        presence_penalty: what is taken off a token that has occurred; 0 to `STRONGEST`.
        frequency_penalty: what is taken off for each time that it has occurred; 0 to `STRONGEST`.
        logit_bias: token id -> what is added to its logit, before anything else, `STRONGEST` at most; -inf forbids it.
        allowed: the ids that can be drawn; all if None.
        order: the steps in the order in which they are taken, each once; those left out are not taken.

    Raises:
        UserError: if a setting is out of range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    allowed: frozenset[int] | None = None
    order: tuple[str, ...] = STEPS

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise UserError(say("generation.temperature", value=self.temperature))
        if self.top_k is not None and self.top_k < 0:
            raise UserError(say("generation.top_k", value=self.top_k))
        for name, least, most, wanted in RANGES:
            value = getattr(self, name)
            if not least <= value <= most:
                raise UserError(say("generation.setting", name=name, value=value, wanted=wanted))
        if not set(self.order) <= set(STEPS) or len(set(self.order)) < len(self.order):
            raise UserError(say("generation.order", value=", ".join(self.order), known=", ".join(STEPS)))
        wild = {id: amount for id, amount in self.logit_bias.items() if not amount <= STRONGEST}
        if wild:
            raise UserError(say("generation.setting", name="logit_bias", value=wild, wanted=f"≤ {STRONGEST:,.0f}"))
        if self.allowed is not None and not self.allowed:
            raise UserError(say("generation.nothing_allowed"))

    @property
    def penalises(self) -> bool:
        """Whether what has been written matters."""
        return (self.repetition_penalty, self.presence_penalty, self.frequency_penalty) != (1, 0, 0)


def probabilities(logits: Tensor, settings: SamplingSettings, counts: Tensor | None = None) -> Tensor:
    """The distribution of the next token: bias, allowed tokens, then the steps in their order, then one softmax.

    By default: penalties on what has occurred, z / τ, the k best, the nucleus of probability p, those within a factor of
    the best. Each step sees what the ones before have left. At τ = 0 the distribution is one-hot on the best token, the first
    of equals, so that drawing from it is greedy decoding.

    Args:
        logits: z (..., V).
        settings: how to choose.
        counts: how often each token has occurred, (..., V); needed by penalties, and by them alone.

    Returns:
        (..., V), in the wider of float32 and the type of the logits; each row sums to 1.

    Raises:
        UserError: if every token is forbidden, or the settings name an id outside the vocabulary.
        ValueError: if there are penalties and no counts.

    Source: transformer-notes §14; see `generation.filters` for each step.
    """
    logits = logits.to(at_least_float32(logits.dtype))
    if settings.penalises and counts is None:
        raise ValueError("penalties need to know what has occurred: give counts")
    if settings.logit_bias or settings.allowed is not None:
        logits = _limited(logits, settings)
    if bool((logits.amax(-1) == -torch.inf).any()):
        raise UserError(say("generation.nothing_allowed"))
    for step in settings.order:
        logits = _taken(step, logits, settings, counts)
    return softmax(logits)


def _limited(logits: Tensor, settings: SamplingSettings) -> Tensor:
    """The logits with their bias, and -∞ for what is not allowed."""
    vocab = logits.shape[-1]
    for id in (*settings.logit_bias, *(settings.allowed or ())):
        if not 0 <= id < vocab:
            raise UserError(say("models.id_outside", id=id, vocab=vocab))
    if settings.logit_bias:
        logits = filters.biased(logits, settings.logit_bias)
    if settings.allowed is not None:
        logits = filters.only(logits, settings.allowed)
    return logits


def _taken(step: str, logits: Tensor, settings: SamplingSettings, counts: Tensor | None) -> Tensor:
    """The logits after one step; a step whose setting does nothing is not taken."""
    match step:
        case "penalties" if settings.penalises and counts is not None:
            return filters.penalised(
                logits,
                counts,
                repetition=settings.repetition_penalty,
                presence=settings.presence_penalty,
                frequency=settings.frequency_penalty,
            )
        case "temperature":
            return filters.tempered(logits, settings.temperature)
        case "top_k" if settings.top_k and settings.top_k < logits.shape[-1]:
            return filters.top_k(logits, settings.top_k)
        case "top_p" if settings.top_p < 1:
            return filters.top_p(logits, settings.top_p)
        case "min_p" if settings.min_p > 0:
            return filters.min_p(logits, settings.min_p)
    return logits
