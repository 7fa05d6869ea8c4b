"""Conversations to learn from: every id is read, those of the answers are learnt. Pure functions of (seed, step)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from clearhead.generation.chat import ChatTemplate, Turn
from clearhead.messages import UserError, say
from clearhead.ops.loss import IGNORED
from clearhead.text import Tokenizer
from clearhead.training.batches import Batch, Ids
from clearhead.training.order import ALL, Epochs, Share


class Answered(NamedTuple):
    """A conversation as ids, up to the end of its last answer."""

    ids: Ids
    """All that is said, and what the template writes around it (N)."""
    counted: NDArray[np.bool_]
    """Which of them belong to an answer (N): what the model writes itself, the mark that ends an answer included."""

    @property
    def positions(self) -> int:
        """How many positions of a model it takes: N - 1, as the last id is a target only."""
        return len(self.ids) - 1

    @property
    def terms(self) -> int:
        """How many ids are learnt: those that are counted and have one before them."""
        return int(self.counted[1:].sum())


def answered(turns: Sequence[Turn], template: ChatTemplate, tokenizer: Tokenizer) -> Answered:
    """The ids of a conversation, and which of them are to be learnt.

    Up to the beginning of an answer the ids are exactly those that `template.ids` gives a model that is to write it. What the
    template writes there, an answer's header, is given and not learnt. An answer is learnt up to the mark that ends a text;
    if the template writes none behind it, it is all that stands before the next turn.

    Args:
        turns: the conversation; what follows the last answer is left out.
        template: how it is written down.
        tokenizer: text to ids.

    Raises:
        UserError: if there is nothing to learn, or the template does not let answers be told apart (as `template.parts`).
    """
    last = max((number for number, turn in enumerate(turns) if turn.role == "assistant"), default=-1)
    ids: list[int] = []
    counted: list[bool] = []
    parts = template.parts(turns[: last + 1], tokenizer, answer=False) if last >= 0 else []
    for number, part in enumerate(parts):
        learnt = _written(part, tokenizer.end) if number % 2 else 0
        ids += part
        counted += [True] * learnt + [False] * (len(part) - learnt)
    if not any(counted[1:]):
        raise UserError(say("training.conversation_no_answer"))
    until = len(counted) - counted[::-1].index(True)
    return Answered(np.array(ids[:until], dtype=np.int64), np.array(counted[:until]))


def _written(part: Sequence[int], end: int | None) -> int:
    """How many ids of an answer and what follows it the model writes: to the end mark, or all if there is none."""
    return len(part) - part[::-1].index(end) if end in part else len(part)


def batch_of(conversations: Sequence[Answered]) -> Batch:
    """The conversations side by side, padded behind their ends to the longest (B,T).

    The target of position t is id t + 1 if that belongs to an answer, `IGNORED` if not. Padding stands behind all that is read,
    where no earlier position looks, and has no targets.
    """
    rows, steps = len(conversations), max(each.positions for each in conversations)
    inputs = torch.zeros(rows, steps, dtype=torch.long)
    targets = torch.full((rows, steps), IGNORED)
    for row, each in enumerate(conversations):
        inputs[row, : each.positions] = torch.from_numpy(each.ids[:-1])
        targets[row, : each.positions] = torch.from_numpy(np.where(each.counted, each.ids, IGNORED)[1:])
    return Batch(inputs, targets)


class Conversed:
    """Every conversation once an epoch, in an order of the epoch's own; `conversed(step)` depends on the seed and the step alone.

    Args:
        conversations: at least one.
        batch: how many of them a step takes.
        seed: of the orders.
        share: the part of each step that this process computes.
    """

    def __init__(self, conversations: Sequence[Answered], batch: int, seed: int, share: Share = ALL) -> None:
        self.conversations, self.batch, self.share = conversations, batch, share
        size = len(conversations)
        self.epochs = Epochs[int](lambda generator: generator.permutation(size).tolist(), size, seed)

    def __call__(self, step: int) -> Batch:
        """The batch of update `step`, counted from 0."""
        return batch_of([self.conversations[number] for number in self.epochs.of_step(step, self.batch, self.share)])


def all_conversations(conversations: Sequence[Answered], batch: int, *, tokens: int) -> Iterator[Batch]:
    """Every conversation once, in order, so many together.

    Args:
        conversations: any number.
        batch: how many go together.
        tokens: fewer go together where B · T would be more than this; one that is too long for that goes alone.
    """
    rows: list[Answered] = []
    for each in conversations:
        longest = max(one.positions for one in [*rows, each])
        if rows and (len(rows) == batch or (len(rows) + 1) * longest > tokens):
            yield batch_of(rows)
            rows = []
        rows.append(each)
    if rows:
        yield batch_of(rows)


def answers_right(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """How many answers greedy decoding gets wholly right, end mark included, and how many there are.

    No decoding is needed. Greedy decoding writes an answer if and only if, after each right beginning, the best token is the
    next right one: so the best token must be right at each of its places while the model reads the conversation itself.
    An answer is a run of targets in a row; what is given between two answers parts them.
    """
    real = batch.targets != IGNORED
    begins = real.clone()
    begins[:, 1:] &= ~real[:, :-1]
    # Each target's answer, counted through the whole batch; a row's first target begins one.
    number = begins.flatten().cumsum(0).view_as(begins)
    wrong = real & (model(batch.inputs).argmax(-1) != batch.targets)
    return begins.sum() - number[wrong].bincount().count_nonzero(), begins.sum()
