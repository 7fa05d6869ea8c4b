"""The tokenizer and the chat template inside a GGUF file.

Two kinds of vocabulary are known: "gpt2", byte-level BPE with its merges, and "llama", SentencePiece's BPE with scores. What is
special is told by `token_type`; tokens that are there only to fill the vocabulary up have no text, and decode to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from clearhead.formats.gguf.header import GgufHeader
from clearhead.formats.gguf.pre_tokenizers import OPENED, PRE_TOKENIZERS
from clearhead.formats.gguf.sentencepiece import merges_of, sentence_pieces
from clearhead.formats.library_files import Splitting, added_token, byte_level
from clearhead.formats.opened import Words, further_ends
from clearhead.messages import UserError, say
from clearhead.text import LibraryTokenizer, NumberTokenizer, Tokenizer
from clearhead.text.lines import shown

__all__ = ["gguf_words"]

_KEY = "tokenizer.ggml."
_KINDS = ("gpt2", "llama")
_ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")
"""What ends a text, a turn, a message that calls for a tool."""
_NO_KINDS = ("none", "no_vocab")
"""What files say that hold no vocabulary."""
LONGEST = 1 << 12
"""The most characters of a token: those of today have some hundred, and what is read here takes their square."""
_ALWAYS_QWEN2 = ("qwen2", "qwen3")
"""Architectures of which there is one way of splitting, also in files from before its name was written into them."""


class _Kind(IntEnum):
    """The numbers of `token_type`."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class _Vocabulary(NamedTuple):
    """What a file says of its tokens."""

    tokens: list[str]
    kinds: list[int]
    marks: dict[str, int]
    """The ids of the marks that it has: begin, end."""
    ends: list[int]
    """All that end what is written."""

    def ids(self, *without: _Kind) -> dict[str, int]:
        """The id of each token, but for those of some kinds."""
        return {token: id for id, token in enumerate(self.tokens) if self.kinds[id] not in without}

    def added(self) -> list[dict[str, Any]]:
        """The tokens that are found before a text is split; those that are special to begin with."""
        special = {_Kind.CONTROL, _Kind.UNKNOWN}
        return [
            added_token(id, self.tokens[id], special=kind in special)
            for id, kind in enumerate(self.kinds)
            if kind in special or kind == _Kind.USER_DEFINED
        ]


def gguf_words(header: GgufHeader, vocab: int) -> Words:
    """What a GGUF file holds to read and write text.

    Args:
        header: what the file says.
        vocab: how many ids the model has.

    Raises:
        UserError: if the vocabulary is damaged, or of a kind or splitting that is not known, naming those that are.
    """
    kind = header.take(f"{_KEY}model", str, "none")
    template = header.take("tokenizer.chat_template", str, None)
    if kind in _NO_KINDS:
        return Words(NumberTokenizer(vocab), template)
    if kind not in _KINDS:
        raise _unknown(header, "model", kind, _KINDS)
    words = _vocabulary(header)
    if kind == "gpt2":
        name = _splitting_name(header)
        file, opened = _byte_level(header, words, PRE_TOKENIZERS[name]), name in OPENED
    else:
        file, opened = _sentence_pieces(header, words), True
    begin, end = words.marks.get("begin"), words.marks.get("end")
    return Words(
        _made(header, file, begin, end, vocab),
        template,
        (begin,) if begin is not None and header.take(f"{_KEY}add_bos_token", bool, opened) else (),
        (end,) if end is not None and header.take(f"{_KEY}add_eos_token", bool, False) else (),
        further_ends(end, words.ends, vocab),
    )


def _made(header: GgufHeader, file: str, begin: int | None, end: int | None, vocab: int) -> Tokenizer:
    try:
        return LibraryTokenizer(file, begin, end, vocab)
    except UserError as error:
        raise UserError(say("exchange.words", path=header.path, reason=error)) from error


def _unknown(header: GgufHeader, name: str, found: str, known: Iterable[str]) -> UserError:
    return UserError(
        say("exchange.words_unknown", path=header.path, name=_KEY + name, found=shown(found), known=", ".join(known))
    )


def _splitting_name(header: GgufHeader) -> str:
    architecture = header.take("general.architecture", str, "")
    name = header.take(f"{_KEY}pre", str, "qwen2" if architecture in _ALWAYS_QWEN2 else "default")
    if name not in PRE_TOKENIZERS:
        raise _unknown(header, "pre", name, PRE_TOKENIZERS)
    return name


