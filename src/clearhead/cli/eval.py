"""`clearhead eval`: how well a model predicts texts, guesses hidden tokens or answers sources."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from jsonargparse import ArgumentParser, Namespace
from tqdm import tqdm

from clearhead.cli.loading import loaded_model
from clearhead.cli.options import MODEL, add_device, parse, parser, tell, use_threads
from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded
    from clearhead.text.documents import Documents, Reading

LAYOUT = "{desc} {bar:20} {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"

Numbers = Mapping[str, float]
Answer = tuple[Numbers, Numbers, list[str], list[str]]
"""Measures, counts, what was scored and how in words, and what the user should know."""


def options() -> ArgumentParser:
    """The flags of `clearhead eval`."""
    made = parser("eval")
    made.add_argument("model", type=str, help=MODEL)
    made.add_argument(
        "files",
        type=str,
        nargs="+",
        help="texts, folders, .jsonl of texts or of messages; for an EncoderDecoder files of pairs",
    )
    made.add_argument(
        "--stride",
        type=int,
        default=None,
        help="how far windows move on: the context if not given; less, and each token sees more of what stands before it",
    )
    made.add_argument(
        "--batch", type=int, default=None, help="windows or pairs at once; changes no number beyond rounding"
    )
    made.add_argument("--limit", type=int, default=None, help="score no more than the first so many tokens")
    made.add_argument("--seed", type=int, default=None, help="for an Encoder: of the tokens that are hidden; 0")
    made.add_argument("--encoding", type=str, default="auto", help="of the files; recognised if auto")
    made.add_argument("--errors", type=str, default=None, help="bytes that do not fit: strict (the default) or replace")
    made.add_argument("--field", type=str, default=None, help="which field of a .jsonl line is the text; text")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    add_device(made)
    return made


def run(arguments: Sequence[str]) -> int:
    """Score files, and say what was scored, and how."""
    asked = parse(options(), arguments)
    use_threads(asked.threads)
    from clearhead.models.encoder import Encoder  # noqa: PLC0415
    from clearhead.models.encoder_decoder import EncoderDecoder  # noqa: PLC0415

    loaded = loaded_model(asked.model, asked.dtype, asked.device)
    match loaded.model:
        case EncoderDecoder():
            answer = _pairs(loaded, asked)
        case Encoder():
            answer = _hidden(loaded, asked)
        case _:
            answer = (_conversations if _holds_conversations(asked) else _texts)(loaded, asked)
    measures, counts, scored, notes = answer
    if asked.json:
        numbers = {name: value if math.isfinite(value) else None for name, value in {**measures, **counts}.items()}
        print(json.dumps({"model": str(loaded.source), "files": asked.files, **numbers}, ensure_ascii=False))
    else:
        model = say("cli.eval.model", source=loaded.source)
        print("\n".join([model, *scored, "", *_rows(loaded, measures), *notes]))
    return 0


def _texts(loaded: Loaded, asked: Namespace) -> Answer:
    """Every token of texts, from what stands before it."""
    from clearhead.training.scoring import score  # noqa: PLC0415

    _must_not_say(asked, "seed")
    documents = _documents(asked)
    with Bar() as bar:
        found = score(loaded, documents, stride=asked.stride, batch=asked.batch, limit=asked.limit, progress=bar)
    measures = {
        "loss": found.loss,
        "perplexity": found.perplexity,
        "bits_per_byte": found.bits_per_byte,
        "bits_per_character": found.bits_per_character,
    }
    counts = {
        "tokens": found.tokens,
        "ends": found.ends,
        "documents": found.documents,
        "bytes": found.bytes,
        "characters": found.characters,
        "unknown": found.unknown,
        "context": found.context,
        "stride": found.stride,
    }
    scored = [
        say(
            "cli.eval.scored",
            tokens=f"{found.tokens:,}",
            documents=f"{found.documents:,}",
            bytes=f"{found.bytes:,}",
            characters=f"{found.characters:,}",
        )
    ]
    if found.ends:
        scored.append(say("cli.eval.ends", ends=f"{found.ends:,}"))
    context, stride = found.context, found.stride
    if stride == context:
        scored.append(say("cli.eval.touching", context=context))
    else:
        scored.append(say("cli.eval.overlapping", context=context, stride=stride, least=context - stride + 1))
    notes = [say("cli.eval.unknown", unknown=f"{found.unknown:,}")] if found.unknown else []
    return measures, counts, scored, notes


def _conversations(loaded: Loaded, asked: Namespace) -> Answer:
    """Every token of the answers, from all that stands before it."""
    from clearhead.text.messages_file import read_conversations  # noqa: PLC0415
    from clearhead.training.scoring_conversations import score_conversations  # noqa: PLC0415

    _must_not_say(asked, "stride", "limit", "seed", "field")
    read = read_conversations(asked.files, _reading(asked))
    tell(*read.notes)
    with Bar() as bar:
        found = score_conversations(loaded, read.conversations, batch=asked.batch, progress=bar)
    measures = {"loss": found.loss, "perplexity": found.perplexity, "answers_right": found.answers_right}
    counts = {
        "tokens": found.tokens,
        "right": found.right,
        "answers": found.answers,
        "conversations": found.conversations,
    }
    scored = say(
        "cli.eval.scored_conversations",
        tokens=f"{found.tokens:,}",
        answers=f"{found.answers:,}",
        conversations=f"{found.conversations:,}",
    )
    return measures, counts, [scored], []


def _holds_conversations(asked: Namespace) -> bool:
    """Whether the files are conversations: all of them, or none.

    Raises:
        UserError: if some are and some are not, or one cannot be read.
    """
    from clearhead.text.messages_file import holds_conversations  # noqa: PLC0415

    if asked.field is not None:
        return False
    holds = [holds_conversations(Path(file), _reading(asked)) for file in asked.files]
    if any(holds) and not all(holds):
        one, other = asked.files[holds.index(True)], asked.files[holds.index(False)]
        raise UserError(say("cli.eval.mixed", path=one, other=other))
    return holds[0]


def _hidden(loaded: Loaded, asked: Namespace) -> Answer:
    """Some tokens of texts, from what stands on both sides."""
    from clearhead.training.scoring_masked import score_masked  # noqa: PLC0415

    _must_not_say(asked, "stride")
    documents, seed = _documents(asked), asked.seed or 0
    with Bar() as bar:
        found = score_masked(loaded, documents, seed=seed, batch=asked.batch, limit=asked.limit, progress=bar)
    measures = {"loss": found.loss, "perplexity": found.perplexity, "accuracy": found.accuracy}
    counts = {"tokens": found.tokens, "right": found.right, "seed": found.seed, "context": found.context}
    scored = [
        say("cli.eval.scored_hidden", tokens=f"{found.tokens:,}", seed=found.seed),
        say("cli.eval.both_sides", context=found.context),
    ]
    return measures, counts, scored, []


def _pairs(loaded: Loaded, asked: Namespace) -> Answer:
    """Every token of the targets, from the source and what stands before it."""
    from clearhead.training.data_choice import DataChoice  # noqa: PLC0415
    from clearhead.training.pair_data import read_pair_texts  # noqa: PLC0415
    from clearhead.training.scoring_pairs import score_pairs  # noqa: PLC0415

    _must_not_say(asked, "stride", "limit", "seed", "field")
    texts = read_pair_texts(asked.files, DataChoice(encoding=asked.encoding, errors=asked.errors))
    tell(*texts.notes)
    with Bar() as bar:
        found = score_pairs(loaded, texts.pairs, places=texts.places, batch=asked.batch, progress=bar)
    measures = {"loss": found.loss, "perplexity": found.perplexity, "exact_match": found.exact_match}
    counts = {"tokens": found.tokens, "right": found.right, "pairs": found.pairs}
    scored = [say("cli.eval.scored_pairs", tokens=f"{found.tokens:,}", pairs=f"{found.pairs:,}")]
    return measures, counts, scored, []


def _documents(asked: Namespace) -> Documents:
    """What the files hold; what was recognised on the way is said."""
    from clearhead.text.sources import find_sources  # noqa: PLC0415

    sources = find_sources(asked.files, _reading(asked), least=1)
    tell(*sources.notes)
    return sources.documents


def _reading(asked: Namespace) -> Reading:
    from clearhead.text.documents import Reading  # noqa: PLC0415

    return Reading(asked.encoding, asked.errors or "strict", asked.field or "text")


def _must_not_say(asked: Namespace, *flags: str) -> None:
    """Raise a UserError if an option was given that has no meaning for this model."""
    for flag in flags:
        if asked[flag] is not None:
            raise UserError(say("cli.eval.no_meaning", flag=flag))


def _rows(loaded: Loaded, measures: Numbers) -> Iterator[str]:
    """Each measure by its name in the user's language; beside the loss what guessing would have."""
    beside = say("cli.eval.guessing", uniform=f"{math.log(loaded.tokenizer.size):.4f}")
    for name, value in measures.items():
        number = f"{value:,.4f}" if not value > 1e9 else f"{value:.3e}"
        yield f"  {number:>12}  {say(f'cli.eval.row.{name}')}{beside if name == 'loss' else ''}"


class Bar:
    """A line on standard error: tokens done, of how many, and how fast; before that, characters read."""

    def __init__(self) -> None:
        self._bar = _bar(say("cli.eval.reading"), None)
        self._began = time.perf_counter()

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done; of 0 while characters are read."""
        if total and not self._bar.total:
            self._bar.close()
            self._bar, self._began = _bar(say("cli.eval.scoring"), total), time.perf_counter()
        if total:
            speed = f"{done / (time.perf_counter() - self._began):,.0f}"
            self._bar.set_postfix_str(say("cli.eval.postfix", speed=speed), refresh=False)
        self._bar.update(done - self._bar.n)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()


def _bar(description: str, total: int | None) -> tqdm[NoReturn]:
    # A log file gets a line every few seconds, a terminal a line that moves; what is done at once shows nothing.
    interval = 0.2 if sys.stderr.isatty() else 10.0
    return tqdm(
        bar_format=LAYOUT,
        desc=description,
        total=total,
        mininterval=interval,
        delay=interval,
        unit_scale=True,
        dynamic_ncols=True,
    )
