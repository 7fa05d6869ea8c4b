"""`clearhead tokenizer`: train one, show what it makes of a text, count how well it does."""

from __future__ import annotations

import difflib
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace
from tqdm import tqdm

from clearhead.cli.counted import numbers, scripts_table, sentences
from clearhead.cli.options import parse, parser, tell
from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from clearhead.text.sources import Sources
    from clearhead.text.tokenizer import Tokenizer

TOKENIZER = "run directory, tokenizer.json (clearhead's or the tokenizers library's), or byte"


def run(arguments: Sequence[str]) -> int:
    """Do the action that the first argument names."""
    action = arguments[0] if arguments else "--help"
    if action in ("-h", "--help"):
        lines = "\n".join(f"  {name:<10}{say(f'cli.tokenizer.{name}.about')}" for name in ACTIONS)
        print(say("cli.tokenizer.help", about=say("cli.tokenizer.about"), actions=lines))
        return 0
    if action not in ACTIONS:
        near = difflib.get_close_matches(action, ACTIONS, 1) or ["show"]
        raise UserError(say("cli.tokenizer.unknown_action", action=action, near=near[0]))
    options, act = ACTIONS[action]
    act(parse(options(), arguments[1:]))
    return 0


def _parser(action: str) -> ArgumentParser:
    made = parser("tokenizer")
    made.prog, made.description = f"clearhead tokenizer {action}", say(f"cli.tokenizer.{action}.about")
    return made


def _add_files(made: ArgumentParser) -> None:
    """Texts, and how they are read."""
    made.add_argument("files", type=str, nargs="+", help="texts, folders, .jsonl")
    made.add_argument("--encoding", type=str, default="auto", help="of the files; recognised if auto")
    made.add_argument("--errors", type=str, default="strict", help="bytes that do not fit: strict, or replace")
    made.add_argument("--field", type=str, default="text", help="which field of a .jsonl line is the text")


def train_options() -> ArgumentParser:
    """The flags of `clearhead tokenizer train`."""
    made = _parser("train")
    _add_files(made)
    made.add_argument("--vocab", type=int, default=None, help="tokens that there shall be, at least 256")
    made.add_argument("--out", type=str, default=None, help="file to write, such as tokenizer.json")
    made.add_argument(
        "--special",
        type=str,
        action="append",
        default=[],
        help="a token that no text makes; may be given several times",
    )
    made.add_argument("--force", action="store_true", help="replace --out if it exists")
    return made


def show_options() -> ArgumentParser:
    """The flags of `clearhead tokenizer show`."""
    made = _parser("show")
    made.add_argument("tokenizer", type=str, help=TOKENIZER)
    made.add_argument("text", type=str, help="the text, or - for standard input")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def stats_options() -> ArgumentParser:
    """The flags of `clearhead tokenizer stats`."""
    made = _parser("stats")
    made.add_argument("tokenizer", type=str, help=TOKENIZER)
    _add_files(made)
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def _train(asked: Namespace) -> None:
    if asked.vocab is None:
        raise UserError(say("cli.tokenizer.no_vocab"))
    out = _free(asked)
    from clearhead.formats.atomic import write_text  # noqa: PLC0415
    from clearhead.text.bpe_training import BYTES, train_bpe  # noqa: PLC0415 - the library comes after the flags are right
    from clearhead.text.files import LEAST_BYTES  # noqa: PLC0415

    sources = _sources(asked, least=LEAST_BYTES)
    with _Bar(sources.size, say("cli.tokenizer.reading")) as bar:

        def parts() -> Iterator[str]:
            for document in sources.documents(bar.advance):
                yield from document.parts
            bar.rename(say("cli.tokenizer.merging"))

        made = train_bpe(parts, vocab=asked.vocab, specials=asked.special)
    write_text(out, made.json)
    if made.size < asked.vocab:
        tell(say("cli.tokenizer.few", size=f"{made.size:,}", vocab=f"{asked.vocab:,}"))
    specials = len(asked.special)
    merges = made.size - BYTES - specials
    print(say("cli.tokenizer.trained", path=out, size=f"{made.size:,}", merges=f"{merges:,}", specials=specials))


def _free(asked: Namespace) -> Path:
    """Where the tokenizer goes: a file that is not there, unless the user said so."""
    if asked.out is None:
        raise UserError(say("cli.tokenizer.no_out"))
    out = Path(asked.out)
    if out.is_dir():
        raise UserError(say("cli.tokenizer.folder", path=out, file=out / "tokenizer.json"))
    if out.exists() and not asked.force:
        raise UserError(say("cli.tokenizer.exists", path=out))
    if not out.parent.is_dir():
        raise UserError(say("cli.trace.no_folder", path=out, folder=out.parent))
    return out


