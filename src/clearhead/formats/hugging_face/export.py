"""A model of ours as a folder that `transformers` loads.

Nothing says which family a model belongs to: its configuration is written in each, read back, and the first family in which
nothing was lost is taken. What a family always has and the model has not (biases) is written as zeros.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch import Tensor

from clearhead.formats.atomic import PARTIAL, clear_failure, new_folder, new_place
from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.export_heads import head_files, with_own_head
from clearhead.formats.hugging_face.export_words import roles_of, word_files
from clearhead.formats.hugging_face.families import FAMILIES
from clearhead.formats.hugging_face.family import Family
from clearhead.formats.load import Loaded
from clearhead.formats.opened import Config
from clearhead.formats.rows import Row
from clearhead.formats.safetensors_written import Entry, write_safetensors
from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError, say
from clearhead.models.build import build
from clearhead.models.choices import Auto, Learned
from clearhead.models.config import DecoderConfig, Sight
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig

__all__ = ["SHARD", "export", "export_size", "family_for", "lost_in"]

SHARD = 5 * 10**9
"""The most bytes of weights in one file."""

ROUND = 8
"""A width of heads that every family takes."""

GENERATED = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
"""What `generate` of `transformers` asks for."""


def export(
    loaded: Loaded,
    folder: Path,
    *,
    limit: int = SHARD,
    written: Callable[[int], object] | None = None,
    families: Sequence[Family] = FAMILIES,
) -> str:
    """Write a model for others: `config.json`, `generation_config.json`, the weights in the type that they have, the tokenizer.

    A process that is killed leaves the whole folder or none.

    Args:
        loaded: the model.
        folder: where; it must not be there, or be empty.
        limit: the most bytes of weights in one file.
        written: is told how many bytes of weights have been written more.
        families: those that may be taken, the first that serves.

    Returns:
        The name of the family that the model is written as.

    Raises:
        UserError: if no family has all of the model's parts, there is something in `folder`, or it cannot be written.
    """
    folder = new_place(folder)
    family = family_for(loaded.config, families)
    tensors, described = _written(loaded, family), _description(loaded, family)
    files = {"config.json": _json(described), **word_files(loaded), **head_files(loaded.config)}
    with clear_failure(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(folder)
    with new_folder(folder) as partial:
        write_safetensors(partial, tensors.entries, tensors.read(), limit=limit, written=written)
        asked = {name: described[name] for name in GENERATED if described.get(name) is not None}
        if asked and not isinstance(loaded.config, EncoderConfig):
            files["generation_config.json"] = _json(asked)
        for name, text in files.items():
            (partial / name).parent.mkdir(exist_ok=True)
            (partial / name).write_bytes(text.encode("utf-8"))
    return family.name


def export_size(loaded: Loaded) -> int:
    """How many bytes of weights an export writes.

    Raises:
        UserError: if no family has all of the model's parts.
    """
    return sum(entry.size for entry in _written(loaded, family_for(loaded.config)).entries)


def family_for(config: Config, families: Sequence[Family] = FAMILIES) -> Family:
    """The family that can say all of a model, and has the least that the model has not; the first of such.

    Raises:
        UserError: if there is none, naming what the nearest cannot say.
    """
    own = [family for family in families if isinstance(config, _kind(family))]
    lost = {family: lost_in(family, config) for family in own}
    nearest = min(own, key=lambda family: (len(lost[family]), len(_added(family, config))))
    if lost[nearest]:
        parts = ", ".join(_shown(config, name) for name in lost[nearest])
        raise UserError(say("export.no_family", parts=parts, family=nearest.name))
    return nearest


def lost_in(family: Family, config: Config) -> list[str]:
    """The fields of a configuration that a family cannot say.

    Args:
        family: one of the same kind of model.
        config: what is to be said.
    """
    for odd, rounder in _rounder(with_own_head(config)):
        wanted = family.completed(rounder)
        read = Fields(_named(family) | family.write(wanted), Path("config.json"), family.name)
        try:
            found = family.read(read)
            read.done()
        except UserError:
            # A size that the family's own code refuses. Is it that of a head, or that of the model?
            continue
        return [*odd, *_differing(wanted, found)]
    return [field.name for field in fields(config)]


def _rounder(config: Config) -> Iterator[tuple[list[str], Config]]:
    """The configuration, then the same with sizes that every family takes; and the names of those."""
    yield [], config
    yield ["head_width"], replace(config, head_width=ROUND)
    yield ["width"], replace(config, head_width=ROUND, width=ROUND * config.heads)


def _added(family: Family, config: Config) -> list[str]:
    """The fields in which a family has what a model has not."""
    return _differing(config, family.completed(config))


@cache
def _kind(family: Family) -> type[Config]:
    """The kind of model that a family describes."""
    kind: type[Config] = get_type_hints(family.read)["return"]
    return kind


def _differing(first: Config, second: Config) -> list[str]:
    """The fields in which two models of a kind differ."""
    one, other = _written_out(first), _written_out(second)
    # Without a table of positions, the longest text is a promise and no part of the computation.
    tables = isinstance(first.positions, Learned) and isinstance(second.positions, Learned)
    told = [field.name for field in fields(one) if tables or field.name not in ("context", "source_context")]
    return [name for name in told if not _same(getattr(one, name), getattr(other, name))]


def _same(wanted: object, found: object) -> bool:
    # A scale that a family writes as a width comes back with a rounding in its last digit.
    if isinstance(wanted, float) and isinstance(found, float):
        return math.isclose(wanted, found, rel_tol=1e-12)
    return wanted == found


def _written_out(config: Config) -> Config:
    """The same model with every size as a number, and all that changes no number of a forward the same for all."""
    told: dict[str, Any] = {
        "kv_heads": config.key_value_heads,
        "head_width": config.width_of_head,
        "feedforward_width": config.hidden,
        "output_bias": config.mixing_bias,
        "attention_scale": config.width_of_head**-0.5 if config.attention_scale is None else config.attention_scale,
        "dropout": 0.0,
        "kernel": Auto(),
    }
    if isinstance(config, EncoderDecoderConfig):
        told |= {"encoder_layers": config.encoder.layers, "source_context": config.encoder.context}
    if isinstance(config, DecoderConfig):
        own = [None if sight.positions == config.positions else sight.positions for sight in config.sights]
        looks = zip(config.sights, own, strict=True)
        told |= {"window": None, "cycle": tuple(Sight(sight.window, positions) for sight, positions in looks)}
    return replace(config, **told)


def _shown(config: Config, name: str) -> str:
    """A field and its value: a choice as it is spelt, a size as a number though it may follow from others."""
    if name == "cycle" and isinstance(config, DecoderConfig) and config.window is not None:
        name, value = "window", config.window
    else:
        value = getattr(config if name == "cycle" else _written_out(config), name)
    return f"{name} {value!r}".replace("()", "")


class _Written:
    """The tensors of a model as a family names and shapes them.

    Args:
        loaded: the model.
        rows: of the family.
        config: of the model as the family has it, with its biases.
    """

    def __init__(self, loaded: Loaded, rows: Sequence[Row], config: Config) -> None:
        own = own_tensors(loaded.model)
        # With the further names of what is tied: a family may hold it twice.
        self._held: dict[str, Tensor] = loaded.model.state_dict()
        self._type = next(iter(own.values())).dtype
        self._empty = own_tensors(build(config, device="meta"))
        assert self._empty.keys() >= own.keys(), f"lost {sorted(own.keys() - self._empty.keys())}"
        self._rows = [row for row in rows if row.ours in self._empty]
        assert {row.ours for row in self._rows} == self._empty.keys(), "a tensor has no row"
        # Splitting what has no memory tells the shapes.
        parts = [row.split(self._empty[row.ours]) for row in self._rows]
        self.entries = [Entry(name, tuple(part.shape), self._type) for each in parts for name, part in each.items()]

    def read(self) -> Iterator[Tensor]:
        """The tensors of `entries`, one after the other."""
        for row in self._rows:
            yield from row.split(self._tensor(row.ours)).values()

    def _tensor(self, name: str) -> Tensor:
        if name in self._held:
            return self._held[name]
        return torch.zeros(self._empty[name].shape, dtype=self._type)


def _written(loaded: Loaded, family: Family) -> _Written:
    config = family.completed(loaded.config)
    return _Written(loaded, family.rows(config), config)


def _description(loaded: Loaded, family: Family) -> dict[str, Any]:
    """What stands in config.json."""
    config = family.completed(loaded.config)
    dtype = str(next(iter(own_tensors(loaded.model).values())).dtype).removeprefix("torch.")
    tokenizer, specials = loaded.tokenizer, loaded.tokenizer.specials
    padding = specials.get(roles_of(loaded).get("pad_token", ""))
    ids: dict[str, Any] = {"bos_token_id": tokenizer.begin, "eos_token_id": _ends(loaded), "pad_token_id": padding}
    if isinstance(config, EncoderDecoderConfig):
        # Targets begin with the mark; what is behind their end is filled up with something.
        ids |= {"decoder_start_token_id": tokenizer.begin}
        ids |= {"pad_token_id": tokenizer.end if padding is None else padding}
    # A null is written, too: left out, it would be the id of somebody else's token. Older versions know the second name alone.
    return {**_named(family), **family.write(config), **ids, "dtype": dtype, "torch_dtype": dtype}


def _ends(loaded: Loaded) -> int | list[int] | None:
    """The id that ends a text, or all of them where there are several."""
    if len(loaded.ends) > 1:
        return [*loaded.ends]
    return loaded.ends[0] if loaded.ends else loaded.tokenizer.end


def _named(family: Family) -> dict[str, Any]:
    return {"architectures": [family.architectures[0]], "model_type": family.name}


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _remove_leftovers(folder: Path) -> None:
    """Delete what killed exports to the same folder left beside it: it may be gigabytes."""
    name = re.compile(rf"{re.escape(PARTIAL)}\d+-(old-)?{re.escape(folder.name)}")
    for leftover in folder.parent.glob(f"{PARTIAL}*"):
        if name.fullmatch(leftover.name) and leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
