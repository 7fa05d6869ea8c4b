"""Beside a weight, what it does: the answer without it. A weight is not a cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from clearhead.messages import UserError, say
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.tap import NO_TAP, Tap
from clearhead.text.columns import shown
from clearhead.tracing.edit import Change, Edit, Editor, zero
from clearhead.tracing.parts import Model, columns, module_of, must_not_drop, piece, places_of, token_id
from clearhead.tracing.record import Recorder
from clearhead.tracing.trace import Input, input_of, run, trace

Which = Literal["attention", "cross_attention", "encoder"]
"""Whose weights: a decoder's of itself, those with which it asks a source, or an encoder's of itself."""


class Answer(NamedTuple):
    """What a model says of one token at one position."""

    logit: float
    logprob: float
    """ln of its probability, in nats."""
    best: str
    """The token that it finds most probable there."""


@dataclass(frozen=True, repr=False)
class Effect:
    """A weight, and the answer without it.

    A weight says where a head reads, not what the answer depends on. Printed, it says so.
    """

    name: str
    """Of the weights: `blocks.3.attention.weights`."""
    head: int
    query: int
    key: int
    reads: tuple[str, str]
    """The tokens of query and key."""
    weight: float
    """From 0 to 1."""
    position: int
    """Whose answer is asked for."""
    token: str
    """About which token."""
    id: int
    ran: Answer
    """As it ran."""
    without_weight: Answer
    """With this weight set to 0; the others stay, so that they no longer sum to 1."""
    without_head: Answer
    """With what this head mixed at this query set to 0."""
    difference: float
    """How far what the weights mix is from what ran, at this head and query; 0 for a kernel that holds its weights."""

    @property
    def by_weight(self) -> float:
        """What setting the weight to 0 does to the token's log-probability, in nats: below 0, it spoke for the token."""
        return self.without_weight.logprob - self.ran.logprob

    @property
    def by_head(self) -> float:
        """What silencing the head at this query does to the token's log-probability, in nats."""
        return self.without_head.logprob - self.ran.logprob

    def __repr__(self) -> str:
        query, key = (shown(token) for token in self.reads)
        weight = say(
            "tracing.effect",
            name=self.name, head=self.head, query=self.query, asks=query, place=self.key, asked=key,
            weight=f"{self.weight:.4f}",
        )  # fmt: skip
        title = say("tracing.effect_token", token=shown(self.token), position=self.position)
        rows = [(title, "logit", "logprob", say("tracing.effect_change"), say("tracing.effect_best"))]
        answers = (
            (say("tracing.effect_ran"), self.ran),
            (say("tracing.effect_weight"), self.without_weight),
            (say("tracing.effect_head"), self.without_head),
        )
        for label, answer in answers:
            change = "" if answer is self.ran else f"{answer.logprob - self.ran.logprob:+.4f}"
            rows.append((label, f"{answer.logit:.4f}", f"{answer.logprob:.4f}", change, shown(answer.best)))
        return "\n".join([weight, columns(rows), say("tracing.effect_rest"), say("tracing.not_a_cause")])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def effect_of_weight(  # noqa: PLR0917 - the address of a weight has four parts
    model: Model,
    text: str | Sequence[int],
    block: int,
    head: int,
    query: int,
    key: int,
    *,
    token: int | str | None = None,
    position: int = -1,
    of: Which = "attention",
    target: str | Sequence[int] | None = None,
) -> Effect:
    """One attention weight, and what happens to a token's logit and log-probability without it, and without its head at that query.

        print(effect_of_weight(loaded, "小猫趴在", block=3, head=2, query=-1, key=1))

    mixed[query] = Σ_s weight[query,s] v[s]: the weight is set to 0, the rest is *not* renormalised, so exactly what this head reads from
    this key is missing, and everything behind follows. A large weight may have no effect: its value may be small, be read by nobody, or
    stand elsewhere, too. A small one may have a large effect.

    Weights of a fused kernel are computed again for this head and query; `difference` says how far they are from what ran. Nothing is
    changed on the model. It costs four forwards.

    Args:
        model: what `load` gave, or a model, dropping nothing.
        text: text or ids; for an encoder-decoder the source.
        block: counted from 0.
        head: counted from 0.
        query: the position that reads; negative ones from the end.
        key: the position that is read; negative ones from the end.
        token: whose answer is asked for, as an id or a text of one token; the model's best at `position` if None.
        position: where the answer stands; the last by default.
        of: "attention", or for an encoder-decoder "cross_attention" or "encoder" as well.
        target: for an encoder-decoder, what it has written so far.

    Raises:
        UserError: if there is no such weight, token or attention, or the model drops at random.
        IndexError: if the position is outside the text.

    Source: transformer-notes §6; Jain and Wallace 2019 (arXiv:1902.10186); Wiegreffe and Pinter 2019 (arXiv:1908.04626).
    """
    must_not_drop(model)
    read, scope = input_of(model, text, target), _scope(model, block, of)
    sizes = trace(model, text, target=target, names=[f"{scope}.q", f"{scope}.k"])
    query, key = _checked(sizes[f"{scope}.q"], sizes[f"{scope}.k"], head, query, key)
    (place,) = places_of([position], read.ids.shape[-1])
    name = f"{scope}.weights"
    recorder = Recorder(name, heads=[head], positions=[query])
    logits = _logits(model, read, place, recorder)
    id = int(logits.argmax()) if token is None else token_id(model, token)
    without_weight = Editor(Edit(name, _without(key), heads=[head], positions=[query]))
    without_head = Editor(Edit(f"{scope}.mixed", zero, heads=[head], positions=[query]))
    asking = read.source_tokens if of == "encoder" else read.tokens
    asked = read.tokens if of == "attention" else read.source_tokens
    return Effect(
        name=name,
        head=head,
        query=query,
        key=key,
        reads=(asking[query], asked[key]),
        weight=float(recorder.tensors[name][0, 0, 0, key]),
        position=place,
        token=piece(model, id),
        id=id,
        ran=_answer(model, logits, id),
        without_weight=_answer(model, _logits(model, read, place, without_weight), id),
        without_head=_answer(model, _logits(model, read, place, without_head), id),
        difference=float(recorder.differences.get(name, 0.0)),
    )


