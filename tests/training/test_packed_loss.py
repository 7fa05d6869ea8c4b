"""The loss of packed documents: each as if it were alone, whatever shares its row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from clearhead.models.build import build
from clearhead.models.choices import Fused, Visible
from clearhead.models.choices_positions import Learned
from clearhead.models.config import DecoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.ops.masks import EVERYTHING, Documents, document_positions
from clearhead.training.batches import Ids
from clearhead.training.fit import Loss, evaluate
from clearhead.training.losses import next_token, packed_next_token
from clearhead.training.order import Share
from clearhead.training.packed import PADDING, Packed, PackedBatch, packed_whole
from tests.oracles.compare import assert_within
from tests.training.test_packed import to_targets
from tests.training.toy_documents import marked

CONFIG = DecoderConfig(vocab=13, layers=2, heads=2, width=12, context=20, positions=Learned())
B, E = 11, 12
SHORT: list[Ids] = [np.random.default_rng(seed).integers(11, size=size) for seed, size in enumerate((6, 1, 0, 4))]
"""Eight, three, two and six ids with their marks: one window of 19 ids, and one place of padding."""


def model(kernel: Any = None) -> nn.Module:
    """Small, in float64, with positions that are learned and weights that matter."""
    made = build(CONFIG if kernel is None else DecoderConfig(**{**vars(CONFIG), "kernel": kernel}), seed=2)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made.double().eval()


def alone(made: nn.Module, ids: list[int]) -> Tensor:
    """Σ -ln p of all but the first of some ids that stand by themselves."""
    if len(ids) < 2:
        return torch.zeros((), dtype=torch.float64)
    logs = made(torch.tensor([ids[:-1]]))[0].log_softmax(-1)
    return -logs[range(len(ids) - 1), ids[1:]].sum()


def all_alone(made: nn.Module, parts: Iterable[list[int]]) -> Tensor:
    """The sum of that over many."""
    return torch.stack([alone(made, ids) for ids in parts]).sum()


def check_alone(loss: Loss[PackedBatch], change: Callable[[PackedBatch], PackedBatch], kernel: Any = None) -> None:
    """The loss of an update of uncut documents is the sum of theirs alone, and so are its gradients."""
    made = model(kernel)
    total, count = loss(made, change(Packed(SHORT, CONFIG.context, 1, 5, begin=B, end=E)(0)))
    assert count.item() == sum(len(document) + 1 for document in SHORT)
    expected = all_alone(made, [marked(document, B, E) for document in SHORT])
    assert_within(total, expected, 1e-12)
    ours, theirs = (torch.autograd.grad(each, list(made.parameters())) for each in (total, expected))
    for mine, other in zip(ours, theirs, strict=True):
        assert_within(mine, other, 1e-12)


@pytest.mark.parametrize("kernel", [Visible(), Fused()], ids=["visible", "fused"])
def test_the_loss_of_packed_documents_is_that_of_each_alone(kernel: Any) -> None:
    packed = Packed(SHORT, CONFIG.context, 1, 5, begin=B, end=E)
    assert packed.an_epoch == 1
    assert sorted(set(packed(0).documents[0].tolist())) == [PADDING, 0, 1, 2, 3]
    check_alone(packed_next_token, lambda batch: batch, kernel)


def without_the_mask(made: nn.Module, batch: PackedBatch) -> tuple[Tensor, Tensor]:
    logits = made(batch.inputs, positions=document_positions(batch.documents))
    return nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), reduction="sum"), (
        batch.targets != IGNORED
    ).sum()


def not_restarted(made: nn.Module, batch: PackedBatch) -> tuple[Tensor, Tensor]:
    logits = made(batch.inputs, visible=Documents(batch.documents, batch.documents))
    return nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), reduction="sum"), (
        batch.targets != IGNORED
    ).sum()


@pytest.mark.parametrize("faulty", [next_token, without_the_mask, not_restarted])
def test_a_loss_that_mixes_documents_is_caught(faulty: Loss[PackedBatch]) -> None:
    with pytest.raises(AssertionError):
        check_alone(faulty, lambda batch: batch)


@pytest.mark.parametrize(
    "faulty",
    [
        to_targets(lambda batch: batch.targets.where(batch.inputs != E, B)),
        to_targets(lambda batch: batch.targets.where(batch.targets != E, IGNORED)),
        to_targets(lambda batch: batch.targets.where(batch.documents != PADDING, 0)),
        lambda batch: batch._replace(documents=batch.documents.clamp(max=2)),
    ],
    ids=["begin as a target", "end not learnt", "padding counts", "two documents are one"],
)
def test_a_batch_that_mixes_documents_is_caught(faulty: Callable[[PackedBatch], PackedBatch]) -> None:
    with pytest.raises(AssertionError):
        check_alone(packed_next_token, faulty)


def runs(batch: PackedBatch) -> list[list[int]]:
    """What stands together of one document in each row: its inputs, and behind them its last target if there is one."""
    found = []
    for inputs, targets, owners in zip(*(tensor.tolist() for tensor in batch), strict=True):
        borders = [0, *(n for n in range(1, len(owners)) if owners[n] != owners[n - 1]), len(owners)]
        for start, stop in pairwise(borders):
            last = [] if targets[stop - 1] == IGNORED else [targets[stop - 1]]
            found += [[*inputs[start:stop], *last]] if owners[start] != PADDING else []
    return found


def test_what_a_cut_leaves_stands_alone_too() -> None:
    """A window of part of a document: its loss is that of the part, from position 0."""
    made = model()
    documents = [np.random.default_rng(seed).integers(11, size=size) for seed, size in enumerate((30, 3, 0, 11, 1))]
    packed = Packed(documents, 7, 4, 1, begin=B, end=E)
    for step in range(3):
        batch = packed(step)
        total, _ = packed_next_token(made, batch)
        assert_within(total, all_alone(made, runs(batch)), 1e-12)


def gradients_of(loss: Loss[PackedBatch], number: int) -> tuple[Tensor, PackedBatch]:
    """Of the targets of one document, by the vector of each input: (1,T,D)."""
    made = model()
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: object, output: Tensor) -> Tensor:
        kept.append(output.detach().requires_grad_())
        return kept[0]

    made.embedding.register_forward_hook(keep)
    batch = Packed(SHORT, CONFIG.context, 1, 5, begin=B, end=E)(0)
    one = batch._replace(targets=batch.targets.where(batch.documents == number, IGNORED))
    (gradient,) = torch.autograd.grad(loss(made, one)[0], kept)
    return gradient, batch


@pytest.mark.parametrize("number", range(4))
def test_no_document_learns_through_another(number: int) -> None:
    gradient, batch = gradients_of(packed_next_token, number)
    assert bool((gradient[batch.documents != number] == 0).all())
    assert bool(gradient[batch.documents == number].any())


def test_learning_through_another_is_caught() -> None:
    """Without the mask, all but the first document of the window reach those before them."""
    reached = 0
    for number in range(4):
        gradient, batch = gradients_of(next_token, number)
        reached += bool((gradient[batch.documents != number] != 0).any())
    assert reached == 3


@pytest.mark.parametrize("loss", [packed_next_token, next_token])
def test_a_validation_does_not_depend_on_the_batch_nor_on_the_mask(loss: Loss[PackedBatch]) -> None:
    made = model()
    documents = [*SHORT, np.arange(30) % 11]
    parts = [marked(document, B, E) for document in SHORT]
    long = marked(documents[-1], B, E)
    parts += [long[start : start + 8] for start in range(0, len(long), 7)]
    expected = all_alone(made, parts).item() / sum(max(0, len(ids) - 1) for ids in parts)
    for batch in (1, 2, 3, 50):
        found = evaluate(made, packed_whole(documents, 7, batch, begin=B, end=E), loss)
        assert found == pytest.approx(expected, abs=1e-12)
    found = evaluate(made, packed_whole(documents, 7, 3, begin=B, end=None), loss)
    assert abs(found - expected) > 1e-3


def test_the_sums_of_ranks_are_that_of_one_process() -> None:
    made = model()
    documents = [np.random.default_rng(seed).integers(11, size=size) for seed, size in enumerate((30, 3, 0, 11, 1))]
    total, count = packed_next_token(made, Packed(documents, 7, 5, 1, begin=B, end=E)(2))
    ranks = [Packed(documents, 7, 5, 1, begin=B, end=E, share=Share(rank, 2)) for rank in range(2)]
    sums = [packed_next_token(made, rank(2)) for rank in ranks]
    assert_within(sums[0][0] + sums[1][0], total, 1e-12)
    assert sums[0][1] + sums[1][1] == count


def test_the_mask_is_handed_to_the_model_once() -> None:
    """Documents and positions as a value: plain causal attention gets neither."""
    seen: list[tuple[object, object]] = []

    class Asked(nn.Module):
        def forward(self, ids: Tensor, *, visible: object = EVERYTHING, positions: Tensor | None = None) -> Tensor:
            seen.append((visible, positions))
            return torch.zeros(*ids.shape, 13)

    batch = Packed(SHORT, CONFIG.context, 1, 5, begin=B, end=E)(0)
    packed_next_token(Asked(), batch)
    next_token(Asked(), batch)
    (visible, positions), plain = seen
    assert isinstance(visible, Documents)
    assert visible.queries is visible.keys is batch.documents
    assert positions is not None
    assert positions[0, 0] == 0
    assert plain == (EVERYTHING, None)
