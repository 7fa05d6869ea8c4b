"""What a command writes after: the prompts that a user gives, on the command line, in a file or through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import Namespace

from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded


def prompts_of(asked: Namespace, loaded: Loaded) -> list[str]:
    """The prompts, at least one; what begins a line where a decoder is given none.

    Raises:
        UserError: if there is no source to answer, or a line is empty; it is named.
    """
    if asked.prompts is not None:
        prompts = _lines(asked.prompts, asked.encoding)
        if "" in prompts:
            raise UserError(say("cli.generate.empty_line", path=asked.prompts, line=prompts.index("") + 1))
    elif asked.prompt is not None:
        prompts = [asked.prompt]
    elif answers(loaded):
        raise UserError(say("cli.generate.no_source"))
    else:
        prompts = [_line_break(loaded)]
    warn_of_unknown(loaded, prompts)
    return prompts


def answers(loaded: Loaded) -> bool:
    """Whether the model answers a source, where others continue a prompt."""
    from clearhead.models.encoder_decoder import EncoderDecoder  # noqa: PLC0415 - torch comes after the flags are right

    return isinstance(loaded.model, EncoderDecoder)


def warn_of_unknown(loaded: Loaded, prompts: Sequence[str]) -> None:
    """Name the characters of the prompts that the model cannot know; it reads them as unknown marks."""
    tokenizer, unknown = loaded.tokenizer, set()
    for prompt in prompts:
        back = tokenizer.decode(tokenizer.encode(prompt))
        unknown |= {before for before, after in zip(prompt, back, strict=False) if before != after}
    if unknown:
        print(say("cli.generate.unknown", characters=" ".join(map(_visible, sorted(unknown)))), file=sys.stderr)


def _visible(character: str) -> str:
    r"""The character, or its escape (`\r`) where nothing would be seen of it."""
    return character if character.isprintable() and not character.isspace() else repr(character)


def _lines(path: str, encoding: str) -> list[str]:
    """The lines of a file, or of standard input."""
    from clearhead.text.files import raw_text, read_raw, with_line_feeds  # noqa: PLC0415

    piped = path == "-"
    raw = raw_text(sys.stdin.buffer.read(), Path(path), encoding) if piped else read_raw(Path(path), encoding)
    for note in raw.notes:
        print(note, file=sys.stderr)
    lines = with_line_feeds(raw.text, lone=False)[0].split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    if not lines:
        raise UserError(say("cli.generate.no_prompts", path=path))
    return lines


def _line_break(loaded: Loaded) -> str:
    """What begins a line; the last character the model knows, if it has never seen a line break."""
    tokenizer = loaded.tokenizer
    return "\n" if tokenizer.decode(tokenizer.encode("\n")) == "\n" else tokenizer.decode([tokenizer.size - 1])
