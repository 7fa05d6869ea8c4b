"""From features to a loss, with the logits of all positions at once or of some at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from clearhead.layers.encoder_heads import MaskedTokenHead
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.loss import IGNORED
from clearhead.ops.softmax import at_least_float32


def summed(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """Σ over the real targets in nats, and their count; PyTorch's kernel for `ops.cross_entropy`.

    Args:
        logits: (..., V), any floating type; computed in the wider of float32 and that type.
        targets: (...) integers below V, or `IGNORED`.
        smoothing: ε of label smoothing.
    """
    wide = logits.flatten(0, -2).to(at_least_float32(logits.dtype))
    total = F.cross_entropy(wide, targets.flatten(), ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing)
    return total, (targets != IGNORED).sum()


class Parts(NamedTuple):
    """A model in two parts: logits = head(features(...))."""

    features: Callable[..., Tensor]
    """Takes what the model takes, gives (B,T,D)."""
    head: Callable[[Tensor], Tensor]
    """(n,D) -> (n,V)."""
    weights: tuple[nn.Parameter, ...]
    """What of the head is trained."""


def parts_of(model: nn.Module) -> Parts:
    """What makes the features of a model, and what makes logits of them.

    Raises:
        UserError: if it is none of the library's models of tokens.
    """
    match model:
        case Decoder(head=head):
            return Parts(model.features, head, _trained(head))
        case EncoderDecoder(decoder=Decoder(head=head)):
            return Parts(model.features, head, _trained(head))
        case Encoder(head=MaskedTokenHead() as masked):
            return Parts(
                model.features, lambda x: masked(x, torch.ones_like(x[..., 0], dtype=torch.bool)), _trained(masked)
            )
    raise UserError(say("optimising.no_parts", model=type(model).__name__))


def summed_in_chunks(
    features: Tensor,
    targets: Tensor,
    parts: Parts,
    *,
    at_once: int,
    smoothing: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """`summed` of the head's logits, of which no more than `at_once` · V exist at any time.

    Values and gradients are those of the whole, sums taken in another order. Positions without a real target are left out
    before the head: they have no part in the loss. The gradient is made in the forward, chunk by chunk, while the
    logits are there, so nothing is computed twice; what is kept for the backward has the size of the features and of
    the head's weights. Weights' gradients are summed in at least float32.

    Args:
        features: (..., D).
        targets: (...) integers below V, or `IGNORED`.
        parts: the head and its weights.
        at_once: how many positions have logits at a time, at least 1.
        smoothing: ε of label smoothing.

    Source: the idea is that of Hsu et al. 2024 (arXiv:2410.10989), fused linear cross-entropy.
    """
    real = targets != IGNORED
    chosen, wanted, part = features[real], targets[real], _Part(parts.head, smoothing)
    if torch.is_grad_enabled():
        total = _InChunks.apply(chosen, wanted, at_once, part, *parts.weights)  # type: ignore[no-untyped-call]
    else:
        chunks = zip(torch.split(chosen, at_once), torch.split(wanted, at_once), strict=True)
        total = torch.stack([part(x, y) for x, y in chunks]).sum()
    return total, real.sum()


@dataclass(frozen=True)
class _Part:
    """The loss of one chunk."""

    head: Callable[[Tensor], Tensor]
    smoothing: float

    def __call__(self, features: Tensor, targets: Tensor) -> Tensor:
        return summed(self.head(features), targets, self.smoothing)[0]


class _InChunks(torch.autograd.Function):
    """Σ of the parts' losses; the gradients are there when the forward is done, and wait for their factor."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, targets: Tensor, at_once: int, part: _Part, *weights: Tensor) -> Tensor:
        of_features = torch.zeros_like(features)
        of_weights = [torch.zeros_like(weight, dtype=at_least_float32(weight.dtype)) for weight in weights]
        total = features.new_zeros((), dtype=at_least_float32(features.dtype))
        for x, y, of_x in zip(*(torch.split(each, at_once) for each in (features, targets, of_features)), strict=True):
            leaf = x.detach().requires_grad_()
            with torch.enable_grad():
                loss = part(leaf, y)
            # The backward runs in the types of the forward, as everywhere; autocast would choose again.
            with torch.autocast(x.device.type, enabled=False):
                found = torch.autograd.grad(loss, (leaf, *weights))
            of_x.copy_(found[0])
            for sum_of, one in zip(of_weights, found[1:], strict=True):
                sum_of.add_(one)
            total += loss.detach()
        ctx.save_for_backward(of_features, *(s.to(w.dtype) for s, w in zip(of_weights, weights, strict=True)))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        # In place, for there may be as many weights as half a model has; a second backward is an error then.
        of_features, *of_weights = (gradient.mul_(factor) for gradient in ctx.saved_tensors)
        return of_features, None, None, None, *of_weights


def _trained(head: nn.Module) -> tuple[nn.Parameter, ...]:
    return tuple(parameter for parameter in head.parameters() if parameter.requires_grad)
