"""A `.pt` file of somebody else's training as one of our models: nanoGPT's, or the course's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.formats.fields import Fields
from clearhead.formats.impossible import possible
from clearhead.formats.opened import Opened
from clearhead.formats.pickles.course import COURSE
from clearhead.formats.pickles.layout import Found, Layout
from clearhead.formats.pickles.meta import META, read_meta
from clearhead.formats.pickles.nanogpt import NANOGPT
from clearhead.formats.pickles.torch_file import read_torch, torch_tensors
from clearhead.messages import UserError, say
from clearhead.text import LibraryTokenizer, Tokenizer, read_tokenizer
from clearhead.text.lines import shown
from clearhead.text.numbers import NumberTokenizer
from clearhead.text.saved import TOKENIZER_FILE

CHECKPOINT = "ckpt.pt"
"""What nanoGPT calls its file."""

LAYOUTS = (NANOGPT, COURSE)

_WRAPPERS = ("model", "state_dict", "model_state_dict", "model_state", "module", "weights")
"""What a dictionary that holds more than weights calls them."""

_SAYING = ("model_args", "config", "hyper_parameters", "hparams", "args")
"""What such a dictionary calls a dictionary of settings."""

_SAID = ("n_head", "dropout")
"""What no tensor shows, and is taken from settings of any name."""

_COMPILED = ("_orig_mod", "module")
"""What `torch.compile` and `DistributedDataParallel` put into names."""

_UP = 4
"""How many folders above the checkpoint's are asked for nanoGPT's `data`."""

_ROUNDED = 128
"""Vocabularies are rounded up to a multiple of at most so many."""

_END = "<|endoftext|>"
"""What nanoGPT puts behind every document, where its tokens are GPT-2's."""


def open_pickle(path: Path) -> Opened:
    """The model in a file of `torch.save`, or in the folder that holds a `ckpt.pt`; nothing in it is executed.

    Weights may stand alone or in a dictionary with other things, and may have been saved from a compiled or a parallel model. Text is
    read with the `meta.pkl` or `tokenizer.json` beside the file, or with the `meta.pkl` of the data that nanoGPT names; without
    either it is ids.

    Raises:
        UserError: if it cannot be read, wants code, or holds no model that is known.
    """
    path = path / CHECKPOINT if path.is_dir() else path
    found = read_torch(path)
    held, settings = weights_of_file(path, found), _settings(found)
    layout = _layout(path, held)
    _must_be_numbers(path, held, layout)
    tensors = {name: tensor for name, tensor in held.items() if isinstance(tensor, Tensor)}
    said = _said(path, settings, layout.origin)
    seen = Found(path, {name: tuple(each.shape) for name, each in tensors.items()}, said, _tied(tensors, layout))
    with possible(said):
        config = layout.config(seen)
        said.done()
    return Opened(
        config=config,
        tokenizer=_tokenizer(path, settings, config.vocab),
        tensors=torch_tensors(path, tensors, lambda loaded: weights_of_file(path, loaded)),
        rows=tuple(layout.rows(seen, config)),
        source=path,
        origin=layout.origin,
        unused=layout.unused,
    )


def weights_of_file(path: Path, found: object) -> dict[str, Any]:
    """The weights in what a file holds, by their plain names.

    Raises:
        UserError: if there are none, or two have one name.
    """
    for _ in _WRAPPERS:
        inner = found.get(_wrapper(found)) if isinstance(found, Mapping) else None
        if inner is None:
            break
        found = inner
    if not isinstance(found, Mapping) or not any(isinstance(each, Tensor) for each in found.values()):
        raise UserError(say("exchange.pickle_no_weights", path=path))
    named: dict[str, Any] = {}
    for name, value in found.items():
        plain = ".".join(part for part in str(name).split(".") if part not in _COMPILED)
        if plain in named:
            raise UserError(say("exchange.pickle_twice", path=path, name=shown(plain)))
        named[plain] = value.detach() if isinstance(value, Tensor) else value
    return named


def _wrapper(found: Mapping[Any, Any]) -> str | None:
    return next((name for name in _WRAPPERS if isinstance(found.get(name), Mapping)), None)


