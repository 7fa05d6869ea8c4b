"""What the model would say without some of what a head reads: several removals side by side, each a row of one batch.

The definition is `tracing.effect_of_weight`; a test holds the two to each other. What is gained here: what a head mixed is a sum, so a
weight is taken out of it by a subtraction, one row of a batch for each, and the head over the vocabulary is asked for one position alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.recompute import scores_of, weights_of
from clearhead.ops.tap import Ran, Scoped, Tap
from clearhead.training.fit import evaluating
from clearhead.web.answer import finite
from clearhead.web.place import Place, number, place_of
from clearhead.web.session import Session
from clearhead.web.tokens import pieces_of
from clearhead.web.weighing import first_row, one_head

AT_ONCE = 1 << 23
"""How many numbers the largest tensor of a batch holds, about: rows that do not fit wait for the next forward."""


class Row(NamedTuple):
    """One query of a head, and whose answer is asked for.

    Args:
        place: the head.
        query: the position that reads.
        position: where the answer stands: of the target in an encoder-decoder.
        weights: what it gives to each key, (S), at least float32.
        values: what is read from each key, (S,d_v), likewise.
        visible: which keys it may look at, (S).
        difference: how far the sum of weights × values is from what ran, at most.
    """

    place: Place
    query: int
    position: int
    weights: Tensor
    values: Tensor
    visible: Tensor
    difference: float | None

    def described(self) -> dict[str, float | int | str | None]:
        """What an answer says of it."""
        return {**self.place.told(), "query": self.query, "difference": self.difference}


class Outcome(NamedTuple):
    """What the model says with something taken away.

    Args:
        logit: of the token that it found best as it ran.
        logprob: ln of that token's probability, in nats.
        best: the token that it finds best now.
    """

    logit: float
    logprob: float
    best: str

    def described(self) -> dict[str, float | str | None]:
        """As plain data; what is no number is None."""
        return {"logit": finite(self.logit), "logprob": finite(self.logprob), "best": self.best}


class Answers(NamedTuple):
    """All of them.

    Args:
        id: of the token that is asked about.
        token: the same, as it is shown.
        ran: as it ran.
        without_weights: without each of the weights, in their order.
        without_head: without what this head mixed at this query.
    """

    id: int
    token: str
    ran: Outcome
    without_weights: list[Outcome]
    without_head: Outcome


class Taken(Tap):
    """A tap that takes something from what a head mixed at a query, in each row of a batch something else; all else passes as it is.

    Args:
        name: of what is mixed: "blocks.1.attention.mixed".
        head: which query head.
        query: the position that reads.
        kept: 1 for a row whose head goes on, 0 for one that is silent, (B,1).
        parts: what is subtracted, (B,d_v).
    """

    def __init__(self, name: str, head: int, query: int, kept: Tensor, parts: Tensor) -> None:
        self.name, self.head, self.query, self.kept, self.parts = name, head, query, kept, parts

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """`tensor`; what was mixed, less what is taken away."""
        if name != self.name:
            return tensor
        changed = tensor.clone()
        mixed = changed[:, self.head, self.query].to(self.parts.dtype)
        changed[:, self.head, self.query] = (mixed * self.kept - self.parts).to(changed.dtype)
        return changed

    def within(self, scope: str) -> Tap:
        """The same, for names that begin with `scope` and a dot."""
        return Scoped(self, f"{scope}.")


@torch.no_grad()
def row_of(session: Session, query: Mapping[str, str]) -> Row:
    """The row that an address names, and whose answer is asked for: `at`, or the last position; in an encoder the query itself.

    Args:
        session: the forward.
        query: `part`, `layer`, `head`, `query`, and `at` where it is another position.

    Raises:
        RefusedError: if there is no such head, query or position.
    """
    place = place_of(session, query)
    queries, keys = place.sizes
    asked = number(query, "query", queries)
    last = asked if isinstance(session.loaded.model, Encoder) else len(session.ids) - 1
    position = number(query, "at", len(session.ids)) if "at" in query else last
    ran = one_head(place.ran, place.head)
    weights = weights_of(ran, scores_of(ran, [0], [asked]), [0], [asked])[0, 0, 0]
    seen = first_row(ran.visible.matrix(ran.q.device)).expand(-1, queries, keys)[0, asked]
    return Row(place, asked, position, weights, ran.v[0, 0], seen, _apart(ran, weights, asked))


@torch.no_grad()
def answers_without(session: Session, row: Row, keys: Sequence[int]) -> Answers:
    """What the model says at `row.position` of its best next token there, with and without what this row reads.

        mixed[query] - weight[query,key] v[key], for each key;  0 for the head

    The other weights stay, so that they no longer sum to 1.

    Args:
        session: the forward.
        row: what reads.
        keys: whose weights are taken away, one at a time.
    """
    parts = row.values.new_zeros(len(keys) + 2, row.values.shape[-1])
    parts[1:-1] = row.weights[list(keys), None] * row.values[list(keys)]
    kept = parts.new_ones(len(parts), 1)
    kept[-1] = 0.0
    logits = torch.cat(list(_logits(session, row, kept, parts)))
    id = int(logits[0].argmax())
    logprobs, best = logits.log_softmax(-1)[:, id], logits.argmax(-1)
    pieces = pieces_of(session.loaded.tokenizer, [id, *best.tolist()])
    every = [Outcome(*each) for each in zip(logits[:, id].tolist(), logprobs.tolist(), pieces[1:], strict=True)]
    return Answers(id, pieces[0], every[0], every[1:-1], every[-1])


def scope_of(place: Place) -> str:
    """Where the names of a layer begin: "decoder.attention", 1 -> "decoder.blocks.1.attention"."""
    side, dot, kind = place.part.rpartition(".")
    return f"{side}{dot}blocks.{place.layer}.{kind}"


def _logits(session: Session, row: Row, kept: Tensor, parts: Tensor) -> Iterator[Tensor]:
    """The logits at the position, (b,V) in float64, as many rows at a time as have room."""
    model, name = session.loaded.model, f"{scope_of(row.place)}.mixed"
    device = next(model.parameters()).device
    count = _rows_at_once(session)
    ids, source = (torch.tensor(each, dtype=torch.long, device=device) for each in (session.ids, session.source))
    with evaluating(model):
        for some in zip(*(torch.split(each, count) for each in (kept, parts)), strict=True):
            tap = Taken(name, row.place.head, row.query, *some)
            rows = ids.expand(len(some[0]), -1)
            if isinstance(model, EncoderDecoder):
                features = model.features(source.expand(len(rows), -1), rows, tap=tap)
                yield _at(model.decoder.head, features, row.position)
            elif isinstance(model, Encoder):
                yield _at(model.head, model.features(rows, tap=tap), row.position, torch.ones_like(rows[:, :1]).bool())
            else:
                yield _at(model.head, model.features(rows, tap=tap), row.position)


def _at(head: nn.Module, features: Tensor, position: int, *more: Tensor) -> Tensor:
    """What the head over the vocabulary says at one position: (B,T,D) -> (B,V)."""
    logits: Tensor = head(features[:, [position]], *more)
    return logits[:, 0].double()


def _rows_at_once(session: Session) -> int:
    """How many rows a batch has: what the feed-forward makes of each, and the squares of a kernel that holds them, must have room."""
    config, length = session.loaded.config, max(len(session.ids), len(session.source))
    each = length * max(config.hidden, config.heads * length)
    return max(1, AT_ONCE // each)


def _apart(ran: Ran, weights: Tensor, asked: int) -> float | None:
    """How far what the weights mix is from what ran; None if that is no number."""
    return finite((weights @ ran.v[0, 0] - ran.mixed[0, 0, asked].to(weights.dtype)).abs().amax())
