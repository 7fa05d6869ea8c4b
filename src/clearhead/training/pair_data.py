"""From a user's pairs to token ids for training and validation."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from clearhead.messages import UserError, say
from clearhead.models.config import ModelConfig
from clearhead.text import Pair, Tokenizer, read_pairs, split_pairs
from clearhead.text.pairs import PAIRS
from clearhead.text.sources import found_files
from clearhead.training.data_choice import NOTHING_SAID, DataChoice
from clearhead.training.losses import exact_match, target_token
from clearhead.training.objective import Objective
from clearhead.training.pairs import IdPair, Marks, PairBatch, Shuffled, all_pairs
from clearhead.training.texts import must_hold_numbers

EVALUATION_PAIRS = 256
"""How many pairs go through the model together in an evaluation, unless they are long."""
EVALUATION_SCORES = EVALUATION_PAIRS * 128**2
"""How many scores a head has of them at most; bounds the memory of an evaluation, not its result."""


class Place(NamedTuple):
    """Where a pair was read."""

    path: str
    """The file, as the user named it."""
    line: int
    """From 1."""


@dataclass(frozen=True)
class PairTexts:
    """Pairs as read."""

    pairs: list[Pair]
    places: list[Place]
    """Of each pair."""
    source: dict[str, Any]
    """What a run records of them: the files, and a hash."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PairData:
    """Pairs ready to train on."""

    texts: PairTexts
    tokenizer: Tokenizer
    """With marks that begin and end a target."""
    train: list[IdPair]
    validation: list[IdPair]
    """A tenth of the pairs; no source of theirs is trained on."""
    example: Pair
    """The first pair of the validation, to show what the model makes of it."""

    @property
    def source(self) -> dict[str, Any]:
        """What a run records of the pairs."""
        return self.texts.source

    @property
    def notes(self) -> tuple[str, ...]:
        """Encodings recognised, how many are on each side, and other things that the user should know."""
        parts = say("training.parts", train=f"{len(self.train):,}", validation=f"{len(self.validation):,}")
        return (*self.texts.notes, parts)

    @property
    def tokens(self) -> int:
        """How many tokens of targets there are to train on, their end marks among them."""
        return sum(len(pair.target) + 1 for pair in self.train)

    @property
    def longest(self) -> tuple[int, int]:
        """Positions that the longest source and the longest target need, with their marks."""
        every = self.train + self.validation
        return max(len(pair.source) for pair in every) + 1, max(len(pair.target) for pair in every) + 1

    @property
    def places_of_longest(self) -> tuple[Place, Place]:
        """Where the longest source and the longest target were read; the first of equals."""
        sides = zip(*self.texts.pairs, strict=True)
        lengths = [[len(self.tokenizer.encode_array(text)) for text in side] for side in sides]
        source, target = (self.texts.places[side.index(max(side))] for side in lengths)
        return source, target

    @property
    def uniform(self) -> float:
        """The loss of guessing, ln V (nats per token)."""
        return math.log(self.tokenizer.size)

    def tokens_a_step(self, config: ModelConfig, batch: int) -> float:
        """The mean length of a target, so many times."""
        return batch * self.tokens / len(self.train)

    def objective(self, config: ModelConfig, *, batch: int, seed: int) -> Objective[PairBatch]:
        """The next token of the target, the source read; judged by the share of answers that are wholly right, too."""
        begin, end = self.tokenizer.begin, self.tokenizer.end
        assert begin is not None and end is not None, "prepare_pairs has looked"  # noqa: PT018 - one condition
        marks = Marks(begin, end)
        return Objective(
            Shuffled(self.train, marks, batch, seed),
            lambda: all_pairs(self.validation, marks, EVALUATION_PAIRS, scores=EVALUATION_SCORES),
            target_token,
            {"exact_match": exact_match},
            sizes_vary=True,
        )


def read_pair_texts(files: Sequence[str], choice: DataChoice = NOTHING_SAID) -> PairTexts:
    """The pairs of `files`, one after the other.

    Args:
        files: .tsv and .csv files, compressed (.gz) or not, and folders of such files; one that is named itself may have any name.
        choice: how they are read.

    Raises:
        UserError: if there is no file, or one cannot be used, with the reason and the line.
    """
    if not files:
        raise UserError(say("training.no_pairs"))
    reading = choice.reading
    found = found_files(files, PAIRS)
    read = [read_pairs(file, reading.encoding, reading.errors) for file in found]
    pairs = [pair for each in read for pair in each.pairs]
    digest = hashlib.sha256("\n".join("\t".join(pair) for pair in pairs).encode()).hexdigest()
    source = {"pairs": [str(Path(file).resolve()) for file in files]} | choice.recorded() | {"sha256": digest}
    places = [Place(str(file), line) for file, each in zip(found, read, strict=True) for line in each.lines]
    return PairTexts(pairs, places, source, tuple(note for each in read for note in each.notes))


def prepare_pairs(texts: PairTexts, tokenizer: Tokenizer) -> PairData:
    """Keep a tenth for validation and turn both sides into ids, with one tokenizer for both.

    Raises:
        UserError: if there are not two different sources, or the tokenizer has no marks.
    """
    if tokenizer.begin is None or tokenizer.end is None:
        raise UserError(say("training.pairs_need_marks"))
    parts = split_pairs(texts.pairs)
    train, validation = ([_ids(pair, tokenizer) for pair in part] for part in parts)
    must_hold_numbers(tokenizer, sum(len(ids) for pair in train for ids in pair))
    return PairData(texts, tokenizer, train, validation, parts[1][0])


def _ids(pair: Pair, tokenizer: Tokenizer) -> IdPair:
    return IdPair(tokenizer.encode_array(pair.source), tokenizer.encode_array(pair.target))
