"""A `tokenizer.json` as it is kept, and what is changed in it so that no text makes a special id and none is an error."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import tokenizers
from numpy.typing import NDArray

from clearhead.messages import UserError, say
from clearhead.text.lines import one_line

__all__ = ["HIDDEN", "PANIC", "Opened", "Refusals", "further_encoder", "open_library", "unknown_id"]

HIDDEN = "\ufdd0"
"""A noncharacter: Unicode promises that it never stands for anything in a text."""

MOST_IDS = 1 << 24
"""More ids than any vocabulary has: a higher one is a fault of the file, and a table for it would fill the memory."""


class Opened(NamedTuple):
    """A `tokenizer.json`, read once."""

    json: str
    """The same in one form: compact, as the library writes it, without truncation, padding and dropout."""
    tokens: list[str | None]
    """The token of each id; None where the vocabulary has a hole."""
    specials: dict[str, int]
    """The ids that no text makes, by their spelling."""
    library: tokenizers.Tokenizer
    """The library's tokenizer of `json`."""
    encoder: tokenizers.Tokenizer
    """The one that encodes: the same, or one in which no text can spell a special id."""
    hides: bool
    """Whether `HIDDEN` must be kept out of what `encoder` is given."""
    ids: NDArray[np.int64] | None
    """The id that each of the encoder's ids stands for, -1 for one that is to be dropped; None if each is itself."""
    decoder: dict[str, Any] | None
    """How `json` describes the decoder."""


class _Sealed(NamedTuple):
    settings: dict[str, Any]
    """The `tokenizer.json`, in which no special id has a spelling that a text can have."""
    hides: bool
    """Whether some spellings now begin with `HIDDEN`, which must then be kept out of texts."""
    spare: str | None
    """The token that stands for what the tokenizer leaves out, if its model must have one."""


def open_library(text: str, size: int | None = None) -> Opened:
    """Reads a `tokenizer.json`.

    Args:
        text: what stands in it.
        size: how many ids the model has; None if it has those of the tokens. Added tokens without one are left out.

    Raises:
        UserError: the library cannot read it, it holds no token, two share an id, an id is no vocabulary's, or a token that is not
            added has no id below `size`.
    """
    library = _opened(text)
    # First of all: the library writes a file by counting up to its highest id.
    ids = max(_count(library), size or 0)
    if ids > MOST_IDS:
        raise UserError(say("text.library_id", id=ids - 1, most=MOST_IDS))
    library, settings = _fitting(library, size)
    vocabulary = library.get_vocab(with_added_tokens=True)
    if not vocabulary:
        raise UserError(say("text.library_empty"))
    tokens: list[str | None] = [None] * (_count(library) if size is None else size)
    for token, id in vocabulary.items():
        tokens[id] = token
    unknown = unknown_id(settings)
    added = settings["added_tokens"]
    specials = {each["content"]: each["id"] for each in added if each["special"] and each["id"] != unknown}
    for spelling, id in specials.items():
        tokens[id] = spelling
    sealed = _sealed(settings, set(specials.values()))
    encoder = library if sealed.settings is settings else _opened(_canonical(sealed.settings))
    plain = [each["content"] for each in added if each["content"] not in specials]
    ours = None if sealed.spare is None else _translation(library, encoder, plain, sealed.spare)
    return Opened(_canonical(settings), tokens, specials, library, encoder, sealed.hides, ours, settings["decoder"])


