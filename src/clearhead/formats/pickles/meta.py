"""nanoGPT's `meta.pkl`: the characters of a text and their ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from clearhead.formats.pickles.look import DAMAGE, MOST_BYTES, look
from clearhead.formats.pickles.torch_file import damaged
from clearhead.messages import UserError, say
from clearhead.text import CharacterTokenizer, LibraryTokenizer, Tokenizer
from clearhead.text.lines import shown
from clearhead.text.tokenizer import UNKNOWN

META = "meta.pkl"


def read_meta(path: Path) -> Tokenizer:
    """The tokenizer of a `meta.pkl`, in which every id is a character, in nanoGPT's order.

    Texts with other characters lose them: nanoGPT has no id for what it does not know.

    Raises:
        UserError: if it cannot be read, wants anything but words, numbers and lists of them, or an id is not one character.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError("it is longer than any vocabulary")
        looked = look(path.read_bytes())
    except DAMAGE as error:
        raise damaged(path, error) from None
    if looked.names:
        raise UserError(say("exchange.meta_code", path=path, name=shown(looked.names[0])))
    return _tokenizer(_characters(path, looked.value))


def _characters(path: Path, meta: object) -> list[str]:
    """The character of each id.

    Raises:
        UserError: if there is not exactly one for each, or `vocab_size` or `stoi` says otherwise.
    """
    if not isinstance(meta, Mapping) or not isinstance(meta.get("itos"), Mapping | list):
        raise UserError(say("exchange.meta_none", path=path))
    itos = meta["itos"] if isinstance(meta["itos"], Mapping) else dict(enumerate(meta["itos"]))
    found = [itos.get(id) for id in range(len(itos))]
    size, stoi = meta.get("vocab_size", len(found)), meta.get("stoi")
    for id, character in enumerate(found):
        if not isinstance(character, str) or len(character) != 1 or "\ud800" <= character <= "\udfff":
            raise UserError(say("exchange.meta_character", path=path, id=id, found=ascii(character)[:60]))
    characters = [str(character) for character in found]
    ids = {character: id for id, character in enumerate(characters)}
    if not ids or len(ids) != len(characters) or size != len(ids) or (stoi is not None and stoi != ids):
        raise UserError(say("exchange.meta_differs", path=path))
    return characters


def _tokenizer(characters: list[str]) -> Tokenizer:
    """Ours if id 0 is the mark of what is unknown, as there; otherwise the library's, whose ids may be any."""
    if characters[0] == UNKNOWN and len(characters) > 1:
        return CharacterTokenizer("".join(characters[1:]))
    # Byte-pair encoding without a pair: every character is its own token.
    model = {"type": "BPE", "vocab": {character: id for id, character in enumerate(characters)}, "merges": []}
    return LibraryTokenizer(
        json.dumps({"version": "1.0", "added_tokens": [], "model": model, "decoder": {"type": "Fuse"}})
    )