def _scope(model: Model, block: int, of: Which) -> str:
    """Where the names of this attention begin."""
    if not isinstance(module_of(model), EncoderDecoder):
        return f"blocks.{block}.{of}"
    return f"encoder.blocks.{block}.attention" if of == "encoder" else f"decoder.blocks.{block}.{of}"


def _checked(q: Tensor, k: Tensor, head: int, query: int, key: int) -> tuple[int, int]:
    """Query and key counted from the start.

    Raises:
        UserError: if there is no such weight.
    """
    heads, queries, keys = *q.shape[-3:-1], k.shape[-2]
    if not (0 <= head < heads and -queries <= query < queries and -keys <= key < keys):
        asked = f"[{head}, {query}, {key}]"
        raise UserError(say("tracing.no_weight", asked=asked, heads=heads, queries=queries, keys=keys))
    return query % queries, key % keys


def _without(key: int) -> Change:
    """A change: the weight of one key becomes 0, the others stay."""

    def change(name: str, weights: Tensor) -> Tensor:
        changed = weights.clone()
        changed[..., key] = 0.0
        return changed

    return change


def _logits(model: Model, read: Input, position: int, tap: Tap = NO_TAP) -> Tensor:
    """(V) in float64."""
    with torch.no_grad():
        return run(model, read, tap)[0, position].double()


def _answer(model: Model, logits: Tensor, id: int) -> Answer:
    return Answer(float(logits[id]), float(logits.log_softmax(-1)[id]), piece(model, int(logits.argmax())))
