"""Lenses: what the head would say of the stream at every stage, and how much each branch adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.layers.block import ParallelBlock, PostNormBlock, SequentialBlock
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.ops.softmax import at_least_float32, softmax
from clearhead.ops.tap import NO_TAP, Tap
from clearhead.tracing.edit import Chain
from clearhead.tracing.parts import columns, decoder_of, head_shares, hold, piece, places_of, token_id
from clearhead.tracing.record import Recorder
from clearhead.tracing.trace import input_of, run

Block = SequentialBlock | ParallelBlock | PostNormBlock


@dataclass(frozen=True)
class Guess:
    """A token that a stage would write."""

    id: int
    token: str
    """As it is shown to a reader."""
    probability: float


@dataclass(frozen=True, repr=False)
class LogitLens:
    """The logits of every stage of a stream. Printed, it is the best tokens of each stage at the last position kept."""

    stages: list[str]
    """N names, in the order of the forward: `input`, `blocks.0.output`, ..."""
    logits: Tensor
    """(N,t,V), of the type of the model's logits; the last stage is what the model said."""
    tokens: list[str]
    """The t tokens that were read last at these positions."""
    positions: list[int]
    """Where they stand."""
    model: Loaded | Decoder = field(repr=False)

    def probabilities(self) -> Tensor:
        """softmax of the logits at temperature 1, (N,t,V), in the wider of float32 and their type."""
        return softmax(self.logits)

    def probability(self, token: int | str) -> Tensor:
        """The probability of one token, (N,t).

        Args:
            token: an id, or a text of one token.

        Raises:
            UserError: if it is no token of the model.
        """
        return self.probabilities()[..., token_id(self.model, token)]

    def rank(self, token: int | str) -> Tensor:
        """1 + how many tokens have a larger logit, (N,t) of int64: 1 is the best.

        Args:
            token: an id, or a text of one token.

        Raises:
            UserError: if it is no token of the model.
        """
        own = self.logits[..., token_id(self.model, token), None]
        return 1 + (self.logits > own).sum(-1)

    def top(self, count: int = 5, place: int = -1) -> list[list[Guess]]:
        """The best tokens of each stage, the best first: N lists.

        Args:
            count: how many; the vocabulary is the most.
            place: which of the t positions kept.
        """
        found = self.probabilities()[:, place].topk(min(count, self.logits.shape[-1]))
        return [
            [Guess(id, piece(self.model, id), probability) for id, probability in zip(ids, values, strict=True)]
            for ids, values in zip(found.indices.tolist(), found.values.tolist(), strict=True)
        ]

    def __repr__(self) -> str:
        guesses = zip(self.stages, self.top(), strict=True)
        return columns([[stage, *(f"{g.token!r} {g.probability:.3f}" for g in row)] for stage, row in guesses])


@torch.no_grad()
def logit_lens(
    model: Loaded | Decoder,
    text: str | Sequence[int],
    *,
    positions: Sequence[int] | None = None,
    middle: bool = False,
    edits: Tap = NO_TAP,
) -> LogitLens:
    """The model's own final norm and head, asked at every stage of the stream.

        logits_n = head(norm(x_n)),  x_0 the input of the first block, x_n the output of block n

    The last stage is the model's logits, bit for bit. What an early stage says is a reading: nothing in training asked it to be in the
    terms of the head, and a stage that says nothing may still carry the answer in other terms. Post-norm models have no final norm; each
    of their stages is the output of a norm already.

    Args:
        model: what `load` gave, or a decoder.
        text: text or ids.
        positions: which positions are kept, negative ones from the end; all if None. Memory is that of stages × positions × V logits,
            and of one stage of all positions.
        middle: whether the stream between attention and feed-forward is a stage, too (parallel blocks have none).
        edits: an `Editor`; the stages are those of the forward that it changed. What it does to `norm` and `logits` is not asked here.

    Raises:
        UserError: if a text is given and the model has no tokenizer, it is no decoder, or it is in training mode with dropout.
        IndexError: if a position is outside the text.

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens"; its limits: Belrose et al. 2023 (arXiv:2303.08112).
    """
    decoder, read = decoder_of(model), input_of(model, text)
    kept = places_of(positions, read.ids.shape[-1])
    recorder = Recorder(_stages(decoder, middle))
    run(model, read, Chain(edits, recorder))
    streams = recorder.tensors
    # All positions at once, as the model has it: a product of another size may differ in the last bit.
    logits = torch.stack([decoder.head(decoder.norm(stream))[0, kept] for stream in streams.values()])
    return LogitLens(list(streams), logits, [read.tokens[place] for place in kept], kept, model)


