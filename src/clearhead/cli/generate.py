"""`clearhead generate`: continue texts, or answer sources."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from clearhead.cli.loading import loaded_model
from clearhead.cli.options import MODEL, add_device, parse, parser, use_threads
from clearhead.cli.prompts import answers, prompts_of
from clearhead.cli.sampling import (
    NEUTRAL,
    add_ends,
    add_helper,
    add_sampling,
    helper_of,
    one_helper,
    sampling_of,
    stops_of,
    usual_temperature,
)
from clearhead.cli.written import Tally, as_json, as_table, on_one_line, reading
from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded
    from clearhead.generation.request import Request
    from clearhead.generation.writing import Generation, Helper, Piece

AT_ONCE = 16
"""Prompts of a file that are written side by side."""


def options() -> ArgumentParser:
    """The flags of `clearhead generate`."""
    made = parser("generate")
    made.add_argument("model", type=str, help=MODEL)
    made.add_argument(
        "-p",
        "--prompt",
        type=str,
        default=None,
        help="text to continue, begins a line if not given; for an encoder-decoder the source to answer",
    )
    made.add_argument(
        "--prompts", type=str, default=None, help="a file with a prompt on each line, - for standard input"
    )
    made.add_argument("--encoding", type=str, default="auto", help="of that file; recognised if auto")
    add_ends(made, max_tokens=300)
    add_sampling(made)
    made.add_argument("--n", type=int, default=1, help="texts for each prompt, with seeds seed, seed + 1, ...")
    made.add_argument("--beams", type=int, default=None, help="search the most probable text with so many beams")
    made.add_argument("--length-penalty", type=float, default=0.0, help="beams: rank by logprob / length^penalty")
    add_helper(made)
    made.add_argument("--logprobs", type=int, default=None, help="show each token with so many alternatives")
    made.add_argument("--json", action="store_true", help="print one JSON object a line for each text")
    add_device(made)
    return made


def run(arguments: Sequence[str]) -> int:
    """Write the prompt and its continuation, or the answer to it, as it is generated; of many texts each when it is done."""
    asked = parse(options(), arguments)
    _agree(asked)
    use_threads(asked.threads)

    loaded = loaded_model(asked.model, asked.dtype, asked.device)
    prompts = prompts_of(asked, loaded)
    if asked.beams is not None:
        _search(loaded, asked, prompts)
        return 0
    asked.temperature = usual_temperature(loaded) if asked.temperature is None else asked.temperature
    requests, helper = _requests(loaded, asked, prompts), helper_of(asked)
    tally = Tally(loaded, asked.overflow)
    with reading() as progress:
        writer = _Writer(loaded, asked, helper, tally, progress)
        if len(requests) == 1 and not asked.json and asked.prompts is None:
            writer.stream(requests[0])
        else:
            writer.write(requests)
    tally.tell()
    return 0


def _agree(asked: Namespace) -> None:
    """Refuse flags that exclude each other, before anything is loaded."""
    if asked.prompt is not None and asked.prompts is not None:
        raise UserError(say("cli.generate.exclude", one="--prompt", other="--prompts"))
    one_helper(asked)
    for name, value, least in (("n", asked.n, 1), ("beams", asked.beams, 1), ("logprobs", asked.logprobs, 0)):
        if value is not None and value < least:
            raise UserError(say("generation.setting", name=name, value=value, wanted=f"≥ {least}"))
    if asked.beams is not None:
        _agree_with_beams(asked)
    elif asked.length_penalty:
        raise UserError(say("cli.generate.needs", flag="--length-penalty", other="--beams"))


def _agree_with_beams(asked: Namespace) -> None:
    """Beams draw nothing: refuse what says how to draw."""
    given = [name for name, neutral in NEUTRAL.items() if asked[name] != neutral]
    given += [name for name in ("temperature", "draft", "logprobs") if asked[name] is not None]
    given += ["lookup"] if asked.lookup else []
    if given:
        flag = f"--{given[0].replace('_', '-')}"
        raise UserError(say("cli.generate.exclude", one="--beams", other=flag))
    if asked.n > asked.beams:
        raise UserError(say("cli.generate.few_beams", n=asked.n, beams=asked.beams))


def _requests(loaded: Loaded, asked: Namespace, prompts: Sequence[str]) -> list[Request]:
    """A request for each prompt and sample, all of them checked before the first is written."""
    from clearhead.generation.request import Request, ids_of  # noqa: PLC0415

    sampling, stops = sampling_of(asked), stops_of(asked)
    requests = [
        Request(prompt, asked.max_tokens, sampling, asked.seed + sample, stops, asked.eos, asked.logprobs or 0)
        for prompt in prompts
        for sample in range(asked.n)
    ]
    for request in requests:
        ids_of(loaded, request)
    return requests


@dataclass(frozen=True)
class _Writer:
    """Writes requests as the user wants to see them."""

    loaded: Loaded
    asked: Namespace
    helper: Helper | None
    tally: Tally
    progress: Callable[[int, int], None]

    def stream(self, request: Request) -> None:
        """One text, as it is written."""
        from clearhead.generation.writing import gathered  # noqa: PLC0415

        coming, seen = self._pieces([request]), []
        print(_before(self.loaded, request.prompt), end="", flush=True)
        for _, piece in coming:
            print(piece.text, end="", flush=True)
            seen.append(piece)
        print()
        if self.asked.logprobs is not None:
            print(f"\n{as_table(self.loaded, gathered(seen))}")

    def write(self, requests: Sequence[Request]) -> None:
        """Many texts in the order of the requests, some of them side by side."""
        from clearhead.generation.writing import gathered  # noqa: PLC0415

        for begin in range(0, len(requests), AT_ONCE):
            some = requests[begin : begin + AT_ONCE]
            found: list[list[Piece]] = [[] for _ in some]
            shown = 0
            for index, piece in self._pieces(some):
                found[index].append(piece)
                # What is done is shown at once, in the order of the requests: an interruption loses no more than it must.
                while shown < len(some) and found[shown] and found[shown][-1].ending is not None:
                    self._print(some[shown], gathered(found[shown]))
                    shown += 1

    def _pieces(self, requests: Sequence[Request]) -> Iterator[tuple[int, Piece]]:
        from clearhead.generation.request import ids_of  # noqa: PLC0415
        from clearhead.generation.writing import pieces  # noqa: PLC0415

        prompts = [len(ids_of(self.loaded, request)[0]) for request in requests]
        coming = pieces(self.loaded, requests, overflow=self.asked.overflow, draft=self.helper, progress=self.progress)
        return self.tally.watch(coming, prompts)

    def _print(self, request: Request, made: Generation) -> None:
        asked = self.asked
        if asked.json:
            told: dict[str, object] = {"prompt": request.prompt, "seed": request.seed}
            print(as_json(self.loaded, made, told, alternatives=asked.logprobs is not None), flush=True)
            return
        text = _before(self.loaded, request.prompt) + made.text
        print(on_one_line(text) if asked.prompts is not None else f"# seed {request.seed}\n{text}", flush=True)
        if asked.logprobs is not None:
            print(as_table(self.loaded, made), flush=True)


def _search(loaded: Loaded, asked: Namespace, prompts: Sequence[str]) -> None:
    """The most probable texts that beams find, the best first."""
    from clearhead.generation.beams import beam_search  # noqa: PLC0415
    from clearhead.generation.request import Request, ids_of  # noqa: PLC0415

    tally, tokens, began = Tally(loaded, asked.overflow), 0, time.perf_counter()
    for prompt in prompts:
        found = beam_search(
            loaded,
            prompt,
            beams=asked.beams,
            max_tokens=asked.max_tokens,
            stop=stops_of(asked),
            eos=asked.eos,
            length_penalty=asked.length_penalty,
            overflow=asked.overflow,
        )
        tokens += len(found[0].ids)
        read = len(ids_of(loaded, Request(prompt))[0])
        for beam in found[: asked.n]:
            tally.take(beam.finish_reason, read + len(beam.ids))
            text = _before(loaded, prompt) + beam.text
            if asked.json:
                told = {"model": str(loaded.source), "prompt": prompt, **asdict(beam)}
                print(json.dumps(told, ensure_ascii=False), flush=True)
            elif asked.prompts is not None:
                print(on_one_line(text), flush=True)
            else:
                print(f"# logprob {beam.score:.4f}\n{text}" if asked.n > 1 else text, flush=True)
    speed = f"{tokens / (time.perf_counter() - began):,.0f}"
    print(say("cli.generate.searched", tokens=tokens, speed=speed, beams=asked.beams), file=sys.stderr, flush=True)
    tally.tell_context()


def _before(loaded: Loaded, prompt: str | Sequence[int]) -> str:
    """What is shown before the text: a decoder continues its prompt, an answer stands alone."""
    from clearhead.text.numbers import knows_no_words  # noqa: PLC0415

    if answers(loaded) or not isinstance(prompt, str):
        return ""
    # Numbers that touch would be read as one.
    between = " " if knows_no_words(loaded.tokenizer) and prompt[-1:].strip() else ""
    return prompt.lstrip("\n") + between
