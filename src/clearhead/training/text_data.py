"""From a user's texts, or the built-in corpus, to token ids for training and validation."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.messages import UserError, say
from clearhead.models.config import DecoderConfig, ModelConfig
from clearhead.text import (
    ByteTokenizer,
    CharacterTokenizer,
    Tokenizer,
    bigram_loss,
    corpus,
    read_text,
    split_documents,
)
from clearhead.training.batches import Batch, Ids, Windows, whole
from clearhead.training.losses import next_token
from clearhead.training.objective import Objective

EVALUATION_TOKENS = 16_384
"""How many tokens go through the model together in an evaluation; bounds its memory, not its result."""

CORPUS_CHARACTERS = 800_000
CORPUS_SEED = 0
TOKENIZERS = ("character", "byte")


@dataclass(frozen=True)
class Texts:
    """Texts as read: one document a file, or the built-in corpus."""

    documents: list[str]
    source: dict[str, Any]
    """What a run records of them: the files or the corpus, and a hash."""
    notes: tuple[str, ...]
    """What was recognised on the way: encodings, line ends."""

    @property
    def built_in(self) -> bool:
        """Whether this is the built-in corpus."""
        return "corpus" in self.source

    @property
    def characters(self) -> int:
        """Of all documents together."""
        return sum(len(document) for document in self.documents)


@dataclass(frozen=True)
class TextData:
    """Texts ready to train on."""

    texts: Texts
    tokenizer: Tokenizer
    train: list[Ids]
    """Token ids of each training document."""
    validation: list[Ids]
    """Token ids of each validation document; no overlap with training."""
    context: int
    """The longest context, at most the one asked for, that has a window in both."""
    notes: tuple[str, ...]
    """What the user should know: encodings recognised, a context that shrank."""

    @property
    def source(self) -> dict[str, Any]:
        """What a run records of the texts."""
        return self.texts.source

    @property
    def tokens(self) -> int:
        """How many there are to train on."""
        return sum(len(document) for document in self.train)

    def tokens_a_step(self, config: ModelConfig, batch: int) -> float:
        """B·T."""
        assert isinstance(config, DecoderConfig)
        return batch * config.context

    def objective(self, config: ModelConfig, *, batch: int, seed: int) -> Objective[Batch]:
        """The next token, in windows of the model's context."""
        assert isinstance(config, DecoderConfig)
        context = config.context
        return Objective(
            Windows(self.train, context, batch, seed),
            lambda: whole(self.validation, context, max(1, EVALUATION_TOKENS // context)),
            next_token,
        )

    @property
    def entropy(self) -> float | None:
        """The best loss that any model can reach in the long run (nats per token), if known."""
        known = self.texts.built_in and isinstance(self.tokenizer, CharacterTokenizer)
        return corpus.entropy_per_character() if known else None

    @property
    def bigram(self) -> float:
        """The loss of a table of token pairs counted in the training text (nats per token)."""
        return bigram_loss(self.train, self.validation, self.tokenizer.size)

    @property
    def uniform(self) -> float:
        """The loss of guessing, ln V (nats per token)."""
        return math.log(self.tokenizer.size)


def read_texts(files: Sequence[str], encoding: str = "auto") -> Texts:
    """The texts of `files`, each one document; without files the built-in corpus.

    Raises:
        UserError: if a file cannot be used, with the reason.
    """
    if files:
        decoded = [read_text(Path(file), encoding) for file in files]
        documents = [each.text for each in decoded]
        notes = tuple(note for each in decoded for note in each.notes)
        source: dict[str, Any] = {"files": [str(Path(file).resolve()) for file in files], "encoding": encoding}
    else:
        documents, notes = [corpus.write(CORPUS_CHARACTERS, CORPUS_SEED)], ()
        source = {"corpus": {"characters": CORPUS_CHARACTERS, "seed": CORPUS_SEED}}
    digest = hashlib.sha256("\0".join(documents).encode()).hexdigest()
    return Texts(documents, source | {"sha256": digest}, notes)


def new_tokenizer(kind: str, text: str) -> CharacterTokenizer | ByteTokenizer:
    """The tokenizer of a new run: "character" makes one of the characters of `text`, "byte" takes UTF-8.

    Raises:
        UserError: if `kind` is neither.
    """
    if kind not in TOKENIZERS:
        raise UserError(say("training.setting", name="tokenizer", value=kind, wanted=" | ".join(TOKENIZERS)))
    return ByteTokenizer() if kind == "byte" else CharacterTokenizer.of(text)


def prepare(texts: Texts, tokenizer: Tokenizer, context: int) -> TextData:
    """Split every document and turn it into ids; a short text shrinks the context.

    Raises:
        UserError: if a text is too short to split.
    """
    parts = split_documents(texts.documents, context)
    return TextData(
        texts,
        tokenizer,
        [tokenizer.encode_array(text) for text in parts.train],
        [tokenizer.encode_array(text) for text in parts.validation],
        parts.context,
        (*texts.notes, *parts.notes),
    )
