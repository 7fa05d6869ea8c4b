"""The proofs that train: their data is what they say, and a training too short, or a part left out, misses the bar."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clearhead.layers.block import SequentialBlock
from proofs import norms, residuals, sorting
from proofs.repeats import Repeats

ROWS = Repeats(vocab=16, length=24, shortest=4, longest=10)


# --- sorting ---


def test_a_list_becomes_the_list_in_order() -> None:
    assert sorting.ordered(np.array([7, 3, 7, 0])).target.tolist() == [0, 3, 7, 7]
    for draw, different in ((sorting.narrow, 8), (sorting.few, 2)):
        source, target = draw(np.random.default_rng(0))
        assert sorted(source) == target.tolist()
        assert len(set(target.tolist())) <= different


def test_sorting_is_not_claimed_before_it_is_learnt() -> None:
    assert [claim.right for claim in sorting.prove(steps=2, hundreds=1).claims] == [False]


# --- norms, residuals ---


def test_a_training_too_short_shows_nothing_of_the_norms() -> None:
    assert [claim.right for claim in norms.prove(steps=2).claims] == [True, False, False]


@pytest.mark.parametrize("keeping", [False, True], ids=["GPT-2's weights", "larger weights"])
def test_without_residuals_all_positions_become_one(keeping: bool) -> None:
    ids = ROWS(0).inputs
    with_them, without = (
        residuals.alike(residuals.deep(ROWS, residuals=each, keeping=keeping, seed=0), ids) for each in (True, False)
    )
    assert len(with_them) == len(without) == residuals.LAYERS
    assert with_them[-1] < 0.9
    assert without[-1] > 0.99


def test_the_same_weights_with_and_without() -> None:
    with_them, without = (residuals.deep(ROWS, residuals=each, keeping=True, seed=0) for each in (True, False))
    ours, theirs = with_them.state_dict(), without.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert ours.keys() == theirs.keys()


def test_a_residual_left_in_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the blocks without residuals have them."""
    monkeypatch.setattr(residuals.WithoutResiduals, "forward", SequentialBlock.forward)
    claims = residuals.prove(steps=1).claims
    assert not claims[-1].right
