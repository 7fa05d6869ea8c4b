"""What is told of a text beside the text: its speed, its end, its tokens, on standard error or as JSON."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tqdm import tqdm

from clearhead.messages import say

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded
    from clearhead.generation.pace import Speculation
    from clearhead.generation.writing import Generation, Piece


class Tally:
    """Watches pieces go by, and tells afterwards what writing them took.

    Args:
        loaded: the model that writes.
        overflow: the choice that the user made, if any.
    """

    def __init__(self, loaded: Loaded, overflow: str | None) -> None:
        self._loaded, self._overflow = loaded, overflow
        self._began = time.perf_counter()
        self._first: float | None = None
        self._tokens = self._proposed = self._accepted = 0
        self._speculated = False
        self._speed_ups: list[float] = []
        self._reasons: set[str] = set()
        self._longest = 0

    def watch(self, coming: Iterable[tuple[int, Piece]], prompts: Sequence[int]) -> Iterator[tuple[int, Piece]]:
        """The same pieces: (which text, piece), of texts that follow so many ids."""
        lengths = list(prompts)
        for index, piece in coming:
            if piece.step is not None:
                self._first = self._first or time.perf_counter()
                self._tokens += 1
                # The last token of a text is drawn, not read.
                self._longest = max(self._longest, lengths[index])
                lengths[index] += 1
            if piece.ending is not None:
                self._reasons.add(piece.ending.reason)
                self._count(piece.ending.speculation)
            yield index, piece

    def tell(self) -> None:
        """Say on standard error how fast it was, what a draft did, and what happened at the end of the context."""
        lines = [self._speed(), *self._drafted(), *self._context()]
        print("\n".join(lines), file=sys.stderr, flush=True)

    def take(self, reason: str, length: int) -> None:
        """Count a text that came all at once: why it ended, and how many ids it has, prompt and all."""
        self._reasons.add(reason)
        self._longest = max(self._longest, length - 1)

    def tell_context(self) -> None:
        """Say on standard error what happened at the end of the context, if anything did."""
        for line in self._context():
            print(line, file=sys.stderr, flush=True)

    def _count(self, speculation: Speculation | None) -> None:
        if speculation is None:
            return
        self._speculated = True
        self._proposed, self._accepted = self._proposed + speculation.proposed, self._accepted + speculation.accepted
        self._speed_ups += [] if speculation.speed_up is None else [speculation.speed_up]

    def _speed(self) -> str:
        now = time.perf_counter()
        first = now if self._first is None else self._first
        # The first token comes with the reading of the prompt.
        speed = (self._tokens - 1) / (now - first) if self._tokens > 1 else 0.0
        return say("cli.generate.speed", tokens=self._tokens, speed=f"{speed:,.0f}", first=f"{first - self._began:.2f}")

    def _drafted(self) -> list[str]:
        if not self._speculated:
            return []
        if not self._proposed:
            return [say("cli.generate.not_paying")]
        times = f"{sum(self._speed_ups) / len(self._speed_ups):.2f}" if self._speed_ups else "?"
        share = f"{self._accepted / self._proposed:.0%}"
        return [
            say("cli.generate.accepted", accepted=self._accepted, proposed=self._proposed, share=share, times=times)
        ]

    def _context(self) -> list[str]:
        from clearhead.generation.writing import reader_for  # noqa: PLC0415 - torch comes after the flags are right

        reader = reader_for(self._loaded, self._overflow)  # type: ignore[arg-type]  # checked there
        context = reader.decoder.context
        if "context" in self._reasons:
            return [say("cli.generate.context_full", context=context)]
        if self._longest <= context:
            return []
        if reader.overflow == "window":
            return [say("cli.generate.overflow_window", context=context, half=max(1, context // 2))]
        return [say("cli.generate.overflow_recompute", context=context)]


@contextmanager
def reading() -> Iterator[Callable[[int, int], None]]:
    """A line on standard error while a long prompt is read; nothing if that takes less than two seconds."""
    bar = tqdm(desc=say("cli.generate.reading"), delay=2, leave=False, dynamic_ncols=True, unit="")

    def progress(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    try:
        yield progress
    finally:
        bar.close()


def as_json(loaded: Loaded, made: Generation, told: dict[str, object], *, alternatives: bool) -> str:
    """One line of JSON for one text.

    Args:
        loaded: the model that wrote it.
        made: the text.
        told: what is known of the request: prompt, seed.
        alternatives: whether the best tokens at each place were asked for.
    """
    answer: dict[str, object] = {
        "model": str(loaded.source),
        **told,
        "text": made.text,
        "ids": made.ids,
        "logprobs": [_number(logprob) for logprob in made.logprobs],
        "finish_reason": made.finish_reason,
    }
    if alternatives:
        answer["tokens"] = loaded.tokenizer.pieces(made.ids)
        answer["alternatives"] = [_named(loaded, place) for place in made.alternatives]
    if made.speculation is not None:
        answer["speculation"] = {
            "proposed": made.speculation.proposed,
            "accepted": made.speculation.accepted,
            "speed_up": made.speculation.speed_up,
        }
    return json.dumps(answer, ensure_ascii=False)


def _named(loaded: Loaded, place: Sequence[tuple[int, float]]) -> list[dict[str, object]]:
    pieces = loaded.tokenizer.pieces([id for id, _ in place])
    return [
        {"id": id, "token": piece, "logprob": _number(logprob)}
        for (id, logprob), piece in zip(place, pieces, strict=True)
    ]


def _number(logprob: float) -> float | None:
    """JSON has no infinity."""
    return logprob if math.isfinite(logprob) else None


def as_table(loaded: Loaded, made: Generation) -> str:
    """A line for each token: ln of its probability, the token, and the model's best ones in its place."""
    pieces = loaded.tokenizer.pieces(made.ids)
    lines = []
    for piece, logprob, place in zip(pieces, made.logprobs, made.alternatives, strict=True):
        named = zip(loaded.tokenizer.pieces([id for id, _ in place]), place, strict=True)
        others = "  ".join(f"{_quoted(token)} {value:.3f}" for token, (_, value) in named)
        lines.append(f"{logprob:>9.3f}  {_quoted(piece)}    {others}".rstrip())
    return "\n".join(lines)


def _quoted(piece: str) -> str:
    return json.dumps(piece, ensure_ascii=False)


def on_one_line(text: str) -> str:
    r"""The text with its line breaks written as `\n`, and backslashes doubled, so that it can be told what was which."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
