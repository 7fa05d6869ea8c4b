"""The tokenizer and the chat template of a Hugging Face folder, and what stands around its texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from clearhead.formats.hugging_face.declared import Declared, read_declared
from clearhead.formats.hugging_face.vocabularies import Settings, settings_of
from clearhead.formats.library_files import library_file
from clearhead.formats.opened import Config, Words, further_ends
from clearhead.messages import UserError, say
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.text import LibraryTokenizer, NumberTokenizer
from clearhead.text.library_json import PANIC, Refusals

__all__ = ["folder_words"]

_Ids: TypeAlias = tuple[int, ...]
_Mark: TypeAlias = int | None


def folder_words(folder: Path, config: Config, fields: Mapping[str, object]) -> Words:
    """What a folder holds to read and write text; a folder without a tokenizer has ids, written as numbers.

    What is put around a text is what the tokenizer's own post-processor puts there; `add_bos_token` counts where there is no
    tokenizer.json, as in `transformers`. An encoder-decoder is given the end of a text when it is read, and nothing here.

    Args:
        folder: where the files lie.
        config: the model.
        fields: those of config.json.

    Raises:
        UserError: if a file is damaged, or the tokenizer is not of this model.
    """
    declared = read_declared(folder, fields)
    template = declared.chat_template()
    settings = settings_of(folder, fields.get("model_type"), declared.fields)
    if settings is None:
        numbers = NumberTokenizer(config.vocab, *_numbered_marks(declared, config))
        return Words(numbers, template, ends=_ends(declared, config, numbers.end))
    opening, closing = _around(settings)
    begin, end = _marks(settings, declared, config, opening, closing)
    mask = _mask(settings, declared, config)
    if settings.data.get("post_processor") is None:
        opening, closing = _usual_around(settings, declared, config, begin, end)
    for special in {begin, end, mask, *map(settings.id_of, declared.spellings())}:
        if special is not None:
            settings.make_special(special)
    for id in (*opening, *closing):
        if not 0 <= id < config.vocab:
            count = f"{config.vocab:,}"
            raise UserError(say("exchange.words_mark", path=settings.source, name="post_processor", id=id, count=count))
    try:
        made = LibraryTokenizer(json.dumps(settings.data), begin, end, config.vocab, mask)
    except UserError as error:
        raise UserError(say("exchange.words", path=settings.source, reason=error)) from error
    closing = () if isinstance(config, EncoderDecoderConfig) else closing
    return Words(made, template, opening, closing, _ends(declared, config, end))


def _marks(settings: Settings, declared: Declared, config: Config, opening: _Ids, closing: _Ids) -> tuple[_Mark, _Mark]:
    """The ids that begin and end a text of the model's kind.

    A mark that a file names, perhaps as none, is that. Ids count only where they are those of added tokens: configurations have
    ids that their vocabularies know nothing of.
    """

    def named(role: str, number: str) -> _Mark:
        if role in declared.fields:
            return settings.id_of(declared.spelling(role))
        usual = settings.id_of(settings.usual.get(role))
        return (
            usual
            if usual is not None
            else next((id for id in declared.numbers(number) if id in settings.added_ids()), None)
        )

    if isinstance(config, EncoderConfig):
        first, last = named("cls_token", "cls_token_id"), named("sep_token", "sep_token_id")
        return (*opening, None)[0] if first is None else first, (None, *closing)[-1] if last is None else last
    end = named("eos_token", "eos_token_id")
    if not isinstance(config, EncoderDecoderConfig):
        return named("bos_token", "bos_token_id"), end
    starts = declared.numbers("decoder_start_token_id")
    # T5 begins with what fills up.
    return starts[0] if starts else named("pad_token", "pad_token_id"), end


def _mask(settings: Settings, declared: Declared, config: Config) -> _Mark:
    """The id that stands for a hidden token: an encoder's, as none else is asked for what is hidden."""
    named = "mask_token" in declared.fields
    id = settings.id_of(declared.spelling("mask_token") if named else settings.usual.get("mask_token"))
    return id if isinstance(config, EncoderConfig) and id is not None and 0 <= id < config.vocab else None


def _numbered_marks(declared: Declared, config: Config) -> tuple[_Mark, _Mark]:
    """The same, where all that is known are ids."""

    def first(*names: str) -> _Mark:
        ids = [id for name in names for id in declared.numbers(name) if 0 <= id < config.vocab]
        return ids[0] if ids else None

    if isinstance(config, EncoderConfig):
        return None, None
    pairs = isinstance(config, EncoderDecoderConfig)
    begins = ("decoder_start_token_id", "pad_token_id") if pairs else ("bos_token_id",)
    return first(*begins), first("eos_token_id")


def _ends(declared: Declared, config: Config, end: _Mark) -> _Ids:
    """All ids at which what is written ends, marks of the tokenizer or not: `generate` of `transformers` stops at them, too."""
    named = [] if isinstance(config, EncoderConfig) else declared.numbers("eos_token_id")
    return further_ends(end, named, config.vocab)


def _around(settings: Settings) -> tuple[_Ids, _Ids]:
    """What the post-processor puts before and behind a text: asked of the library, for a text of one token.

    Raises:
        UserError: if the library cannot read it.
    """
    probe = {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}
    try:
        made = LibraryTokenizer(library_file(probe, post_processor=settings.data.get("post_processor")))
        with Refusals(PANIC):
            found = made.tokenizer.encode("x")
    except UserError as error:
        raise UserError(say("exchange.words", path=settings.source, reason=error)) from error
    place = next((place for place, of in enumerate(found.sequence_ids) if of == 0), len(found.ids))
    return tuple(found.ids[:place]), tuple(found.ids[place + 1 :])


def _usual_around(
    settings: Settings, declared: Declared, config: Config, begin: _Mark, end: _Mark
) -> tuple[_Ids, _Ids]:
    """What stands around a text where no post-processor says it: an encoder's marks; what is declared for older files."""
    encoder = isinstance(config, EncoderConfig)
    opens = encoder or (settings.rebuilt and declared.flag("add_bos_token"))
    closes = encoder or (settings.rebuilt and declared.flag("add_eos_token"))
    return (begin,) if opens and begin is not None else (), (end,) if closes and end is not None else ()
