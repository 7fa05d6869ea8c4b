"""Every objective before a model that knows: it has no loss, and labels shift once, and ends are learnt.

An oracle answers from what it is given to read, never from the targets: it is told the documents, finds out where it is,
and is sure of what comes next (or of what is hidden). So a target in a wrong place costs it dearly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Ids, Windows, strided, whole
from clearhead.training.fit import Loss
from clearhead.training.losses import exact_match, masked_token, next_token, packed_next_token, target_token
from clearhead.training.masking import Hiding, Masked, masked_whole
from clearhead.training.packed import Packed, packed_whole
from clearhead.training.pairs import IdPair, Marks, Shuffled, all_pairs
from tests.training.toy_documents import numbered

DOCUMENTS = numbered(17, 1, 0, 6, 30)
"""No two tokens are equal, and the one after a token is the next number."""
BEGIN, END, MASK, VOCAB = 60, 61, 62, 63
SURE = 1e3
"""The logit of what an oracle says; all others are 0, so that it is wrong at the cost of 1,000 nats."""
Batches = Iterable[Any]


def sure_of(ids: Tensor) -> Tensor:
    """Logits of a model that has no doubt."""
    return SURE * nn.functional.one_hot(ids, VOCAB).double()


class Successor(nn.Module):
    """After a token comes the next number, after the last of a document the end mark.

    Which document a begin mark begins no causal model could know; this one reads ahead in its row.
    """

    def __init__(self) -> None:
        super().__init__()
        self.following = torch.arange(1, VOCAB + 1) % VOCAB
        self.following[[int(document[-1]) for document in DOCUMENTS if len(document)]] = END

    def forward(self, ids: Tensor, *, visible: Any = None, positions: Tensor | None = None) -> Tensor:
        return sure_of(self.following[ids].where(ids != BEGIN, ids.roll(-1, -1)))


class Neighbours(nn.Module):
    """What is hidden follows from what is not: all tokens of a window count on from one number, as most of them say."""

    def forward(self, ids: Tensor, *, real: Tensor) -> Tensor:
        places = torch.arange(ids.shape[-1])
        texts = real & (ids < BEGIN)
        starts = [(row - places)[text].mode().values for row, text in zip(ids, texts, strict=True)]
        return sure_of((torch.stack(starts)[:, None] + places).clamp(0, VOCAB - 1))


class Echo(nn.Module):
    """It says what it reads."""

    def forward(self, *ids: Tensor, **_: Any) -> Tensor:
        return sure_of(ids[-1])


class Reverse(nn.Module):
    """It writes the source backwards, and then the end."""

    def forward(self, source: Tensor, inputs: Tensor, *, source_real: Tensor) -> Tensor:
        answers = torch.full_like(inputs, END)
        for row, (ids, real) in enumerate(zip(source, source_real, strict=True)):
            backwards = ids[real][:-1].flip(0)
            answers[row, : len(backwards)] = backwards
        return sure_of(answers)


MARKS = Marks(BEGIN, END)
PAIRS = [IdPair(ids, ids[::-1].copy()) for ids in (document[:8] for document in DOCUMENTS)]


class Case(NamedTuple):
    """An objective, all its batches of some updates or of a validation, and a model that knows."""

    loss: Loss[Any]
    batches: Callable[[], Batches]
    oracle: nn.Module


def steps(made: Callable[[int], Any], count: int = 12) -> Batches:
    return [made(step) for step in range(count)]


def packed(begin: int | None = BEGIN) -> Packed:
    return Packed(DOCUMENTS, 10, 3, 0, begin=begin, end=END)


def masked() -> Masked:
    return Masked(LONG, 16, 3, 0, hiding=Hiding(MASK, 60), begin=BEGIN, end=END)


LONG: list[Ids] = [document for document in DOCUMENTS if len(document) > 9]
"""A document of one token is hidden whole, and nobody can know it."""
CASES = {
    "windows": Case(next_token, lambda: steps(Windows(DOCUMENTS, 5, 3, 0)), Successor()),
    "whole": Case(next_token, lambda: whole(DOCUMENTS, 5, 3), Successor()),
    "strided": Case(next_token, lambda: strided(DOCUMENTS, 5, 2, 3, end=END), Successor()),
    "packed": Case(packed_next_token, lambda: steps(packed(None)), Successor()),
    "packed, without the mask": Case(next_token, lambda: steps(packed(None)), Successor()),
    "packed, validated": Case(
        packed_next_token, lambda: packed_whole(DOCUMENTS, 10, 3, begin=None, end=END), Successor()
    ),
    "packed with begins": Case(
        packed_next_token,
        lambda: [batch for batch in steps(packed(), 40) if not bool((batch.inputs[:, -1] == BEGIN).any())],
        Successor(),
    ),
    "masked": Case(masked_token, lambda: steps(masked()), Neighbours()),
    "masked, validated": Case(
        masked_token,
        lambda: masked_whole(LONG, 16, 3, 0, hiding=Hiding(MASK, 60), begin=BEGIN, end=END),
        Neighbours(),
    ),
    "pairs": Case(target_token, lambda: steps(Shuffled(PAIRS, MARKS, 2, 0)), Reverse()),
    "pairs, validated": Case(target_token, lambda: all_pairs(PAIRS, MARKS, 2), Reverse()),
}


def loss_of(loss: Loss[Any], model: nn.Module, batches: Batches) -> tuple[float, int]:
    """Σ over the batches, and the terms."""
    found = [loss(model, batch) for batch in batches]
    return sum(total.item() for total, _ in found), sum(int(count) for _, count in found)


def check_no_loss(case: Case, batches: Batches) -> None:
    """The oracle's loss is 0, over all that there is to learn."""
    total, count = loss_of(case.loss, case.oracle, batches)
    assert count == sum(int((batch.targets != IGNORED).sum()) for batch in case.batches())
    assert count > 3
    assert abs(total) < 1e-12


