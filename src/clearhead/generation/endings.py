"""Where a text ends, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clearhead.formats.load import Loaded
from clearhead.generation.request import Request, ends_of
from clearhead.generation.rows import Reader, Row
from clearhead.messages import UserError, say

FinishReason = Literal["length", "eos", "stop", "context", "interrupted"]
"""At `max_tokens`, with an end id, at a stop string, where the context was full, or before its end by who asked for it."""


@dataclass(frozen=True)
class Ends:
    """What ends one text.

    Args:
        ids: end ids.
        full: how many ids, prompt and all, are enough.
        context: how many ids the model may see; None if it goes on without the oldest ones.
    """

    ids: frozenset[int]
    full: int
    context: int | None

    def reason(self, row: Row, *, stopped: bool) -> FinishReason | None:
        """Why the row ends with its last id; None if it goes on.

        Args:
            row: with at least one id behind the prompt.
            stopped: whether a stop string is complete.
        """
        if row.ids[-1] in self.ids:
            return "eos"
        if stopped:
            return "stop"
        if len(row.ids) >= self.full:
            return "length"
        return "context" if self.context is not None and row.seen > self.context else None


def ends_for(loaded: Loaded, reader: Reader, request: Request, prompt: int) -> Ends:
    """What ends the text of a request whose prompt has so many ids.

    Raises:
        UserError: if the prompt does not fit a context that the text must not leave.
    """
    context = reader.decoder.context if reader.overflow == "stop" else None
    if context is not None and prompt > context:
        raise UserError(say("generation.prompt_too_long", length=prompt, context=context))
    return Ends(ends_of(loaded, request), prompt + request.max_tokens, context)
