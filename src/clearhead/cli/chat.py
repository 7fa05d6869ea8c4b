"""`clearhead chat`: talk with a model, turn by turn."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from clearhead.cli.loading import loaded_model
from clearhead.cli.options import MODEL, add_device, parse, parser, tell, use_threads
from clearhead.cli.prompts import warn_of_unknown
from clearhead.cli.sampling import (
    add_ends,
    add_helper,
    add_sampling,
    helper_of,
    sampling_of,
    stops_of,
    usual_temperature,
)
from clearhead.cli.settings import changed, check, shown
from clearhead.cli.written import Tally, as_json, as_table, reading
from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded
    from clearhead.generation.chat import Template, Turn
    from clearhead.generation.writing import Helper, Piece

COMMANDS = ("/reset", "/system", "/settings", "/quit")


def options() -> ArgumentParser:
    """The flags of `clearhead chat`."""
    made = parser("chat")
    made.add_argument("model", type=str, help=MODEL)
    made.add_argument("--system", type=str, default=None, help="what the model is told before the conversation")
    add_ends(made, max_tokens=200)
    add_sampling(made)
    add_helper(made)
    made.add_argument("--logprobs", type=int, default=None, help="show each token with so many alternatives")
    made.add_argument("--json", action="store_true", help="print one JSON object a line for each answer")
    add_device(made)
    return made


def run(arguments: Sequence[str]) -> int:
    """Read a line, write the answer, and so on until /quit or the end of the input."""
    asked = parse(options(), arguments)
    if asked.logprobs is not None and asked.logprobs < 0:
        raise UserError(say("generation.setting", name="logprobs", value=asked.logprobs, wanted="≥ 0"))
    use_threads(asked.threads)
    from clearhead.generation.chat import template_of  # noqa: PLC0415
    from clearhead.generation.request import within  # noqa: PLC0415

    loaded = loaded_model(asked.model, asked.dtype, asked.device)
    asked.temperature = usual_temperature(loaded) if asked.temperature is None else asked.temperature
    # What is wrong with a setting is said before the first line is typed.
    check(asked)
    for id in asked.eos or ():
        within(id, loaded.config.vocab)
    chat = _Chat(loaded, asked, helper_of(asked), template_of(loaded))
    chat.greet()
    chat.talk()
    return 0


@dataclass
class _Chat:
    """A conversation."""

    loaded: Loaded
    asked: Namespace
    helper: Helper | None
    template: Template
    turns: list[Turn] = field(default_factory=list)
    answered: int = 0

    def greet(self) -> None:
        """Say how conversations reach this model, and what can be typed."""
        from clearhead.generation.chat import ChatTemplate, LastTurn  # noqa: PLC0415

        if isinstance(self.template, LastTurn):
            tell(say("cli.chat.answers_alone"))
        elif not isinstance(self.template, ChatTemplate):
            tell(say("cli.chat.no_template"))
        tell(say("cli.chat.commands"))
        if self.asked.system is not None:
            self._system(self.asked.system)

    def talk(self) -> None:
        """Line after line."""
        while (line := _line()) is not None:
            command, _, rest = line.strip().partition(" ")
            try:
                if command == "/quit":
                    return
                self._take(line, command, rest.strip())
            except UserError as error:
                # A turn that cannot be answered is no reason to end the conversation.
                tell(f"clearhead: {error}")
            except KeyboardInterrupt:
                # Before the answer has begun, or once more while its end is being told.
                tell(f"\n{say('cli.chat.stopped')}")

    def _take(self, line: str, command: str, rest: str) -> None:
        match command:
            case "":
                return
            case "/reset":
                self.turns = [turn for turn in self.turns if turn.role == "system"]
                tell(say("cli.chat.reset"))
            case "/system":
                self._system(rest)
            case "/settings":
                if rest:
                    changed(self.asked, rest)
                tell(shown(self.asked))
            case _ if command.startswith("/") and not command.startswith("//"):
                raise UserError(say("cli.chat.unknown_command", command=command, known=" ".join(COMMANDS)))
            case _:
                self._answer(line.replace("//", "/", 1) if command.startswith("//") else line)

    def _system(self, text: str) -> None:
        """Tell the model something before the conversation, or no more of it if the text is empty."""
        from clearhead.generation.chat import ChatTemplate, Turn  # noqa: PLC0415

        if not isinstance(self.template, ChatTemplate):
            raise UserError(say("cli.chat.no_system"))
        self.turns = [turn for turn in self.turns if turn.role != "system"]
        self.turns = [Turn("system", text), *self.turns] if text else self.turns
        tell(say("cli.chat.system"))

    def _answer(self, line: str) -> None:
        from clearhead.generation.chat import Turn, fitted, room_for  # noqa: PLC0415
        from clearhead.generation.request import Request  # noqa: PLC0415
        from clearhead.generation.writing import pieces  # noqa: PLC0415

        asked, loaded = self.asked, self.loaded
        turns = [*self.turns, Turn("user", line)]
        kept, ids = fitted(turns, self.template, loaded.tokenizer, room_for(loaded, asked.max_tokens))
        warn_of_unknown(loaded, [line])
        request = Request(
            ids,
            asked.max_tokens,
            sampling_of(asked),
            # Asking the same again gets another answer; the whole conversation is repeated by its seed.
            asked.seed + self.answered,
            stops_of(asked),
            asked.eos,
            asked.logprobs or 0,
        )
        tally = Tally(loaded, asked.overflow)
        with reading() as progress:
            coming = pieces(loaded, [request], overflow=asked.overflow, draft=self.helper, progress=progress)
            # From here on the turn counts: only what could not be read at all is as if it had not been said.
            seen = self._shown(piece for _, piece in tally.watch(coming, [len(ids)]))
        if len(kept) < len(turns):
            tell(say("cli.chat.forgotten", turns=len(turns) - len(kept)))
        self.turns = [*kept, Turn("assistant", "".join(piece.text for piece in seen))]
        self.answered += 1
        self._report(line, seen, request.seed)
        tally.tell()

    def _shown(self, coming: Iterator[Piece]) -> list[Piece]:
        """Print the answer as it comes; Ctrl-C ends it, and what has come so far stays."""
        seen: list[Piece] = []
        try:
            for piece in coming:
                seen.append(piece)
                if not self.asked.json:
                    print(piece.text, end="", flush=True)
        except KeyboardInterrupt:
            tell(f"\n{say('cli.chat.stopped')}")
        if not self.asked.json:
            print()
        return seen

    def _report(self, line: str, seen: Sequence[Piece], seed: int) -> None:
        from clearhead.generation.writing import gathered  # noqa: PLC0415

        made = gathered(seen)
        if self.asked.json:
            told: dict[str, object] = {"prompt": line, "seed": seed}
            print(as_json(self.loaded, made, told, alternatives=self.asked.logprobs is not None), flush=True)
        elif self.asked.logprobs is not None:
            print(as_table(self.loaded, made), flush=True)


def _line() -> str | None:
    """The next line that the user types; None at the end of the input. Ctrl-C drops the line that is being typed."""
    while True:
        try:
            if sys.stdin.isatty():
                return input("> ")
            line = sys.stdin.readline()
            return line.rstrip("\r\n") if line else None
        except EOFError:
            return None
        except KeyboardInterrupt:
            tell(f"\n{say('cli.chat.leave')}")
