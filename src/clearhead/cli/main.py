"""The `clearhead` command: finds the verb, and turns a user's mistake into one line.

Exit status: 0 done, 1 the answer is "no", 2 it could not be done, 130 interrupted.
"""

from __future__ import annotations

import difflib
import importlib
import io
import keyword
import os
import re
import sys
from collections.abc import Sequence

from clearhead import __version__
from clearhead.messages import UserError, say

VERBS = (
    *("train", "generate", "chat", "explore", "trace", "plot", "check", "diff", "eval", "tokenizer", "info"),
    *("models", "import", "export", "verify-resume", "doctor"),
)
"""Each is a module of this folder (with _ for -; `import_model`, as no module is called `import`) with `run(arguments) -> exit status`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    _never_fail_to_print()
    try:
        status = _run(arguments)
        # What is still on its way out is part of the command: nobody may be there to read it.
        sys.stdout.flush()
        return status
    except UserError as error:
        print(f"clearhead: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nclearhead: {say('cli.interrupted')}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has stopped reading; there is nobody left to tell.
        _discard_output()
        return 0
    except OSError as error:
        # A full disk behind `> file`, most likely.
        _discard_output()
        print(f"clearhead: {say('cli.system', reason=error)}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not _no_memory(error):
            raise
        reason, training = _wanted(error), arguments[:1] == ["train"]
        line = say("cli.no_memory_to_train" if training else "cli.no_memory", reason=reason)
        print(f"clearhead: {line}", file=sys.stderr)
        return 2


def _run(arguments: Sequence[str]) -> int:
    verb = arguments[0] if arguments else "--help"
    if verb in ("-h", "--help", "help"):
        print(say("cli.help", verbs="\n".join(f"  {name:<15}{say(f'cli.{_named(name)}.about')}" for name in VERBS)))
        return 0
    if verb in ("-V", "--version"):
        print(f"clearhead {__version__}")
        return 0
    if verb not in VERBS:
        raise UserError(_unknown_verb(verb))
    try:
        return int(importlib.import_module(f"clearhead.cli.{_module(verb)}").run(arguments[1:]))
    except SystemExit as leaving:
        # --help and --print_config print and leave.
        return int(leaving.code or 0)


def _named(verb: str) -> str:
    """What a verb's messages are called."""
    return verb.replace("-", "_")


def _module(verb: str) -> str:
    """The name of a verb's module."""
    return f"{verb}_model" if keyword.iskeyword(verb) else _named(verb)


def _no_memory(error: Exception) -> bool:
    """Whether PyTorch (on any device and system) or numpy asked for more memory than there is.

    On a CPU it is a RuntimeError like any other, so what it says decides; torch is not imported to ask for its class.
    """
    said = re.search(r"can't allocate memory|not enough memory|out of memory", str(error))
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or said is not None


def _wanted(error: Exception) -> str:
    """How much was asked for, if the error says so; otherwise the first line of what it says."""
    asked = re.search(r"allocate ([\d.]+) (\w+)", str(error))
    if asked is None:
        return next(iter(str(error).splitlines()), type(error).__name__)
    amount, unit = asked.groups()
    return f"{int(amount) / 2**30:,.2f} GiB" if unit == "bytes" else f"{amount} {unit}"


def _discard_output() -> None:
    """Let what is still buffered go nowhere, so that leaving does not fail on it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unknown_verb(verb: str) -> str:
    near = difflib.get_close_matches(verb, VERBS, 1) or ["--help"]
    return say("cli.unknown_verb", verb=verb, near=near[0])


def _never_fail_to_print() -> None:
    """A console that cannot show a character shows a stand-in for it instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
