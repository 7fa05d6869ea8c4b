"""The initial weights of GPT-2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.feedforward import FeedForward, GatedFeedForward
from clearhead.layers.look import RelativeBias
from clearhead.layers.positions import LearnedPositions
from clearhead.layers.segments import SegmentEmbedding
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder

STANDARD_DEVIATION = 0.02
BRANCHES = (MultiHeadAttention, FeedForward, GatedFeedForward)


class NothingDrawn(TorchFunctionMode):
    """A block in which nothing is drawn: for models without memory, on which PyTorch would draw all the same, and import its compiler."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords = kwargs or {}
        if getattr(func, "__name__", "") == "normal_":
            return keywords["tensor"] if "tensor" in keywords else args[0]
        return func(*args, **keywords)


def initialise(model: nn.Module) -> None:
    """Draw every weight afresh, in place, as GPT-2 does.

    Matrices, embeddings and tables are normal with mean 0 and standard deviation 0.02; biases are 0. The projections that
    write to the residual stream (of attention, cross-attention, the feed-forward) are narrower by 1/√n, because the n
    branches of a stack (2L, or 3L with cross-attention) add up to the stream. Logits of a fresh model are then near 0
    and the first loss is near ln V. A tied head shares the embedding's storage and stays tied.

    Source: Radford et al. 2019 §2.3.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=STANDARD_DEVIATION)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, LearnedPositions | SegmentEmbedding | RelativeBias):
            nn.init.normal_(module.table, std=STANDARD_DEVIATION)
    for stack in model.modules():
        if isinstance(stack, Decoder | Encoder):
            _narrow(stack.blocks)


def _narrow(blocks: nn.ModuleList) -> None:
    """Draw the last projection of every branch again, narrower by the number of branches."""
    branches = [module for module in blocks.modules() if isinstance(module, BRANCHES)]
    for branch in branches:
        last = branch.output if isinstance(branch, MultiHeadAttention) else branch.down
        nn.init.normal_(last.weight, std=STANDARD_DEVIATION / len(branches) ** 0.5)
