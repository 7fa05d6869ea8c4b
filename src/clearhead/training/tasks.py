"""What is learnt from documents: from ids and a context to an objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, overload

from clearhead.text.baselines import bigram_loss, unigram_loss
from clearhead.training.batches import Document, Marked, Windows, whole
from clearhead.training.losses import masked_token, next_token, packed_next_token
from clearhead.training.masking import Hiding, Masked, masked_whole
from clearhead.training.objective import Objective
from clearhead.training.packed import Packed, packed_whole

EVALUATION_TOKENS = 16_384
"""How many tokens go through the model together in an evaluation; bounds its memory, not its result."""
EVALUATION_LIMIT = 1 << 18
"""How many tokens of the validation data are scored at most: of more, the first, so that an evaluation stays short."""


class Task(Protocol):
    """What is learnt from documents."""

    def objective(
        self, train: Sequence[Document], validation: Sequence[Document], context: int, *, batch: int, seed: int
    ) -> Objective[Any]:
        """What a training learns from."""
        ...

    def levels(self, train: Sequence[Document], validation: Sequence[Document], vocab: int) -> Mapping[str, float]:
        """The losses of tables counted in the training text (nats per token), of those that this task allows.

        `unigram` knows how often each token occurs, `bigram` what follows each; the latter looks at one neighbour.
        """
        ...


@dataclass(frozen=True)
class RunningText:
    """The next token, in windows of running text."""

    def objective(
        self, train: Sequence[Document], validation: Sequence[Document], context: int, *, batch: int, seed: int
    ) -> Objective[Any]:
        """As `Task.objective`."""
        return Objective(
            Windows(train, context, batch, seed),
            lambda: whole(validation, context, _rows(context), limit=EVALUATION_LIMIT),
            next_token,
        )

    def levels(self, train: Sequence[Document], validation: Sequence[Document], vocab: int) -> Mapping[str, float]:
        """As `Task.levels`."""
        return _levels(train, first_scored(validation), vocab)


@dataclass(frozen=True)
class PackedDocuments:
    """The next token of whole documents, several of them in a window.

    Args:
        begin: the mark before each; none if None.
        end: the mark after each, which is learnt; none if None.
        alone: whether a document sees itself alone.
    """

    begin: int | None
    end: int | None
    alone: bool = True

    def objective(
        self, train: Sequence[Document], validation: Sequence[Document], context: int, *, batch: int, seed: int
    ) -> Objective[Any]:
        """As `Task.objective`; validated is each document by itself, with the document mask and without."""
        return Objective(
            Packed(train, context, batch, seed, begin=self.begin, end=self.end),
            lambda: packed_whole(
                validation, context, _rows(context), begin=self.begin, end=self.end, limit=EVALUATION_LIMIT
            ),
            packed_next_token if self.alone else next_token,
        )

    def levels(self, train: Sequence[Document], validation: Sequence[Document], vocab: int) -> Mapping[str, float]:
        """As `Task.levels`, marks among the tokens."""
        return _levels(
            _MarkedDocuments(train, self.begin, self.end), first_scored(validation, self.begin, self.end), vocab
        )


@dataclass(frozen=True)
class HiddenTokens:
    """Tokens that an encoder guesses from both sides.

    Args:
        begin: the mark before each document, never hidden; none if None.
        end: the mark after each document, never hidden; none if None.
        hiding: how tokens are hidden.
    """

    begin: int | None
    end: int | None
    hiding: Hiding

    def objective(
        self, train: Sequence[Document], validation: Sequence[Document], context: int, *, batch: int, seed: int
    ) -> Objective[Any]:
        """As `Task.objective`."""
        begin, end, hiding = self.begin, self.end, self.hiding
        return Objective(
            Masked(train, context, batch, seed, hiding=hiding, begin=begin, end=end),
            lambda: masked_whole(
                validation, context, _rows(context), 0, hiding=hiding, begin=begin, end=end, limit=EVALUATION_LIMIT
            ),
            masked_token,
            sizes_vary=True,
        )

    def levels(self, train: Sequence[Document], validation: Sequence[Document], vocab: int) -> Mapping[str, float]:
        """As `Task.levels`, of single tokens alone: a table of pairs would look at what may be hidden."""
        return {"unigram": unigram_loss(train, self._first_read(validation), vocab)}

    def _first_read(self, documents: Sequence[Document]) -> list[Document]:
        """What an evaluation reads, without its marks, to the id: it goes on to the end of the last window."""
        left, taken = EVALUATION_LIMIT, list[Document]()
        for document in documents:
            if left < 1:
                break
            taken.append(document if len(document) <= left else document[:left])
            left -= len(Marked(document, self.begin, self.end)) if len(document) else 0
        return taken


def _levels(train: Sequence[Document], validation: Sequence[Document], vocab: int) -> Mapping[str, float]:
    return {"unigram": unigram_loss(train, validation, vocab), "bigram": bigram_loss(train, validation, vocab)}


def _rows(context: int) -> int:
    return max(1, EVALUATION_TOKENS // context)


def first_scored(documents: Sequence[Document], begin: int | None = None, end: int | None = None) -> list[Document]:
    """The documents with their marks, the last of them cut, whose targets are those that an evaluation scores.

    Targets are all ids but the first of each document, marks among them, as in `scored_windows`.

    Args:
        documents: token ids without marks.
        begin: the mark before each; none if None.
        end: the mark after each; none if None.
    """
    left, taken = EVALUATION_LIMIT, list[Document]()
    for document in _MarkedDocuments(documents, begin, end):
        if left < 1:
            break
        targets = max(0, len(document) - 1)
        taken.append(document if targets <= left else document[: left + 1])
        left -= targets
    return taken


@dataclass(frozen=True)
class _MarkedDocuments(Sequence[Marked]):
    """Documents with their marks, each made when it is asked for: there may be millions."""

    documents: Sequence[Document]
    begin: int | None
    end: int | None

    def __len__(self) -> int:
        return len(self.documents)

    @overload
    def __getitem__(self, index: int) -> Marked: ...
    @overload
    def __getitem__(self, index: slice) -> list[Marked]: ...
    def __getitem__(self, index: int | slice) -> Marked | list[Marked]:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        return Marked(self.documents[index], self.begin, self.end)
