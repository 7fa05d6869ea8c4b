"""Losses: from a model and a batch to a sum and a count."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch


def next_token(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Σ -ln p(target) over the real targets in nats, and their count; PyTorch's kernel for `ops.cross_entropy`.

    The batch already holds targets one place after the inputs; nothing is shifted here.
    """
    logits: Tensor = model(batch.inputs)
    total = F.cross_entropy(logits.flatten(0, -2), batch.targets.flatten(), ignore_index=IGNORED, reduction="sum")
    return total, (batch.targets != IGNORED).sum()
