"""Every kind of objective as small as it can be: a model, its batches and its loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.training.batches import Ids, Windows
from clearhead.training.conversations import Answered, Conversed
from clearhead.training.fit import Loss
from clearhead.training.losses import masked_token, next_token, packed_next_token, target_token
from clearhead.training.masking import Hiding, Masked
from clearhead.training.packed import Packed
from clearhead.training.pairs import IdPair, Marks, Shuffled

ROWS = 7
DECODER = DecoderConfig(vocab=14, layers=2, heads=2, width=12, context=10)
ENCODER = EncoderConfig(vocab=14, layers=2, heads=2, width=12, context=10)
PAIRED = EncoderDecoderConfig(vocab=14, layers=2, heads=2, width=12, context=10, source_context=9)
BEGIN, END, MASK = 11, 12, 13


def drawn(*lengths: int) -> list[Ids]:
    """Documents of these lengths, of ids that are no marks."""
    generator = np.random.default_rng(5)
    return [generator.integers(11, size=length) for length in lengths]


DOCUMENTS = drawn(*(1 + 5 * n % 23 for n in range(40)))


class Kind(NamedTuple):
    """What is learnt."""

    config: Any
    batches: Callable[[int], Any]
    loss: Loss[Any]

    def model(self, *, dropout: float = 0.0, dtype: torch.dtype = torch.float64) -> nn.Module:
        """A model with weights that matter."""
        made = build(replace(self.config, dropout=dropout), seed=2)
        torch.manual_seed(0)
        for parameter in made.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.3)
        return made.to(dtype)


def _conversations() -> Conversed:
    rows = [Answered(ids, np.arange(len(ids)) % (2 + n % 4) == 1) for n, ids in enumerate(drawn(*range(3, 11)))]
    return Conversed(rows, ROWS, 1)


KINDS = {
    "next token": Kind(DECODER, Windows(drawn(300), 10, ROWS, 1), next_token),
    "packed": Kind(DECODER, Packed(DOCUMENTS, 10, ROWS, 1, begin=BEGIN, end=END), packed_next_token),
    "masked": Kind(
        ENCODER, Masked(DOCUMENTS, 10, ROWS, 1, hiding=Hiding(MASK, 11), begin=BEGIN, end=END), masked_token
    ),
    "pairs": Kind(
        PAIRED,
        Shuffled([IdPair(*drawn(1 + n % 8, 9 - n % 9)) for n in range(20)], Marks(BEGIN, END), ROWS, 1),
        target_token,
    ),
    "conversations": Kind(DECODER, _conversations(), next_token),
}


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """A copy of every parameter."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Whether all tensors are the same, bit for bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
