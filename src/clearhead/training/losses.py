"""Losses: from a model and a batch to a sum and a count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from clearhead.messages import UserError, say
from clearhead.ops.loss import IGNORED
from clearhead.ops.masks import Documents, document_positions
from clearhead.training.batches import Batch
from clearhead.training.fit import Loss, Movable, Sample
from clearhead.training.logits import parts_of, summed, summed_in_chunks
from clearhead.training.masking import MaskedBatch
from clearhead.training.packed import PackedBatch
from clearhead.training.pairs import PairBatch

Run = Callable[..., Tensor]
"""A model, giving logits, or what makes its features: both take the same."""


class Targeted(Movable, Protocol):
    """A batch that says what is wanted."""

    @property
    def targets(self) -> Tensor:
        """(B,T) ids, or `IGNORED`."""
        ...


Asked = TypeVar("Asked", bound=Targeted)


@dataclass(frozen=True)
class TokenLoss(Generic[Asked]):
    """Σ -ln p(target) over the real targets in nats, and their count: (model, batch) -> (sum, count).

    Args:
        read: how a model is run on a batch.
        smoothing: ε of label smoothing, as in `ops.cross_entropy`; for training alone, an evaluation has none.
        at_once: how many positions have logits at a time; all if None.
        chunks: `logits.summed_in_chunks`, perhaps hidden from the compiler.
    """

    read: Callable[[Run, Asked], Tensor]
    smoothing: float = 0.0
    at_once: int | None = None
    chunks: Callable[..., tuple[Tensor, Tensor]] = field(default=summed_in_chunks, compare=False)

    def __call__(self, model: nn.Module, batch: Asked) -> tuple[Tensor, Tensor]:
        """The sum and the count of a batch.

        Raises:
            UserError: if logits are to be made in chunks and the model is none of the library's.
        """
        if self.at_once is None:
            return summed(self.read(model, batch), batch.targets, self.smoothing)
        parts = parts_of(model)
        features = self.read(parts.features, batch)
        return self.chunks(features, batch.targets, parts, at_once=self.at_once, smoothing=self.smoothing)


def training_loss(loss: Loss[Sample], *, label_smoothing: float = 0.0, at_once: int | None = None) -> Loss[Sample]:
    """The loss whose gradient trains, made of the loss that judges; that loss itself if nothing is asked for.

    With `at_once` alone the values stay, so an evaluation can use it too. Label smoothing is for training alone.

    Args:
        loss: of a task.
        label_smoothing: ε, at least 0 and below 1.
        at_once: how many positions have logits at a time; all if None.

    Raises:
        UserError: if a number is out of range, or something is asked for of a loss that is not made of tokens.
    """
    if not 0 <= label_smoothing < 1:
        raise UserError(say("training.setting", name="label_smoothing", value=label_smoothing, wanted=">= 0, < 1"))
    if at_once is not None and at_once < 1:
        raise UserError(say("training.setting", name="logits_at_once", value=at_once, wanted=">= 1"))
    if label_smoothing == 0 and at_once is None:
        return loss
    if not isinstance(loss, TokenLoss):
        raise UserError(say("optimising.not_tokens"))
    made = replace(loss, smoothing=label_smoothing, at_once=at_once)
    # The compiler cannot take gradients that are made in a forward; here it ends one piece and begins the next.
    if at_once is None:
        return made
    return replace(made, chunks=torch.compiler.disable(summed_in_chunks))  # type: ignore[no-untyped-call]


def _after(run: Run, batch: Batch | PackedBatch) -> Tensor:
    return run(batch.inputs)


def _each_alone(run: Run, batch: PackedBatch) -> Tensor:
    alone = Documents(batch.documents, batch.documents)
    return run(batch.inputs, visible=alone, positions=document_positions(batch.documents))


def _hidden(run: Run, batch: MaskedBatch) -> Tensor:
    return run(batch.inputs, real=batch.real)


def _answer(run: Run, batch: PairBatch) -> Tensor:
    return run(batch.source, batch.inputs, source_real=batch.source_real)


next_token: TokenLoss[Batch | PackedBatch] = TokenLoss(_after)
"""The loss of a decoder. The batch already holds targets one place after the inputs; nothing is shifted here. Packed
documents see those before them in their row."""

packed_next_token: TokenLoss[PackedBatch] = TokenLoss(_each_alone)
"""The same where each document of a row sees itself alone and counts its positions from 0: the loss of a document that is
not cut is then that of the document by itself."""

masked_token: TokenLoss[MaskedBatch] = TokenLoss(_hidden)
"""The same for an encoder that guesses, from both sides, what stood where a token was chosen."""

target_token: TokenLoss[PairBatch] = TokenLoss(_answer)
"""The same for an encoder-decoder that reads the source and, one token behind, the right target (teacher forcing)."""


def exact_match(model: nn.Module, batch: PairBatch) -> tuple[Tensor, Tensor]:
    """How many answers greedy decoding gets wholly right, end mark included, and how many there are.

    No decoding is needed. Greedy decoding writes the target if and only if, after each right beginning, the best token
    is the next right one: so the best token must be right at every place while the model reads the target itself.
    """
    right = (_answer(model, batch).argmax(-1) == batch.targets) | (batch.targets == IGNORED)
    return right.all(-1).sum(), torch.tensor(len(right), device=right.device)
