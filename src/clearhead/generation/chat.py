"""Conversations: turns as the ids that a model continues, within its context."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Literal, NoReturn, Protocol

from jinja2 import Template as JinjaTemplate
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from clearhead.formats.load import Loaded, writer_of
from clearhead.messages import UserError, say
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text import Tokenizer
from clearhead.text.specials import encode_special, guarded

MISTAKES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What the expressions of a template raise beside Jinja's own errors, as Python does."""

Role = Literal["system", "user", "assistant"]
"""Who speaks: what the model is told beforehand, who asks, who answers."""


@dataclass(frozen=True)
class Turn:
    """What one side said."""

    role: Role
    content: str


class Template(Protocol):
    """How a conversation is written down for the model."""

    def ids(self, turns: Sequence[Turn], tokenizer: Tokenizer) -> list[int]:
        """The ids that the model continues with its answer."""
        ...


CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ bos_token }}{{ message.role }}\n{{ message.content }}{{ eos_token or '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ bos_token }}assistant\n{% endif %}"
)
"""How conversations are written down for a model that learns them and has no template of its own.

A turn is the mark that begins a text, who speaks, a line end, what is said, and the mark that ends a text (a line end where there is none):

    <begin>user
    What comes after Tuesday?<end><begin>assistant
    Wednesday<end>

So an answer ends with the mark at which generation ends, and no content can pass for another turn.
"""


@dataclass(frozen=True)
class ChatTemplate:
    """The template that a chat model was trained with, in Jinja as Hugging Face's tokenizers keep it.

    It is given `messages` (role, content), `add_generation_prompt`, `bos_token` and `eos_token`, and runs in a sandbox: it can
    make text and nothing else.

    Args:
        source: the template.
        bos_token: the text of the mark that begins a text; "" if there is none.
        eos_token: the text of the mark that ends one.
    """

    source: str
    bos_token: str = ""
    eos_token: str = ""

    @classmethod
    def of(cls, source: str, tokenizer: Tokenizer) -> ChatTemplate:
        """The template with the marks of a tokenizer, as its special ids are spelt."""
        spelt = {id: text for text, id in tokenizer.specials.items()}
        begin, end = ("" if id is None else spelt.get(id, "") for id in (tokenizer.begin, tokenizer.end))
        return cls(source, begin, end)

    def text(self, turns: Sequence[Turn], *, answer: bool = True) -> str:
        """The conversation as the template writes it down.

        Args:
            turns: in their order; what they say is written as it is, marks that they spell among it.
            answer: whether what stands before the next answer follows.

        Raises:
            UserError: if the template is wrong or refuses the conversation.
        """
        messages = [{"role": turn.role, "content": turn.content} for turn in turns]
        try:
            return _compiled(self.source).render(
                messages=messages, add_generation_prompt=answer, bos_token=self.bos_token, eos_token=self.eos_token
            )
        except (TemplateError, *MISTAKES) as error:
            raise UserError(say("generation.chat_template", reason=error)) from None

    def ids(self, turns: Sequence[Turn], tokenizer: Tokenizer) -> list[int]:
        """The ids that the model continues with its answer; special ids are made by the template alone, never by a turn.

        They are the ids of the whole text wherever that leaves the ids at each earlier answer's beginning as they were
        when that answer was written; see `parts`.

        Raises:
            UserError: as `text`.
        """
        try:
            return [id for part in self.parts(turns, tokenizer) for id in part]
        except UserError:
            # Some templates write what was said earlier otherwise, or refuse a conversation that has only begun.
            return encode_special(tokenizer, self.text(_guarded(turns, tokenizer)))

    def parts(self, turns: Sequence[Turn], tokenizer: Tokenizer, *, answer: bool = True) -> list[list[int]]:
        """The ids of a conversation in parts: what is given, an answer, what is given, an answer, ...

        What the first n parts hold does not depend on what follows them: up to an answer's beginning these are the ids
        that a model is given to continue, whether the answer is still to come or is there to be learnt.

        Args:
            turns: the conversation.
            tokenizer: text to ids.
            answer: whether what stands before a further answer is the last part; otherwise it is what the last turn ends with.

        Raises:
            UserError: as `text`, or if the template writes down otherwise what stood before an answer, once the answer
                stands there, or the answer itself; spaces and line ends around an answer may be cut off.
        """
        turns = _guarded(turns, tokenizer)
        texts: list[str] = []
        for number, turn in enumerate(turns):
            if turn.role == "assistant":
                texts += [self.text(turns[:number]), self.text(turns[: number + 1], answer=False)]
                _must_hold(turn, texts)
        if answer or turns[-1].role != "assistant":
            texts.append(self.text(turns, answer=answer))
        if not all(map(str.startswith, texts[1:], texts)):
            raise UserError(say("generation.template_rewrites"))
        return _parts(texts, tokenizer)


def _must_hold(turn: Turn, texts: Sequence[str]) -> None:
    """Raise a UserError unless what the last text says beyond the one before is this answer."""
    if turn.content.strip() not in texts[-1].removeprefix(texts[-2]):
        raise UserError(say("generation.template_rewrites"))


def _parts(texts: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """The ids of texts of which each begins with the one before: those that each has beyond it."""
    parts, ids, before = [], list[int](), ""
    for text in texts:
        longer = encode_special(tokenizer, text)
        # A piece may reach over the place where the one text ends; then what follows that place is read by itself.
        if longer[: len(ids)] != ids:
            longer = ids + encode_special(tokenizer, text[len(before) :])
        parts.append(longer[len(ids) :])
        ids, before = longer, text
    return parts


def _guarded(turns: Sequence[Turn], tokenizer: Tokenizer) -> list[Turn]:
    return [replace(turn, content=guarded(tokenizer, turn.content)) for turn in turns]


@cache
def _compiled(source: str) -> JinjaTemplate:
    # The settings that such templates are written for.
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
    # Jinja's own would escape for HTML and sort keys.
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(source)


def _refuse(reason: str) -> NoReturn:
    raise TemplateError(reason)


class PlainTurns:
    """What a base model, which has no template, gets: everything said so far, a line a turn. It continues the last line.

    Args:
        opening: ids that a text begins with.
    """

    def __init__(self, opening: Sequence[int] = ()) -> None:
        self.opening = tuple(opening)

    def ids(self, turns: Sequence[Turn], tokenizer: Tokenizer) -> list[int]:
        """As `Template.ids`."""
        return [*self.opening, *tokenizer.encode("\n".join(turn.content for turn in turns))]


class LastTurn:
    """What an encoder-decoder gets: the last thing said. It answers each by itself."""

    def ids(self, turns: Sequence[Turn], tokenizer: Tokenizer) -> list[int]:
        """As `Template.ids`."""
        return tokenizer.encode(turns[-1].content)


def template_of(loaded: Loaded) -> Template:
    """How conversations with this model are written down.

    Raises:
        UserError: if it is an encoder, which writes nothing.
    """
    writer = writer_of(loaded)
    if loaded.chat_template is not None:
        return ChatTemplate.of(loaded.chat_template, loaded.tokenizer)
    return LastTurn() if isinstance(writer, EncoderDecoder) else PlainTurns(loaded.opening)


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
        ids = template.ids(kept, tokenizer)
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
