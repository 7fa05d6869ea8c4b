"""The kind `loss`: each planted fault is named first, right losses are silent, and what cannot be seen is said to be so."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from bench.checking.case import Case
from bench.checking.first import loss as first
from clearhead.checking.check import check
from clearhead.checking.kinds.loss_calling import LossCase, opened
from clearhead.checking.kinds.loss_reading import aligned, formula, gradient, logits_of, offsets
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of
from clearhead.messages import UserError


@pytest.mark.parametrize("case", first.CASES, ids=lambda case: case.name)
def test_the_first_set(case: Case) -> None:
    report = check(getattr(first, case.name), kind=case.kind)
    found = [fault.id for fault in report.faults]
    assert found[:1] == [case.fault] if case.fault else not found
    assert all(fault.fix and fault.evidence for fault in report.faults)


def case_of(loss: object) -> LossCase:
    return opened(target_of(loss, "loss", Settings()), Settings())


def test_the_formula_is_read_from_the_gradient() -> None:
    def smoothed(logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=0.2)

    case = case_of(smoothed)
    logits, ids = logits_of(case, 3, 8), torch.randint(case.vocab, (3, 8), generator=torch.Generator().manual_seed(1))
    read = formula(gradient(case, logits, ids), logits, ids, 0)
    assert read.name == "once"
    assert read.smoothing == pytest.approx(0.2, abs=1e-9)
    assert torch.allclose(read.weights, torch.full((3, 8), 1 / 24, dtype=torch.float64))
    # The same gradient, read with the targets of other positions, fits nothing.
    assert formula(gradient(case, logits, ids), logits, ids, 1).name == ""


def test_the_distance_of_targets_is_counted() -> None:
    ids = torch.tensor([[5, 6, 7]])
    assert aligned(ids, 1).tolist() == [[6, 7, -1]]
    assert aligned(ids, -1).tolist() == [[-1, 5, 6]]
    case = case_of(first.shifts_twice)
    logits = logits_of(case, 3, 8)
    assert offsets(case, logits, torch.ones(3, 8, dtype=torch.long) * 4).most_common(1)[0][0] == 2


def test_names_and_words_claim_who_shifts() -> None:
    assert case_of(first.nano).shift == 0
    assert case_of(first.unshifted).shift == 1
    assert case_of(first.flat).flat

    def unclear(logits: Tensor, what: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), what.flatten())

    report = check(unclear, kind="loss")
    assert report.ok
    assert any("what" in note for note in report.notes)

    def spoken(logits: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy; labels are already shifted by the caller."""
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    assert check(spoken, kind="loss").ok


def test_what_cannot_be_seen_is_skipped() -> None:
    def unmarked(logits: Tensor, targets: Tensor) -> Tensor:
        return -logits.log_softmax(-1).gather(-1, targets[..., None]).mean()

    verdicts = {each.id: each.verdict for each in check(unmarked, kind="loss").checks}
    assert verdicts["loss.unshifted"] == "pass"
    assert verdicts["loss.pads-counted"] == verdicts["loss.mean-of-means"] == verdicts["loss.eos-masked"] == "skipped"

    def constant(logits: Tensor, targets: Tensor) -> Tensor:
        return logits.square().mean()

    assert {each.verdict for each in check(constant, kind="loss").checks} == {"skipped"}


def test_other_mistakes() -> None:
    def rewarded(logits: Tensor, targets: Tensor) -> Tensor:
        return -F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def unlogged(logits: Tensor, targets: Tensor) -> Tensor:
        return F.nll_loss(logits.softmax(-1).flatten(0, 1), targets.flatten())

    def reversed_mask(logits: Tensor, targets: Tensor, attention_mask: Tensor) -> Tensor:
        loss = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        return loss[~attention_mask.bool()].mean() if not attention_mask.all() else loss.mean()

    assert [fault.id for fault in check(rewarded, kind="loss").faults] == ["loss.sign"]
    assert [fault.id for fault in check(unlogged, kind="loss").faults] == ["loss.log-missing"]
    assert [fault.id for fault in check(reversed_mask, kind="loss").faults] == ["mask.polarity"]


def test_a_loss_that_cannot_be_called_says_what_was_tried() -> None:
    def odd(logits: Tensor, targets: Tensor, wanted: int) -> Tensor:
        return logits.sum()

    with pytest.raises(UserError, match="rows"):
        check(odd, kind="loss")
    assert check(
        odd, kind="loss", call=lambda f, logits, targets: F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    ).ok
