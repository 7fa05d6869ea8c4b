"""A document -> the text to train on and the text to validate on, which never overlap.

One file is one document. With n characters, the first floor(9 n / 10) train and the rest, the last 10%, validates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clearhead.messages import UserError, say

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DocumentsSplit", "Split", "split_document", "split_documents"]

LEAST_CHARACTERS = 11
"""The shortest text with two characters in its validation tail: one to read and one to predict."""


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
    """Every document's two parts, and the context that the longest of each can fill.

    context used = min(context, longest train - 1, longest validation - 1)

    A short document beside a long one therefore does not shrink the context; if not even one window fits into its
    training part, a note says so.

    Args:
        texts: the documents, at least 11 characters each.
        context: the context asked for, in tokens.

    Raises:
        UserError: there is no document, one is too short to split, or the context is less than 1.
    """
    if not texts:
        raise UserError(say("text.no_documents"))
    if context < 1:
        raise UserError(say("text.context_not_positive", context=context))
    parts = [_parts(text) for text in texts]
    longest_train = max(len(train) for train, _ in parts)
    longest_validation = max(len(validation) for _, validation in parts)
    usable = min(context, longest_train - 1, longest_validation - 1)
    notes = []
    if usable < context:
        notes.append(
            say(
                "text.context_shrunk", asked=context, context=usable, train=longest_train, validation=longest_validation
            )
        )
    notes.extend(
        say("text.document_short", number=number, length=len(train), window=usable + 1)
        for number, (train, _) in enumerate(parts, start=1)
        if len(train) < usable + 1
    )
    train, validation = zip(*parts, strict=True)
    return DocumentsSplit(train=train, validation=validation, context=usable, notes=tuple(notes))


def _parts(text: str) -> tuple[str, str]:
    if len(text) < LEAST_CHARACTERS:
        raise UserError(say("text.too_short_to_split", length=len(text), least=LEAST_CHARACTERS))
    boundary = len(text) * 9 // 10
    return text[:boundary], text[boundary:]
