"""The tokenizer of a folder as the settings of a `tokenizer.json`: the file itself, or rebuilt from the older files of two families."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clearhead.formats.library_files import GPT2, NEOX, QWEN2, Splitting, added_token, byte_level, library_file
from clearhead.formats.safetensors_header import is_regular
from clearhead.messages import UserError, say
from clearhead.text.lines import reason_of

__all__ = ["Settings", "damaged", "read_settings", "read_text_file", "settings_of"]

MOST = 1 << 28
"""The most bytes of a file: the largest vocabularies take a seventh."""

_END_OF_TEXT = "<|endoftext|>"
_BOTH_ENDS = {"bos_token": _END_OF_TEXT, "eos_token": _END_OF_TEXT}
_BYTE_LEVEL: dict[str, tuple[Splitting, dict[str, str]]] = {
    "gpt2": (GPT2, _BOTH_ENDS),
    "gpt_neox": (NEOX, _BOTH_ENDS),
    "qwen2": (QWEN2, {"eos_token": _END_OF_TEXT}),
    "qwen3": (QWEN2, {"eos_token": _END_OF_TEXT}),
}
"""By `model_type`: how a text is split where vocab.json and merges.txt are all that is there, and marks that files need not declare."""
_WORD_PIECE = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}


class Settings:
    """The settings of a `tokenizer.json`, in which tokens can be made special.

    Attributes:
        data: the settings.
        source: the file, for messages.
        usual: the spelling of marks that no file need declare, by what they are called there.
        rebuilt: whether there is no such file, and the settings come from older ones.

    Raises:
        UserError: if they are not of the form that is looked at here.
    """

    def __init__(self, data: dict[str, Any], source: Path, usual: Mapping[str, str], *, rebuilt: bool = False) -> None:
        self.data, self.source, self.usual, self.rebuilt = data, source, usual, rebuilt
        model, added = data.get("model"), data.setdefault("added_tokens", [])
        vocab = model.get("vocab") if isinstance(model, dict) else None
        if not isinstance(model, dict) or not isinstance(vocab, dict | list):
            raise damaged(source, "model")
        if not isinstance(added, list) or not all(map(_is_added, added)):
            raise damaged(source, "added_tokens")
        self._model, self._added = model, added
        # A Unigram vocabulary is a list of pieces with their scores.
        ids = vocab if isinstance(vocab, dict) else {each[0]: id for id, each in enumerate(vocab) if _is_piece(each)}
        self._ids = {**ids, **{each["content"]: each["id"] for each in added}}

    def id_of(self, spelling: str | None) -> int | None:
        """The id of a token, if there is one."""
        id = None if spelling is None else self._ids.get(spelling)
        return id if type(id) is int else None

    def added_ids(self) -> set[int]:
        """The ids of tokens that are found in a text before it is split."""
        return {each["id"] for each in self._added}

    def make_special(self, id: int) -> None:
        """No text makes this id from here on: neither by spelling its token, nor as what stands for the unknown."""
        beside = [each for each in self._added if each["id"] == id]
        for each in beside:
            each["special"] = True
        spelling = next((token for token, each in self._ids.items() if each == id), None)
        if spelling is None:
            return
        if not beside:
            self._added.append(added_token(id, spelling, special=True))
        # Left out instead, as by a model that has no token for it.
        if self._model.get("type") == "BPE" and self._model.get("unk_token") == spelling:
            self._model["unk_token"] = None


def _is_piece(found: object) -> bool:
    return isinstance(found, list) and bool(found) and isinstance(found[0], str)


def _is_added(found: object) -> bool:
    return isinstance(found, dict) and type(found.get("id")) is int and isinstance(found.get("content"), str)


def settings_of(folder: Path, model_type: object, declared: Mapping[str, Any]) -> Settings | None:
    """The settings; None if there is no file that tells them (a `tokenizer.model` alone does not).

    Args:
        folder: where the files lie.
        model_type: the family, as config.json has it.
        declared: the fields of tokenizer_config.json.

    Raises:
        UserError: if a file is damaged.
    """
    names = ("tokenizer.json", "vocab.json", "merges.txt", "vocab.txt")
    whole, vocab, merges, words = (folder / name for name in names)
    splitting, usual = _BYTE_LEVEL.get(str(model_type), (None, _WORD_PIECE if model_type == "bert" else {}))
    if whole.exists():
        return Settings(read_settings(whole), whole, usual)
    if splitting is not None and vocab.exists() and merges.exists():
        ids = _ids(vocab)
        added = _added(folder, declared, ids)
        return Settings(json.loads(byte_level(ids, _merges(merges), splitting, added)), vocab, usual, rebuilt=True)
    if model_type == "bert" and words.exists():
        return Settings(json.loads(_word_pieces(words, declared)), words, usual, rebuilt=True)
    return None


def read_settings(path: Path) -> dict[str, Any]:
    """A JSON object, of any size that a vocabulary has.

    Raises:
        UserError: if there is none.
    """
    text = read_text_file(path)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(say("exchange.folder_json", path=path, reason=reason_of(error))) from error
    if not isinstance(data, dict):
        raise UserError(say("exchange.folder_json", path=path, reason=f"JSON {type(data).__name__}"))
    return data


def read_text_file(path: Path) -> str:
    """The text in a file, in UTF-8, its lines ended by LF.

    Raises:
        UserError: if it is no file, cannot be read, is longer than any vocabulary or is no text.
    """
    if not is_regular(path):
        raise UserError(say("exchange.file_missing", path=path))
    try:
        with path.open("rb") as file:
            raw = file.read(MOST + 1)
    except OSError as error:
        raise UserError(say("exchange.unreadable", path=path, reason=error.strerror)) from error
    if len(raw) > MOST:
        raise UserError(say("exchange.too_long", path=path, most=MOST))
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise damaged(path, reason_of(error)) from error


def damaged(path: Path, reason: str) -> UserError:
    """What is said of a file of words that cannot be used."""
    return UserError(say("exchange.words_damaged", path=path, reason=reason))


def _ids(path: Path) -> dict[str, int]:
    """The ids of a vocab.json."""
    ids = read_settings(path)
    for token, id in ids.items():
        if type(id) is not int or id < 0:
            raise damaged(path, f"{ascii(token)[:40]}: {ascii(id)[:40]}")
    return ids


def _merges(path: Path) -> list[list[str]]:
    """The pairs of a merges.txt: one a line, below a line with the version."""
    lines = read_text_file(path).split("\n")
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    for pair in merges:
        if len(pair) != 2 or not all(pair):
            raise UserError(say("exchange.words_merge", path=path, merge=ascii(" ".join(pair))[:60]))
    return merges


def _added(folder: Path, declared: Mapping[str, Any], ids: dict[str, int]) -> list[dict[str, Any]]:
    """The tokens that stand beside a vocabulary; their ids are put into it, too, so that each keeps its own."""
    beside = folder / "added_tokens.json"
    added = {
        id: added_token(id, token, special=False) for token, id in (_ids(beside) if beside.exists() else {}).items()
    }
    source = folder / "tokenizer_config.json"
    listed = declared.get("added_tokens_decoder") or {}
    if not isinstance(listed, dict):
        raise damaged(source, "added_tokens_decoder")
    for id, token in listed.items():
        if not (id.isascii() and id.isdigit() and len(id) < 10 and isinstance(token, dict)):
            raise damaged(source, f"added_tokens_decoder {ascii(id)[:40]}")
        content = token.get("content")
        if not isinstance(content, str) or not content:
            raise damaged(source, f"added_tokens_decoder {id}")
        added[int(id)] = added_token(int(id), content, special=token.get("special") is True)
    ids.update((token["content"], id) for id, token in added.items())
    return list(added.values())


def _word_pieces(path: Path, declared: Mapping[str, Any]) -> str:
    """BERT's tokenizer, from its list of words: lower case and Chinese characters by themselves unless something else is declared."""
    words = read_text_file(path).removesuffix("\n").split("\n")
    ids = {word: id for id, word in enumerate(words)}
    chosen = {name: declared.get(name, default) for name, default in _BERT.items()}
    for name, value in chosen.items():
        if not isinstance(value, bool) and not (name == "strip_accents" and value is None):
            raise damaged(path.with_name("tokenizer_config.json"), f"{name}: {ascii(value)[:40]}")
    marks = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    return library_file(
        {
            **{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"},
            **{"max_input_chars_per_word": 100, "vocab": ids},
        },
        [added_token(ids[mark], mark, special=True) for mark in marks if mark in ids],
        normalizer={
            **{"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": chosen["tokenize_chinese_chars"]},
            **{"strip_accents": chosen["strip_accents"], "lowercase": chosen["do_lower_case"]},
        },
        pre_tokenizer={"type": "BertPreTokenizer"},
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
    )


_BERT = {"do_lower_case": True, "tokenize_chinese_chars": True, "strip_accents": None}