def _stages(decoder: Decoder, middle: bool) -> list[str]:
    """The names of the stream, before and behind each block."""
    inside = ["middle", "output"] if middle else ["output"]
    return ["input", *(f"blocks.{block}.{name}" for block in range(len(decoder.blocks)) for name in inside)]


@dataclass(frozen=True, repr=False)
class BranchSizes:
    """How much each branch adds. Printed, it is a line a branch: the means over positions."""

    names: list[str]
    """P names: `blocks.0.attention`, `blocks.0.attention.heads.0` ..., `blocks.0.feedforward`, ..."""
    added: Tensor
    """‖what is added‖₂, (P,T); a head's is that of its share, without the bias of the projection."""
    stream: Tensor
    """‖the stream that it is added to‖₂, (P,T)."""
    tokens: list[str]

    @property
    def ratio(self) -> Tensor:
        """added / stream, (P,T); infinite, or not a number, where the stream is 0."""
        return self.added / self.stream

    def of(self, name: str) -> Tensor:
        """‖what this one adds‖₂, (T)."""
        return self.added[self.names.index(name)]

    def __repr__(self) -> str:
        numbers = torch.stack([self.added, self.stream, self.ratio], dim=-1).mean(1).tolist()
        rows = [[name, *(f"{n:.4g}" for n in row)] for name, row in zip(self.names, numbers, strict=True)]
        return columns([["branch", "added", "stream", "ratio"], *rows])


@torch.no_grad()
def branch_sizes(model: Loaded | Decoder, text: str | Sequence[int], *, edits: Tap = NO_TAP) -> BranchSizes:
    """The length of what each branch adds, beside the length of the stream that it is added to.

        attention: ‖N'(Attention(...))‖ and ‖x‖;  feed-forward: ‖N'(FFN(...))‖ and ‖u‖ (‖x‖ in a parallel block)

    N' is the norm after a branch, where there is one. A head's share is mixed_h W_O^h, through N' with its statistics held. Lengths are
    Euclidean, over the D features of a position. Shares of heads may cancel or add up: their lengths do not sum to that of the branch.

    Args:
        model: what `load` gave, or a decoder, with norms before, after, or around its branches, or parallel ones.
        text: text or ids.
        edits: an `Editor`; what it changed is what is measured.

    Raises:
        UserError: as `logit_lens`, or if a block is of a kind that is not known here.
    """
    decoder, read = decoder_of(model), input_of(model, text)
    names = ["input", "blocks.*.middle", "blocks.*.output", "blocks.*.attention.mixed"]
    recorder = Recorder(names)
    run(model, read, Chain(edits, recorder))
    found: dict[str, tuple[Tensor, Tensor]] = {}
    x = recorder.tensors["input"]
    for number, block in enumerate(decoder.blocks):
        found.update(_of_block(f"blocks.{number}", block, x, recorder.tensors))
        x = recorder.tensors[f"blocks.{number}.output"]
    added, stream = (torch.stack([pair[i] for pair in found.values()]) for i in (0, 1))
    return BranchSizes(list(found), added, stream, read.tokens)


def _of_block(scope: str, block: nn.Module, x: Tensor, tensors: dict[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """Name -> what is added and what it is added to, as lengths (T)."""
    if not isinstance(block, Block):
        raise UserError(say("tracing.block_unknown", name=type(block).__name__))
    attention, feedforward = tensors[f"{scope}.attention.output"], tensors[f"{scope}.feedforward.output"]
    shares = head_shares(block.attention, tensors[f"{scope}.attention.mixed"])
    u = x
    if not isinstance(block, ParallelBlock):
        u = tensors[f"{scope}.middle"]
    if isinstance(block, SequentialBlock):
        held = hold(block.attention_after, attention[:, None])
        shares, attention = held.share(shares), block.attention_after(attention)
        feedforward = block.feedforward_after(feedforward)
    return {
        f"{scope}.attention": (_length(attention), _length(x)),
        **{f"{scope}.attention.heads.{h}": (_length(shares[:, h]), _length(x)) for h in range(shares.shape[1])},
        f"{scope}.feedforward": (_length(feedforward), _length(u)),
    }


def _length(vectors: Tensor) -> Tensor:
    """(1,T,D) -> (T), in the wider of float32 and its type."""
    length: Tensor = vectors[0].to(at_least_float32(vectors.dtype)).norm(dim=-1)
    return length