def _vocabulary(header: GgufHeader) -> _Vocabulary:
    """The tokens, each of a kind, and the marks, which are special whatever the file calls them."""
    tokens = header.listed(f"{_KEY}tokens", str)
    kinds = header.listed(f"{_KEY}token_type", int, None)
    if kinds is None:
        kinds = [_Kind.BYTE if token in _BYTE_PIECES else _Kind.NORMAL for token in tokens]
    _must_match(header, "token_type", len(kinds), len(tokens))
    kinds = [*kinds]
    named = {key: _mark(header, key, len(tokens)) for key in ("bos_token_id", "unknown_token_id", *_ENDS)}
    found = {key: id for key, id in named.items() if id is not None}
    for key, id in found.items():
        if key != "unknown_token_id":
            kinds[id] = _Kind.CONTROL
    marks = {name: found[key] for key, name in _MARKS.items() if key in found}
    words = _Vocabulary(tokens, kinds, marks, [found[key] for key in _ENDS if key in found])
    longest = max(map(len, tokens), default=0)
    if longest > LONGEST:
        raise UserError(say("exchange.words_long", path=header.path, length=f"{longest:,}", most=f"{LONGEST:,}"))
    _must_differ(header, words)
    return words


def _mark(header: GgufHeader, key: str, count: int) -> int | None:
    """An id that a file names, one of so many, if it does."""
    id = header.take(_KEY + key, int, None)
    if id is not None and not 0 <= id < count:
        raise UserError(say("exchange.words_mark", path=header.path, name=_KEY + key, id=id, count=f"{count:,}"))
    return id


_MARKS = {"bos_token_id": "begin", "eos_token_id": "end"}
_BYTE_PIECES = {f"<0x{byte:02X}>" for byte in range(256)}


def _must_match(header: GgufHeader, name: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise UserError(
            say("exchange.words_lists", path=header.path, name=_KEY + name, found=f"{found:,}", wanted=f"{wanted:,}")
        )


def _must_differ(header: GgufHeader, words: _Vocabulary) -> None:
    """Raise a UserError if two tokens are spelt alike; those that fill up may be."""
    ids = words.ids(_Kind.UNUSED)
    if len(ids) == len(words.kinds) - words.kinds.count(_Kind.UNUSED):
        return
    first, second = next(
        (id, ids[token])
        for id, token in enumerate(words.tokens)
        if words.kinds[id] != _Kind.UNUSED and ids[token] != id
    )
    spelling = ascii(words.tokens[first])[:60]
    raise UserError(say("exchange.words_twice", path=header.path, first=first, second=second, spelling=spelling))


def _byte_level(header: GgufHeader, words: _Vocabulary, splitting: Splitting) -> str:
    vocab = words.ids(_Kind.UNUSED)
    return byte_level(vocab, _merges(header, words, vocab), splitting, words.added())


def _merges(header: GgufHeader, words: _Vocabulary, vocab: dict[str, int]) -> list[list[str]]:
    """The merges that a file lists, without those of tokens that only fill up."""
    merges = [merge.split(" ") for merge in header.listed(f"{_KEY}merges", str)]
    for pair in merges:
        if len(pair) != 2 or not all(pair):
            raise UserError(say("exchange.words_merge", path=header.path, merge=ascii(" ".join(pair))[:60]))
    if _Kind.UNUSED not in words.kinds:
        return merges
    unused = {
        token for token, kind in zip(words.tokens, words.kinds, strict=True) if kind == _Kind.UNUSED
    } - vocab.keys()
    return [[a, b] for a, b in merges if unused.isdisjoint((a, b, a + b))]


def _sentence_pieces(header: GgufHeader, words: _Vocabulary) -> str:
    vocab = words.ids(_Kind.UNUSED)
    joined = words.ids(_Kind.UNUSED, _Kind.CONTROL, _Kind.UNKNOWN, _Kind.BYTE, _Kind.USER_DEFINED)
    scores = header.listed(f"{_KEY}scores", float)
    _must_match(header, "scores", len(scores), len(words.tokens))
    if not all(map(math.isfinite, scores)):
        raise UserError(say("exchange.words_scores", path=header.path, name=f"{_KEY}scores"))
    unknown = header.take(f"{_KEY}unknown_token_id", int, None)
    return sentence_pieces(
        vocab,
        merges_of({token: scores[id] for token, id in joined.items()}),
        words.added(),
        unknown=None if unknown is None else words.tokens[unknown],
        falls_back=not _BYTE_PIECES.isdisjoint(vocab),
        prefix=header.take(f"{_KEY}add_space_prefix", bool, True),
    )
