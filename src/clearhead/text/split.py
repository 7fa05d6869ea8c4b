"""Documents -> those to train on and those to validate on, or the two parts of each, which never overlap.

With `SPLIT_BY_DOCUMENT` documents or more, a document validates if its digest, the first 8 bytes of the SHA-256 of its text,
is among the lowest tenth of all numbers of 8 bytes: no seed, no order and no machine has a say, a document that is added
moves no other, and equal documents are on the same side. If none is so low, those with the lowest digest validate.

With fewer, of each document's n characters the first floor(9 n / 10) train and the rest, the last 10%, validates; a document
too short to leave two characters to validate trains whole, unless all are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from clearhead.messages import UserError, say
from clearhead.text.documents import Document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from clearhead.text.documents import Documents
    from clearhead.text.survey import Survey

__all__ = [
    "SPLIT_BY_DOCUMENT",
    "DocumentsSplit",
    "Side",
    "Sides",
    "Split",
    "parted",
    "sides",
    "split_document",
    "split_documents",
    "usable_context",
]

SPLIT_BY_DOCUMENT = 20
"""From how many documents on each belongs to one side as a whole."""

LEAST_CHARACTERS = 11
"""The shortest text with two characters in its validation tail: one to read and one to predict."""

BLOCK = 1 << 14
"""How many documents' sizes are made numbers of Python's at a time."""

MOST_SHORT = 5
"""How many short documents are named one by one."""

Side: TypeAlias = Literal["train", "validation"]
Unit: TypeAlias = Literal["character", "token"]


@dataclass(frozen=True)
class Sides:
    """Which documents train and which validate.

    Attributes:
        by_document: whether each belongs to one side as a whole; otherwise it is cut in two.
        lengths: (N) the characters of each document.
        train: (N) how many of them, from the first on, train: all or none if `by_document`.
        stated: one line, in the user's language: the rule that was used and what it gave.
    """

    by_document: bool
    lengths: NDArray[np.int64]
    train: NDArray[np.int64]
    stated: str

    @property
    def validation(self) -> NDArray[np.int64]:
        """(N) how many of each document's characters, the last ones, validate."""
        return self.lengths - self.train


@dataclass(frozen=True)
class Split:
    """One document in its two parts; `train + validation` is the document.

    Attributes:
        train: the first part.
        validation: the last 10% of the characters.
        context: the usable context in tokens, at most what was asked, such that a window (context + 1 tokens) fits into
            either part if no token covers more than one character.
        notes: one line, in the user's language, if the context shrank; otherwise empty.
    """

    train: str
    validation: str
    context: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class DocumentsSplit:
    """Several documents, each split by itself; a window must never cross from one to the next.

    Attributes:
        train: the first part of each document, in the order given.
        validation: the last 10% of each.
        context: the usable context: a window fits into the longest training part and the longest validation part.
        notes: one line each for a context that shrank and for every document whose training part is shorter than a
            window.
    """

    train: tuple[str, ...]
    validation: tuple[str, ...]
    context: int
    notes: tuple[str, ...]


def sides(survey: Survey) -> Sides:
    """Which side each document, or each part of it, belongs to; the rule stands at the top of this module.

    Args:
        survey: what the documents are.

    Raises:
        UserError: there is no document, all of many are equal, or all of few are too short to be cut.
    """
    if not survey.documents:
        raise UserError(say("text.no_documents"))
    if survey.documents < SPLIT_BY_DOCUMENT:
        train = _boundaries(survey.lengths)
        validation = survey.lengths - train
        stated = say("split.by_characters", train=int(train.sum()), validation=int(validation.sum()))
        return Sides(False, survey.lengths, train, stated)
    low = _validating(survey.digests)
    stated = say("split.by_document", train=int((~low).sum()), validation=int(low.sum()))
    return Sides(True, survey.lengths, np.where(low, 0, survey.lengths), stated)


def parted(documents: Documents, sides: Sides, side: Side) -> Documents:
    """The documents of one side, or the part of each that is on it; what is empty is left out.

    Nothing is held in memory beside `sides`: a document is passed on as it is read.

    Args:
        documents: those that were surveyed.
        sides: which side each is on.
        side: the one that is wanted.
    """

    def of_side() -> Iterator[Document]:
        for document, sizes in zip_longest(documents(), _sizes(sides)):
            if document is None or sizes is None:
                raise UserError(say("split.changed"))
            train, length = sizes
            if side == "train" and train:
                yield document._replace(parts=_until(document.parts, train)) if train < length else document
            elif side == "validation" and train < length:
                yield document._replace(parts=_behind(document.parts, train)) if train else document

    return of_side


