"""`clearhead import`: somebody else's model as a run directory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser

from clearhead.cli.loading import loaded_model, writing_bar
from clearhead.cli.options import parse, parser
from clearhead.formats.atomic import new_place
from clearhead.messages import say

if TYPE_CHECKING:
    from clearhead.formats.load import Loaded

SHOWN = 3
"""Names of tensors that are told of one kind."""


def options() -> ArgumentParser:
    """The flags of `clearhead import`."""
    made = parser("import")
    made.add_argument(
        "source", type=str, help="Hugging Face folder, .gguf or .pt file, or the name of an installed model"
    )
    made.add_argument("out", type=str, help="run directory to make; a folder that is new or empty")
    made.add_argument("--dtype", type=str, default="float32", help="of the weights that are kept: float32 or bfloat16")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def run(arguments: Sequence[str]) -> int:
    """Read the model, say what became of each tensor, and write the run."""
    asked = parse(options(), arguments)
    from clearhead.formats.imported import import_model, import_size  # noqa: PLC0415 - torch comes later

    out = new_place(Path(asked.out))
    loaded = loaded_model(asked.source, asked.dtype, "cpu")
    with writing_bar(import_size(loaded)) as bar:
        made = import_model(loaded, out, written=bar.move)
    imported, report = made.details["imported"], loaded.report
    if asked.json:
        tensors = {} if report is None else {"loaded": report.loaded, "retied": report.retied, "unused": report.unused}
        facts = {"out": asked.out, **imported, **tensors, "missing": [], "unexpected": []}
        print(json.dumps(facts, ensure_ascii=False))
        return 0
    print(say("cli.import.written", origin=loaded.origin, source=asked.source, out=asked.out))
    print("\n".join(_became(loaded)))
    return 0


def _became(loaded: Loaded) -> Iterator[str]:
    """What became of the tensors of the file, a line for each kind."""
    report = loaded.report
    if report is None:
        return
    retied = [f"{name} = {first}" for name, first in report.retied.items()]
    yield say("cli.import.loaded", count=report.loaded)
    yield say("cli.import.retied", found=_named(retied))
    yield say("cli.import.unused", found=_named(report.unused))
    # Otherwise nothing would have been loaded.
    yield say("cli.import.missing")


def _named(names: Sequence[str]) -> str:
    """How many, and the first of them."""
    shown = ", ".join([*names[:SHOWN], *(["..."] if len(names) > SHOWN else [])])
    return f"{len(names)} ({shown})" if names else "0"
