"""Texts as token ids, and the task that is learnt from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.messages import say
from clearhead.models.config import ModelConfig, StackConfig
from clearhead.text import CharacterTokenizer, Tokenizer, corpus
from clearhead.text.split import Side, usable_context
from clearhead.training.batches import Document, lengths_of
from clearhead.training.data_choice import Watch, unwatched
from clearhead.training.objective import Objective
from clearhead.training.tasks import EVALUATION_LIMIT, PackedDocuments, RunningText, Task, first_scored
from clearhead.training.texts import BLOCK, SIDES, Texts, known, must_hold_numbers, tokenised


@dataclass(frozen=True)
class TextData:
    """Texts ready to train on."""

    texts: Texts
    tokenizer: Tokenizer
    task: Task
    ids: dict[Side, Sequence[Document]]
    """The token ids of the documents of each side, which do not overlap."""
    tokens: int
    """How many there are to train on."""
    context: int
    """The longest context, at most the one asked for, that the texts fill."""
    notes: tuple[str, ...]
    """What the user should know: encodings recognised, how the texts were split, a context that shrank."""

    @property
    def source(self) -> dict[str, Any]:
        """What a run records of the texts."""
        return self.texts.source

    def window(self, config: ModelConfig) -> int:
        """T, how many tokens of text the model learns from at a time."""
        assert isinstance(config, StackConfig)
        return min(config.context, self.context)

    def tokens_a_step(self, config: ModelConfig, batch: int) -> float:
        """B·T."""
        return batch * self.window(config)

    def objective(self, config: ModelConfig, *, batch: int, seed: int) -> Objective[Any]:
        """The task, in windows that the model and the texts have room for."""
        return self.task.objective(
            self.ids["train"], self.ids["validation"], self.window(config), batch=batch, seed=seed
        )

    @property
    def entropy(self) -> float | None:
        """The best loss that any model can reach in the long run (nats per token), if known."""
        known = self.texts.built_in and isinstance(self.tokenizer, CharacterTokenizer)
        return corpus.entropy_per_character() if known and isinstance(self.task, RunningText) else None

    @property
    def levels(self) -> Mapping[str, float]:
        """The losses of tables counted in the training text, by name, as `Task.levels` (nats per token)."""
        return self.task.levels(self.ids["train"], self.ids["validation"], self.tokenizer.size)

    @property
    def tokens_per_byte(self) -> float:
        """Of the validation text that is scored: how many tokens, end marks among them, a byte of UTF-8 has."""
        begin, end = (self.task.begin, self.task.end) if isinstance(self.task, PackedDocuments) else (None, None)
        tokens, size = 0, 0
        for document in first_scored(self.ids["validation"], begin, end):
            # Marks decode to nothing.
            scored = document[1 : len(document)]
            tokens, size = tokens + len(scored), size + len(self.tokenizer.decode(scored.tolist()).encode())
        return tokens / size if size else math.nan

    @property
    def uniform(self) -> float:
        """The loss of guessing, ln V (nats per token)."""
        return math.log(self.tokenizer.size)


def prepare(
    texts: Texts, tokenizer: Tokenizer, task: Task, *, context: int, folder: Path, watch: Watch = unwatched
) -> TextData:
    """Turn both sides into ids, in token files in `folder`; short texts shrink the context.

    Raises:
        UserError: if there is nothing to predict, or the tokenizer does not know most of it.
    """
    files = tokenised(texts, tokenizer, folder, watch)
    ids: dict[Side, Sequence[Document]] = {side: file.documents for side, file in files.items()}
    must_hold_numbers(tokenizer, min(map(len, files.values())))
    used, notes = fitting_context(task, ids, context)
    scored = len(files["validation"])
    if scored > EVALUATION_LIMIT:
        notes += (say("training.evaluation_limit", limit=f"{EVALUATION_LIMIT:,}", tokens=f"{scored:,}"),)
    train = files["train"]
    notes += known(tokenizer, (train.ids(start, start + BLOCK) for start in range(0, len(train), BLOCK)))
    return TextData(texts, tokenizer, task, ids, len(train), used, (*texts.notes, *notes))


def fitting_context(task: Task, ids: dict[Side, Sequence[Document]], context: int) -> tuple[int, tuple[str, ...]]:
    """The context that the documents fill, and what the user should know of it: running text is never filled up."""
    if not isinstance(task, RunningText):
        return context, ()
    train, validation = (lengths_of(ids[side]).tolist() for side in SIDES)
    return usable_context(context, train, validation, unit="token")
