"""What is typed about a model: its kind, its fields, and the same in files of options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from clearhead.models.codec import KINDS
from clearhead.models.config import DecoderConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig

MODELS: tuple[type[StackConfig], ...] = (DecoderConfig, EncoderDecoderConfig, EncoderConfig)
"""The kinds of models that `--model` may name."""


def is_flag(argument: str, flag: str) -> bool:
    """Whether the argument is this flag, alone or with its value."""
    return argument == flag or argument.startswith(f"{flag}=")


def own_flags(kind: type[StackConfig]) -> list[str]:
    """The flags of the fields that models of this kind have."""
    return [f"--model.{field.name}" for field in fields(kind)]


def model_flags(prefix: str, value: Any) -> list[str]:
    """The flags of the fields of a configuration, those of its parts among them."""
    flags = []
    for field in fields(value):
        flag, inner = f"{prefix}.{field.name}", getattr(value, field.name)
        flags += [flag, *(model_flags(flag, inner) if is_dataclass(inner) else [])]
    return flags


def leaves_kind_open(arguments: Sequence[str]) -> bool:
    """Whether fields of a model are typed, and not the kind of model that they belong to."""
    fields_typed = any(argument.startswith("--model.") for argument in arguments)
    return fields_typed and not any(is_flag(argument, "--model") for argument in arguments)


def without_fields(arguments: Sequence[str]) -> list[str]:
    """What was typed beside the fields of the model; nothing of it prints."""
    kept: list[str] = []
    of_field = False
    for argument in arguments:
        value, of_field = of_field and not argument.startswith("--"), False
        if argument.startswith("--model."):
            of_field = "=" not in argument
        elif not value and not is_flag(argument, "--print_config"):
            kept.append(argument)
    return kept


def typed_fields(arguments: Sequence[str]) -> frozenset[str]:
    """The fields of the model that were named, by flags or in a file: `--model.norm.eps 1e-6` names `norm`.

    Its class, `--model Decoder`, names the kind alone.
    """
    named = (re.match(r"--model\.([\w-]+)", argument) for argument in arguments)
    flags = {name[1].replace("-", "_") for name in named if name}
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    given = [(argument.partition("=")[0], argument.partition("=")[2] or after) for argument, after in pairs]
    files = [_fields_in(Path(value)) for flag, value in given if flag == "--config"]
    # The model itself may be written as JSON, too.
    written = [_fields_of(yaml.safe_load(value)) for flag, value in given if flag == "--model"]
    return frozenset(flags.union(*files, *written))


def _fields_in(file: Path) -> set[str]:
    """The fields of the model that an options file names; the file has been read before, so it is as it should be."""
    options = yaml.safe_load(file.read_text(encoding="utf-8"))
    return _fields_of(options.get("model") if isinstance(options, dict) else None)


def _fields_of(model: object) -> set[str]:
    """The fields that a written model names; none if only its class is named."""
    named = model.get("init_args") if isinstance(model, dict) else None
    return set(named) if isinstance(named, dict) else set()


def whole_names(arguments: Sequence[str]) -> list[str]:
    """The kinds of models as their configurations have them: `--model EncoderDecoder` as `--model EncoderDecoderConfig`.

    A file of options that names a kind in short becomes the text that it should be.
    """
    return [_whole(argument, before) for argument, before in zip(arguments, ["", *arguments], strict=False)]


def _whole(argument: str, before: str) -> str:
    # Either `--flag=value`, or a value that stands behind its flag.
    flag, equals, value = argument.partition("=") if argument.startswith("--") else (before, "", argument)
    if not value:
        return argument
    if flag == "--config":
        whole = _whole_file(value)
    elif flag in ("--model", "--model.help"):
        whole = f"{value}Config" if f"{value}Config" in KINDS else _whole_written(value)
    else:
        return argument
    return f"{flag}={whole}" if equals else whole


def _whole_file(file: str) -> str:
    """The file's name; its text instead, mended, if it names a kind in short."""
    try:
        written = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return file  # Whoever reads the options says what is wrong with it.
    whole = _whole_written(written)
    return file if whole == written else whole


def _whole_written(written: str) -> str:
    """YAML or JSON in which a kind of model may be named in short; all else stays as it is, lines and numbers."""
    return re.sub(r"""((?:class_path|model)["']?\s*:\s*["']?)(\w+)(?=["'\s,}]|$)""", _whole_class, written)


def _whole_class(found: re.Match[str]) -> str:
    return f"{found[0]}Config" if f"{found[2]}Config" in KINDS else found[0]
