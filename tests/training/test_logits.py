"""Logits in chunks: the loss and the gradients of the whole, and never the logits of all positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.exc import InternalTorchDynamoError
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.choices import Pooled
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.ops.tap import Ran, Scoped, Tap
from clearhead.training import logits
from clearhead.training.batches import Batch
from clearhead.training.fit import evaluate
from clearhead.training.logits import Parts, parts_of, summed_in_chunks
from clearhead.training.losses import TokenLoss, next_token, training_loss
from tests.oracles.compare import assert_finite, assert_same, assert_within
from tests.training.toy_losses import CASES, SIZES, Case, gradients, plain_batch

Loss = Callable[[nn.Module, Any], tuple[Tensor, Tensor]]
Chunks = Callable[..., tuple[Tensor, Tensor]]
"""A stand-in for `summed_in_chunks`."""


def in_chunks(case: Case, at_once: int, chunks: Chunks = summed_in_chunks) -> Loss:
    def loss(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        parts = parts_of(model)
        return chunks(case.loss.read(parts.features, batch), batch.targets, parts, at_once=at_once)

    return loss


def check(case: Case, loss: Loss) -> None:
    found, wanted = gradients(loss, case), gradients(case.loss, case)
    assert found.keys() == wanted.keys()
    for name in found:
        assert_within(found[name], wanted[name], 1e-12)


@pytest.mark.parametrize("at_once", [1, 5, 1000])
@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients_are_those_of_the_whole(name: str, at_once: int) -> None:
    """Of tied, untied, biased, frozen and changed heads; of every loss; with targets that do not count."""
    case = CASES[name]
    check(case, training_loss(case.loss, at_once=at_once))
    check(case, in_chunks(case, at_once))


# Planted faults


def last_one_lost(x: Tensor, y: Tensor, parts: Parts, *, at_once: int) -> tuple[Tensor, Tensor]:
    full = (y != IGNORED).sum() // at_once * at_once
    some = (y != IGNORED).flatten().cumsum(0) <= full
    return summed_in_chunks(x, y.masked_fill(~some.view_as(y), IGNORED), parts, at_once=at_once)


def ignored_counts(x: Tensor, y: Tensor, parts: Parts, *, at_once: int) -> tuple[Tensor, Tensor]:
    return summed_in_chunks(x, y.clamp(0), parts, at_once=at_once)


def no_weights(x: Tensor, y: Tensor, parts: Parts, *, at_once: int) -> tuple[Tensor, Tensor]:
    return summed_in_chunks(x, y, parts._replace(weights=parts.weights[1:]), at_once=at_once)


def no_bias(x: Tensor, y: Tensor, parts: Parts, *, at_once: int) -> tuple[Tensor, Tensor]:
    weight = parts.weights[0]
    return summed_in_chunks(x, y, Parts(parts.features, lambda x: x @ weight.T, (weight,)), at_once=at_once)


def no_features(x: Tensor, y: Tensor, parts: Parts, *, at_once: int) -> tuple[Tensor, Tensor]:
    return summed_in_chunks(x.detach(), y, parts, at_once=at_once)


class WithoutFactor(logits._InChunks):
    """Forgets that the loss is divided after it was summed."""

    @staticmethod
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        of_features, *of_weights = ctx.saved_tensors
        return of_features, None, None, None, *of_weights


FAULTS: list[Chunks] = [last_one_lost, ignored_counts, no_weights, no_bias, no_features]


@pytest.mark.parametrize("faulty", FAULTS)
def test_a_faulty_chunk_is_caught(faulty: Chunks) -> None:
    case = CASES["next, untied"]
    with pytest.raises(AssertionError):
        check(case, in_chunks(case, 5, faulty))


def test_a_forgotten_factor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logits, "_InChunks", WithoutFactor)
    with pytest.raises(AssertionError):
        check(CASES["next"], in_chunks(CASES["next"], 5))


# Memory


class Largest(TorchDispatchMode):
    """Remembers how many numbers the largest tensor has that any operation made."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        made = [x.untyped_storage().nbytes() // x.itemsize for x in tree_leaves(out) if isinstance(x, Tensor)]
        self.numbers = max([self.numbers, *made])
        return out


def largest(loss: Loss) -> int:
    """Of an update of a model with V = 400 and D = 8 on 150 positions; its weights have 3200 numbers."""
    model = build(DecoderConfig(vocab=400, layers=1, heads=2, width=8, context=50), seed=0)
    ids = torch.randint(400, (3, 51), generator=torch.Generator().manual_seed(0))
    with Largest() as seen:
        total, count = loss(model, Batch(ids[:, :-1], ids[:, 1:]))
        (total / count).backward()
    return seen.numbers


def check_largest(loss: Loss, at_once: int) -> None:
    assert largest(loss) == at_once * 400


