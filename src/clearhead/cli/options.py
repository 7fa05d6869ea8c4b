"""Options: how a command reads its own, and those that several share."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
from argparse import ArgumentError
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import get_args, get_type_hints

from jsonargparse import ArgumentParser, Namespace

from clearhead.cli.model_flags import MODELS, is_flag, leaves_kind_open, model_flags, own_flags, whole_names
from clearhead.messages import UserError, say
from clearhead.models.choices import Choice
from clearhead.models.codec import KINDS
from clearhead.models.config import ModelConfig


def parser(verb: str) -> ArgumentParser:
    """An empty parser of `clearhead VERB`."""
    about = say(f"cli.{verb.replace('-', '_')}.about")
    return ArgumentParser(prog=f"clearhead {verb}", description=about, exit_on_error=False, allow_abbrev=False)


def own_name() -> str:
    """What the user typed to get here, so that a printed command can be typed as it stands."""
    typed = Path(sys.argv[0])
    if typed.name == "__main__.py":
        return "python -m clearhead"
    on_path = shutil.which("clearhead")
    named = typed.stem == "clearhead" and (on_path is None or Path(on_path).resolve() != typed.resolve())
    return quote(os.path.relpath(typed)) if named else "clearhead"


def tell(*lines: str) -> None:
    """Say something beside the answer, on standard error, a line each."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


MODEL = "run directory, one of its checkpoints, Hugging Face folder, .gguf or .pt file, or a name that `clearhead models` lists"
"""What MODEL may be, for the help of the commands that take one."""

INTERRUPTED = 130
"""Exit status of a command that the user stopped, as shells have it for SIGINT."""


def add_device(
    options: ArgumentParser, *, dtype: str | None = "float32", dtypes: str = "float32, float64, bfloat16 or float16"
) -> None:
    """Where and in which numbers a model runs."""
    options.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    options.add_argument("--dtype", type=str, default=dtype, help=dtypes)
    options.add_argument("--threads", type=int, default=None, help="CPU threads; as many as PyTorch picks if not given")


def use_threads(threads: int | None) -> None:
    """Set how many CPU threads PyTorch uses.

    Raises:
        UserError: unless it is at least 1.
    """
    if threads is None:
        return
    if threads < 1:
        raise UserError(say("training.setting", name="threads", value=threads, wanted="≥ 1"))
    import torch  # noqa: PLC0415 - only commands that compute wait for torch

    torch.set_num_threads(threads)


def parse(options: ArgumentParser, arguments: Sequence[str], *, kind: str = "DecoderConfig") -> Namespace:
    """What the user typed, checked. Dashes and underscores are the same in a flag.

    Args:
        options: what may be typed.
        arguments: what was typed.
        kind: the class that `--model.layers 4` means where none is named.

    Raises:
        UserError: one line with the nearest flag that exists, or what a value should be.
    """
    folded = _config_first([_folded(argument, options) for argument in arguments])
    # What is left to be chosen for the text must stay so when the printed options are read again.
    folded = ["--print_config=skip_default" if flag == "--print_config" else flag for flag in folded]
    folded = whole_names(folded)
    if leaves_kind_open(folded):
        folded = ["--model", kind, *folded]
    try:
        # jsonargparse keeps what it writes about a failed parse on standard error; the user gets our line alone.
        parsed: Namespace = options.parse_args(folded)
    except ArgumentError as error:
        raise UserError(_one_line(str(error), options)) from None
    except UnicodeDecodeError as error:
        raise UserError(say("cli.config_not_utf8", reason=error)) from None
    return parsed


def instantiate(options: ArgumentParser, parsed: Namespace) -> Namespace:
    """The same, with classes as values; a mistake in a value is a UserError."""
    try:
        made: Namespace = options.instantiate(parsed)
    except ValueError as error:
        # The message of a UserError raised by a configuration class, without jsonargparse's frame around it.
        raise _root(error) from None
    return made


def _root(error: BaseException) -> UserError:
    while error.__cause__ is not None:
        error = error.__cause__
    return error if isinstance(error, UserError) else UserError(str(error).strip().splitlines()[-1].strip())


def _config_first(arguments: list[str]) -> list[str]:
    """The files of options before everything else, so that what is typed counts more, wherever it stands."""
    files: list[str] = []
    rest: list[str] = []
    left = iter(arguments)
    for argument in left:
        if argument == "--config":
            files += [argument, *islice(left, 1)]
        else:
            (files if is_flag(argument, "--config") else rest).append(argument)
    return files + rest


