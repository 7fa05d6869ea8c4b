"""The initial weights of GPT-2."""

from __future__ import annotations

from torch import nn

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.feedforward import FeedForward, GatedFeedForward
from clearhead.layers.positions import LearnedPositions
from clearhead.models.decoder import Decoder

STANDARD_DEVIATION = 0.02


def initialise(model: Decoder) -> None:
    """Draw every weight afresh, in place, as GPT-2 does.

    Matrices, embeddings and positions are normal with mean 0 and standard deviation 0.02; biases are 0. The two
    projections of a block that write to the residual stream (of attention, of the feed-forward) are narrower by
    1/√(2L), because 2L such branches add up to the stream. Logits of a fresh model are then near 0 and the first
    loss is near ln V. A tied head shares the embedding's storage, so it is drawn once and stays tied.

    Source: Radford et al. 2019 §2.3.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=STANDARD_DEVIATION)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, LearnedPositions):
            nn.init.normal_(module.table, std=STANDARD_DEVIATION)
    narrow = STANDARD_DEVIATION / (2 * len(model.blocks)) ** 0.5
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            nn.init.normal_(module.output.weight, std=narrow)
        if isinstance(module, FeedForward | GatedFeedForward):
            nn.init.normal_(module.down.weight, std=narrow)
