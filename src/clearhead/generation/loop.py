"""The decode loop: forward, distribution, draw, append."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from clearhead.generation.sampling import SamplingSettings, probabilities
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder


class Step(NamedTuple):
    """One generated token."""

    id: int
    logprob: float
    """Log of the probability that the settings gave this token (nats)."""


def decode(model: Decoder, prompt: Sequence[int], settings: SamplingSettings, *, seed: int) -> Iterator[Step]:
    """Generate token after token, without end; the caller stops asking.

    Past the model's context the oldest tokens fall out, and the last `context` tokens are read anew at every step.

    Args:
        model: in evaluation mode.
        prompt: at least one token id.
        settings: how to choose.
        seed: of the draws; the same seed gives the same tokens on the same machine.

    Raises:
        UserError: if the model's logits are not numbers.
    """
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed % 2**64)
    ids = list(prompt)
    while True:
        with torch.inference_mode():
            logits = model(torch.tensor([ids[-model.context :]], device=device))[0, -1]
            chances = probabilities(logits, settings).cpu()
        if not logits.amax().isfinite():
            raise UserError(say("generation.not_a_number"))
        drawn = int(torch.multinomial(chances, 1, generator=generator))
        ids.append(drawn)
        yield Step(drawn, float(chances[drawn].log()))
