"""Options of the commands that write: how to choose, where to end, who proposes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from clearhead.cli.loading import loaded_model
from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded
    from clearhead.generation.sampling import SamplingSettings
    from clearhead.generation.writing import Helper

NEUTRAL: dict[str, object] = {
    "top_k": None,
    "top_p": 1.0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "logit_bias": {},
    "order": None,
}
"""The settings beside the temperature, and the values at which they do nothing."""


def add_sampling(made: ArgumentParser) -> None:
    """How a token is chosen."""
    made.add_argument(
        "--temperature",
        type=float,
        default=None,
        help="0 takes the best token, 1 the model's own odds (default 0.8; 0 for an encoder-decoder)",
    )
    made.add_argument("--top-k", type=int, default=None, help="draw among the k best tokens only; 0 for all")
    made.add_argument("--top-p", type=float, default=1.0, help="draw among the fewest best tokens that reach p")
    made.add_argument(
        "--min-p", type=float, default=0.0, help="draw among tokens at least p times as probable as the best"
    )
    made.add_argument("--repetition-penalty", type=float, default=1.0, help="divides what has occurred; 1 does nothing")
    made.add_argument("--presence-penalty", type=float, default=0.0, help="taken off what has occurred")
    made.add_argument("--frequency-penalty", type=float, default=0.0, help="taken off for each time it has occurred")
    made.add_argument("--logit-bias", type=dict[int, float], default={}, help='added to logits, as {"id": number}')
    made.add_argument(
        "--order",
        type=str,
        nargs="+",
        default=None,
        help="the steps in another order, or only some: penalties temperature top_k top_p min_p",
    )
    made.add_argument("--seed", type=int, default=0, help="the same seed writes the same text")


def add_ends(made: ArgumentParser, max_tokens: int) -> None:
    """Where a text ends, and what happens past the context."""
    made.add_argument("--max-tokens", type=int, default=max_tokens, help="tokens to write at most")
    made.add_argument("--stop", type=str, nargs="+", default=[], help=r"strings that end the text; \n is a line break")
    made.add_argument(
        "--eos", type=int, nargs="+", default=None, help="ids that end the text in place of the tokenizer's"
    )
    made.add_argument(
        "--overflow",
        type=str,
        default=None,
        help="past the context: stop, window (forget the older half) or recompute (read the last tokens anew each time)",
    )


def add_helper(made: ArgumentParser) -> None:
    """Who proposes tokens."""
    made.add_argument("--draft", type=str, default=None, help="a smaller model with the same tokenizer proposes tokens")
    made.add_argument("--lookup", action="store_true", help="repetitions in the text propose tokens")


def sampling_of(asked: Namespace) -> SamplingSettings:
    """The settings that the user asked for.

    Raises:
        UserError: if one is out of range.
    """
    from clearhead.generation.sampling import STEPS, SamplingSettings  # noqa: PLC0415 - torch comes after the flags are right

    return SamplingSettings(
        temperature=asked.temperature,
        top_k=asked.top_k,
        top_p=asked.top_p,
        min_p=asked.min_p,
        repetition_penalty=asked.repetition_penalty,
        presence_penalty=asked.presence_penalty,
        frequency_penalty=asked.frequency_penalty,
        logit_bias=asked.logit_bias,
        order=tuple(asked.order or STEPS),
    )


def stops_of(asked: Namespace) -> list[str]:
    r"""The stop strings, with `\n`, `\t` and `\\` read as in a program: not every shell can type a line break."""
    signs = {"n": "\n", "t": "\t", "\\": "\\"}
    stops = []
    for typed in asked.stop:
        parts = iter(typed)
        read = (
            signs.get(after, f"\\{after}") if sign == "\\" and (after := next(parts, "")) else sign for sign in parts
        )
        stops.append("".join(read))
    return stops


def one_helper(asked: Namespace) -> None:
    """Raise a UserError if two are to propose tokens."""
    if asked.draft is not None and asked.lookup:
        raise UserError(say("cli.generate.exclude", one="--draft", other="--lookup"))


def helper_of(asked: Namespace) -> Helper | None:
    """Who proposes tokens, loaded.

    Raises:
        UserError: if two are asked for, or the draft cannot be loaded.
    """
    one_helper(asked)
    if asked.lookup:
        return "lookup"
    if asked.draft is None:
        return None

    return loaded_model(asked.draft, asked.dtype, asked.device)


def usual_temperature(loaded: Loaded) -> float:
    """What a user who does not say gets: the best answer to a source, a bold continuation of a prompt."""
    from clearhead.models.encoder_decoder import EncoderDecoder  # noqa: PLC0415

    return 0.0 if isinstance(loaded.model, EncoderDecoder) else 0.8
