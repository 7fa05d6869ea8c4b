"""Masked tokens: ids that no text makes never stand for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from clearhead.ops.loss import IGNORED
from clearhead.training.masking import Hiding
from tests.training.test_masking import VOCAB, fixed, masked
from tests.training.toy_documents import MASK, numbered


def test_ids_that_no_text_makes_are_not_drawn_and_the_others_are_as_before() -> None:
    """The planted fault: a special id inside the vocabulary stands for hidden tokens."""

    def drawn(vocab: int, *excluded: int) -> list[list[int]]:
        hiding = Hiding(MASK, vocab, rate=1.0, excluded=frozenset(excluded))
        rows = [hiding(np.full(9, 50), range(9), np.random.default_rng(number))[0].tolist() for number in range(200)]
        return [[id for id in row if id not in (50, MASK)] for row in rows]

    assert {id for row in drawn(5, 1, 4) for id in row} == {0, 2, 3}
    assert {id for row in drawn(5) for id in row} == {0, 1, 2, 3, 4}
    # The same choices, through a table: what is excluded at the end changes nothing.
    assert drawn(5, 3, 4) == drawn(3)
    assert drawn(5, 0, 4) == [[id + 1 for id in row] for row in drawn(3)]


@pytest.mark.parametrize("where", [masked, fixed])
def test_the_training_and_the_evaluation_exclude_them(
    where: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearhead.training.masking.MASKED", 0.0)
    monkeypatch.setattr("clearhead.training.masking.RANDOM", 1.0)
    allowed = {3, VOCAB - 1}

    def inputs(excluded: frozenset[int]) -> set[int]:
        made = where(numbered(200), 50, 4, rate=1.0, excluded=excluded)
        batches = [made(step) for step in range(2)] if where is masked else list(made)
        return {int(id) for batch in batches for id in batch.inputs[batch.targets != IGNORED]}

    assert inputs(frozenset(range(VOCAB)) - allowed) == allowed
    assert len(inputs(frozenset())) > 50
