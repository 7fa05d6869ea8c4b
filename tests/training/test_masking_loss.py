"""The loss of masked tokens: that of each window alone, whatever the batch, its padding and the ranks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
import torch
from torch import nn

from clearhead.models.build import build
from clearhead.models.choices_positions import Learned
from clearhead.models.config_encoders import EncoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Ids
from clearhead.training.fit import evaluate
from clearhead.training.losses import masked_token
from clearhead.training.masking import Hiding, Masked, MaskedBatch, masked_whole
from clearhead.training.order import Share
from tests.oracles.compare import assert_within
from tests.training.test_masking import rows_of

CONFIG = EncoderConfig(vocab=14, layers=2, heads=2, width=12, context=9, positions=Learned())
TEXT: list[Ids] = [np.random.default_rng(seed).integers(11, size=size) for seed, size in enumerate((23, 1, 0, 8))]


def model() -> nn.Module:
    """Small, in float64, with weights that matter."""
    made = build(CONFIG, seed=2)
    torch.manual_seed(0)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made.double().eval()


def text_batches(batch: int) -> Iterable[MaskedBatch]:
    return masked_whole(TEXT, CONFIG.context, batch, 0, hiding=Hiding(13, 11), begin=11, end=12)


@pytest.mark.parametrize("batch", [1, 2, 3, 50])
def test_the_loss_is_that_of_each_window_alone_whatever_the_batch(batch: int) -> None:
    made = model()
    total, count = 0.0, 0
    for inputs, targets in rows_of(text_batches(1)):
        with torch.no_grad():
            logs = made(torch.tensor([inputs]))[0].log_softmax(-1)
        for place, target in enumerate(targets):
            if target != IGNORED:
                total, count = total - logs[place, target].item(), count + 1
    assert evaluate(made, text_batches(batch), masked_token) == pytest.approx(total / count, abs=1e-12)


def test_padding_that_is_seen_is_caught() -> None:
    """The planted fault: padding is said to be real."""
    made = model()
    blind = [batch._replace(real=torch.ones_like(batch.real)) for batch in text_batches(3)]
    assert any(not bool(batch.real.all()) for batch in text_batches(3))
    assert abs(evaluate(made, blind, masked_token) - evaluate(made, text_batches(1), masked_token)) > 1e-6


def test_the_sums_of_ranks_are_that_of_one_process() -> None:
    made = model()

    def batches(share: Share) -> MaskedBatch:
        return Masked(TEXT, CONFIG.context, 5, 0, hiding=Hiding(13, 11), begin=11, end=12, share=share)(1)

    total, count = masked_token(made, batches(Share()))
    sums = [masked_token(made, batches(Share(rank, 2))) for rank in range(2)]
    assert_within(sums[0][0] + sums[1][0], total, 1e-12)
    assert sums[0][1] + sums[1][1] == count