def further_encoder(encoder: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The same for a text that does not begin where the whole text begins: without the space that Metaspace puts there alone."""
    settings = json.loads(encoder.to_str())
    splitting = settings["pre_tokenizer"] or {}
    first = [step for step in splitting.get("pretokenizers", [splitting]) if step.get("prepend_scheme") == "first"]
    for step in first:
        step["prepend_scheme"] = "never"
    return _opened(_canonical(settings)) if first else encoder


class Refusals:
    """Turns errors of the library into one line, those of some types; a more particular one is a defect and passes.

    Args:
        kinds: the types, by name: that of a panic can be named in no other way.
    """

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and kind.__name__ in self._kinds:
            raise UserError(say("text.library_refuses", reason=one_line(str(error)))) from None


PANIC = "PanicException"
"""The name of what the library raises where it has not looked: at a damaged table of characters, when read or when used."""


def _opened(text: str) -> tokenizers.Tokenizer:
    """The library's tokenizer of a `tokenizer.json`, without truncation and padding.

    Raises:
        UserError: the library cannot read it.
    """
    # Its refusals are bare exceptions. Half of a surrogate pair, which JSON can spell, never comes to it.
    with Refusals("Exception", "UnicodeEncodeError", PANIC):
        made = tokenizers.Tokenizer.from_str(text)
    made.no_truncation()
    made.no_padding()
    # Written texts are encoded as text, whatever they spell. No file keeps this setting, nor does a pickle.
    made.encode_special_tokens = True
    return made


def _canonical(settings: object) -> str:
    """JSON in one form, as it is kept: compact, characters as they are."""
    return json.dumps(settings, ensure_ascii=False, separators=(",", ":"))


def _fitting(library: tokenizers.Tokenizer, size: int | None) -> tuple[tokenizers.Tokenizer, dict[str, Any]]:
    """The tokenizer without dropout and without added tokens that have no id below `size`, and its settings.

    Raises:
        UserError: two tokens share an id, or one that is not added has none below `size`.
    """
    settings = json.loads(library.to_str())
    # Of tokens that share an id the library writes one, and what it wrote would be another tokenizer.
    if library.get_vocab_size(with_added_tokens=False) != len(settings["model"]["vocab"]):
        raise UserError(say("text.library_shared_id"))
    if settings["model"].get("dropout"):
        settings["model"]["dropout"] = None
        library = _opened(_canonical(settings))
    count = _count(library)
    if size is not None and count > size:
        settings = _without_added(settings, size)
        library = _opened(_canonical(settings))
        if _count(library) > size:
            raise UserError(say("text.library_rows", tokens=count, rows=size))
    return library, settings


def _count(library: tokenizers.Tokenizer) -> int:
    """The highest id and one."""
    return 1 + max(library.get_vocab(with_added_tokens=True).values(), default=-1)


def _without_added(settings: dict[str, Any], size: int) -> dict[str, Any]:
    """The settings without the added tokens whose id is `size` or higher, wherever they stand."""
    gone = {each["content"] for each in settings["added_tokens"] if each["id"] >= size}
    model = dict(settings["model"])
    if model["type"] == "Unigram":
        # An id is a place there: nothing can be taken out but what stands at the end.
        kept = len(model["vocab"])
        while kept > size and model["vocab"][kept - 1][0] in gone:
            kept -= 1
        model["vocab"] = model["vocab"][:kept]
    else:
        model["vocab"] = {name: id for name, id in model["vocab"].items() if name not in gone}
    if model["type"] == "BPE":
        model["merges"] = _merges_without(model, gone)
    added = [each for each in settings["added_tokens"] if each["content"] not in gone]
    return {**settings, "model": model, "added_tokens": added}


def unknown_id(settings: dict[str, Any]) -> int | None:
    """The id that some texts make because the model knows nothing better; None if no text makes one."""
    model = settings["model"]
    if _knows_every_byte(settings):
        return None
    if model["type"] == "Unigram":
        return _whole(model.get("unk_id"))
    return _whole(model["vocab"].get(model.get("unk_token")))


def _sealed(settings: dict[str, Any], specials: Collection[int]) -> _Sealed:
    """The settings that encode, for the ids that no text may make.

    An added special token is often an entry of the model's vocabulary too, where a text can reach it: a Unigram model reads
    "<s>" as the piece it is. Such entries are renamed. A model that fails where it meets something unknown gets an entry for it.
    """
    model = dict(settings["model"])
    names = {name: id for name, id in _entries(model) if id in specials}
    taken = {name: f"{HIDDEN}{id}" for name, id in names.items()}
    if taken:
        model |= _renamed(model, taken)
    spare = None
    if unknown_id(settings) is None:
        model, spare = _with_spare(model, f"{HIDDEN}?")
    if model == settings["model"]:
        return _Sealed(settings, False, None)
    added = [{**token, "content": taken.get(token["content"], token["content"])} for token in settings["added_tokens"]]
    # Where a byte is a letter of a fixed alphabet, no text can spell HIDDEN.
    renamed = (bool(taken) or spare is not None) and not _is_byte_level(settings)
    return _Sealed({**settings, "model": model, "added_tokens": added}, renamed, spare)


def _entries(model: dict[str, Any]) -> Iterable[tuple[str, int]]:
    if model["type"] == "Unigram":
        return [(name, id) for id, (name, _) in enumerate(model["vocab"])]
    return list(model["vocab"].items())


def _renamed(model: dict[str, Any], taken: dict[str, str]) -> dict[str, Any]:
    if model["type"] == "Unigram":
        return {"vocab": [[taken.get(name, name), score] for name, score in model["vocab"]]}
    vocab = {taken.get(name, name): id for name, id in model["vocab"].items()}
    if model["type"] != "BPE":
        return {"vocab": vocab}
    return {"vocab": vocab, "merges": _merges_without(model, taken.keys())}


def _merges_without(model: dict[str, Any], gone: Collection[str]) -> list[list[str]]:
    """The merges of a BPE that neither need nor make one of these tokens."""
    prefix = len(model.get("continuing_subword_prefix") or "")
    return [[a, b] for a, b in model["merges"] if not (a in gone or b in gone or a + b[prefix:] in gone)]


def _with_spare(model: dict[str, Any], spare: str) -> tuple[dict[str, Any], str | None]:
    """The model, able to meet what it does not know, and the token that it then writes, if it must write one."""
    if model["type"] == "BPE":
        return {**model, "unk_token": None}, None
    if model["type"] != "Unigram":
        behind = 1 + max(model["vocab"].values(), default=-1)
        return {**model, "vocab": {**model["vocab"], spare: behind}, "unk_token": spare}, spare
    if model.get("unk_id") is not None:
        return model, None
    lowest = min((score for _, score in model["vocab"]), default=0.0)
    return {**model, "vocab": [*model["vocab"], [spare, lowest]], "unk_id": len(model["vocab"])}, spare


def _knows_every_byte(settings: dict[str, Any]) -> bool:
    """Whether the model has a token for each byte, and is shown bytes where it knows no more."""
    model = settings["model"]
    if model.get("byte_fallback"):
        wanted = {f"<0x{byte:02X}>" for byte in range(256)}
    elif model["type"] == "BPE" and _is_byte_level(settings):
        wanted = set(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    else:
        return False
    return wanted <= {name for name, _ in _entries(model)}


def _is_byte_level(settings: dict[str, Any]) -> bool:
    """Whether the model is shown bytes, each as a letter of the library's alphabet for them."""
    splitting = settings.get("pre_tokenizer") or {}
    steps = splitting.get("pretokenizers", [splitting])
    normalizing = settings.get("normalizer") or {}
    steps = [*steps, *normalizing.get("normalizers", [normalizing])]
    return any(step.get("type") == "ByteLevel" for step in steps)


def _whole(id: object) -> int | None:
    return id if isinstance(id, int) else None


def _translation(
    library: tokenizers.Tokenizer, encoder: tokenizers.Tokenizer, plain: Iterable[str], spare: str
) -> NDArray[np.int64]:
    """The id that each of the encoder's ids stands for: the spare token has pushed those of added tokens up."""
    ids = np.arange(1 + max(encoder.get_vocab(with_added_tokens=True).values()), dtype=np.int64)
    for content in plain:
        ids[_id_of(content, encoder)] = _id_of(content, library)
    ids[_id_of(spare, encoder)] = -1
    return ids


def _id_of(token: str, tokenizer: tokenizers.Tokenizer) -> int:
    id: int | None = tokenizer.token_to_id(token)
    assert id is not None, token
    return id
