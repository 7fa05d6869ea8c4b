"""A Hugging Face folder, opened: its family, its configuration, its tokenizer, where its weights lie."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.bert import with_head
from clearhead.formats.hugging_face.families import FAMILIES
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.hugging_face.t5 import with_shared_head
from clearhead.formats.hugging_face.words import folder_words
from clearhead.formats.impossible import possible
from clearhead.formats.opened import Config, Opened
from clearhead.formats.rows import Row
from clearhead.formats.safetensors_files import open_safetensors, read_object, refuse_adapters
from clearhead.formats.tensors import RenamedTensors, Tensors
from clearhead.messages import UserError, say
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.cost import parameters
from clearhead.text import NumberTokenizer
from clearhead.text.lines import shown

WRAPPERS = ("_orig_mod.", "module.")
"""What compiling and distributing put before every name; both, and each several times, if one was done to the other."""

SPELLINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
"""What the first releases of BERT, bert-base-uncased among them, call the gains and shifts of their norms."""

_SPARE_NUMBERS = 1 << 20


def open_folder(path: Path) -> Opened:
    """The model in a folder with `config.json`, safetensors and a tokenizer; its weights unread.

    Raises:
        UserError: if a file is missing or damaged, the model is of no known family, or a field of its configuration is not
            understood.
    """
    refuse_adapters(path)
    source = path / "config.json"
    data = read_object(source)
    # What is said of the configuration comes first: a folder that no model fits is not asked for weights.
    config = config_in(data, source)
    family, config, tensors, rows = _understood(data, config, open_safetensors(path), source, path)
    words = folder_words(path, config, data)
    return Opened(
        config=config,
        tokenizer=words.tokenizer,
        tensors=tensors,
        rows=rows,
        source=path,
        origin=f"Hugging Face {family.name}",
        unused=family.unused,
        chat_template=words.chat_template,
        opening=words.opening,
        closing=words.closing,
        ends=words.ends,
    )


def open_held(data: dict[str, Any], tensors: Tensors, source: Path) -> Opened:
    """A model in memory, as a folder with this configuration and these tensors would be opened; its tokenizer is numbers.

    Args:
        data: the fields of config.json.
        tensors: the weights, by the names that a file has for them.
        source: what the model is called in messages; no folder of that name is looked into.

    Raises:
        UserError: as `open_folder`.
    """
    family, config, renamed, rows = _understood(data, config_in(data, source), tensors, source, None)
    return Opened(
        config=config,
        tokenizer=NumberTokenizer(config.vocab),
        tensors=renamed,
        rows=rows,
        source=source,
        origin=f"Hugging Face {family.name}",
        unused=family.unused,
        # What is under check may have gone wrong: that is said of its output.
        finite=False,
    )


def config_in(data: dict[str, Any], source: Path) -> Config:
    """The configuration in the fields of a config.json, every one of them understood; without what the tensors tell of the head.

    Raises:
        UserError: if a field is not understood.
    """
    family = family_of(data, source)
    fields = Fields(data, source, family.name)
    with possible(fields):
        config = family.read(fields)
        fields.done()
    return config


def _understood(
    data: dict[str, Any], config: Config, tensors: Tensors, source: Path, folder: Path | None
) -> tuple[Family, Config, Tensors, tuple[Row, ...]]:
    """The family, the model, and its tensors under the names that the family's table has for them.

    Raises:
        UserError: as `open_folder`.
    """
    family = family_of(data, source)
    if isinstance(config, EncoderConfig):
        # Only a folder can have further modules.
        place = source / "config.json" if folder is None else folder
        config = with_head(config, place, _classes(Fields(data, source, family.name)), tensors.names)
    if isinstance(config, EncoderDecoderConfig):
        config = with_shared_head(config, {_unwrapped(name): name for name in tensors.names}, tensors)
    _must_be_possible(config, tensors, source)
    rows = tuple(family.rows(config))
    return family, config, _renamed(tensors, family.base, rows), rows


def family_of(data: dict[str, Any], source: Path) -> Family:
    """The family that a configuration names: by `model_type`; by the class of the model where that is not there.

    Raises:
        UserError: if there is none, naming the nearest.
    """
    fields = Fields(data, source, "model")
    classes = _classes(fields)
    name = fields.take("model_type", str, "")
    known = tuple(dict.fromkeys(family.name for family in FAMILIES))
    own = [
        family for family in FAMILIES if family.name == name or (not name and set(family.architectures) & {*classes})
    ]
    if not own:
        found = name or ", ".join(classes) or "None"
        raise UserError(
            say(
                "exchange.model_type",
                path=source,
                found=shown(found),
                nearest=_nearest(found, known),
                known=", ".join(known),
            )
        )
    heads = [architecture for family in own for architecture in family.architectures]
    for architecture in classes:
        if architecture not in heads:
            raise UserError(
                say(
                    "exchange.architecture",
                    path=source,
                    found=shown(architecture),
                    family=own[0].name,
                    nearest=_nearest(architecture, heads),
                    known=", ".join(known),
                )
            )
    return next((family for family in own if set(family.architectures) & {*classes}), own[0])


def _classes(fields: Fields) -> list[str]:
    """What a configuration calls the class of the model; nothing if it does not say.

    Raises:
        UserError: if it says something else.
    """
    found = fields.raw("architectures", [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise UserError(
            say("exchange.field_kind", path=fields.source, field="architectures", value=repr(found)[:60], wanted="list")
        )
    return found


def _nearest(word: str, known: Iterable[str]) -> str:
    return ", ".join(get_close_matches(word[:100], list(known), n=3, cutoff=0.0))


def _must_be_possible(config: Config, tensors: Tensors, source: Path) -> None:
    """Raise a UserError if a configuration speaks of far more numbers than there are: room for them is made before they are read.

    Which tensor does not fit is told later, and better; this is for what no machine could hold.
    """
    there = sum(math.prod(tensors.shape(name)) for name in tensors.names)
    wanted = sum(parameters(config).values())
    if wanted > 4 * there + _SPARE_NUMBERS:
        raise UserError(say("exchange.more_than_there", path=source, wanted=wanted, found=there))


def _renamed(tensors: Tensors, base: str, rows: tuple[Row, ...]) -> Tensors:
    """The tensors under the names that the family's table has for them.

    Raises:
        UserError: if two of them get one name.
    """
    own = {name: _unwrapped(name) for name in tensors.names}
    wanted = {name for row in rows for name in (*row.also, *(part.name for part in row.parts))}
    bare = base and not any(name.startswith(base) for name in own.values())
    inner: dict[str, str] = {}
    for name, short in own.items():
        full = base + short if bare and short not in wanted else short
        if full in inner:
            raise UserError(say("exchange.safetensors_twice", path=tensors.source, name=full))
        inner[full] = name
    return tensors if all(ours == theirs for ours, theirs in inner.items()) else RenamedTensors(tensors, inner)


def _unwrapped(name: str) -> str:
    """A name without what stands before it only because the model was compiled or distributed, in its newer spelling."""
    while name.startswith(WRAPPERS):
        name = name.partition(".")[2]
    older = next((ending for ending in SPELLINGS if name.endswith(ending)), "")
    return name.removesuffix(older) + SPELLINGS.get(older, "")