def _folded(argument: str, options: ArgumentParser) -> str:
    """The flag as it is spelt here, whichever of dash and underscore the user took."""
    if not argument.startswith("--") or argument == "--":
        return argument
    flag, equals, value = argument.partition("=")
    if flag.startswith("--model."):
        return flag.replace("-", "_").replace("__", "--", 1) + equals + value
    known = {_key(name): name for name in _flags(options)}
    return known.get(_key(flag), flag) + equals + value


def _key(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _flags(options: ArgumentParser) -> list[str]:
    """Every flag a user may give, those of the model's fields among them."""
    flags = [name for name in options._option_string_actions if name.startswith("--")]
    models = MODELS if "--model" in flags else ()
    return list(dict.fromkeys([*flags, *(flag for model in models for flag in model_flags("--model", model()))]))


def _one_line(problem: str, options: ArgumentParser) -> str:
    """jsonargparse's report, which may take many lines, as one that says what to do."""
    if unknown := re.search(r"[Uu]nrecognized arguments: (.*)", problem):
        flag = next((word for word in unknown[1].split() if word.startswith("-")), None)
        return say("cli.word_too_many", word=unknown[1]) if flag is None else _unknown(flag, options)
    keys = ".".join(re.findall(r'Parser key "([^"]+)"', problem))
    if option := re.search(r"Option '([^']+)' is not accepted", problem):
        return _unknown(f"--{keys}.{option[1]}", options)
    if known := _known_fault(problem):
        return known
    last = " ".join(problem.strip().splitlines()[-1].split())
    if choice := re.search(r"Expected a dot import path string: (.*)", last):
        return say("cli.unknown_choice", flag=f"--{keys}", value=choice[1], known=", ".join(_choices(keys)))
    kinds_wanted = re.findall(r"Expected an? <class '(\w+)'>", problem)
    if value := re.search(r"(?:Got|Given) value: (.*)", last):
        wanted = " / ".join(kind for kind in kinds_wanted if kind != "NoneType")
        return say("cli.wrong_value", flag=f"--{_dashed(keys, options)}", value=value[1], wanted=wanted)
    return last


def _known_fault(problem: str) -> str | None:
    """What to say of a report that names internals."""
    if reason := _fault_of_config(problem):
        return say("cli.bad_config", reason=reason)
    return say("training.lora_without_rank") if "Namespace(rank=None" in problem else None


def _fault_of_config(problem: str) -> str | None:
    """What is wrong with a file of options, if that is what the report is about."""
    if "<unicode string>" in problem:
        # PyYAML tells in its last two lines what it stumbled over, and where in the file.
        return " ".join(" ".join(problem.splitlines()[-2:]).split()).replace('in "<unicode string>", ', "in ")
    other = re.search(r"Unexpected config: (.*)", problem)
    return other[1] if other else None


def _unknown(flag: str, options: ArgumentParser) -> str:
    flags = _flags(options)
    kinds = [kind.__name__.removesuffix("Config") for kind in MODELS if flag in own_flags(kind)]
    if 0 < len(kinds) < len(MODELS):
        return say("cli.other_kind", flag=flag, kinds=" / ".join(kinds), kind=kinds[0])
    if flag in flags:
        return say("cli.needs_class", flag=flag)
    # By the words alone: the two dashes, which all have, would make any two flags alike.
    words = {name.lstrip("-"): name for name in flags}
    near = difflib.get_close_matches(flag.lstrip("-"), words, 1, cutoff=0.5) or ["help"]
    return say("cli.unknown_flag", flag=flag, near=words.get(near[0], "--help"))


def _dashed(keys: str, options: ArgumentParser) -> str:
    known = {_key(name): name for name in _flags(options)}
    return known.get(_key(keys), keys).lstrip("-")


def _choices(keys: str) -> list[str]:
    """The class names that the field `keys` may take."""
    name = keys.rpartition(".")[2]
    wanted = [hint for kind in KINDS.values() for field, hint in get_type_hints(kind).items() if field == name]
    families = [kind for hint in wanted for kind in (hint, *get_args(hint)) if isinstance(kind, type)]
    family = next((kind for kind in families if issubclass(kind, Choice)), ModelConfig)
    return [name for name, found in KINDS.items() if isinstance(found, type) and issubclass(found, family)]
