"""The tasks of modular addition and of lengths are what they say; their measures find what is planted."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from clearhead.ops.loss import IGNORED
from clearhead.training.batches import Batch
from clearhead.training.fit import evaluate
from proofs import lengths, modular
from proofs.repeats import right_tokens

# --- modular addition ---


class Waves(nn.Module):
    """Adds by waves of one frequency, read from its embedding alone."""

    def __init__(self, frequency: int, noise: float = 0.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(modular.P + 1, 4)
        angle = 2 * math.pi * frequency * torch.arange(modular.P) / modular.P
        other = 2 * math.pi * (frequency + 1) * torch.arange(modular.P) / modular.P
        with torch.no_grad():
            waves = [angle.cos(), angle.sin(), noise * other.cos(), noise * other.sin()]
            self.embedding.weight[: modular.P] = torch.stack(waves, 1)

    def forward(self, ids: Tensor) -> Tensor:
        a, b = self.embedding(ids[:, 0]), self.embedding(ids[:, 1])
        cosine, sine = a[:, 0] * b[:, 0] - a[:, 1] * b[:, 1], a[:, 1] * b[:, 0] + a[:, 0] * b[:, 1]
        answers = torch.stack([cosine, sine], 1) @ self.embedding.weight[: modular.P, :2].T
        return answers[:, None].expand(-1, 3, -1)


def test_no_unseen_pair_was_trained_in_either_order() -> None:
    trained, unseen = ({tuple(row[:2]) for row in each.inputs.tolist()} for each in modular.pairs(0))
    assert len(trained | unseen) == modular.P**2 == len(trained) + len(unseen)
    assert all((b, a) in trained for a, b in trained)
    assert 0.68 < len(trained) / modular.P**2 < 0.72
    assert {tuple(row[:2]) for row in modular.pairs(1)[1].inputs.tolist()} != unseen


def test_the_answers_are_sums_and_only_the_last_place_is_asked() -> None:
    for batch in modular.pairs(3):
        a, b, sign = batch.inputs.T
        assert (sign == modular.EQUALS).all()
        assert (batch.targets[:, :-1] == IGNORED).all()
        assert (batch.targets[:, -1] == (a + b) % modular.P).all()


def test_the_waves_that_answer_are_found() -> None:
    model, (trained, unseen) = Waves(7, noise=0.5), modular.pairs(0)
    assert evaluate(model, [trained, unseen], right_tokens) == 1.0
    shares = modular.power(model)  # type: ignore[arg-type]
    assert shares[6].item() == pytest.approx(0.8, abs=1e-6)
    assert shares[7].item() == pytest.approx(0.2, abs=1e-6)
    before = model.embedding.weight.detach().clone()
    with modular.with_waves(model, torch.tensor([7])):  # type: ignore[arg-type]
        assert evaluate(model, [unseen], right_tokens) == 1.0
    with modular.with_waves(model, torch.tensor([8])):  # type: ignore[arg-type]
        assert evaluate(model, [trained, unseen], right_tokens) < 0.1
    with modular.with_waves(model, torch.arange(1, modular.P // 2 + 1)):  # type: ignore[arg-type]
        torch.testing.assert_close(model.embedding.weight, before)
    assert torch.equal(model.embedding.weight, before)


def test_what_is_known_from_when() -> None:
    assert modular.known([0.1, 0.99, 0.5, 1.0]) == 1
    assert modular.known([0.1, 0.98]) is None


def test_a_model_that_has_learnt_nothing_misses_the_bars() -> None:
    claims = modular.prove(steps=5).claims
    assert [claim.right for claim in claims[:4]] == [False] * 4


# --- lengths ---


class Exact(nn.Module):
    """Writes the token from some places back; behind a place, the first one."""

    def __init__(self, back: int, until: int) -> None:
        super().__init__()
        self.back, self.until = back, until

    def forward(self, ids: Tensor) -> Tensor:
        places = (torch.arange(ids.shape[1]) - self.back).clamp(min=0)
        places[self.until :] = 0
        return nn.functional.one_hot(ids[:, places], lengths.TOKENS).double()


def longer() -> Batch:
    return lengths.Again(lengths.ENDS[-1], 200, seed=5)(0)


def test_the_target_is_the_token_two_places_back() -> None:
    batch = lengths.Again(9, 3, seed=1)(4)
    assert (batch.targets[:, :2] == IGNORED).all()
    for place in range(2, 9):
        assert (batch.targets[:, place] == batch.inputs[:, place - 2]).all()
    assert not torch.equal(lengths.Again(9, 3, seed=1)(5).inputs, batch.inputs)


def test_each_stretch_counts_its_own_places() -> None:
    assert lengths.stretches(lengths.right_at(Exact(2, 64), longer())) == [1.0] * 4
    first, *others = lengths.stretches(lengths.right_at(Exact(2, 40), longer()))
    assert (first, others[0]) == (1.0, 1.0)
    assert others[1:] == pytest.approx([1 / lengths.TOKENS] * 2, abs=0.02)


def test_one_place_off_is_found() -> None:
    assert lengths.stretches(lengths.right_at(Exact(1, 64), longer())) == pytest.approx(
        [1 / lengths.TOKENS] * 4, abs=0.03
    )


@pytest.mark.parametrize("name", lengths.SCHEMES)
def test_every_scheme_reads_twice_its_length(name: str) -> None:
    share = lengths.right_at(lengths.learnt(lengths.SCHEMES[name], steps=2, seed=0), longer())
    assert share[: lengths.BACK].isnan().all()
    assert share[lengths.BACK :].isfinite().all()
    assert len(share) == 2 * lengths.LENGTH


def test_models_that_have_learnt_nothing_miss_the_bars() -> None:
    report = lengths.prove(steps=2)
    assert not report.claims[0].right
    assert len(report.tables[0].rows) == len(lengths.SCHEMES)