def _settings(found: object) -> dict[str, Mapping[Any, Any]]:
    """The dictionaries of settings, by their name, wherever they stand around the weights."""
    settings: dict[str, Mapping[Any, Any]] = {}
    for _ in _WRAPPERS:
        if not isinstance(found, Mapping):
            break
        settings |= {name: found[name] for name in _SAYING if isinstance(found.get(name), Mapping)}
        found = found.get(_wrapper(found))
    return settings


def _said(path: Path, settings: Mapping[str, Mapping[Any, Any]], origin: str) -> Fields:
    """What the file says of the model: all of `model_args`; of other settings, which are a training's too, what is known."""
    said = {name: each[name] for each in settings.values() for name in _SAID if each.get(name) is not None}
    return Fields(said | {str(name): value for name, value in settings.get("model_args", {}).items()}, path, origin)


def _layout(path: Path, held: Mapping[str, object]) -> Layout:
    found = next((each for each in LAYOUTS if each.mark in held), None)
    if found is None:
        known = ", ".join(f"{each.origin} ({each.mark})" for each in LAYOUTS)
        raise UserError(say("exchange.pickle_unknown", path=path, name=shown(next(iter(held))), known=known))
    return found


def _must_be_numbers(path: Path, held: Mapping[str, object], layout: Layout) -> None:
    """Raise a UserError unless all that computes something is a tensor of numbers that are really there."""
    for name, value in held.items():
        if any(fnmatchcase(name, pattern) for pattern in layout.unused):
            continue
        if not isinstance(value, Tensor):
            raise UserError(say("exchange.pickle_no_tensor", path=path, name=shown(name), found=type(value).__name__))
        plain = value.layout == torch.strided and value.device.type == "cpu" and value.ndim and value.numel()
        if not plain or not value.is_floating_point():
            found = f"{value.dtype} {tuple(value.shape)}".removeprefix("torch.")
            raise UserError(say("exchange.pickle_no_tensor", path=path, name=shown(name), found=found))
        # One number may be shown as a million; what is built from it would fill the memory.
        if value.nbytes > value.untyped_storage().nbytes():
            shape, there = tuple(value.shape), value.untyped_storage().nbytes()
            raise UserError(say("exchange.pickle_short", path=path, name=shown(name), found=shape, there=there))


def _tied(tensors: Mapping[str, Tensor], layout: Layout) -> bool:
    """Whether the head is the embedding. nanoGPT's is, and then is saved twice or once; some that began as one are not."""
    embedding, head = tensors[layout.mark], tensors.get(layout.head)
    if head is None:
        return True
    shared = head.data_ptr() == embedding.data_ptr() and head.stride() == embedding.stride()
    return head.shape == embedding.shape and (shared or torch.equal(head, embedding))


def _tokenizer(path: Path, settings: Mapping[str, Mapping[Any, Any]], vocab: int) -> Tokenizer:
    """What reads and writes the model's text.

    Raises:
        UserError: if it is there and cannot be read, or has more ids than the model.
    """
    beside = [path.parent / META, path.parent / TOKENIZER_FILE, *_of_data(path, settings)]
    place = next((each for each in beside if each.is_file()), None)
    if place is None:
        return NumberTokenizer(vocab)
    tokenizer = read_meta(place) if place.name == META else _padded(read_tokenizer(place), vocab)
    if tokenizer.size != vocab:
        raise UserError(say("formats.vocab", path=place, tokenizer=tokenizer.size, model=vocab))
    return tokenizer


def _padded(tokenizer: Tokenizer, vocab: int) -> Tokenizer:
    """GPT-2's tokens in a vocabulary that is rounded up: 50,257 are 50,304 in nanoGPT."""
    if not isinstance(tokenizer, LibraryTokenizer) or not tokenizer.size <= vocab < tokenizer.size + _ROUNDED:
        return tokenizer
    end = tokenizer.specials.get(_END) if tokenizer.end is None else tokenizer.end
    return replace(tokenizer, end=end, size=vocab)


def _of_data(path: Path, settings: Mapping[str, Mapping[Any, Any]]) -> list[Path]:
    """Where nanoGPT keeps the vocabulary of the data that its training names."""
    name = settings.get("config", {}).get("dataset")
    if not isinstance(name, str) or not name.strip(".") or Path(name).name != name or "\0" in name:
        return []
    folder = path.resolve().parent
    return [each / "data" / name / META for each in (folder, *folder.parents[:_UP])]
