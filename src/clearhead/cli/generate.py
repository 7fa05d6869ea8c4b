"""`clearhead generate`: continue a text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from clearhead.cli.options import add_device, parse, parser, use_threads
from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded
    from clearhead.generation.writing import Piece


def options() -> ArgumentParser:
    """The flags of `clearhead generate`."""
    made = parser("generate")
    made.add_argument("model", type=str, help="run directory, or one of its checkpoint folders")
    made.add_argument(
        "-p",
        "--prompt",
        type=str,
        default=None,
        help="text to continue, begins a line if not given; for an encoder-decoder the source to answer",
    )
    made.add_argument("--max-tokens", type=int, default=300, help="tokens to generate at most")
    made.add_argument(
        "--temperature",
        type=float,
        default=None,
        help="0 takes the best token, 1 the model's own odds (default 0.8; 0 for an encoder-decoder)",
    )
    made.add_argument("--top-k", type=int, default=None, help="draw among the k best tokens only")
    made.add_argument("--seed", type=int, default=0, help="the same seed writes the same text")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    add_device(made)
    return made


def run(arguments: Sequence[str]) -> int:
    """Write the prompt and its continuation, or the answer to it, as it is generated."""
    asked = parse(options(), arguments)
    use_threads(asked.threads)
    from clearhead.formats.load import load  # noqa: PLC0415 - torch comes after the flags are right

    loaded = load(asked.model, dtype=asked.dtype, device=asked.device)
    _fill_in(asked, loaded)
    _warn_of_unknown(loaded, asked.prompt)
    from clearhead.generation.generate import stream  # noqa: PLC0415

    pieces = stream(
        loaded,
        asked.prompt,
        max_tokens=asked.max_tokens,
        temperature=asked.temperature,
        top_k=asked.top_k,
        seed=asked.seed,
    )
    if asked.json:
        _print_json(loaded, asked, pieces)
    else:
        _print_text("" if _answers(loaded) else asked.prompt, pieces)
    return 0


def _print_text(prompt: str, pieces: Iterator[Piece]) -> None:
    print(prompt.lstrip("\n"), end="", flush=True)
    for piece in pieces:
        print(piece.text, end="", flush=True)
    print()


def _print_json(loaded: Loaded, asked: Namespace, pieces: Iterator[Piece]) -> None:
    from clearhead.generation.writing import gathered  # noqa: PLC0415

    made = gathered(pieces)
    answer = {
        "model": str(loaded.source),
        "prompt": asked.prompt,
        "text": made.text,
        "ids": made.ids,
        "logprobs": made.logprobs,
        "seed": asked.seed,
    }
    print(json.dumps(answer, ensure_ascii=False))


def _answers(loaded: Loaded) -> bool:
    """Whether the model answers a source, where others continue a prompt."""
    from clearhead.models.encoder_decoder import EncoderDecoder  # noqa: PLC0415

    return isinstance(loaded.model, EncoderDecoder)


def _fill_in(asked: Namespace, loaded: Loaded) -> None:
    """What the user left open, as the model's kind has it.

    Raises:
        UserError: if there is no source to answer.
    """
    if asked.prompt is None and _answers(loaded):
        raise UserError(say("cli.generate.no_source"))
    asked.prompt = _line_break(loaded) if asked.prompt is None else asked.prompt
    if asked.temperature is None:
        asked.temperature = 0.0 if _answers(loaded) else 0.8


def _line_break(loaded: Loaded) -> str:
    """What begins a line; the last character the model knows, if it has never seen a line break."""
    tokenizer = loaded.tokenizer
    return "\n" if tokenizer.decode(tokenizer.encode("\n")) == "\n" else tokenizer.decode([tokenizer.size - 1])


def _warn_of_unknown(loaded: Loaded, prompt: str) -> None:
    """Name the characters of the prompt that the model cannot know; it reads them as unknown marks."""
    back = loaded.tokenizer.decode(loaded.tokenizer.encode(prompt))
    unknown = sorted({before for before, after in zip(prompt, back, strict=False) if before != after})
    if unknown:
        print(say("cli.generate.unknown", characters=" ".join(unknown)), file=sys.stderr)