def _show(asked: Namespace) -> None:
    from clearhead.text.alignment import utf8_lengths  # noqa: PLC0415
    from clearhead.text.token_table import groups_of, table  # noqa: PLC0415

    tokenizer = _opened(asked.tokenizer)
    text = _typed(asked.text)
    groups = groups_of(tokenizer, text)
    if asked.json:
        tokens = [
            {"id": id, "piece": piece, "start": group.start, "end": group.end}
            for group in groups
            for id, piece in zip(group.ids, group.pieces, strict=True)
        ]
        print(json.dumps({"tokenizer": asked.tokenizer, "text": text, "tokens": tokens}, ensure_ascii=False))
        return
    if any(group.start is None for group in groups):
        tell(say("cli.tokenizer.apart"))
    print(table(text, groups, shutil.get_terminal_size().columns), end="")
    count, size = sum(len(group.ids) for group in groups), int(utf8_lengths(text).sum())
    print(say("cli.tokenizer.shown", tokens=f"{count:,}", characters=f"{len(text):,}", bytes=f"{size:,}"))


def _typed(text: str) -> str:
    """The text of the command line, or that of standard input."""
    if text != "-":
        return text
    from clearhead.text.files import raw_text, with_line_feeds  # noqa: PLC0415

    raw = raw_text(sys.stdin.buffer.read(), Path("-"), "auto")
    tell(*raw.notes)
    return with_line_feeds(raw.text, lone=False)[0]


def _stats(asked: Namespace) -> None:
    from clearhead.text.statistics import statistics  # noqa: PLC0415

    tokenizer = _opened(asked.tokenizer)
    sources = _sources(asked, least=1)
    with _Bar(sources.size, say("cli.tokenizer.encoding")) as bar:
        found = statistics(tokenizer, lambda: sources.documents(bar.advance))
    if asked.json:
        print(json.dumps({"tokenizer": asked.tokenizer, "files": asked.files, **numbers(found)}, ensure_ascii=False))
    else:
        print("\n".join([*sentences(found), *scripts_table(found)]))


def _opened(name: str) -> Tokenizer:
    """The tokenizer that `name` names."""
    from clearhead.text.saved import read_tokenizer  # noqa: PLC0415
    from clearhead.text.tokenizers import ByteTokenizer  # noqa: PLC0415

    path = Path(name)
    if name == "byte" and not path.exists():
        return ByteTokenizer()
    # A checkpoint of a run has the run's tokenizer.
    in_run = path.resolve().parent.name == "checkpoints" and not (path / "tokenizer.json").exists()
    return read_tokenizer(path.resolve().parent.parent if path.is_dir() and in_run else path)


def _sources(asked: Namespace, *, least: int) -> Sources:
    """The texts that the user names, looked at once; so many bytes of them at least."""
    from clearhead.text.documents import Reading  # noqa: PLC0415
    from clearhead.text.sources import find_sources  # noqa: PLC0415

    with _Bar(None, say("cli.tokenizer.reading")) as bar:
        reading = Reading(asked.encoding, asked.errors, asked.field)
        sources = find_sources(asked.files, reading, bar.advance, least=least)
    tell(*sources.notes)
    return sources


class _Bar:
    """A line on standard error for what takes more than two seconds: how many bytes have been read, of how many."""

    def __init__(self, size: int | None, what: str) -> None:
        # A log file gets a line every few seconds, a terminal a line that moves.
        interval = 0.2 if sys.stderr.isatty() else 10.0
        self._bar = tqdm(
            total=size,
            desc=what,
            delay=2,
            mininterval=interval,
            leave=False,
            dynamic_ncols=True,
            unit="B",
            unit_scale=True,
        )

    def advance(self, count: int) -> None:
        """So many more bytes have been read."""
        self._bar.update(count)

    def rename(self, what: str) -> None:
        """Something else is being done now."""
        # What follows tells nothing while it is done: the line is shown if it is likely to last.
        self._bar.set_description_str(what, refresh=self._bar.format_dict["elapsed"] > 0.5)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()


ACTIONS: dict[str, tuple[Callable[[], ArgumentParser], Callable[[Namespace], None]]] = {
    "train": (train_options, _train),
    "show": (show_options, _show),
    "stats": (stats_options, _stats),
}
"""What can be done: the flags of each action, and who does it."""
