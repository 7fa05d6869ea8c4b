"""Conversations: turns as the ids that a model continues, within its context."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NoReturn, Protocol

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from clearhead.formats.load import Loaded, writer_of
from clearhead.messages import UserError, say
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text import Tokenizer

MISTAKES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What the expressions of a template raise beside Jinja's own errors, as Python does."""


@dataclass(frozen=True)
class Turn:
    """What one side said."""

    role: Literal["system", "user", "assistant"]
    content: str


class Template(Protocol):
    """How a conversation is written down for the model."""

    def text(self, turns: Sequence[Turn]) -> str:
        """The text that the model continues with its answer."""
        ...


@dataclass(frozen=True)
class ChatTemplate:
    """The template that a chat model was trained with, in Jinja as Hugging Face's tokenizers keep it.

    It is given `messages` (role, content), `add_generation_prompt` = True, `bos_token` and `eos_token`, and runs in a sandbox: it can
    make text and nothing else.

    Args:
        source: the template.
        bos_token: the text of the mark that begins a text; "" if there is none.
        eos_token: the text of the mark that ends one.

    Raises:
        UserError: from `text`, if the template is wrong or refuses the conversation.
    """

    source: str
    bos_token: str = ""
    eos_token: str = ""

    def text(self, turns: Sequence[Turn]) -> str:
        """As `Template.text`."""
        # The settings that such templates are written for.
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
        # Jinja's own would escape for HTML and sort keys.
        environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
        messages = [{"role": turn.role, "content": turn.content} for turn in turns]
        try:
            return environment.from_string(self.source).render(
                messages=messages, add_generation_prompt=True, bos_token=self.bos_token, eos_token=self.eos_token
            )
        except (TemplateError, *MISTAKES) as error:
            raise UserError(say("generation.chat_template", reason=error)) from None


def _refuse(reason: str) -> NoReturn:
    raise TemplateError(reason)


class PlainTurns:
    """What a base model, which has no template, gets: everything said so far, a line a turn. It continues the last line."""

    def text(self, turns: Sequence[Turn]) -> str:
        """As `Template.text`."""
        return "\n".join(turn.content for turn in turns)


class LastTurn:
    """What an encoder-decoder gets: the last thing said. It answers each by itself."""

    def text(self, turns: Sequence[Turn]) -> str:
        """As `Template.text`."""
        return turns[-1].content


def template_of(loaded: Loaded) -> Template:
    """How conversations with this model are written down.

    Raises:
        UserError: if the model is an encoder, or its template is none.
    """
    model = writer_of(loaded)
    if loaded.chat_template is not None:
        return ChatTemplate(loaded.chat_template)
    return LastTurn() if isinstance(model, EncoderDecoder) else PlainTurns()


def fitted(turns: Sequence[Turn], template: Template, tokenizer: Tokenizer, room: int) -> tuple[list[Turn], list[int]]:
    """The newest turns that fit, and their ids; the first turn stays if it is the system's.

    Whole turns are forgotten, an answer together with what it answered.

    Args:
        turns: the last of them by the user.
        template: how they are written down.
        tokenizer: text to ids.
        room: how many ids there is room for.

    Raises:
        UserError: if the last turn alone (with the system's) does not fit, with both numbers.
    """
    first = [turn for turn in turns[:1] if turn.role == "system"]
    rest = list(turns[len(first) :])
    while True:
        kept = [*first, *rest]
        ids = tokenizer.encode(template.text(kept))
        if len(ids) <= room:
            return kept, ids
        if len(rest) == 1:
            raise UserError(say("generation.turn_too_long", length=len(ids), room=room))
        rest = rest[_pair(rest) :]


def _pair(turns: Sequence[Turn]) -> int:
    """How many turns the oldest exchange has."""
    return 2 if len(turns) > 2 and turns[0].role == "user" and turns[1].role == "assistant" else 1


def room_for(loaded: Loaded, max_tokens: int) -> int:
    """How many ids a conversation may have so that an answer of `max_tokens` follows within the context: half of it at least."""
    if isinstance(loaded.model, EncoderDecoder):
        # The source and its end mark; the answer has a context of its own.
        return loaded.model.encoder.context - 1
    context = loaded.model.context
    return max(context - max_tokens, (context + 1) // 2)
