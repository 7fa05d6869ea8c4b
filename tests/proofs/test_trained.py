"""The proofs that train: their data is what they say, and a training too short, or a part left out, misses the bar."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clearhead.layers.block import SequentialBlock
from clearhead.ops.loss import IGNORED
from proofs import lengths, modular, norms, residuals, sorting
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


# --- modular ---


def test_pairs_never_seen_are_seen_in_no_order() -> None:
    trained, unseen = modular.pairs(0)
    first, second = ({tuple(row) for row in batch.inputs[:, :2].tolist()} for batch in (trained, unseen))
    assert len(first) + len(second) == modular.P**2
    assert not first & second
    assert not {(b, a) for a, b in first} & second
    for batch in (trained, unseen):
        assert torch.equal(batch.targets[:, -1], (batch.inputs[:, 0] + batch.inputs[:, 1]) % modular.P)
        assert (batch.targets[:, :-1] == IGNORED).all()


def test_the_whole_table_is_its_waves_and_comes_back() -> None:
    model = modular.fresh(0)
    before = model.embedding.weight.detach().clone()
    with modular.with_waves(model, torch.arange(1, modular.P // 2 + 1)):
        torch.testing.assert_close(model.embedding.weight, before)
    with modular.with_waves(model, torch.tensor([2])):
        kept = modular.power(model)
        assert kept[1] == pytest.approx(1)
        assert kept.sum() == pytest.approx(1)
    assert torch.equal(model.embedding.weight, before)


# --- lengths ---


def test_letters_are_asked_for_behind_the_second_mark_alone() -> None:
    batch = lengths.Copies(5, 5, batch=3, seed=0)(0)
    mark = lengths.LETTERS
    assert batch.inputs.shape == (3, 11)
    assert batch.inputs[:, [0, 6]].unique().tolist() == [mark]
    assert torch.equal(batch.targets[:, 6:], batch.inputs[:, 1:6])
    assert (batch.targets[:, :6] == IGNORED).all()
    assert all(len(set(row.tolist())) == 5 for row in batch.inputs[:, 1:6])


def test_no_scheme_copies_before_it_is_trained() -> None:
    claims = lengths.prove(steps=1, rows=10).claims
    assert not any(claim.right for claim in claims if claim.sign == "≥")


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
