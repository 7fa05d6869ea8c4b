"""Padding is nothing to any objective: neither what it holds nor how much of it there is moves a loss or a gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.models.build import build
from clearhead.models.choices_positions import Learned
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.ops.loss import IGNORED
from clearhead.training.batches import whole
from clearhead.training.fit import Loss
from clearhead.training.losses import masked_token, next_token, packed_next_token, target_token
from clearhead.training.masking import Hiding, Masked
from clearhead.training.packed import PADDING, packed_whole
from clearhead.training.pairs import all_pairs
from tests.training.test_oracles import BEGIN, DOCUMENTS, END, MARKS, MASK, PAIRS, VOCAB, packed, steps

SIZES: dict[str, Any] = {"vocab": VOCAB, "layers": 2, "heads": 2, "width": 12, "positions": Learned()}


def model(config: Any) -> nn.Module:
    """Small, in float64, with weights that matter."""
    made = build(config, seed=1)
    torch.manual_seed(0)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    return made.double().eval()


FILLERS: dict[str, Any] = {
    "inputs": 0,
    "source": 0,
    "targets": IGNORED,
    "documents": PADDING,
    "real": False,
    "source_real": False,
}


def padding_of(batch: Any, name: str) -> Tensor:
    """Which places of a tensor are padding."""
    if name == "source":
        return ~batch.source_real
    if hasattr(batch, "real"):
        return ~batch.real
    if hasattr(batch, "documents"):
        return batch.documents == PADDING
    # The tail of a row in which nothing counts.
    return (batch.targets != IGNORED).flip(-1).cumsum(-1).flip(-1) == 0


def other_padding(batch: Any) -> Any:
    """The same batch with other ids at its padding."""
    changed = {}
    for name in {"inputs", "source"} & set(batch._fields):
        ids = getattr(batch, name)
        changed[name] = torch.where(padding_of(batch, name), (ids + 7 + torch.arange(ids.shape[-1])) % VOCAB, ids)
    return batch._replace(**changed)


def more_padding(batch: Any) -> Any:
    """The same batch with three more places of padding in each row."""
    return type(batch)(
        *(
            torch.cat([tensor, torch.full((len(tensor), 3), FILLERS[name], dtype=tensor.dtype)], -1)
            for name, tensor in zip(batch._fields, batch, strict=True)
        )
    )


PADDED: dict[str, tuple[Loss[Any], Callable[[], Sequence[Any]], Any]] = {
    "whole": (next_token, lambda: list(whole(DOCUMENTS, 7, 3)), DecoderConfig(**SIZES, context=13)),
    "packed": (packed_next_token, lambda: steps(packed(), packed().an_epoch), DecoderConfig(**SIZES, context=13)),
    "packed, without the mask": (
        next_token,
        lambda: steps(packed(), packed().an_epoch),
        DecoderConfig(**SIZES, context=13),
    ),
    "packed, validated": (
        packed_next_token,
        lambda: list(packed_whole(DOCUMENTS, 10, 3, begin=BEGIN, end=END)),
        DecoderConfig(**SIZES, context=13),
    ),
    "masked": (
        masked_token,
        lambda: steps(Masked(DOCUMENTS, 9, 3, 0, hiding=Hiding(MASK, 60), begin=BEGIN, end=END)),
        EncoderConfig(**SIZES, context=13),
    ),
    "pairs": (
        target_token,
        lambda: list(all_pairs(PAIRS, MARKS, 3)),
        EncoderDecoderConfig(**SIZES, context=13, source_context=14),
    ),
}


def check_padding(loss: Loss[Any], made: nn.Module, batches: Sequence[Any], change: Callable[[Any], Any]) -> None:
    """Sum, count and gradients are those of before."""
    found = []
    for some in (batches, [change(batch) for batch in batches]):
        sums = [loss(made, batch) for batch in some]
        total = torch.stack([each for each, _ in sums]).sum()
        gradients = torch.autograd.grad(total / 100, list(made.parameters()))
        found.append((torch.cat([g.flatten() for g in (total / 100, *gradients)]), sum(int(n) for _, n in sums)))
    (before, terms), (after, terms_after) = found
    assert terms == terms_after
    assert (before - after).abs().max().item() < 1e-12


@pytest.mark.parametrize("change", [other_padding, more_padding, lambda batch: other_padding(more_padding(batch))])
@pytest.mark.parametrize("kind", PADDED)
def test_neither_what_padding_holds_nor_how_much_there_is_counts(kind: str, change: Callable[[Any], Any]) -> None:
    loss, batches, config = PADDED[kind]
    assert any(bool(padding_of(batch, "inputs").any()) for batch in batches())
    check_padding(loss, model(config), batches(), change)


def counted(batch: Any) -> Any:
    return batch._replace(targets=batch.targets.where(~padding_of(batch, "targets"), 5))


def seen(batch: Any) -> Any:
    name = "real" if hasattr(batch, "real") else "source_real"
    return batch._replace(**{name: torch.ones_like(getattr(batch, name))})


@pytest.mark.parametrize(
    ("kind", "fault"),
    [*((kind, counted) for kind in PADDED), ("masked", seen), ("pairs", seen)],
)
def test_padding_that_counts_or_is_seen_is_caught(kind: str, fault: Callable[[Any], Any]) -> None:
    loss, batches, config = PADDED[kind]
    faulty = [fault(batch) for batch in batches()]
    # Padding that is said to be real is no longer found; what it holds is changed before that.
    others = {id(ours): fault(other_padding(batch)) for ours, batch in zip(faulty, batches(), strict=True)}
    with pytest.raises(AssertionError):
        check_padding(loss, model(config), faulty, lambda batch: others[id(batch)])
