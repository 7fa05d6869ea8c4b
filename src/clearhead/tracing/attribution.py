"""Direct logit attribution: a logit as the sum of what embedding, heads, feed-forward parts and biases add to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.layers.block import ParallelBlock, PostNormBlock, SequentialBlock
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.ops.softmax import at_least_float32
from clearhead.ops.tap import NO_TAP, Tap
from clearhead.tracing.edit import Chain
from clearhead.tracing.parts import columns, decoder_of, head_shares, hold, piece, places_of, token_id
from clearhead.tracing.record import Recorder
from clearhead.tracing.trace import input_of, run

NAMES = (
    "embedding",
    "positions",
    "blocks.*.attention.mixed",
    "blocks.*.output",
    "logits",
)
"""What is added up, and what it must come to; `*` stands for dots too: `blocks.0.attention.output`."""

Part = tuple[str, Tensor]
"""The name of a summand of the stream, and the summand, (D)."""


@dataclass(frozen=True, repr=False)
class Attribution:
    """What each part adds to a logit, or to a difference of two. Printed, the largest are first."""

    names: list[str]
    """P parts: `embedding`, `positions`, `blocks.0.attention.heads.0` ..., `blocks.0.feedforward`, ...; a bias has the name of its
    parameter: `blocks.0.attention.output.bias`, `blocks.0.feedforward.down.bias`, `norm.bias`, `head.bias`."""
    values: Tensor
    """(P), in logits."""
    logit: float
    """What ran: the logit, or the difference of two."""
    position: int
    """At which position of the text, from 0."""
    token: int
    versus: int | None
    title: str
    """The token, or both, as they are shown to a reader."""

    @property
    def total(self) -> float:
        """Σ values."""
        return float(self.values.sum())

    @property
    def difference(self) -> float:
        """total - logit: 0 but for rounding."""
        return self.total - self.logit

    def heads(self) -> Tensor:
        """What the heads add, (L,H)."""
        last = max(int(name.split(".")[1]) for name in self.names if ".heads." in name)
        rows = [
            [i for i, name in enumerate(self.names) if name.startswith(f"blocks.{n}.attention.heads.")]
            for n in range(last + 1)
        ]
        return torch.stack([self.values[row] for row in rows])

    def of(self, name: str) -> float:
        """What one part adds, or all whose names begin with this name and a dot."""
        mine = [i for i, each in enumerate(self.names) if each == name or each.startswith(f"{name}.")]
        return float(self.values[mine].sum())

    def __repr__(self) -> str:
        order = self.values.abs().argsort(descending=True).tolist()
        rows = [[self.names[i], f"{float(self.values[i]):+.4f}"] for i in order]
        end = [["total", f"{self.total:+.4f}"], ["what ran", f"{self.logit:+.4f}"]]
        return columns([[f"adds to {self.title}", "logits"], *rows, *end])


@torch.no_grad()
def direct_logit_attribution(
    model: Loaded | Decoder,
    text: str | Sequence[int],
    position: int = -1,
    token: int | str | None = None,
    versus: int | str | None = None,
    *,
    edits: Tap = NO_TAP,
) -> Attribution:
    """What each part adds to the logit of a token, directly: not what it does by way of later parts.

        logit = w · N(Σ_i c_i) + b = Σ_i w · share(c_i) + w · β + b

    w is the token's row of the head, b its bias, N the final norm, β its shift; for `versus`, w and b are differences of two rows. The
    norm's statistics are held at what ran, so that it is linear: share(c) = γ (c - mean c) / √(σ² + ε), for RMSNorm without the mean.
    Norms after a branch, and a norm of the embedded input, are held likewise, their shifts parts of their own. Computed in the wider of
    float32 and the model's type; in float64 the values sum to the logit within 1e-10.

    With the scale held, a part that only makes the stream longer seems to add what it would in fact divide by. An attribution is a sum,
    not a cause: what the answer depends on is seen by an edit.

    Args:
        model: what `load` gave, or a decoder whose stream is a sum (norms before, or around, its branches, or parallel ones).
        text: text or ids.
        position: whose logits; it scores the token behind it. Negative ones count from the end.
        token: an id, or a text of one token; the one with the largest logit if None.
        versus: another, whose logit is taken off; none if None.
        edits: an `Editor`; what it changed is what is added up. An edit of a sum (of the stream, or of an attention's `output`), of `norm`
            or of `logits` belongs to no part, and shows as a `difference`.

    Raises:
        UserError: if the stream is not a sum (post-norm), it is no decoder, it is in training mode with dropout, or a token is none.
        IndexError: if the position is outside the text.

    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Wang et al. 2022 §2 (arXiv:2211.00593).
    """
    decoder, read = decoder_of(model), input_of(model, text)
    blocks = [_summing(block) for block in decoder.blocks]
    (place,) = places_of([position], read.ids.shape[-1])
    recorder = Recorder(NAMES, positions=[place])
    run(model, read, Chain(edits, recorder))
    tensors = {name: _at_once(name, tensor) for name, tensor in recorder.tensors.items()}
    chosen = int(tensors["logits"].argmax()) if token is None else token_id(model, token)
    other = None if versus is None else token_id(model, versus)
    found = _attributed(decoder, list(_stream(decoder, blocks, tensors)), tensors, chosen, other)
    title = repr(piece(model, chosen)) + ("" if other is None else f" - {piece(model, other)!r}")
    logit = _difference(tensors["logits"], chosen, other)
    return Attribution(
        [name for name, _ in found], torch.stack([v for _, v in found]), float(logit), place, chosen, other, title
    )


def _at_once(name: str, tensor: Tensor) -> Tensor:
    """One position: (1,1,D) or (1,D) -> (D); what heads mixed as it is, (1,H,1,d)."""
    wide = tensor.to(at_least_float32(tensor.dtype))
    return wide if name.endswith(".mixed") else wide.flatten(0, -2)[0]


def _attributed(
    decoder: Decoder, parts: list[Part], tensors: dict[str, Tensor], token: int, versus: int | None
) -> list[Part]:
    """Name -> what it adds to the logit, a scalar."""
    stream = tensors[f"blocks.{len(decoder.blocks) - 1}.output"]
    held, kind = hold(decoder.norm, stream), at_least_float32(stream.dtype)
    row = _difference(decoder.head.weight.to(kind), token, versus)
    found = [(name, row @ held.share(part)) for name, part in parts]
    if held.shift is not None:
        found.append(("norm.bias", row @ held.shift.to(kind)))
    if decoder.head.bias is not None:
        found.append(("head.bias", _difference(decoder.head.bias.to(kind), token, versus)))
    return found


def _stream(
    decoder: Decoder, blocks: Sequence[SequentialBlock | ParallelBlock], tensors: dict[str, Tensor]
) -> Iterator[Part]:
    """The summands of the last block's output."""
    embedded = [(name, tensors[name]) for name in ("embedding", "positions") if name in tensors]
    whole = torch.stack([part for _, part in embedded]).sum(0)
    yield from _through(decoder.embedding_norm, "embedding_norm", whole, embedded)
    for number, block in enumerate(blocks):
        for branch, parts in (("attention", _heads), ("feedforward", _feedforward)):
            scope = f"blocks.{number}.{branch}"
            after = getattr(block, f"{branch}_after") if isinstance(block, SequentialBlock) else nn.Identity()
            yield from _through(after, f"{scope}_after", tensors[f"{scope}.output"], parts(scope, block, tensors))


def _through(norm: nn.Module, name: str, whole: Tensor, parts: Iterable[Part]) -> Iterator[Part]:
    """Parts of what a norm read as parts of what it gave."""
    held = hold(norm, whole)
    yield from ((each, held.share(part)) for each, part in parts)
    if held.shift is not None:
        yield f"{name}.bias", held.shift


def _heads(scope: str, block: SequentialBlock | ParallelBlock, tensors: dict[str, Tensor]) -> Iterator[Part]:
    shares = head_shares(block.attention, tensors[f"{scope}.mixed"])[0, :, 0]
    yield from ((f"{scope}.heads.{head}", share) for head, share in enumerate(shares))
    yield from _bias(f"{scope}.output.bias", block.attention.output)


def _feedforward(scope: str, block: SequentialBlock | ParallelBlock, tensors: dict[str, Tensor]) -> Iterator[Part]:
    last, output = getattr(block.feedforward, "down", None), tensors[f"{scope}.output"]
    bias = list(_bias(f"{scope}.down.bias", last))
    yield scope, output - bias[0][1] if bias else output
    yield from bias


def _bias(name: str, layer: nn.Module | None) -> Iterator[Part]:
    bias = getattr(layer, "bias", None)
    if bias is not None:
        yield name, bias


def _summing(block: nn.Module) -> SequentialBlock | ParallelBlock:
    """The block, if its output is its input and what its branches add."""
    if isinstance(block, PostNormBlock):
        raise UserError(say("tracing.no_sum"))
    if not isinstance(block, SequentialBlock | ParallelBlock):
        raise UserError(say("tracing.block_unknown", name=type(block).__name__))
    return block


def _difference(rows: Tensor, token: int, versus: int | None) -> Tensor:
    return rows[token] if versus is None else rows[token] - rows[versus]
