"""From requests to text: what is written, where it ends, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from clearhead.formats.load import Loaded, writer_of
from clearhead.generation.drafts import NO_DRAFT, Draft, LookupDraft, ModelDraft
from clearhead.generation.draws import dice
from clearhead.generation.endings import FinishReason, ends_for
from clearhead.generation.loop import Step, Writing, decode
from clearhead.generation.pace import Pace, Speculation
from clearhead.generation.request import Request, ids_of
from clearhead.generation.rows import Overflow, Reader, Row, Side, cache_for
from clearhead.generation.stores import DoublingStore
from clearhead.generation.transcript import Transcript
from clearhead.messages import UserError, say
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.tap import NO_TAP, Tap

Helper = Loaded | Literal["lookup"]
"""Who proposes tokens: a smaller model, or the text's own n-grams."""

VERIFYING = 0.06
SEVERAL = 0.4
"""What reading k proposed tokens with the next one adds, in forwards of one token: `SEVERAL + VERIFYING · k`. A product of matrices
takes the place of one with a vector. `bench.speculation` measured 0.25 + 0.03 k (0.8 M parameters) and 0.5 + 0.08 k (124 M), on a CPU
in float32; where they are less, blocks are shorter than they could be, which costs time, never exactness."""


@dataclass(frozen=True)
class Ending:
    """Why and how a text came to its end."""

    reason: FinishReason
    speculation: Speculation | None = None


@dataclass(frozen=True)
class Piece:
    """One step of a stream: a token, and the text that became certain with it (often one character, maybe none)."""

    text: str
    step: Step | None
    """None for the last piece, which holds what was still held back."""
    ending: Ending | None = None
    """What the last piece has in place of a step."""


@dataclass(frozen=True)
class Generation:
    """What was generated, without the prompt."""

    text: str
    ids: list[int]
    """All that was drawn, an end id and the tokens of a stop string among them."""
    logprobs: list[float]
    """ln of the model's own probability of each token (nats), before any setting."""
    finish_reason: FinishReason
    chances: list[float]
    """The probability that the settings gave each token."""
    alternatives: list[tuple[tuple[int, float], ...]]
    """For each token the model's best ones and their logprobs."""
    speculation: Speculation | None = None
    """What a draft did; None without one."""


def gathered(parts: Iterable[Piece]) -> Generation:
    """All pieces of a stream as one generation."""
    known = list(parts)
    steps = [piece.step for piece in known if piece.step is not None]
    ending = (known[-1].ending if known else None) or Ending("interrupted")
    return Generation(
        "".join(piece.text for piece in known),
        [step.id for step in steps],
        [step.logprob for step in steps],
        ending.reason,
        [step.chance for step in steps],
        [step.alternatives for step in steps],
        ending.speculation,
    )


def pieces(
    loaded: Loaded,
    requests: Sequence[Request],
    *,
    overflow: Overflow | None = None,
    padding: Side = "left",
    draft: Helper | None = None,
    progress: Callable[[int, int], None] | None = None,
    tap: Tap = NO_TAP,
) -> Iterator[tuple[int, Piece]]:
    """Write all requests side by side: (which request, piece) as they come. Mistakes are raised at once."""
    reader = reader_for(loaded, overflow, padding=padding, progress=progress, tap=tap)
    return _written([_Text(loaded, reader, request, draft) for request in requests], reader)


def reader_for(
    loaded: Loaded,
    overflow: Overflow | None,
    *,
    padding: Side = "left",
    progress: Callable[[int, int], None] | None = None,
    tap: Tap = NO_TAP,
) -> Reader:
    """How the loaded model reads; `overflow` as it suits the model's kind if None.

    Raises:
        UserError: if the model is an encoder, or the choice is unknown.
    """
    model = writer_of(loaded)
    check_overflow(overflow)
    if padding not in ("left", "right"):
        raise UserError(say("generation.setting", name="padding", value=padding, wanted="left | right"))
    answers = isinstance(model, EncoderDecoder)
    return Reader(
        model,
        overflow or ("stop" if answers else "recompute"),
        padding,
        # Padding on the right comes to stand between real tokens, which a ring cannot serve.
        cache_for if padding == "left" else DoublingStore,
        progress or Reader.progress,
        tap,
    )


