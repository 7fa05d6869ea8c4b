"""Evaluation of a whole text: every token once, whatever the batches, with dropout off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.models.build import build
from clearhead.models.choices import Fused, Kernel, Visible
from clearhead.ops.attention import attend_fused, attend_visible
from clearhead.training.batches import Ids, whole
from clearhead.training.fit import evaluate
from clearhead.training.losses import next_token
from tests.training.toy import TINY, VALIDATION, ids, training

DOCUMENTS: list[Ids] = [ids(50), ids(6, seed=1), ids(2, seed=2), ids(31, seed=3)]
TARGETS = 49 + 5 + 1 + 30


def by_hand(model: torch.nn.Module, documents: list[Ids], context: int) -> tuple[float, int]:
    """Σ -ln p over every token but the first of each document, one window at a time."""
    total, count = 0.0, 0
    for document in documents:
        for start in range(0, len(document) - 1, context):
            window = torch.from_numpy(document[start : start + context + 1])
            with torch.no_grad():
                logs = model(window[None, :-1])[0].log_softmax(-1)
            total -= sum(logs[place, token].item() for place, token in enumerate(window[1:].tolist()))
            count += len(window) - 1
    return total, count


@pytest.mark.parametrize("batch", [1, 2, 3, 7, 100])
def test_the_result_does_not_depend_on_the_batches(batch: int) -> None:
    model = build(TINY, seed=0).double().eval()
    total, count = by_hand(model, DOCUMENTS, TINY.context)
    assert count == TARGETS
    found = evaluate(model, whole(DOCUMENTS, TINY.context, batch), next_token)
    assert found == pytest.approx(total / count, abs=1e-12)


def test_a_tail_that_is_left_out_is_found() -> None:
    """The planted fault: whole windows only."""
    model = build(TINY, seed=0).double().eval()
    cut = [document[: (len(document) - 1) // TINY.context * TINY.context + 1] for document in DOCUMENTS]
    assert by_hand(model, cut, TINY.context)[1] < TARGETS
    found = evaluate(model, whole(cut, TINY.context, 3), next_token)
    assert abs(found - by_hand(model, DOCUMENTS, TINY.context)[0] / TARGETS) > 1e-6


def test_a_training_evaluates_its_whole_validation_text(tmp_path: Path) -> None:
    trained = training(tmp_path / "run")
    trained.model.double()
    found = trained.evaluate().val_loss
    trained.model.eval()
    total, count = by_hand(trained.model, VALIDATION, TINY.context)
    assert count == sum(len(document) - 1 for document in VALIDATION)
    assert found == pytest.approx(total / count, abs=1e-12)


@pytest.mark.parametrize("kernel", [Visible(), Fused()], ids=["visible", "fused"])
def test_dropout_is_off_in_evaluation_and_on_in_training(kernel: Kernel) -> None:
    dropping = build(replace(TINY, kernel=kernel, dropout=0.5), seed=0)
    without = build(replace(TINY, kernel=kernel, dropout=0.0), seed=0)
    batches = list(whole(DOCUMENTS, TINY.context, 4))
    assert evaluate(dropping, batches, next_token) == evaluate(without, batches, next_token)
    dropping.train()
    first, second = (next_token(dropping, batches[0])[0] for _ in range(2))
    assert first != second


@pytest.mark.parametrize(
    ("kernel", "attend"), [(Visible(), attend_visible), (Fused(), attend_fused)], ids=["visible", "fused"]
)
def test_a_kernel_that_drops_in_evaluation_is_found(
    kernel: Kernel, attend: type[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a function has no training mode, and nobody told it."""

    def deaf(q: Tensor, k: Tensor, v: Tensor, visible: object, **options: object) -> Tensor:
        return attend(q, k, v, visible, **{**options, "dropout": 0.5})

    model = build(replace(TINY, kernel=kernel, dropout=0.5), seed=0)
    for block in model.blocks:
        block.attention.attend = deaf
    batches = list(whole(DOCUMENTS, TINY.context, 4))
    assert evaluate(model, batches, next_token) != evaluate(model, batches, next_token)
