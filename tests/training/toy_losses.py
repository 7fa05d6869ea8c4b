"""Small models in float64 and a batch for each, some of its targets not counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.models.adapt import adapt
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.low_rank import LowRank
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch
from clearhead.training.losses import TokenLoss, masked_token, next_token, packed_next_token, target_token
from clearhead.training.masking import MaskedBatch
from clearhead.training.packed import PackedBatch
from clearhead.training.pairs import PairBatch

B, T, M, V, D = 3, 7, 5, 11, 12
SIZES = {"vocab": V, "layers": 1, "heads": 2, "width": D, "context": 9}
DECODER = DecoderConfig(**SIZES)
UNTIED = DecoderConfig(**SIZES, tied=False, head_bias=True)


class Case(NamedTuple):
    """A loss, a model for it and a batch."""

    loss: TokenLoss[Any]
    config: ModelConfig
    batch: Callable[[], Any]
    changed: str | None = None
    """The layers that get a change of low rank, everything else being frozen."""

    def model(self) -> nn.Module:
        """The model in float64, with weights that matter."""
        model = build(self.config, seed=2)
        if self.changed is not None:
            adapt(model, LowRank(2, targets=(self.changed,)), seed=0)
        generator = torch.Generator().manual_seed(0)
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.4, generator=generator)
        return model.double()


def ids(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def targets(*shape: int) -> Tensor:
    """A third is not counted, and the whole last row."""
    wanted = ids(*shape, seed=1)
    wanted[torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 1 / 3] = IGNORED
    wanted[-1] = IGNORED
    return wanted


def plain_batch() -> Batch:
    return Batch(ids(B, T), targets(B, T))


def packed_batch() -> PackedBatch:
    return PackedBatch(ids(B, T), targets(B, T), (torch.arange(T) // 3).expand(B, T).contiguous())


def masked_batch() -> MaskedBatch:
    return MaskedBatch(ids(B, T), targets(B, T), torch.arange(T) < torch.tensor([[T], [4], [6]]))


def pair_batch() -> PairBatch:
    real = torch.arange(M) < torch.tensor([[M], [2], [4]])
    return PairBatch(source=ids(B, M, seed=3), source_real=real, inputs=ids(B, T), targets=targets(B, T))


CASES = {
    "next": Case(next_token, DECODER, plain_batch),
    "next, untied": Case(next_token, UNTIED, plain_batch),
    "head of low rank": Case(next_token, UNTIED, plain_batch, "head"),
    "head frozen": Case(next_token, UNTIED, plain_batch, "*attention.*"),
    "packed": Case(packed_next_token, DECODER, packed_batch),
    "masked": Case(masked_token, EncoderConfig(**SIZES), masked_batch),
    "masked, untied": Case(masked_token, EncoderConfig(**SIZES, tied=False), masked_batch),
    "target": Case(target_token, EncoderDecoderConfig(**SIZES), pair_batch),
    "target, untied": Case(target_token, EncoderDecoderConfig(**SIZES, tied=False, source_vocab=13), pair_batch),
}


def gradients(
    loss: Callable[[nn.Module, Any], tuple[Tensor, Tensor]], case: Case, model: nn.Module | None = None
) -> dict[str, Tensor]:
    """The value, the count and the gradient of the mean for every trained parameter, by name."""
    model = model or case.model()
    total, count = loss(model, case.batch())
    (total / count).backward()
    found = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.requires_grad}
    return {"total": total.detach(), "count": count} | {name: g for name, g in found.items() if g is not None}
