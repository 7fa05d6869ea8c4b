"""From an opened model to one with its weights: each tensor once, in its own type, on its own device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from clearhead.formats.opened import Opened, Report
from clearhead.formats.rows import Row
from clearhead.formats.tensors import PIECE, Tensors, equal
from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError, say
from clearhead.models.build import build
from clearhead.text.lines import shown

Watch = Callable[[int, int], None]


def assemble(
    opened: Opened, dtype: torch.dtype, device: torch.device | str, watch: Watch | None = None
) -> tuple[nn.Module, Report]:
    """The model, every tensor read from its file, in evaluation mode; and what became of the file's tensors.

    The model is built without memory, so that nothing random is ever in it. Peak memory is that of the weights in `dtype`, and of
    one tensor that has to be rearranged or one piece of a tensor that has not.

    Args:
        opened: what is to be read.
        dtype: the type that the weights are turned into.
        device: where they live.
        watch: who is told how many numbers have been read, and of how many.

    Raises:
        UserError: if a tensor is missing, of another shape or not finite, or if the file has one that nobody asks for.
    """
    opened = replace(opened, rows=tuple(each.found_in(opened.tensors.names) for each in opened.rows))
    model, tensors = build(opened.config, device="meta"), opened.tensors
    own, rows = own_tensors(model), {row.ours: row for row in opened.rows}
    assert rows.keys() >= own.keys(), f"no row for {sorted(own.keys() - rows.keys())}"
    _must_hold(tensors, [part.name for name in own for part in rows[name].parts])
    retied, unused = _left_over(opened, {part.name for name in own for part in rows[name].parts}, own)
    for name, empty in own.items():
        _must_match(rows[name], tensors, tuple(empty.shape))
    # All room first: what is read in between then takes places that are free again, not those between the weights.
    filled = {name: torch.empty(empty.shape, dtype=dtype, device=device) for name, empty in own.items()}
    read, whole = 0, sum(empty.numel() for empty in own.values())
    for name, empty in own.items():
        for first, piece in _pieces(rows[name], opened, tuple(empty.shape)):
            filled[name][first : first + len(piece)].copy_(piece)
            read += piece.numel()
            if watch is not None:
                watch(read, whole)
    _put(model, filled)
    return model.eval(), Report(len(own), _aliases(model) | retied, unused)


def _pieces(row: Row, opened: Opened, shape: tuple[int, ...]) -> Iterator[tuple[int, Tensor]]:
    """A tensor of ours, by the number of the first row of each piece.

    Raises:
        UserError: if a number of it is not finite, naming the tensor of the file that holds it.
    """
    if not row.plain:
        # Each before they are joined, which would hide whose number it was.
        yield 0, row.join([_read(opened, part.name) for part in row.parts])
        return
    step = max(1, PIECE // max(1, torch.Size(shape[1:]).numel()))
    for first in range(0, shape[0], step):
        yield first, _read(opened, row.parts[0].name, first, min(first + step, shape[0]))


def _read(opened: Opened, name: str, first: int = 0, last: int | None = None) -> Tensor:
    """Some rows of a tensor of the file, every number of them one.

    Raises:
        UserError: if one is not finite, and that matters.
    """
    piece = opened.tensors.read(name, first, last)
    # A sum is quick, needs no memory, and is not finite wherever a number is not; it may also overflow.
    odd = piece.is_floating_point() and not piece.float().sum().isfinite() and not piece.isfinite().all()
    if opened.finite and odd:
        raise UserError(say("exchange.not_finite", path=opened.tensors.source, name=shown(name)))
    return piece


def _must_match(row: Row, tensors: Tensors, shape: tuple[int, ...]) -> None:
    """Raise a UserError if the parts have other shapes than ours has room for.

    Rows and columns are judged as they lie in the file: a rearrangement of the wrong shape may fail, or fit.
    """
    for part in row.parts:
        wanted = (shape[0] if part.rows is None else part.rows, *shape[1:])
        _must_fit(tensors, part.name, tensors.shape(part.name), wanted[:: -1 if part.change.turns else 1])


def _must_fit(tensors: Tensors, name: str, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if found != wanted:
        raise UserError(say("formats.shape", path=tensors.source, name=name, found=found, wanted=wanted))


def _must_hold(tensors: Tensors, wanted: list[str]) -> None:
    there = set(tensors.names)
    missing = [name for name in wanted if name not in there]
    if missing:
        raise UserError(say("formats.missing", path=tensors.source, name=missing[0], count=len(missing)))


def _left_over(opened: Opened, asked: Collection[str], own: Collection[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The file's tensors that no tensor of ours is made of: second copies of a tied one, and what computes nothing.

    Raises:
        UserError: if there is another one, or a second copy differs from the first.
    """
    retied, unused, unexpected = {}, [], []
    seconds = {part.name: each for each in opened.rows if each.ours not in own for part in each.parts}
    firsts = {each.ours: each for each in opened.rows if each.ours in own}
    copies = {name: each.parts[0].name for each in firsts.values() for name in each.also}
    for name in sorted(set(opened.tensors.names) - set(asked)):
        if name in seconds or name in copies:
            # What is tied to what is known by name alone: the only tensor that a head shares its weight with is an embedding.
            first = copies[name] if name in copies else firsts[_TIED[seconds[name].ours]].parts[0].name
            _must_equal(opened.tensors, name, first)
            retied[name] = first
        elif any(fnmatchcase(name, pattern) for pattern in opened.unused):
            unused.append(name)
        else:
            unexpected.append(name)
    if unexpected:
        raise UserError(
            say(
                "exchange.unexpected",
                path=opened.tensors.source,
                name=shown(unexpected[0]),
                count=len(unexpected),
                origin=opened.origin,
            )
        )
    return retied, tuple(unused)


_TIED = {
    "head.weight": "embedding.weight",
    "head.output.weight": "embedding.weight",
    "decoder.head.weight": "encoder.embedding.weight",
    "decoder.embedding.weight": "encoder.embedding.weight",
}
"""Tensors of ours that may share another's storage, and whose."""


def _must_equal(tensors: Tensors, name: str, first: str) -> None:
    """Raise a UserError unless a tensor that the configuration calls tied equals the one that it is tied to."""
    _must_fit(tensors, name, tensors.shape(name), tensors.shape(first))
    if not equal(tensors, name, first):
        raise UserError(say("exchange.tied_differ", path=tensors.source, name=name, first=first))


def _put(model: nn.Module, filled: dict[str, Tensor]) -> None:
    """Put real tensors where the model has empty ones; those that share one empty tensor share the real one."""
    names = {id(tensor): name for name, tensor in model.named_parameters()}
    made: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, empty in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            if id(empty) not in made:
                made[id(empty)] = nn.Parameter(filled[names[id(empty)]], requires_grad=empty.requires_grad)
            setattr(module, name, made[id(empty)])


def _aliases(model: nn.Module) -> dict[str, str]:
    """Every further name of a parameter, and its first name."""
    first = {id(tensor): name for name, tensor in model.named_parameters()}
    every = model.named_parameters(remove_duplicate=False)
    return {name: first[id(tensor)] for name, tensor in every if first[id(tensor)] != name}
