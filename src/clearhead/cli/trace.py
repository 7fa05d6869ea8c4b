"""`clearhead trace`: what a model does with a text, tensor by tensor, or one head as a picture."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from jsonargparse import ArgumentParser, Namespace

from clearhead.cli.loading import loaded_model
from clearhead.cli.options import MODEL, add_device, parse, parser, use_threads
from clearhead.cli.prompts import answers
from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from torch import Tensor

    from clearhead.formats.load import Loaded
    from clearhead.tracing.trace import Trace

WIDEST = 40
"""Queries and keys that a terminal shows: the last ones."""


def options() -> ArgumentParser:
    """The flags of `clearhead trace`."""
    made = parser("trace")
    made.add_argument("model", type=str, help=MODEL)
    made.add_argument("-p", "--prompt", type=str, default=None, help="the text; for an encoder-decoder the source")
    made.add_argument("--target", type=str, default=None, help="for an encoder-decoder: what it has written so far")
    made.add_argument("--names", type=str, nargs="+", default=["*"], help="patterns of names; * stands for anything")
    made.add_argument("--head", type=str, default=None, help="show one head: BLOCK.HEAD, such as 3.2")
    made.add_argument("--kind", type=str, default=None, help="of the head: attention, cross_attention or encoder")
    made.add_argument(
        "--weight", type=int, nargs=2, default=None, help="beside --head: the answer without this weight, QUERY KEY"
    )
    made.add_argument("--positions", type=int, nargs="+", default=None, help="queries to keep; negative from the end")
    made.add_argument("--svg", type=str, default=None, help="write the head as SVG to this file")
    made.add_argument("--png", type=str, default=None, help="write the head as PNG to this file")
    made.add_argument("--save", type=str, default=None, help="write the tensors to this .safetensors file")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    add_device(made)
    return made


def run(arguments: Sequence[str]) -> int:
    """Show the walk of shapes, or one head."""
    asked = parse(options(), arguments)
    if asked.prompt is None:
        raise UserError(say("cli.trace.no_prompt"))
    alone = [flag for flag in ("svg", "png", "weight", "kind") if asked[flag] is not None]
    if asked.head is None and alone:
        raise UserError(say("cli.generate.needs", flag=f"--{alone[0]}", other="--head"))
    if asked.head is not None and asked.names != ["*"]:
        raise UserError(say("cli.trace.names_or_head"))
    use_threads(asked.threads)

    loaded = loaded_model(asked.model, asked.dtype, asked.device)
    if asked.head is None:
        _walk(loaded, asked)
    else:
        _head(loaded, asked)
    return 0


def _walk(loaded: Loaded, asked: Namespace) -> None:
    """Name, axes, sizes and statistics of each tensor."""
    made = _traced(loaded, asked, asked.names)
    if asked.save:
        _write(asked.save, made.save)
    if asked.json:
        print(json.dumps({"model": str(loaded.source), **described(made)}, ensure_ascii=False))
        return
    from clearhead.tracing.names import AXES  # noqa: PLC0415
    from clearhead.tracing.trace import table  # noqa: PLC0415

    if made.source:
        print(say("cli.trace.source", tokens=" ".join(made.source)))
    print(say("cli.trace.tokens", tokens=" ".join(made.tokens)))
    print(" · ".join(f"{letter} {meaning}" for letter, meaning in AXES.items()), end="\n\n")
    print(table(made))
    if made.differences:
        print(f"\n{say('cli.trace.again', difference=f'{max(made.differences.values()):.1e}')}")


def _head(loaded: Loaded, asked: Namespace) -> None:
    """One head, as a picture."""
    block, head = _which(asked.head)
    name = _name(loaded, asked.kind, block)
    made = _traced(loaded, asked, [name], heads={block: [head]}, count=_heads(loaded, name))
    (weights,) = made.values()
    queries, keys = _labels(made, name)
    # Before anything is printed or written: a place that is not there is a mistake.
    beside = f"[{say('tracing.not_a_cause')}]" if asked.weight is None else _effect(loaded, asked, block, head)
    title = f"{name.removesuffix('.weights')}, {say('cli.trace.head', head=head)}"
    if asked.svg or asked.png:
        _pictures(asked, weights[0, 0], queries, keys, title)
    if asked.save:
        _write(asked.save, made.save)
    if asked.json:
        numbers = {**described(made), "queries": queries, "keys": keys, "weights": weights[0, 0].tolist()}
        print(json.dumps({"model": str(loaded.source), **numbers}, ensure_ascii=False))
        return
    from clearhead.tracing.pictures import heat_text  # noqa: PLC0415

    print(title)
    print(heat_text(weights[0, 0, -WIDEST:, -WIDEST:].cpu(), queries[-WIDEST:], keys[-WIDEST:]))
    if max(len(queries), len(keys)) > WIDEST:
        print(say("cli.trace.part", shown=WIDEST))
    if made.differences:
        print(say("cli.trace.again", difference=f"{max(made.differences.values()):.1e}"))
    print(beside)


def _effect(loaded: Loaded, asked: Namespace, block: int, head: int) -> str:
    """What the answer would be without one weight, and without its head."""
    from clearhead.tracing.effect import effect_of_weight  # noqa: PLC0415

    query, key = asked.weight
    # `_name` has refused every other.
    of = cast("Literal['attention', 'cross_attention', 'encoder']", _kind(loaded, asked.kind))
    try:
        found = effect_of_weight(loaded, asked.prompt, block, head, query, key, of=of, target=asked.target)
    except IndexError as error:
        raise UserError(say("cli.trace.no_position", reason=error)) from None
    return f"\n{found}"


def _traced(
    loaded: Loaded, asked: Namespace, names: Sequence[str], *, heads: dict[int, list[int]] | None = None, count: int = 0
) -> Trace:
    from clearhead.tracing.trace import trace  # noqa: PLC0415

    for head in [head for some in (heads or {}).values() for head in some]:
        if head >= count:
            raise UserError(say("cli.trace.no_head", head=head, last=count - 1))
    try:
        return trace(loaded, asked.prompt, target=asked.target, names=names, heads=heads, positions=asked.positions)
    except IndexError as error:
        raise UserError(say("cli.trace.no_position", reason=error)) from None


def _which(typed: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)\.(\d+)", typed)
    if not found:
        raise UserError(say("cli.trace.bad_head", value=typed))
    return int(found[1]), int(found[2])


def _name(loaded: Loaded, kind: str | None, block: int) -> str:
    """The name of the weights of a block: of a decoder, or of one of the three attentions of an encoder-decoder."""
    names = {"attention": f"blocks.{block}.attention.weights"}
    if answers(loaded):
        names = {
            "attention": f"decoder.blocks.{block}.attention.weights",
            "cross_attention": f"decoder.blocks.{block}.cross_attention.weights",
            "encoder": f"encoder.blocks.{block}.attention.weights",
        }
    kind = _kind(loaded, kind)
    if kind not in names:
        raise UserError(say("cli.trace.kind", value=kind, known=", ".join(names)))
    return names[kind]


def _kind(loaded: Loaded, kind: str | None) -> str:
    """Which attention is meant where none is named."""
    return kind or ("cross_attention" if answers(loaded) else "attention")


def _heads(loaded: Loaded, name: str) -> int:
    """How many heads the attention called `name` has.

    Raises:
        UserError: if there is no such block.
    """
    from clearhead.layers.attention import MultiHeadAttention  # noqa: PLC0415

    path = name.removesuffix(".weights")
    modules = dict(loaded.model.named_modules())
    if path not in modules:
        blocks = [key for key in modules if re.fullmatch(re.sub(r"\d+", r"\\d+", re.escape(path)), key)]
        raise UserError(say("cli.trace.no_block", name=path, last=len(blocks) - 1))
    attention = modules[path]
    assert isinstance(attention, MultiHeadAttention)
    return attention.heads


def _labels(made: Trace, name: str) -> tuple[list[str], list[str]]:
    """Tokens of the queries and of the keys."""
    asking = made.source if name.startswith("encoder.") else made.tokens
    asked = made.source if name.startswith("encoder.") or ".cross_attention." in name else made.tokens
    return [asking[place] for place in made.places(name)], asked


def _pictures(asked: Namespace, weights: Tensor, queries: Sequence[str], keys: Sequence[str], title: str) -> None:
    from clearhead.tracing.pictures import heat_png, heat_svg  # noqa: PLC0415

    if asked.svg:
        drawn = heat_svg(weights, queries, keys, title)
        _write(asked.svg, lambda path: path.write_text(drawn, encoding="utf-8"))
    if asked.png and not _write(asked.png, lambda path: heat_png(weights.cpu(), queries, keys, title, path)):
        print(say("cli.trace.no_font"), file=sys.stderr)


def _write(path: str, write: Callable[[Path], object]) -> object:
    """What writing the file gives; a folder that is not there is one line."""
    file = Path(path)
    if not file.parent.is_dir():
        raise UserError(say("cli.trace.no_folder", path=file, folder=file.parent))
    return write(file)


def described(made: Trace) -> dict[str, object]:
    """A trace as JSON knows it: what was read, and each tensor by its numbers."""
    from clearhead.tracing.trace import summary  # noqa: PLC0415

    tensors = [
        {"name": name, "axes": list(made.axes(name)), "sizes": list(tensor.shape), **summary(tensor)}
        for name, tensor in made.items()
    ]
    return {"tokens": made.tokens, "source": made.source, "tensors": tensors, "differences": made.differences}
