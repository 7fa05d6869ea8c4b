"""Which heads look at the token before, the first token, earlier copies of a token, or what followed them.

Each kind of head is a pattern of (query, key) pairs made from the ids alone; a head's score is how much of its weight lies there.

A weight says where a head reads, not what the model's answer depends on (transformer-notes §6): a head that passes is one to look at;
whether it does the work is seen by ablating it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.ops.tap import NO_TAP, Tap
from clearhead.tracing.edit import Chain
from clearhead.tracing.parts import columns, decoder_of
from clearhead.tracing.record import Recorder
from clearhead.tracing.trace import Input, input_of, run

PREVIOUS_TOKEN = 0.4
"""The least score of a previous-token head: far above 1/t, what a head that looks everywhere alike has there."""
FIRST_TOKEN = 0.4
"""The least score of a first-token head."""
DUPLICATE_TOKEN = 0.4
"""The least score of a duplicate-token head."""
INDUCTION = 0.4
"""The least score of an induction head."""

THRESHOLDS = {
    "previous_token": PREVIOUS_TOKEN,
    "first_token": FIRST_TOKEN,
    "duplicate_token": DUPLICATE_TOKEN,
    "induction": INDUCTION,
}

SEQUENCES = 4
"""How many random sequences are made, each with a period of its own: a head that always looks so many tokens back, whatever they are,
meets the copies of one of them alone."""
SHORTEST = 3
"""The shortest period: a token, what follows it, and one that is neither."""


def previous_token_pattern(ids: Tensor) -> Tensor:
    """Key t - 1 of query t, from t = 2 on, where it is not the first: ids (T) -> (T,T), True where the head should look.

    Source: Elhage et al. 2021; TransformerLens' `head_detector`.
    """
    places = torch.arange(len(ids), device=ids.device)
    return (places[:, None] - places == 1) & (places[:, None] >= 2)


def first_token_pattern(ids: Tensor) -> Tensor:
    """Key 0 of query t, from t = 2 on, where it is not the one before: ids (T) -> (T,T).

    Source: Xiao et al. 2023 (arXiv:2309.17453), attention sinks; Elhage et al. 2021, heads that rest there.
    """
    places = torch.arange(len(ids), device=ids.device)
    return (places == 0) & (places[:, None] >= 2)


def duplicate_token_pattern(ids: Tensor) -> Tensor:
    """Keys s < t that hold the token of query t: ids (T) -> (T,T).

    Source: Wang et al. 2022 §3 (arXiv:2211.00593); TransformerLens' `head_detector`.
    """
    return (ids[:, None] == ids).tril(-1)


def induction_pattern(ids: Tensor) -> Tensor:
    """Keys s < t that follow an earlier copy of the token of query t, ids[s - 1] = ids[t]: ids (T) -> (T,T).

    Where they lead the head to write ids[s], it goes on as the text went on before. The query itself (s = t, behind a copy that stands
    right before it) is no key that follows: the head would learn nothing there.

    Source: Olsson et al. 2022 (arXiv:2209.11895), "prefix matching"; Elhage et al. 2021; TransformerLens' `head_detector`.
    """
    followed = (ids[:, None] == ids).roll(1, dims=1)
    followed[:, 0] = False
    return followed.tril(-1)


PATTERNS: dict[str, Callable[[Tensor], Tensor]] = {
    "previous_token": previous_token_pattern,
    "first_token": first_token_pattern,
    "duplicate_token": duplicate_token_pattern,
    "induction": induction_pattern,
}


@dataclass(frozen=True, repr=False)
class HeadScores:
    """How much each head looks like each kind. Printed, it is a line a head; a score that passes has a star."""

    scores: dict[str, Tensor]
    """Kind -> (L,H), from 0 to 1; kinds are the keys of `THRESHOLDS`. 0 where no query was measured."""
    queries: dict[str, int]
    """Kind -> how many queries had a key to look at."""
    thresholds: dict[str, float]
    sequences: list[list[int]]
    """The ids on which it was measured."""
    differences: dict[str, float]
    """For weights that were computed again: how far what they mix is from what ran, at most."""

    def passing(self, kind: str) -> list[tuple[int, int]]:
        """The heads that reach the threshold, as (block, head), the best first.

        Args:
            kind: a key of `THRESHOLDS`.
        """
        score = self.scores[kind]
        found = [(block, head) for block, head in (score >= self.thresholds[kind]).nonzero().tolist()]
        return sorted(found, key=lambda place: -float(score[place])) if self.queries[kind] else []

    def best(self, kind: str) -> tuple[int, int]:
        """The head with the largest score, as (block, head), whether it passes or not.

        Args:
            kind: a key of `THRESHOLDS`.
        """
        score = self.scores[kind]
        return divmod(int(score.argmax()), score.shape[1])

    def __repr__(self) -> str:
        passing = {kind: set(self.passing(kind)) for kind in self.scores}
        blocks, heads = next(iter(self.scores.values())).shape
        places = [(block, head) for block in range(blocks) for head in range(heads)]
        rows = [
            [f"blocks.{b}.attention.heads.{h}", *(self._cell(k, b, h, passing[k]) for k in passing)] for b, h in places
        ]
        least = ["least to pass", *(f"{self.thresholds[kind]:.2f} " for kind in passing)]
        return f"{columns([['head', *(f'{kind} ' for kind in passing)], *rows, least])}\n{say('tracing.not_a_cause')}"

    def _cell(self, kind: str, block: int, head: int, passing: set[tuple[int, int]]) -> str:
        if not self.queries[kind]:
            return "- "
        return f"{float(self.scores[kind][block, head]):.2f}{'*' if (block, head) in passing else ' '}"


@torch.no_grad()
def detect_heads(
    model: Loaded | Decoder,
    text: str | Sequence[int] | None = None,
    *,
    period: int = 24,
    seed: int = 0,
    edits: Tap = NO_TAP,
) -> HeadScores:
    """The score of every head for every kind of head.

        score(head) = mean over queries t with a key to look at, of  Σ_s pattern[t,s] · weights[t,s]

    The patterns are `previous_token_pattern`, `first_token_pattern`, `duplicate_token_pattern` and `induction_pattern`. Without a text
    they are measured on random ids repeated once, x_1 ... x_n x_1 ... x_n: nothing but the repetition can be known there. The ids of a
    sequence are all different where the vocabulary is large enough. Means are taken over the queries of all sequences together.

    The weights are those of the kernel that ran. Where a sink takes weight, scores are of the whole, sink included.

    Args:
        model: what `load` gave, or a decoder.
        text: measured on this text in place of random ids.
        period: n of the longest random sequence; others are shorter. Shortened where two do not fit into the context.
        seed: of the random ids.
        edits: an `Editor`; what it changed is what is measured.

    Raises:
        UserError: if the context is too short for a repetition, a text is given and the model has no tokenizer, it is no decoder, or it is
            in training mode with dropout.
    """
    decoder = decoder_of(model)
    rows = [_shown(ids) for ids in repeated_ids(decoder, period, seed)] if text is None else [input_of(model, text)]
    sums: dict[str, Tensor | float] = dict.fromkeys(PATTERNS, 0.0)
    queries, differences = dict.fromkeys(PATTERNS, 0), dict[str, float]()
    for read in rows:
        recorder = Recorder("blocks.*.attention.weights")
        run(model, read, Chain(edits, recorder))
        weights = torch.cat(list(recorder.tensors.values()))
        for kind, pattern in PATTERNS.items():
            wanted = pattern(read.ids[0])
            sums[kind] += (weights * wanted).sum((-2, -1))
            queries[kind] += int(wanted.any(-1).sum())
        for name, difference in recorder.differences.items():
            differences[name] = max(differences.get(name, 0.0), float(difference))
    scores = {kind: (torch.as_tensor(total) / max(queries[kind], 1)).clamp(0, 1) for kind, total in sums.items()}
    return HeadScores(scores, queries, dict(THRESHOLDS), [read.ids[0].tolist() for read in rows], differences)


def repeated_ids(decoder: Decoder, period: int = 24, seed: int = 0) -> list[Tensor]:
    """Random ids, repeated once: `SEQUENCES` rows (2n), each with another n.

    Args:
        decoder: whose vocabulary and context they fit, and on whose device they are.
        period: the largest n; smaller where 2n positions do not fit into the context.
        seed: the same seed draws the same.

    Returns:
        Rows of int64; the ids of a period are all different where the vocabulary has so many.

    Raises:
        UserError: if the context holds no two of `SHORTEST` ids.
    """
    if decoder.context < 2 * SHORTEST:
        raise UserError(say("tracing.text_short", context=decoder.context, least=2 * SHORTEST))
    vocab, longest = decoder.head.out_features, max(min(period, decoder.context // 2), SHORTEST)
    generator, device = torch.Generator().manual_seed(seed), decoder.head.weight.device
    found = []
    for number in range(SEQUENCES):
        length = max(longest - number * max(longest // (2 * SEQUENCES), 1), SHORTEST)
        ids = (
            torch.randperm(vocab, generator=generator)
            if vocab >= length
            else torch.randint(vocab, (length,), generator=generator)
        )
        found.append(ids[:length].repeat(2).to(device))
    return found


def _shown(ids: Tensor) -> Input:
    return Input(ids[None], None, [], [])
