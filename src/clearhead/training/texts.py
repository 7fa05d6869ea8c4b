"""Texts as they are read, the tokenizer that a new run gets for them, and their ids on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clearhead.formats.atomic import clear_failure, remove_leftovers
from clearhead.formats.token_files import TokenFile, unchanged_tokens, write_tokens
from clearhead.messages import UserError, say
from clearhead.text import ByteTokenizer, CharacterTokenizer, MarkedTokenizer, Tokenizer, corpus
from clearhead.text.bpe_training import train_bpe
from clearhead.text.documents import Document
from clearhead.text.encoding import encoded
from clearhead.text.jsonl import is_jsonl
from clearhead.text.numbers import knows_no_words
from clearhead.text.saved import read_tokenizer
from clearhead.text.sources import find_sources, size_on_disk
from clearhead.text.split import Side, Sides, parted, sides
from clearhead.text.streams import Progress, nothing
from clearhead.text.survey import Survey, survey
from clearhead.training.data_choice import NOTHING_SAID, DataChoice, Watch, unwatched
from clearhead.training.sizing import pick_vocab

CORPUS_CHARACTERS = 800_000
CORPUS_SEED = 0
UNKNOWN_ID = 0
"""What a tokenizer of characters makes of one that it does not know."""
BLOCK = 1 << 20
"""Ids that are looked at together."""
SIDES: tuple[Side, Side] = ("train", "validation")
TOKENIZERS = "character | byte | bpe | FOLDER/tokenizer.json"


class Spelt(Protocol):
    """What a tokenizer is made of."""

    @property
    def characters(self) -> int:
        """How many there are."""
        ...

    @property
    def alphabet(self) -> str:
        """Every character that occurs, in any order and number."""
        ...

    @property
    def size(self) -> int:
        """What a progress is told in all."""
        ...

    def parts(self, progress: Progress) -> Iterator[str]:
        """What a tokenizer is trained on."""
        ...


@dataclass(frozen=True)
class Written:
    """Short texts that fit into memory."""

    texts: Sequence[str]

    @property
    def characters(self) -> int:
        """As `Spelt.characters`."""
        return sum(map(len, self.texts))

    @property
    def alphabet(self) -> str:
        """As `Spelt.alphabet`."""
        return "".join(self.texts)

    @property
    def size(self) -> int:
        """As `Spelt.size`."""
        return self.characters

    def parts(self, progress: Progress) -> Iterator[str]:
        """All of them."""
        for text in self.texts:
            yield text
            progress(len(text))


@dataclass(frozen=True)
class Texts:
    """Documents as read, or the built-in corpus."""

    read: Callable[[Progress], Iterator[Document]]
    """The documents, anew at each call."""
    size: int
    """Bytes to read, for those who watch."""
    survey: Survey
    """What the documents are made of."""
    sides: Sides
    """Which of them train and which validate."""
    source: dict[str, Any]
    """What a run records of them: the files or the corpus, what was said of the data, and a hash."""
    notes: tuple[str, ...]
    """What was recognised on the way: encodings, line ends; and how they are split."""
    lines: bool = False
    """Whether a file has a document on each line."""

    @property
    def built_in(self) -> bool:
        """Whether this is the built-in corpus."""
        return "corpus" in self.source

    @property
    def characters(self) -> int:
        """How many there are, of all documents together."""
        return self.survey.characters

    @property
    def alphabet(self) -> str:
        """Every character that occurs."""
        return self.survey.alphabet

    def parts(self, progress: Progress) -> Iterator[str]:
        """What is trained on."""
        return (part for each in self.of_side("train", progress) for part in each.parts)

    def of_side(self, side: Side, progress: Progress = nothing) -> Iterator[Document]:
        """The documents, or the part of each, that train or validate."""
        return parted(partial(self.read, progress), self.sides, side)()


def read_texts(files: Sequence[str], choice: DataChoice = NOTHING_SAID, watch: Watch = unwatched) -> Texts:
    """The texts of `files`; without files the built-in corpus.

    Args:
        files: files and folders.
        choice: how they are read.
        watch: who is told how far that is.

    Raises:
        UserError: if a file cannot be used, with the reason.
    """
    if not files:
        text = corpus.write(CORPUS_CHARACTERS, CORPUS_SEED)
        found = survey(lambda: iter([Document(None, None, [text])]))
        source: dict[str, Any] = {"corpus": {"characters": CORPUS_CHARACTERS, "seed": CORPUS_SEED}}
        record = source | choice.recorded() | {"sha256": found.sha256}
        return Texts(lambda _: iter([Document(None, None, [text])]), len(text), found, sides(found), record, ())
    with watch(say("training.looking"), size_on_disk(files)) as told:
        sources = find_sources(files, choice.reading, told)
    with watch(say("training.surveying"), sources.size) as told:
        found = survey(partial(sources.documents, told))
    split = sides(found)
    source = {"files": [str(Path(file).resolve()) for file in files]} | choice.recorded() | {"sha256": found.sha256}
    notes = (*sources.notes, split.stated)
    lines = any(is_jsonl(path) for path in sources.paths)
    return Texts(sources.documents, sources.size, found, split, source, notes, lines)


def new_tokenizer(choice: DataChoice, texts: Spelt, watch: Watch = unwatched) -> Tokenizer:
    """The tokenizer of a new run, as the user chose it.

    "character" has the characters of all texts, "byte" is UTF-8, "bpe" is trained on what is trained on; anything else is
    the path of a tokenizer.

    Raises:
        UserError: if it is none of these.
    """
    match choice.tokenizer or "character":
        case "character":
            return CharacterTokenizer.of(texts.alphabet)
        case "byte":
            return ByteTokenizer()
        case "bpe":
            vocab = choice.vocab or pick_vocab(texts.characters, texts.alphabet)
            with watch(say("training.merging"), texts.size) as told:
                return train_bpe(texts.parts(told), vocab=vocab)
        case name:
            return named_tokenizer(name)


def named_tokenizer(name: str) -> Tokenizer:
    """The tokenizer in a file or folder.

    Raises:
        UserError: if there is none.
    """
    if not Path(name).exists():
        raise UserError(say("training.setting", name="tokenizer", value=name, wanted=TOKENIZERS))
    return read_tokenizer(name)


def tokenised(texts: Texts, tokenizer: Tokenizer, folder: Path, watch: Watch = unwatched) -> dict[Side, TokenFile]:
    """The ids of both sides, in token files in `folder`; a file that holds them already is taken as it is.

    Raises:
        UserError: if a file cannot be written, or the texts have changed.
    """
    return {side: _tokenised(texts, tokenizer, folder / f"{side}.tokens", side, watch) for side in SIDES}


def _tokenised(texts: Texts, tokenizer: Tokenizer, path: Path, side: Side, watch: Watch) -> TokenFile:
    source = f"{texts.source['sha256']} {side}"
    known = unchanged_tokens(path, tokenizer, source)
    if known is not None:
        return known
    with clear_failure(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
    with watch(say("training.encoding"), texts.size) as told:
        return write_tokens(path, tokenizer, encoded(tokenizer, lambda: texts.of_side(side, told)), source=source)


def must_hold_numbers(tokenizer: Tokenizer, tokens: int) -> None:
    """Raise a UserError if a model without a tokenizer is given words, of which nothing is left.

    Args:
        tokenizer: of the model.
        tokens: how many were found where two are needed.
    """
    if tokens < 2 and knows_no_words(tokenizer):
        raise UserError(say("training.no_numbers"))


def known(tokenizer: Tokenizer, ids: Iterable[NDArray[np.int64]]) -> tuple[str, ...]:
    """What the user should know where a tokenizer of characters does not know some: a model that is continued learns nothing of them.

    Args:
        tokenizer: of the model.
        ids: all that is learnt from, in any pieces.

    Raises:
        UserError: if it does not know most of them.
    """
    inner = tokenizer.inner if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    if not isinstance(inner, CharacterTokenizer):
        return ()
    count = total = 0
    for piece in ids:
        count, total = count + int((piece == UNKNOWN_ID).sum()), total + len(piece)
    if 2 * count > total:
        raise UserError(say("training.mostly_unknown", count=f"{count:,}", total=f"{total:,}"))
    return (say("training.unknown", count=f"{count:,}", total=f"{total:,}"),) if count else ()