def check_overflow(overflow: str | None) -> None:
    """Raise a UserError unless it is a choice that there is, or none was made."""
    if overflow not in (None, *get_args(Overflow)):
        raise UserError(say("generation.overflow", value=overflow))


def _draft(loaded: Loaded, draft: Helper | None, mirror: Row) -> Draft:
    if draft is None:
        return NO_DRAFT
    if draft == "lookup":
        return LookupDraft(loaded.config.vocab, Pace(VERIFYING, SEVERAL))
    if not isinstance(draft, Loaded):
        raise UserError(say("generation.draft", value=draft))
    if type(draft.model) is not type(loaded.model) or draft.tokenizer.to_dict() != loaded.tokenizer.to_dict():
        raise UserError(say("generation.draft_differs", draft=draft.source, model=loaded.source))
    if isinstance(draft.model, EncoderDecoder) and len(mirror.source) > (most := draft.model.encoder.context):
        # Said at once: the draft would read it only when the text is under way.
        raise UserError(say("generation.draft_source", draft=draft.source, length=len(mirror.source), context=most))
    reader = reader_for(draft, "window")
    sizes = [sum(weight.numel() for weight in each.model.parameters()) for each in (draft, loaded)]
    depths = [len(part.decoder.blocks) for part in (reader, reader_for(loaded, None))]
    # Large models wait for their weights, small ones for their blocks, one after another: whichever is worse.
    cost = max(sizes[0] / sizes[1], depths[0] / depths[1]) + VERIFYING
    return ModelDraft(reader, mirror, Pace(cost, SEVERAL))


def _written(texts: Sequence[_Text], reader: Reader) -> Iterator[tuple[int, Piece]]:
    for index, text in enumerate(texts):
        if not text.row.open:
            yield index, Piece("", None, Ending("length"))
    place = {text.row: index for index, text in enumerate(texts)}
    ended: list[int] = []
    for row, step in decode(reader, list(place)):
        # Only when the loop has gone on does a draft know of the round in which the text ended.
        yield from ((index, texts[index].end()) for index in ended)
        ended = []
        yield place[row], texts[place[row]].take(step)
        if not row.open:
            ended = [place[row]]
    yield from ((index, texts[index].end()) for index in ended)


class _Text:
    """One request being written: it turns steps into pieces, and closes the row where the text ends."""

    def __init__(self, loaded: Loaded, reader: Reader, request: Request, draft: Helper | None) -> None:
        ids, source = ids_of(loaded, request)
        self._ends = ends_for(loaded, reader, request, len(ids))
        self._transcript = Transcript(loaded.tokenizer.stream(), request.stop)
        self._reason: FinishReason | None = None
        self.row = Writing(
            ids,
            source,
            open=request.max_tokens > 0,
            sampling=request.sampling,
            draw=dice(request.seed),
            draft=_draft(loaded, draft, Row(list(ids), source)),
            alternatives=request.alternatives,
        )

    def take(self, step: Step) -> Piece:
        """The piece of one step; the row is closed if the text ends with it."""
        text = "" if step.id in self._ends.ids else self._transcript.push(step.id)
        self._reason = self._ends.reason(self.row, stopped=self._transcript.stopped)
        self.row.open = self._reason is None
        return Piece(text, step)

    def end(self) -> Piece:
        """The last piece of a text that has ended."""
        assert self._reason is not None, "the text goes on"
        rest = self._transcript.finish(whole=self._reason == "eos")
        return Piece(rest, None, Ending(self._reason, self.row.draft.report()))