@pytest.mark.parametrize("at_once", [20, 40])
def test_the_logits_of_all_positions_are_never_there(at_once: int) -> None:
    check_largest(training_loss(next_token, at_once=at_once), at_once)
    with pytest.raises(AssertionError):
        check_largest(next_token, at_once)


# Where it runs


def test_an_evaluation_makes_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["next, untied"]
    wanted = evaluate(case.model(), [case.batch()], case.loss)
    monkeypatch.setattr(logits, "_InChunks", None)
    assert evaluate(case.model(), [case.batch()], in_chunks(case, 5)) == pytest.approx(wanted, abs=1e-12)


def test_without_a_real_target_sum_count_and_gradients_are_0() -> None:
    model, batch = CASES["next, untied"].model(), plain_batch()
    for at_once in (None, 4):
        model.zero_grad()
        loss = training_loss(next_token, at_once=at_once)
        total, count = loss(model, batch._replace(targets=torch.full_like(batch.targets, IGNORED)))
        total.backward()
        assert (total.item(), count.item()) == (0.0, 0)
        for parameter in model.parameters():
            assert parameter.grad is not None
            assert_same(parameter.grad, torch.zeros_like(parameter))


@pytest.mark.parametrize("kind", ["autocast", "weights"])
@pytest.mark.parametrize("name", ["next", "next, untied", "masked", "target"])
def test_in_16_bits_it_is_as_near_as_the_whole(name: str, kind: str) -> None:
    """The loss is in float32 and the weights' gradients in their type, both as far from float64 as the whole's are."""
    case, exact = CASES[name], gradients(CASES[name].loss, CASES[name])

    def of(loss: Loss) -> dict[str, Tensor]:
        def run(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=kind == "autocast"):
                return loss(model, batch)

        return gradients(run, case, case.model().to(torch.float32 if kind == "autocast" else torch.bfloat16))

    whole, chunked = of(case.loss), of(in_chunks(case, 5))
    assert chunked["total"].dtype == torch.float32
    for key, wanted in exact.items():
        assert chunked[key].dtype == whole[key].dtype
        assert_finite(chunked[key])
        scale = torch.finfo(torch.bfloat16).eps * wanted.abs().max()
        missed, usual = ((each[key].double() - wanted).abs().max() for each in (chunked, whole))
        assert missed <= usual + 4 * scale, key


def test_a_second_backward_is_an_error_and_not_a_wrong_number() -> None:
    total, _ = training_loss(next_token, at_once=4)(CASES["next"].model(), plain_batch())
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_compiled_it_is_the_same() -> None:
    """The head runs as it is, between two pieces that are compiled; left to the compiler it would not run at all."""
    case = CASES["next, untied"]
    chunks = training_loss(case.loss, at_once=5)
    assert isinstance(chunks, TokenLoss)
    check(case, torch.compile(chunks.__call__, backend="eager"))
    seen = replace(chunks, chunks=summed_in_chunks)
    with pytest.raises(InternalTorchDynamoError):
        gradients(torch.compile(seen.__call__, backend="eager"), case)


def test_what_has_no_logits_of_tokens_is_said_in_one_line() -> None:
    chunks = training_loss(next_token, at_once=4)
    for model in (nn.Linear(3, 2), build(EncoderConfig(**SIZES, head=Pooled()), seed=0)):
        with pytest.raises(UserError, match=type(model).__name__) as found:
            chunks(model, plain_batch())
        assert "\n" not in str(found.value)


class Names(Tap):
    """Keeps the names that a forward says, in order."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        self.said.append(name)
        return tensor

    def within(self, scope: str) -> Scoped:
        return Scoped(self, f"{scope}.")

    def attended(self, name: str, ran: Ran) -> Ran:
        return ran


HEADS = {
    "next": ("", ["logits"]),
    "masked": ("", ["head.transformed", "head.logits"]),
    "target": ("decoder", ["decoder.logits"]),
}


@pytest.mark.parametrize("name", HEADS)
def test_features_are_what_the_head_reads_and_a_tap_sees_what_it_saw(name: str) -> None:
    case, (owner, last) = CASES[name], HEADS[name]
    model, whole, some = case.model(), Names(), Names()
    read: list[Tensor] = []
    model.get_submodule(owner).get_submodule("head").register_forward_pre_hook(lambda _, given: read.append(given[0]))
    made = case.loss.read(partial(model, tap=whole), case.batch())
    features = case.loss.read(partial(parts_of(model).features, tap=some), case.batch())
    assert_same(features.detach(), read[0].detach())
    assert whole.said == some.said + last
    assert whole.said[-len(last) - 1] == f"{owner}.norm".strip(".")
    assert_within(parts_of(model).head(features).detach(), made.detach(), 1e-14)
