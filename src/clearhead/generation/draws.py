"""The distribution at one place of one text, and drawing from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from clearhead.generation.sampling import SamplingSettings, probabilities
from clearhead.messages import UserError, say

Draw = Callable[[Tensor], int]
"""From chances (V), which need not sum to 1, to an index: all randomness of generation. A coin is a draw from two chances."""


def dice(seed: int) -> Draw:
    """Draws that the seed alone decides.

    Args:
        seed: any whole number.
    """
    generator = torch.Generator().manual_seed(seed % 2**64)
    return lambda chances: int(torch.multinomial(chances, 1, generator=generator))


def chances_after(ids: Sequence[int], logits: Tensor, settings: SamplingSettings) -> Tensor:
    """The distribution (V) of the token after `ids`, on the CPU.

    Args:
        ids: the text so far, prompt and all; penalties count its tokens.
        logits: of the model, (V).
        settings: how to choose.

    Raises:
        UserError: if the logits are not numbers, or every token is forbidden.
    """
    if not math.isfinite(logits.amax()):
        raise UserError(say("generation.not_a_number"))
    counts = None
    if settings.penalises:
        counts = torch.from_numpy(np.bincount(ids, minlength=len(logits))).to(logits)
    return probabilities(logits, settings, counts).cpu()