def usable_context(
    context: int, train: Sequence[int], validation: Sequence[int], unit: Unit = "character"
) -> tuple[int, tuple[str, ...]]:
    """The context that the longest document of each side can fill, and what the user should know of it.

    context used = min(context, longest train - 1, longest validation - 1)

    A short document beside a long one therefore does not shrink the context; if not even one window (context + 1) fits
    into its training part, a note says so.

    Args:
        context: the context asked for, in tokens.
        train: the length of each document's training part.
        validation: the length of each document's validation part.
        unit: what the lengths count.

    Returns:
        The context, and one line each for a context that shrank and for every document whose training part is shorter
        than a window (if they are many, one line for all).

    Raises:
        UserError: the context is less than 1, or no part of a side has two of the unit.
    """
    if context < 1:
        raise UserError(say("text.context_not_positive", context=context))
    longest = max(train, default=0), max(validation, default=0)
    if min(longest) < 2:
        raise UserError(say("split.nothing_to_predict", train=longest[0], validation=longest[1]))
    usable = min(context, longest[0] - 1, longest[1] - 1)
    notes = [_shrunk(context, usable, longest, unit)] if usable < context else []
    short = [(number, length) for number, length in enumerate(train, start=1) if 0 < length < usable + 1]
    if len(short) > MOST_SHORT:
        notes.append(say("split.many_short", count=len(short), total=len(train), window=usable + 1))
    else:
        notes.extend(_short(number, length, usable + 1, unit) for number, length in short)
    return usable, tuple(notes)


def split_document(text: str, context: int) -> Split:
    """The document's two parts, and the context that both can fill.

    context used = min(context, len(train) - 1, len(validation) - 1)

    Args:
        text: the document, at least 11 characters.
        context: the context asked for, in tokens.

    Raises:
        UserError: the text is shorter than that, or the context less than 1.
    """
    split = split_documents([text], context)
    return Split(split.train[0], split.validation[0], split.context, split.notes)


def split_documents(texts: Sequence[str], context: int) -> DocumentsSplit:
    """Every document's two parts, however many there are, and the context that the longest of each can fill.

    The parts are those of fewer than `SPLIT_BY_DOCUMENT` documents, the context that of `usable_context`.

    Args:
        texts: the documents, one of them at least 11 characters long.
        context: the context asked for, in tokens.

    Raises:
        UserError: there is no document, all are too short to split, or the context is less than 1.
    """
    if not texts:
        raise UserError(say("text.no_documents"))
    if context < 1:
        raise UserError(say("text.context_not_positive", context=context))
    boundaries = _boundaries(np.array([len(text) for text in texts])).tolist()
    train = tuple(text[:boundary] for text, boundary in zip(texts, boundaries, strict=True))
    validation = tuple(text[boundary:] for text, boundary in zip(texts, boundaries, strict=True))
    usable, notes = usable_context(context, list(map(len, train)), list(map(len, validation)))
    return DocumentsSplit(train=train, validation=validation, context=usable, notes=notes)


def _sizes(sides: Sides) -> Iterator[tuple[int, int]]:
    """How many characters of each document train, and how many there are; a list of all would take 64 bytes for each."""
    for start in range(0, len(sides.lengths), BLOCK):
        some = slice(start, start + BLOCK)
        yield from zip(sides.train[some].tolist(), sides.lengths[some].tolist(), strict=True)


def _boundaries(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many characters of each document train: nine tenths, or all of one that is too short to be cut."""
    if lengths.max() < LEAST_CHARACTERS:
        raise UserError(say("text.too_short_to_split", length=int(lengths.max()), least=LEAST_CHARACTERS))
    return np.where(lengths < LEAST_CHARACTERS, lengths, lengths * 9 // 10)


def _validating(digests: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of many documents validate; neither all of them nor none."""
    low: NDArray[np.bool_] = digests <= np.uint64(2**64 // 10)
    if not low.any() or low.all():
        low = digests == digests.min()
    if low.all():
        raise UserError(say("split.all_equal", count=len(digests)))
    return low


def _until(parts: Iterable[str], count: int) -> Iterator[str]:
    """The first `count` characters."""
    for part in parts:
        yield part[:count]
        count -= len(part)
        if count <= 0:
            return


def _behind(parts: Iterable[str], count: int) -> Iterator[str]:
    """The characters behind the first `count`."""
    for part in parts:
        if count < len(part):
            yield part[count:]
        count = max(0, count - len(part))


def _shrunk(asked: int, context: int, longest: tuple[int, int], unit: Unit) -> str:
    return say(
        "text.context_shrunk" if unit == "character" else "split.context_shrunk_tokens",
        asked=asked,
        context=context,
        train=longest[0],
        validation=longest[1],
    )


def _short(number: int, length: int, window: int, unit: Unit) -> str:
    return say(
        "text.document_short" if unit == "character" else "split.document_short_tokens",
        number=number,
        length=length,
        window=window,
    )
