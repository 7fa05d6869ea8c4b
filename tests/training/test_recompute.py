"""Blocks that compute twice: the same bits, fewer of them held."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from clearhead.formats.weights import own_tensors
from clearhead.messages import UserError
from clearhead.models.adapt import adapt
from clearhead.models.low_rank import LowRank
from clearhead.tracing import Recorder
from clearhead.training import recompute as recomputing
from clearhead.training.fit import fit
from clearhead.training.recompute import recompute
from tests.training.toy_updates import KINDS, Kind, equal, weights_of


def trained(kind: Kind, change: Callable[[nn.Module], object], *, autocast: torch.dtype | None = None) -> nn.Module:
    """Three updates with dropout, in float32."""
    model = kind.model(dropout=0.3, dtype=torch.float32)
    change(model)
    torch.manual_seed(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    list(fit(model, kind.batches, kind.loss, optimizer=optimizer, schedule=lambda _: 0.1, steps=3, autocast=autocast))
    return model


def check_bits(kind: Kind, **more: Any) -> None:
    """The same weights, and as many random numbers."""
    plain = weights_of(trained(kind, lambda _: None, **more))
    state = torch.get_rng_state()
    assert equal(weights_of(trained(kind, recompute, **more)), plain)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_is_the_same_bit_for_bit(kind: str) -> None:
    check_bits(KINDS[kind])


def test_so_it_is_in_bfloat16() -> None:
    check_bits(KINDS["next token"], autocast=torch.bfloat16)


def test_so_it_is_with_changes_of_low_rank() -> None:
    def adapted(model: nn.Module) -> None:
        adapt(model, LowRank(2, dropout=0.2), seed=0)

    def both(model: nn.Module) -> None:
        adapted(model)
        recompute(model)

    kind = KINDS["next token"]
    plain = weights_of(trained(kind, adapted))
    assert equal(weights_of(trained(kind, both)), plain)


def test_other_random_numbers_on_the_way_back_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = recomputing.checkpoint

    def drawn_anew(function: Callable[..., Tensor], x: Tensor, **options: Any) -> Tensor:
        return right(function, x, preserve_rng_state=False, **options)

    monkeypatch.setattr(recomputing, "checkpoint", drawn_anew)
    with pytest.raises(AssertionError):
        check_bits(KINDS["next token"])


class Most(TorchDispatchMode):
    """Counts the bytes of all tensors that are there at once, and remembers the most."""

    def __init__(self) -> None:
        super().__init__()
        self.there: dict[int, tuple[StorageWeakRef, int]] = {}
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                self.there[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.there = {key: each for key, each in self.there.items() if not each[0].expired()}
        self.bytes = max(self.bytes, sum(size for _, size in self.there.values()))
        return made


def most(change: Callable[[nn.Module], object], layers: int) -> int:
    """The most bytes that a forward and backward hold."""
    kind = KINDS["next token"]
    model = kind._replace(config=replace(kind.config, layers=layers)).model(dtype=torch.float32)
    change(model)
    batch = kind.batches(0)
    with Most() as held:
        total, count = kind.loss(model, batch)
        (total / count).backward()
    return held.bytes


def test_a_block_more_costs_its_weights_their_gradients_and_its_input() -> None:
    plain = (most(lambda _: None, 9) - most(lambda _: None, 3)) / 6
    less = (most(recompute, 9) - most(recompute, 3)) / 6
    weights = sum(p.numel() for p in KINDS["next token"].model().blocks[0].parameters()) * 4
    vectors = KINDS["next token"].batches(0).inputs.numel() * 12 * 4
    assert less <= 2 * weights + 1.1 * vectors
    assert plain > 2 * weights + 10 * vectors


def test_names_and_state_dicts_stay() -> None:
    for kind in KINDS.values():
        plain, changed = kind.model(), kind.model()
        recompute(changed)
        assert [name for name, _ in changed.named_modules()] == [name for name, _ in plain.named_modules()]
        assert list(own_tensors(changed)) == list(own_tensors(plain))
        plain.load_state_dict(changed.state_dict())
        changed.load_state_dict(plain.state_dict())


def test_a_copy_computes_with_its_own_blocks() -> None:
    """The planted fault is a forward that closes over the block it was made for."""
    kind = KINDS["next token"]
    model = kind.model()
    recompute(model)
    other, closing = copy.deepcopy(model), kind.model()
    closing.blocks[0].forward = lambda *args, block=closing.blocks[0], **options: type(block).forward(
        block, *args, **options
    )
    for each, own in ((other, True), (copy.deepcopy(closing), False)):
        before = each(kind.batches(0).inputs)
        nn.init.normal_(each.blocks[0].feedforward.down.weight)
        nn.init.normal_(each.blocks[0].attention.qkv.weight)
        assert torch.equal(each(kind.batches(0).inputs), before) == (not own)


def calls(model: nn.Module) -> list[str]:
    """Each forward of the first block's attention from now on; what is behind the last tensor needed is not run again."""
    called: list[str] = []
    model.blocks[0].attention.register_forward_hook(lambda *_: called.append("forward"))
    return called


def test_it_computes_twice_in_training_alone() -> None:
    kind = KINDS["next token"]
    model = kind.model()
    recompute(model)
    called, ids = calls(model), kind.batches(0).inputs
    model(ids).sum().backward()
    assert len(called) == 2
    model(ids, tap=Recorder()).sum().backward()
    assert len(called) == 3
    model.eval()(ids).sum().backward()
    assert len(called) == 4


def test_twice_asked_is_once_done() -> None:
    model = KINDS["next token"].model()
    recompute(model)
    recompute(model)
    called = calls(model)
    model(KINDS["next token"].batches(0).inputs).sum().backward()
    assert len(called) == 2


def test_a_model_without_such_blocks_is_refused() -> None:
    with pytest.raises(UserError, match="Linear has none"):
        recompute(nn.Linear(5, 3))