@pytest.mark.parametrize("kind", CASES)
def test_a_model_that_knows_has_no_loss(kind: str) -> None:
    check_no_loss(CASES[kind], CASES[kind].batches())


@pytest.mark.parametrize("kind", CASES)
def test_a_model_that_says_what_it_reads_has_a_loss(kind: str) -> None:
    """At nearly every place; of masked tokens one in ten is left as it was."""
    case = CASES[kind]
    total, count = loss_of(case.loss, Echo(), case.batches())
    assert total > 0.5 * SURE * count


def shifted(by: int) -> Callable[[Any], Any]:
    """Targets that stand so many places later or sooner than they should."""
    return lambda batch: batch._replace(targets=batch.targets.roll(by, -1))


@pytest.mark.parametrize(
    "fault",
    [shifted(1), shifted(-1), shifted(-2)],
    ids=["not shifted", "shifted twice", "shifted three times"],
)
@pytest.mark.parametrize("kind", CASES)
def test_labels_that_shift_another_number_of_times_are_caught(kind: str, fault: Callable[[Any], Any]) -> None:
    case = CASES[kind]
    with pytest.raises(AssertionError):
        check_no_loss(case, [fault(batch) for batch in case.batches()])


@pytest.mark.parametrize("kind", ["whole", "strided", "packed", "packed, validated", "masked", "pairs"])
def test_padding_that_counts_is_caught(kind: str) -> None:
    case = CASES[kind]
    counting = [batch._replace(targets=batch.targets.where(batch.targets != IGNORED, 0)) for batch in case.batches()]
    with pytest.raises(AssertionError):
        check_no_loss(case, counting)


# Ends


def ends_learnt(batches: Batches) -> int:
    return sum(int((batch.targets == END).sum()) for batch in batches)


ENDING = {
    "strided": (lambda: strided(DOCUMENTS, 5, 2, 3, begin=BEGIN, end=END), 5),
    "packed": (lambda: steps(Packed(DOCUMENTS, 10, 1, 0, begin=BEGIN, end=END), packed().an_epoch), 5),
    "packed without begins": (
        lambda: steps(Packed(DOCUMENTS, 10, 1, 0, begin=None, end=END), packed(None).an_epoch),
        4,
    ),
    "packed, validated": (lambda: packed_whole(DOCUMENTS, 10, 3, begin=BEGIN, end=END), 5),
    "pairs": (lambda: steps(Shuffled(PAIRS, MARKS, 1, 0), 5), 5),
    "pairs, validated": (lambda: all_pairs(PAIRS, MARKS, 2), 5),
}


@pytest.mark.parametrize("kind", ENDING)
def test_the_end_of_every_document_is_learnt_once(kind: str) -> None:
    """Five documents, of which the one without a token has, without a begin mark, nothing before its end."""
    batches, expected = ENDING[kind]
    assert ends_learnt(batches()) == expected


class Endless(nn.Module):
    """It knows all but the end."""

    def __init__(self, oracle: nn.Module) -> None:
        super().__init__()
        self.oracle = oracle

    def forward(self, *ids: Tensor, **given: Any) -> Tensor:
        logits: Tensor = self.oracle(*ids, **given)
        logits[..., END] = 0
        return logits


@pytest.mark.parametrize("kind", ["strided", "packed", "packed, validated", "packed with begins", "pairs"])
def test_a_model_that_never_ends_is_charged_for_every_end(kind: str) -> None:
    case = CASES[kind]
    total, _ = loss_of(case.loss, Endless(case.oracle), case.batches())
    assert total == pytest.approx(ends_learnt(case.batches()) * np.log(VOCAB))


def test_answers_that_are_known_are_exact_matches() -> None:
    assert loss_of(exact_match, Reverse(), all_pairs(PAIRS, MARKS, 2)) == (5, 5)
    assert loss_of(exact_match, Endless(Reverse()), all_pairs(PAIRS, MARKS, 2)) == (0, 5)
