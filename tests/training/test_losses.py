"""Losses of tokens: label smoothing, the precision of the sum, and how a training's loss is made of a task's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.ops import cross_entropy
from clearhead.training.fit import evaluate
from clearhead.training.losses import TokenLoss, exact_match, next_token, training_loss
from tests.oracles.compare import assert_within
from tests.training.toy_losses import CASES, DECODER, Case, gradients, plain_batch


def of_definition(case: Case, smoothing: float) -> Callable[[nn.Module, Any], tuple[Tensor, Tensor]]:
    """The loss from the logits of the same model, by `ops.cross_entropy`."""
    return lambda model, batch: cross_entropy(case.loss.read(model, batch), batch.targets, smoothing=smoothing)


def check_smoothing(case: Case, make: Callable[..., TokenLoss[Any]]) -> None:
    for epsilon in (0.0, 0.2):
        found, wanted = (gradients(loss, case) for loss in (make(case.loss, epsilon), of_definition(case, epsilon)))
        assert found.keys() == wanted.keys()
        for name in found:
            assert_within(found[name], wanted[name], 1e-12)


def smoothed(loss: TokenLoss[Any], epsilon: float, at_once: int | None = None) -> Any:
    return training_loss(loss, label_smoothing=epsilon, at_once=at_once)


@pytest.mark.parametrize("at_once", [None, 4])
@pytest.mark.parametrize("name", CASES)
def test_a_smoothed_loss_is_the_definition_s_in_chunks_too(name: str, at_once: int | None) -> None:
    check_smoothing(CASES[name], lambda loss, epsilon: smoothed(loss, epsilon, at_once))


@pytest.mark.parametrize(
    "faulty",
    [
        lambda loss, epsilon: loss,
        lambda loss, epsilon: smoothed(loss, epsilon / 2),
        lambda loss, epsilon: smoothed(loss, 0.2, 4),
        lambda loss, epsilon: lambda model, batch: (smoothed(loss, epsilon)(model, batch)[0], torch.tensor(21)),
    ],
    ids=["left out", "half", "always", "count of all"],
)
def test_a_faulty_smoothing_is_caught(faulty: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError):
        check_smoothing(CASES["next"], faulty)


def test_without_anything_asked_for_the_loss_is_the_task_s_itself() -> None:
    assert training_loss(next_token) is next_token
    assert training_loss(exact_match) is exact_match
    assert (next_token.smoothing, next_token.at_once) == (0.0, None)


def test_making_a_training_s_loss_leaves_the_one_that_judges_alone() -> None:
    model, batches = build(DECODER, seed=0).double(), [plain_batch()]
    before = evaluate(model, batches, next_token)
    smooth = smoothed(next_token, 0.3, 2)
    assert evaluate(model, batches, smooth) != pytest.approx(before, rel=1e-3)
    assert evaluate(model, batches, next_token) == before
    assert smooth == replace(next_token, smoothing=0.3, at_once=2)
    assert evaluate(model, batches, smoothed(next_token, 0.0, 2)) == pytest.approx(before, abs=1e-12)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"label_smoothing": -0.1}, "label_smoothing"),
        ({"at_once": 0}, "logits_at_once"),
    ],
)
def test_a_number_out_of_range_is_said_in_one_line(given: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named):
        training_loss(next_token, **given)


@pytest.mark.parametrize("given", [{"label_smoothing": 0.1}, {"at_once": 3}])
def test_what_is_not_made_of_tokens_cannot_be_smoothed_or_cut(given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="tokens"):
        training_loss(exact_match, **given)


class Fixed(nn.Module):
    """Logits of 0 for everything, in 16 bits."""

    def forward(self, ids: Tensor) -> Tensor:
        return torch.zeros(*ids.shape, 2, dtype=torch.bfloat16)


def check_precision(loss: Callable[[nn.Module, Any], tuple[Tensor, Tensor]]) -> None:
    """1000 times ln 2: a sum in bfloat16 is off by some units."""
    zeros = torch.zeros(10, 100, dtype=torch.long)
    total, _ = loss(Fixed(), plain_batch()._replace(inputs=zeros, targets=zeros))
    assert total.dtype == torch.float32
    assert total.item() == pytest.approx(693.1472, abs=1e-3)


def test_logits_of_16_bits_are_summed_in_32() -> None:
    check_precision(next_token)
    with pytest.raises(AssertionError):
        check_precision(
            lambda model, batch: (
                nn.functional.cross_entropy(
                    model(batch.inputs).flatten(0, 1), batch.targets.flatten(), reduction="sum"
                ),
                torch.tensor(1000),
            )
        )
