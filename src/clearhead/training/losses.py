"""Losses: from a model and a batch to a sum and a count."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.ops.loss import IGNORED
from clearhead.ops.masks import Documents, document_positions
from clearhead.training.batches import Batch
from clearhead.training.masking import MaskedBatch
from clearhead.training.packed import PackedBatch
from clearhead.training.pairs import PairBatch


def next_token(model: nn.Module, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor]:
    """Σ -ln p(target) over the real targets in nats, and their count; PyTorch's kernel for `ops.cross_entropy`.

    The batch already holds targets one place after the inputs; nothing is shifted here. Packed documents see those
    before them in their row.
    """
    return _scored(model(batch.inputs), batch.targets)


def packed_next_token(model: nn.Module, batch: PackedBatch) -> tuple[Tensor, Tensor]:
    """The same where each document of a row sees itself alone and counts its positions from 0.

    The loss of a document that is not cut is then that of the document by itself.
    """
    alone = Documents(batch.documents, batch.documents)
    logits = model(batch.inputs, visible=alone, positions=document_positions(batch.documents))
    return _scored(logits, batch.targets)


def masked_token(model: nn.Module, batch: MaskedBatch) -> tuple[Tensor, Tensor]:
    """The same for an encoder that guesses, from both sides, what stood where a token was chosen."""
    return _scored(model(batch.inputs, real=batch.real), batch.targets)


def target_token(model: nn.Module, batch: PairBatch) -> tuple[Tensor, Tensor]:
    """The same for an encoder-decoder that reads the source and, one token behind, the right target (teacher forcing)."""
    return _scored(_logits(model, batch), batch.targets)


def exact_match(model: nn.Module, batch: PairBatch) -> tuple[Tensor, Tensor]:
    """How many answers greedy decoding gets wholly right, end mark included, and how many there are.

    No decoding is needed. Greedy decoding writes the target if and only if, after each right beginning, the best token
    is the next right one: so the best token must be right at every place while the model reads the target itself.
    """
    right = (_logits(model, batch).argmax(-1) == batch.targets) | (batch.targets == IGNORED)
    return right.all(-1).sum(), torch.tensor(len(right), device=right.device)


def _logits(model: nn.Module, batch: PairBatch) -> Tensor:
    logits: Tensor = model(batch.source, batch.inputs, source_real=batch.source_real)
    return logits


def _scored(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    total = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="sum")
    return total, (targets != IGNORED).sum()
