"""What a decoder's stream is made of: the share of each head, norms held as they ran, and the questions that lenses ask of both.

The stream is x₀ + Σ branches: each branch adds to it, and so do the heads of a branch, one by one (Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded, writer_of
from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.norm import LayerNorm, OffsetRMSNorm, RMSNorm, ScaledNorm
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.softmax import at_least_float32
from clearhead.text.columns import columns_of
from clearhead.tracing.metrics import checked_id, id_of
from clearhead.tracing.select import Selection

Model = Loaded | Decoder | EncoderDecoder
"""What can be looked into: what `load` gave, or a model."""


@dataclass(frozen=True)
class Held:
    """A norm as it ran on one x, its statistics held: N(x) = Σ share(part) + shift for any parts whose sum is x.

        LayerNorm: share(c) = γ (c - mean(c)) / √(σ²(x) + ε), shift β
        RMSNorm:   share(c) = γ c / √(mean(x²) + ε),          shift 0

    The mean over features is linear, so each part has its own taken off; the denominator is that of x.
    """

    factor: Tensor
    """γ / √(...), (...,D)."""
    centred: bool
    """Whether the mean over features is taken off."""
    shift: Tensor | None
    """β, (D)."""

    def share(self, part: Tensor) -> Tensor:
        """What a part of x is after the norm: (...,D) -> (...,D), in the wider of float32 and its type."""
        part = part.to(at_least_float32(part.dtype))
        return self.factor * (part - part.mean(-1, keepdim=True) if self.centred else part)


def hold(norm: nn.Module, x: Tensor) -> Held:
    """The norm, with the statistics that it has at x.

    Args:
        norm: a LayerNorm, an RMSNorm, with an offset or without, or the identity.
        x: what it read, (...,D).

    Raises:
        UserError: if it is of another kind.
    """
    x = x.to(at_least_float32(x.dtype))
    match norm:
        case nn.Identity():
            return Held(torch.ones_like(x), False, None)
        case LayerNorm(weight=weight, eps=eps, bias=bias):
            return Held(weight.to(x.dtype) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt(), True, bias)
        case RMSNorm(weight=weight, eps=eps) | OffsetRMSNorm(weight=weight, eps=eps):
            gain = weight.to(x.dtype) + (1.0 if isinstance(norm, OffsetRMSNorm) else 0.0)
            return Held(gain / (x.square().mean(-1, keepdim=True) + eps).sqrt(), False, None)
        case ScaledNorm(norm=inner, scale=scale):
            held = hold(inner, x)
            return Held(scale * held.factor, held.centred, None if held.shift is None else scale * held.shift)
    raise UserError(say("tracing.norm_unknown", name=type(norm).__name__))


def head_shares(attention: MultiHeadAttention, mixed: Tensor) -> Tensor:
    """What each head adds to the output of its layer: (B,H,T,d) -> (B,H,T,D).

        output = Σ_h mixed_h W_O^h + b_O, with W_O^h the d columns of the projection that read head h

    Args:
        attention: the layer.
        mixed: what its heads mixed, as a tap saw it.

    Returns:
        The terms of the sum, in the wider of float32 and the type of `mixed`.
    """
    kind = at_least_float32(mixed.dtype)
    of_heads = attention.output.weight.to(kind).reshape(-1, mixed.shape[-3], mixed.shape[-1])
    return mixed.to(kind) @ of_heads.permute(1, 2, 0)


def module_of(model: Model) -> Decoder | EncoderDecoder:
    """The model itself.

    Raises:
        UserError: if it is an encoder alone.
    """
    return writer_of(model) if isinstance(model, Loaded) else model


def decoder_of(model: Loaded | Decoder) -> Decoder:
    """The model itself.

    Raises:
        UserError: if it is not a decoder-only one, or would drop something at random.
    """
    module = module_of(model)
    if not isinstance(module, Decoder):
        raise UserError(say("tracing.not_a_decoder", name=type(module).__name__))
    must_not_drop(model)
    return module


def must_not_drop(model: Model) -> None:
    """Raise a UserError if two forwards of the model differ by chance."""
    if any(part.training and part.p > 0 for part in module_of(model).modules() if isinstance(part, nn.Dropout)):
        raise UserError(say("tracing.drops"))


def token_id(model: Model, token: int | str) -> int:
    """The id of a token that is given as an id, or as a text of one token.

    Raises:
        UserError: if the text is not one token, a bare model is given a text, or the id is outside the vocabulary.
    """
    id = id_of(token, model.tokenizer if isinstance(model, Loaded) else None)
    module = module_of(model)
    return checked_id(id, (module if isinstance(module, Decoder) else module.decoder).head.out_features)


def places_of(positions: Sequence[int] | None, length: int) -> list[int]:
    """The positions counted from the start; all if None.

    Raises:
        IndexError: if one is outside a text of this length.
    """
    places = Selection(positions=positions).places(length)
    return list(range(length)) if places is None else places


def piece(model: Model, id: int) -> str:
    """A token as it is shown to a reader; its number where there is no tokenizer."""
    return model.tokenizer.pieces([id])[0] if isinstance(model, Loaded) else str(id)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """A table for a terminal: the first column to the left, the others to the right; Chinese is two places wide."""
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [first + " " * (widths[0] - columns_of(first))]
        cells += [" " * (width - columns_of(cell)) + cell for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
