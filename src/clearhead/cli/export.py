"""`clearhead export`: a model as others load it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser

from clearhead.cli.loading import loaded_model, writing_bar
from clearhead.cli.options import parse, parser, tell
from clearhead.formats.atomic import new_place
from clearhead.messages import UserError, say

FORMATS = ("hf",)


def options() -> ArgumentParser:
    """The flags of `clearhead export`."""
    made = parser("export")
    made.add_argument("model", type=str, help="run directory, one of its checkpoint folders, or another MODEL")
    made.add_argument("folder", type=str, help="where the files are written; a folder that is new or empty")
    made.add_argument("--format", type=str, default="hf", help="hf: config.json, safetensors and tokenizer.json")
    made.add_argument("--dtype", type=str, default="float32", help="of the weights: float32, bfloat16 or float16")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def run(arguments: Sequence[str]) -> int:
    """Write the files and say what they are."""
    asked = parse(options(), arguments)
    if asked.format not in FORMATS:
        raise UserError(say("cli.export.format", format=asked.format, known=", ".join(FORMATS)))
    from clearhead.formats.hugging_face.export import export, export_size  # noqa: PLC0415 - torch comes later

    folder = new_place(Path(asked.folder))
    loaded = loaded_model(asked.model, asked.dtype, "cpu")
    with writing_bar(export_size(loaded)) as bar:
        family = export(loaded, folder, written=bar.move)
    files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    size = sum((folder / name).stat().st_size for name in files)
    if asked.json:
        facts = {"model": asked.model, "folder": asked.folder, "format": asked.format, "family": family}
        print(json.dumps({**facts, "bytes": size, "files": files}, ensure_ascii=False))
        return 0
    print(say("cli.export.written", folder=asked.folder, family=family, size=f"{size / 2**20:,.1f} MiB"))
    (architecture,) = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"]
    print(say("cli.export.load", architecture=architecture, folder=asked.folder))
    if "tokenizer.json" not in files:
        tell(say("cli.export.no_tokenizer"))
    return 0
