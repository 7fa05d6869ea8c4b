"""What a user may say about the data of a training, and what a run records of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from typing import Any

from clearhead.messages import UserError, say
from clearhead.text.bpe_training import BYTES
from clearhead.text.documents import Reading

__all__ = ["NOTHING_SAID", "DataChoice", "Told", "Watch", "unwatched"]

Told = Callable[[int], None]
"""Is told how much more is done."""

Watch = Callable[[str, int], AbstractContextManager[Told]]
"""From what is done and how much of it there is to somebody who is told the progress: a bar."""

LEAST_VOCAB = BYTES
"""Every byte, as `train_bpe` wants it."""


@contextmanager
def unwatched(_what: str, _size: int) -> Iterator[Told]:
    """Nobody looks."""
    yield lambda _: None


@dataclass(frozen=True)
class DataChoice:
    """What the user has said about the data; None where nothing was said.

    Args:
        encoding: of the files; recognised if "auto", the default.
        errors: "strict" (the default) or "replace", as in `Reading`.
        field: which field of a .jsonl line is the text; "text" by default.
        tokenizer: "character" (the default), "byte", "bpe" for one trained on the text, or the path of a tokenizer.json.
        vocab: how many ids a trained tokenizer has at most; picked for the text if None.
        document_mask: whether packed documents see themselves alone; True by default.

    Raises:
        UserError: if a value is none of these.
    """

    encoding: str | None = None
    errors: str | None = None
    field: str | None = None
    tokenizer: str | None = None
    vocab: int | None = None
    document_mask: bool | None = None

    def __post_init__(self) -> None:
        _ = self.reading
        if self.vocab is not None and self.vocab < LEAST_VOCAB:
            raise UserError(say("training.setting", name="vocab", value=self.vocab, wanted=f"≥ {LEAST_VOCAB}"))
        if self.vocab is not None and self.tokenizer != "bpe":
            raise UserError(say("training.vocab_of_bpe", vocab=self.vocab))

    @property
    def reading(self) -> Reading:
        """How files are read."""
        return Reading(self.encoding or "auto", self.errors or "strict", self.field or "text")

    @property
    def masked(self) -> bool:
        """Whether packed documents see themselves alone."""
        return self.document_mask is not False

    def recorded(self) -> dict[str, Any]:
        """What a run remembers: the encoding always, the rest if it was said."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"encoding": "auto"} | {name: value for name, value in said.items() if value is not None}

    @classmethod
    def of_record(cls, source: Mapping[str, Any]) -> DataChoice:
        """What `recorded` wrote."""
        return cls(**{field.name: source.get(field.name) for field in fields(cls)})

    def differs(self, recorded: DataChoice, tokenizer: str) -> tuple[str, object, object] | None:
        """The first thing that is said here and was not so when a run began: its name, then and now.

        Args:
            recorded: what that run recorded.
            tokenizer: what its tokenizer is called, for runs that recorded none.
        """
        usual = {"encoding": "auto", "errors": "strict", "field": "text", "tokenizer": tokenizer, "document_mask": True}
        for field in fields(self):
            old = getattr(recorded, field.name)
            old, new = usual.get(field.name) if old is None else old, getattr(self, field.name)
            if new is not None and new != old:
                return field.name, old, new
        return None


NOTHING_SAID = DataChoice()
"""What holds where the user says nothing."""
