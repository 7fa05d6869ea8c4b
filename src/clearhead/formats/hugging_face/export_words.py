"""A tokenizer of ours as the files that `transformers` reads: the same ids for a text, the same text for ids.

A tokenizer of the `tokenizers` library is written as it is; the others as one of its kinds:

- characters: every character is a piece (a regular expression cuts them apart), each piece is a word of a list, and the pieces are joined;
- bytes: byte-level BPE without a single merge;
- marks: special tokens behind the others. In `transformers` a text that spells one, as "<begin>", makes it; here no text does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from clearhead.formats.load import Loaded
from clearhead.models.config_encoders import EncoderConfig
from clearhead.text import ByteTokenizer, CharacterTokenizer, LibraryTokenizer, MarkedTokenizer, Tokenizer
from clearhead.text.tokenizer import UNKNOWN

__all__ = ["ROLES", "library_json", "roles_of", "word_files"]

ROLES = {
    "[PAD]": "pad_token",
    "<pad>": "pad_token",
    "[CLS]": "cls_token",
    "[SEP]": "sep_token",
    "[MASK]": "mask_token",
    "<mask>": "mask_token",
}
"""What `transformers` calls special tokens that are spelt so."""


def word_files(loaded: Loaded) -> dict[str, str]:
    """The files of a model's tokenizer, by name; none for a tokenizer that makes ids of numbers.

    That is `tokenizer.json`, `tokenizer_config.json`, and `chat_template.jinja` if there is one.
    """
    settings = library_json(loaded.tokenizer)
    if settings is None:
        return {}
    settings = _surrounded(settings, loaded)
    config: dict[str, Any] = {
        # The class that takes tokenizer.json as it stands, whatever the model's family.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": loaded.config.context,
        **roles_of(loaded),
    }
    if isinstance(loaded.config, EncoderConfig) and loaded.config.segments:
        config["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    files = {"tokenizer.json": _written(settings), "tokenizer_config.json": _written(config)}
    return files | ({} if loaded.chat_template is None else {"chat_template.jinja": loaded.chat_template})


def library_json(tokenizer: Tokenizer) -> dict[str, Any] | None:
    """The `tokenizer.json` of a tokenizer; None for one that the library has no form of."""
    match tokenizer:
        case CharacterTokenizer(characters=characters):
            return _characters(characters)
        case ByteTokenizer():
            return _bytes()
        case LibraryTokenizer(json=text):
            settings: dict[str, Any] = json.loads(text)
            return settings
        case MarkedTokenizer(inner=inner):
            plain = library_json(inner)
            marks = {spelling: id for spelling, id in tokenizer.specials.items() if id >= inner.size}
            return None if plain is None else _marked(plain, marks)
    return None


def roles_of(loaded: Loaded) -> dict[str, str]:
    """What `transformers` calls the special tokens of a model: `bos_token`, `eos_token`, ... and their spellings."""
    specials, begin, end = loaded.tokenizer.specials, loaded.tokenizer.begin, loaded.tokenizer.end
    spelt = {id: spelling for spelling, id in specials.items()}
    first, last = ("cls_token", "sep_token") if _is_encoder(loaded) else ("bos_token", "eos_token")
    usual = {ROLES[spelling]: spelling for spelling in specials if spelling in ROLES}
    mask = loaded.tokenizer.mask if isinstance(loaded.tokenizer, LibraryTokenizer) else None
    return usual | {role: spelt[id] for role, id in ((first, begin), (last, end), ("mask_token", mask)) if id in spelt}


def _is_encoder(loaded: Loaded) -> bool:
    return isinstance(loaded.config, EncoderConfig)


def _characters(characters: str) -> dict[str, Any]:
    vocabulary = {UNKNOWN: 0} | {character: id for id, character in enumerate(characters, start=1)}
    # Not a dot, which leaves line ends out.
    cut = pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), behavior="isolated")
    return _settings(models.WordLevel(vocabulary, unk_token=UNKNOWN), cut, decoders.Fuse())


def _bytes() -> dict[str, Any]:
    vocabulary = {letter: byte for byte, letter in enumerate(_letters())}
    as_letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return _settings(models.BPE(vocabulary, []), as_letters, decoders.ByteLevel())


def _letters() -> list[str]:
    """The letter that stands for each byte in the library's alphabet: itself if it can be seen, else the next one from U+0100 on."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    others = iter(letter for letter in alphabet if ord(letter) > 0xFF)
    return [chr(byte) if chr(byte) in alphabet else next(others) for byte in range(256)]


def _settings(model: models.Model, cut: pre_tokenizers.PreTokenizer, decoder: decoders.Decoder) -> dict[str, Any]:
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer, made.decoder = cut, decoder
    settings: dict[str, Any] = json.loads(made.to_str())
    return settings


def _marked(settings: dict[str, Any], marks: Mapping[str, int]) -> dict[str, Any]:
    """The same with special tokens behind its own."""
    model = settings["model"]
    if isinstance(model["vocab"], dict):
        # The library numbers added tokens that its model does not know in a row, and a vocabulary may have holes.
        known = {token["content"]: token["id"] for token in settings["added_tokens"]}
        model = {**model, "vocab": {**model["vocab"], **known, **marks}}
    added = [
        {
            "id": id,
            "content": spelling,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for spelling, id in marks.items()
    ]
    return {**settings, "model": model, "added_tokens": [*settings["added_tokens"], *added]}


def _surrounded(settings: dict[str, Any], loaded: Loaded) -> dict[str, Any]:
    """The settings that put around a text what the model was trained to find there; as they are if they do so already."""
    library, around = tokenizers.Tokenizer.from_str(_written(settings)), [*loaded.opening, *loaded.closing]
    assert all(library.token_to_id(spelling) == id for spelling, id in loaded.tokenizer.specials.items())
    # Where nothing says what is around a text, an encoder's is taken to be its marks.
    silent = settings["post_processor"] is None and _is_encoder(loaded)
    # What is there may know of pairs, too.
    if library.encode("").ids == around and not silent:
        return settings
    spelt = {id: str(library.id_to_token(id)) for id in around}
    opening, closing = ([spelt[id] for id in ids] for ids in (loaded.opening, loaded.closing))
    single = [*_pieces(opening, 0), _sequence("A", 0), *_pieces(closing, 0)]
    return {
        **settings,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, _sequence("B", 1), *_pieces(closing, 1)],
            "special_tokens": {token: {"id": token, "ids": [id], "tokens": [token]} for id, token in spelt.items()},
        },
    }


def _pieces(tokens: Iterable[str], kind: int) -> list[dict[str, Any]]:
    return [{"SpecialToken": {"id": token, "type_id": kind}} for token in tokens]


def _sequence(name: str, kind: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": kind}}


def _written(settings: object) -> str:
    return json.dumps(settings, ensure_ascii=False, indent=2) + "\n"
