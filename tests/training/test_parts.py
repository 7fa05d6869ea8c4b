"""Batches, losses, modes, optimiser groups and the schedule: the parts that a training stands on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.ops import cross_entropy
from clearhead.training.batches import Batch, Ids, Windows, whole
from clearhead.training.fit import evaluate, evaluating
from clearhead.training.losses import next_token
from clearhead.training.optimizer import adamw
from clearhead.training.schedules import warmup_cosine
from tests.oracles.compare import assert_same, assert_within

CONFIG = DecoderConfig(vocab=11, layers=2, heads=4, kv_heads=2, width=12, context=9, dropout=0.3)


def documents(*lengths: int) -> list[Ids]:
    """Documents in which every token is a number of its own, so that a token says where it stood."""
    starts = np.cumsum([0, *(length + 1000 for length in lengths)])
    return [np.arange(start, start + length) for start, length in zip(starts, lengths, strict=False)]


# Batches

LENGTHS = st.lists(st.integers(0, 40), min_size=1, max_size=4)


@given(LENGTHS, st.integers(1, 7), st.integers(1, 5), st.integers(0, 9))
def test_within_an_epoch_windows_lie_in_a_document_and_never_overlap(
    lengths: list[int], context: int, batch: int, seed: int
) -> None:
    texts = documents(*lengths)
    if max(lengths) <= context:
        with pytest.raises(UserError, match=f"more than {context} tokens"):
            Windows(texts, context, batch, seed)
        return
    windows = Windows(texts, context, batch, seed)
    steps = math.ceil(3 * windows.an_epoch / batch)
    rows = [row for step in range(steps) for row in zip(*windows(step), strict=True)]
    known = {int(token) for text in texts for token in text}
    for epoch in range(3):
        inputs = [x for x, _ in rows[epoch * windows.an_epoch : (epoch + 1) * windows.an_epoch]]
        tokens = [int(token) for x in inputs for token in x]
        assert len(set(tokens)) == len(tokens)
    for x, y in rows:
        assert x.tolist() == list(range(int(x[0]), int(x[0]) + context))
        assert_same(y, x + 1)
        assert {*x.tolist(), *y.tolist()} <= known


def test_a_batch_is_a_function_of_seed_and_step_alone() -> None:
    """In any order, from an object that has seen other steps or none."""
    texts = documents(50, 23)
    asked_in_order = [Windows(texts, 4, 3, seed=5)(step) for step in range(20)]
    windows = Windows(texts, 4, 3, seed=5)
    for step in np.random.permutation(20):
        for ours, theirs in zip(windows(int(step)), asked_in_order[step], strict=True):
            assert_same(ours, theirs)
    others = [Windows(texts, 4, 3, seed=6)(step) for step in range(20)]
    assert any(not ours.inputs.equal(other.inputs) for ours, other in zip(asked_in_order, others, strict=True))


def test_epochs_are_cut_and_ordered_differently() -> None:
    windows = Windows(documents(100), 4, batch=1, seed=0)
    epochs = [[int(windows(e * windows.an_epoch + i).inputs[0, 0]) for i in range(windows.an_epoch)] for e in range(6)]
    assert len({tuple(epoch) for epoch in epochs}) == 6
    assert len({min(epoch) for epoch in epochs}) > 1
    assert sorted(epochs[0]) != epochs[0]


def never_trained(length: int, context: int, epochs: int = 200) -> set[int]:
    """The tokens after the first that no epoch has as a target."""
    windows = Windows(documents(length), context, batch=1, seed=0)
    seen = {int(t) for step in range(epochs * windows.an_epoch) for t in windows(step).targets.flatten()}
    return set(range(1, length)) - seen


@pytest.mark.parametrize("length", [5, 6, 8, 9, 10, 11, 12, 13, 16, 17])
def test_every_token_but_the_first_is_a_target_sooner_or_later(length: int) -> None:
    assert never_trained(length, 4) == set()


def check_whole(batches: Callable[[list[Ids], int, int], Any], lengths: list[int], context: int, batch: int) -> None:
    """Every token but the first of each document is a target once, in order, after the token before it."""
    texts = documents(*lengths)
    targets: list[int] = []
    for inputs, expected in batches(texts, context, batch):
        assert inputs.shape == expected.shape
        assert inputs.shape[0] <= batch
        assert inputs.shape[1] == context
        real = expected != -100
        assert bool(real.any(-1).all())
        assert_same(inputs[real] + 1, expected[real])
        targets += expected[real].tolist()
    assert targets == [int(token) for text in texts for token in text[1:]]


@given(LENGTHS, st.integers(1, 7), st.integers(1, 5))
def test_whole_scores_every_token_but_the_first_of_each_document_once(
    lengths: list[int], context: int, batch: int
) -> None:
    check_whole(whole, lengths, context, batch)


@pytest.mark.parametrize(
    "faulty",
    [
        lambda texts, T, n: whole([text[: len(text) // T * T] for text in texts], T, n),
        lambda texts, T, n: whole([np.concatenate(texts)], T, n),
        lambda texts, T, n: (Batch(x, x.where(y == -100, y + 1)) for x, y in whole(texts, T, n)),
        lambda texts, T, n: list(whole(texts, T, n))[:-1],
    ],
    ids=["tail lost", "documents joined", "shifted by two", "last batch lost"],
)
def test_a_faulty_walk_through_the_text_is_caught(faulty: Callable[..., Any]) -> None:
    check_whole(whole, [10, 7, 1, 0, 3], 4, 2)
    with pytest.raises(AssertionError):
        check_whole(faulty, [10, 7, 1, 0, 3], 4, 2)


# Losses and evaluation


def test_the_loss_of_a_language_model_is_the_formula() -> None:
    """Sum, count and gradients, in float64; the targets are not shifted again."""
    model = build(CONFIG, seed=0).double().eval()
    inputs, targets = torch.randint(11, (2, 3, 7))
    targets[0, 4:] = -100
    total, count = next_token(model, Batch(inputs, targets))
    expected, expected_count = cross_entropy(model(inputs), targets)
    assert_within(total, expected, 1e-11)
    assert count.item() == expected_count.item() == 18
    ours, theirs = (torch.autograd.grad(x, list(model.parameters())) for x in (total, expected))
    for mine, other in zip(ours, theirs, strict=True):
        assert_within(mine, other, 1e-11)


def test_evaluation_divides_the_sum_by_the_count_whatever_the_batches() -> None:
    """Mean over all tokens, not of the means; a batch of one window more weighs as much as it has targets."""
    model = build(CONFIG, seed=0).double()
    text = [np.arange(24) % 11]
    found = [evaluate(model, whole(text, 9, batch), next_token) for batch in (1, 2, 3)]
    model.eval()
    sums = [next_token(model, batch) for batch in whole(text, 9, 1)]
    assert [int(count) for _, count in sums] == [9, 9, 5]
    expected = sum(total.item() for total, _ in sums) / 23
    assert found == pytest.approx([expected] * 3, abs=1e-12)


def modes(model: nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


def check_modes(context: Callable[[nn.Module], Any]) -> None:
    """Inside nothing trains and nothing is recorded; after, each part is as found, also when an exception passes."""
    model = build(CONFIG, seed=0).train()
    model.blocks[1].eval()
    model.blocks[0].attention.output_dropout.eval()
    found = modes(model)
    assert len(set(found)) == 2
    with context(model):
        assert not any(modes(model))
        assert not torch.is_grad_enabled()
    assert modes(model) == found
    assert torch.is_grad_enabled()
    with pytest.raises(KeyError), context(model):
        raise KeyError
    assert modes(model) == found
    assert torch.is_grad_enabled()


def test_evaluation_restores_the_mode_of_every_part() -> None:
    check_modes(evaluating)


class Careless:
    """Evaluation that puts the whole model back into training, or forgets to on an exception, or records gradients."""

    def __init__(self, fault: str) -> None:
        self.fault, self.gradients = fault, torch.no_grad()

    def __call__(self, model: nn.Module) -> Careless:
        self.model, self.found = model, [(module, module.training) for module in model.modules()]
        return self

    def __enter__(self) -> None:
        self.model.eval()
        if self.fault != "records":
            self.gradients.__enter__()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self.fault != "records":
            self.gradients.__exit__(None, None, None)
        if self.fault == "exception" and kind is not None:
            return
        self.model.train()
        if self.fault != "train":
            for module, training in self.found:
                module.training = training


@pytest.mark.parametrize("fault", ["train", "exception", "records"])
def test_careless_evaluation_is_caught(fault: str) -> None:
    check_modes(Careless("none"))
    with pytest.raises(AssertionError):
        check_modes(Careless(fault))


# Optimiser and schedule


@pytest.mark.parametrize("tied", [True, False])
def test_every_trained_parameter_is_in_one_group_and_only_matrices_decay(tied: bool) -> None:
    config = DecoderConfig(vocab=11, layers=2, width=12, context=9, tied=tied, bias=True, qkv_bias=True, head_bias=True)
    model = build(config, seed=0)
    frozen = model.blocks[1].feedforward.up
    frozen.requires_grad_(False)
    optimizer = adamw(model, lr=1e-3, weight_decay=0.3)
    places = Counter(id(p) for group in optimizer.param_groups for p in group["params"])
    trained = {id(p) for p in model.parameters() if p.requires_grad}
    assert set(places) == trained
    assert set(places.values()) == {1}
    assert {id(p) for p in frozen.parameters()}.isdisjoint(places)
    for group in optimizer.param_groups:
        assert {p.dim() >= 2 for p in group["params"]} == {group["weight_decay"] == 0.3}
        assert group["weight_decay"] in {0.3, 0.0}


def test_decay_shrinks_a_matrix_and_leaves_a_vector() -> None:
    """With a gradient of 0 a matrix is multiplied by 1 - lr λ, and a bias stays."""
    model = nn.Linear(3, 2)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    adamw(model, lr=0.5, weight_decay=0.2).step()
    assert_within(model.weight.detach(), before["weight"] * 0.9, 1e-7)
    assert_same(model.bias.detach(), before["bias"])


def check_schedule(schedule: Callable[..., float]) -> None:
    """Up in thirds to 1 with a warm-up of 2 of 10 updates; then down: half-way at 6, a tenth at 10 and after."""
    by_hand = {0: 1 / 3, 1: 2 / 3, 2: 1.0, 4: 0.1 + 0.45 * (1 + math.sqrt(0.5)), 6: 0.55, 10: 0.1, 99: 0.1}
    for step, expected in by_hand.items():
        assert schedule(step, lr=1.0, steps=10, warmup=2, final=0.1) == pytest.approx(expected, abs=1e-12)
    assert schedule(6, lr=2.0, steps=10, warmup=2, final=0.0) == pytest.approx(1.0)
    assert schedule(0, lr=3.0, steps=10, warmup=0, final=0.1) == 3.0
    assert schedule(3, lr=1.0, steps=2, warmup=3, final=0.5) == 1.0


def test_the_schedule_by_hand() -> None:
    check_schedule(warmup_cosine)


@pytest.mark.parametrize(
    "faulty",
    [
        lambda step, lr, steps, warmup, final: warmup_cosine(step - 1, lr=lr, steps=steps, warmup=warmup, final=final),
        lambda step, lr, steps, warmup, final: warmup_cosine(step, lr=lr, steps=steps, warmup=warmup, final=0.0),
        lambda step, lr, steps, warmup, final: lr,
        lambda step, lr, steps, warmup, final: max(
            final * lr, warmup_cosine(step, lr=lr, steps=steps, warmup=warmup, final=0)
        ),
    ],
    ids=["one late", "to 0", "constant", "cut off"],
)
def test_a_faulty_schedule_is_caught(faulty: Callable[..., float]) -> None:
    with pytest.raises(AssertionError):
        check_schedule(faulty)
