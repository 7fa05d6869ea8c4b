"""Where heads look, in numbers: rollout over the blocks, entropy, distance. All are made of weights.

A weight says where a head reads, not what the model's answer depends on: attention weights help to look at how information moves, and are
no causal explanation (transformer-notes §6). What an answer depends on is seen by an edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.ops.tap import NO_TAP, Tap
from clearhead.tracing.parts import columns, decoder_of
from clearhead.tracing.trace import Trace, trace

WEIGHTS = "blocks.*.attention.weights"


def attention_rollout(made: Trace) -> Tensor:
    """How much of each input position reaches each position of each block, if weights alone carried it.

        A_l = 0.5 · mean_h W_l[h] + 0.5 · I,   rollout_l = A_l rollout_{l-1},   rollout_0 = I

    The half of the identity stands for the residual. Rows sum to 1; less where a sink takes weight, or a query looks at nothing.
    Values, projections and feed-forward parts are left out: a picture of where weights lead, not of what is carried.

    Args:
        made: a trace of all blocks' weights, all heads and all positions, of one forward without a cache.

    Returns:
        (L,B,T,T) in the type of the weights: [l,b,t,s] is what s gives to t, behind block l.

    Raises:
        UserError: if weights of a block are missing, or the trace holds some heads or positions alone.

    Source: Abnar and Zuidema 2020 §3 (arXiv:2005.00928).
    """
    weights = _weights(made)
    missing = [number for number, name in enumerate(weights) if name != WEIGHTS.replace("*", str(number))]
    square = all(each.shape[-2] == each.shape[-1] for each in weights.values())
    if missing or made.heads is not None or made.positions is not None or not square:
        raise UserError(say("tracing.rollout_whole"))
    rolled: list[Tensor] = []
    for each in weights.values():
        identity = torch.eye(each.shape[-1], dtype=each.dtype, device=each.device)
        mixed = 0.5 * each.mean(-3) + 0.5 * identity
        rolled.append(mixed @ rolled[-1] if rolled else mixed)
    return torch.stack(rolled)


def attention_entropy(made: Trace) -> dict[str, Tensor]:
    """How spread the rows of each head are: H = -Σ_s p[s] ln p[s], with p = w / Σ w and 0 ln 0 = 0.

    0 where one key has all, ln n where n keys have the same. Where a sink takes weight, p is how the rest is shared; a row that looks
    at nothing has 0.

    Args:
        made: a trace of some weights.

    Returns:
        Name of the weights -> (B,H,T) in nats, of their type.

    Raises:
        UserError: if the trace holds no weights.
    """
    return {name: torch.special.entr(_shares(each)).sum(-1) for name, each in _weights(made).items()}


def attention_distance(made: Trace) -> dict[str, Tensor]:
    """How far each head looks back on average: Σ_s p[s] (t - s), with p = w / Σ w, in tokens.

    0 is the position itself, 1 the one before. With a cache t counts all keys: the newest query stands at the newest key. A row that
    looks at nothing has 0.

    Args:
        made: a trace of some weights whose keys are in the order of the text.

    Returns:
        Name of the weights -> (B,H,T) in tokens, of their type.

    Raises:
        UserError: if the trace holds no weights.
    """
    found = {}
    for name, each in _weights(made).items():
        queries = _places(made, name, each)
        keys = torch.arange(each.shape[-1], device=each.device)
        found[name] = (_shares(each) * (queries[:, None] - keys)).sum(-1)
    return found


@dataclass(frozen=True, repr=False)
class Patterns:
    """Where the heads of a model look in a text. Printed, it is a line a head: the means over positions."""

    tokens: list[str]
    entropy: Tensor
    """(L,H,T), nats."""
    distance: Tensor
    """(L,H,T), tokens."""
    rollout: Tensor
    """(L,T,T)."""
    differences: dict[str, float]
    """For weights that were computed again: how far what they mix is from what ran, at most."""

    def __repr__(self) -> str:
        numbers = torch.stack([self.entropy, self.distance], dim=-1).mean(2)
        rows = [
            [f"blocks.{block}.attention.heads.{head}", *(f"{number:.3f}" for number in numbers[block, head].tolist())]
            for block in range(numbers.shape[0])
            for head in range(numbers.shape[1])
        ]
        return f"{columns([['head', 'entropy', 'distance'], *rows])}\n{say('tracing.not_a_cause')}"


def attention_patterns(model: Loaded | Decoder, text: str | Sequence[int], *, edits: Tap = NO_TAP) -> Patterns:
    """Entropy, distance and rollout of all heads over a text, from the weights of one forward, whatever its kernel.

    A weight is not a cause: see the head of this file.

    Args:
        model: what `load` gave, or a decoder.
        text: text or ids.
        edits: an `Editor`; what it changed is what is looked at.

    Raises:
        UserError: if a text is given and the model has no tokenizer, it is no decoder, or it is in training mode with dropout.
    """
    decoder_of(model)
    made = trace(model, text, names=WEIGHTS, edits=edits)
    entropy, distance = (torch.cat(list(each(made).values())) for each in (attention_entropy, attention_distance))
    return Patterns(made.tokens, entropy, distance, attention_rollout(made)[:, 0], made.differences)


def _weights(made: Trace) -> dict[str, Tensor]:
    """The weights of self-attention in a trace, in the order of the blocks."""
    found = {name: tensor for name, tensor in made.items() if name.endswith(".attention.weights")}
    if not found:
        raise UserError(say("tracing.no_weights"))
    return found


def _shares(weights: Tensor) -> Tensor:
    """Rows that sum to 1; a row of zeros stays one."""
    total = weights.sum(-1, keepdim=True)
    return weights / total.masked_fill(total == 0, 1.0)


def _places(made: Trace, name: str, weights: Tensor) -> Tensor:
    """Where the queries of these weights stand among their keys, (T)."""
    keys = weights.shape[-1]
    if made.positions is None:
        return torch.arange(keys - weights.shape[-2], keys, device=weights.device)
    length = len(made.tokens if "T" in made.axes(name) else made.source)
    return torch.tensor(made.places(name), dtype=torch.long, device=weights.device) + keys - length
