"""What a checkpoint holds of what moves the weights: one optimiser, several, master weights, and all random numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.run import Run, read_run
from clearhead.formats.weights import read_tensors, save_tensors
from clearhead.messages import UserError
from clearhead.models.build import build
from clearhead.training.checkpoint import Moving, restore_checkpoint, save_checkpoint
from clearhead.training.stepper import Stepper
from tests.training.toy import TINY, new_run

CONFIG = replace(TINY, layers=2)


class Subject(NamedTuple):
    """A model and what moves it."""

    model: nn.Module
    moving: Moving | torch.optim.Optimizer


def one(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def two(model: nn.Module, *, masters: bool = False) -> Stepper:
    """Muon for the matrices of the blocks, AdamW for the rest, as a recipe has them."""
    wide = {name: nn.Parameter(each.detach().float().clone()) for name, each in model.named_parameters()}
    if masters:
        model.bfloat16()
    moved = wide if masters else dict(model.named_parameters())
    hidden = [each for name, each in moved.items() if each.dim() == 2 and "blocks" in name]
    rest = [each for each in moved.values() if not any(each is other for other in hidden)]
    optimizers = (torch.optim.Muon(hidden, lr=1e-2), torch.optim.AdamW(rest, lr=1e-2))
    return Stepper(model, *optimizers, masters=wide if masters else None)


KINDS: dict[str, Callable[[nn.Module], Moving | torch.optim.Optimizer]] = {
    "AdamW": one,
    "AdamW in a stepper": lambda model: Stepper(model, one(model)),
    "SGD, which has no state": lambda model: torch.optim.SGD(model.parameters(), lr=1e-2),
    "Muon and AdamW": two,
    "masters": lambda model: two(model, masters=True),
}


def subject(kind: str, seed: int = 0) -> Subject:
    model = build(CONFIG, seed=seed)
    return Subject(model, KINDS[kind](model))


def updated(made: Subject, times: int = 3) -> None:
    """Some updates, each from random ids: with dropout."""
    moving = made.moving if isinstance(made.moving, Stepper) else Stepper(made.model, made.moving)
    made.model.train()
    for _ in range(times):
        moving.clear()
        moving.backward(made.model(torch.randint(CONFIG.vocab, (2, 5))).float().square().mean())
        moving.gradients()
        moving.step(1e-2)


def numbers(made: Subject) -> dict[str, Tensor]:
    """Everything that there is: weights, means, masters, random numbers."""
    optimizers = [made.moving] if isinstance(made.moving, torch.optim.Optimizer) else made.moving.optimizers
    extra = {} if isinstance(made.moving, torch.optim.Optimizer) else made.moving.extra_state()
    means = {
        f"{number}.{index}.{key}": value
        for number, optimizer in enumerate(optimizers)
        for index, each in optimizer.state_dict()["state"].items()
        for key, value in each.items()
    }
    weights = dict(made.model.named_parameters())
    found = weights | means | extra | {"random": torch.get_rng_state()}
    return {name: torch.as_tensor(each).detach().clone() for name, each in found.items()}


def different(first: dict[str, Tensor], second: dict[str, Tensor]) -> list[str]:
    return [name for name in first if name not in second or not torch.equal(first[name], second[name])]


def saved(path: Path, made: Subject, step: int = 3) -> Run:
    run = read_run(path) if path.exists() else new_run(path, CONFIG)
    save_checkpoint(run, made.model, made.moving, step=step, val_loss=None)
    return run


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("updates", [0, 3])
def test_everything_comes_back_and_goes_on_alike(tmp_path: Path, kind: str, updates: int) -> None:
    first = subject(kind)
    updated(first, updates)
    run, before = saved(tmp_path / "run", first), numbers(first)
    updated(first, 2)
    after = numbers(first)
    second = subject(kind, seed=1)
    torch.manual_seed(99)
    restore_checkpoint(run.latest(), second.model, second.moving)
    assert different(before, numbers(second)) == []
    updated(second, 2)
    assert different(after, numbers(second)) == []


def test_what_is_not_restored_is_found(tmp_path: Path) -> None:
    """The comparison sees a master, a mean of either optimiser and the random numbers that are others."""
    first = subject("masters")
    updated(first)
    run, before = saved(tmp_path / "run", first), numbers(first)
    second = subject("masters", seed=1)
    torch.manual_seed(99)
    found = different(before, numbers(second))
    assert {"random", "0.0.momentum_buffer", "1.0.exp_avg", "master.embedding.weight"} <= set(found)
    restore_checkpoint(run.latest(), second.model, second.moving)
    assert different(before, numbers(second)) == []


def test_each_means_stands_under_the_name_of_its_parameter(tmp_path: Path) -> None:
    first = subject("masters")
    updated(first)
    names = set(read_tensors(saved(tmp_path / "run", first).latest().path / "training.safetensors"))
    assert {"momentum_buffer:blocks.1.attention.qkv.weight", "exp_avg_sq:embedding.weight"} <= names
    assert {"extra.master.blocks.1.attention.qkv.weight", "random.cpu"} <= names
    assert "exp_avg:blocks.1.attention.qkv.weight" not in names


def test_the_order_of_parameters_in_an_optimiser_has_no_part_in_it(tmp_path: Path) -> None:
    """As it has where state is stored by number."""
    first = subject("AdamW")
    updated(first)
    run = saved(tmp_path / "run", first)
    model = build(CONFIG, seed=1)
    turned = torch.optim.AdamW([*reversed(list(model.parameters()))], lr=1e-2)
    restore_checkpoint(run.latest(), model, turned)
    assert isinstance(first.moving, torch.optim.Optimizer)
    for ours, theirs in zip(first.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(first.moving.state[ours]["exp_avg_sq"], turned.state[theirs]["exp_avg_sq"])


@pytest.mark.parametrize(
    ("written", "read", "said"),
    [
        ("AdamW", "Muon and AdamW", r"holds the state of AdamW, and this training has Muon, AdamW"),
        ("Muon and AdamW", "AdamW", r"holds the state of Muon, AdamW, and this training has AdamW"),
        ("masters", "Muon and AdamW", r"places? for, master\."),
        ("Muon and AdamW", "masters", r"lacks .* master\."),
    ],
)
def test_the_state_of_other_optimisers_is_one_line(tmp_path: Path, written: str, read: str, said: str) -> None:
    first, second = subject(written), subject(read)
    updated(first)
    run = saved(tmp_path / "run", first)
    with pytest.raises(UserError, match=said) as error:
        restore_checkpoint(run.latest(), second.model, second.moving)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("damage", ["lacks", "has one more", "other shape"])
@pytest.mark.parametrize("key", ["momentum_buffer:blocks.1.attention.qkv.weight", "exp_avg:embedding.weight"])
def test_a_tensor_that_is_wrong_is_named(tmp_path: Path, damage: str, key: str) -> None:
    first = subject("Muon and AdamW")
    updated(first)
    path = saved(tmp_path / "run", first).latest().path / "training.safetensors"
    tensors = read_tensors(path)
    if damage == "lacks":
        del tensors[key]
    elif damage == "has one more":
        tensors[f"{key}.other"] = tensors[key].clone()
    else:
        tensors[key] = tensors[key][:, :3]
    save_tensors(tensors, path)
    with pytest.raises(UserError, match=key):
        restore_checkpoint(read_run(tmp_path / "run").latest(), first.model, first.moving)


def test_updates_that_were_all_left_out_have_no_means(tmp_path: Path) -> None:
    """A step that was skipped moves nothing: the checkpoint of step 3 says so, and is gone on from."""
    run = saved(tmp_path / "run", subject("Muon and AdamW"), step=3)
    second = subject("Muon and AdamW", seed=1)
    restore_checkpoint(run.latest(), second.model, second.moving)
    path = run.latest().path / "state.json"
    state = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(state | {"moved": True}), encoding="utf-8")
    with pytest.raises(UserError, match="lacks"):
        restore_checkpoint(run.latest(), second.model, second.moving)


def test_a_parameter_in_two_optimisers_is_a_defect_that_is_seen(tmp_path: Path) -> None:
    model = build(CONFIG, seed=0)
    twice = Stepper(model, one(model), one(model))
    with pytest.raises(ValueError, match="in two optimisers"):
        save_checkpoint(new_run(tmp_path / "run", CONFIG), model, twice, step=1, val_loss=None)


class Generators:
    """Two GPUs' random numbers, as torch.cuda gives them, on a machine that has none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states = {0: torch.tensor([1, 2], dtype=torch.uint8), 1: torch.tensor([3, 4], dtype=torch.uint8)}
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(self.states))
        monkeypatch.setattr(torch.cuda, "get_rng_state", lambda number: self.states[number])
        monkeypatch.setattr(torch.cuda, "set_rng_state", self.set)

    def set(self, state: Tensor, number: int = 0) -> None:
        self.states[number] = state


def test_the_random_numbers_of_every_device_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generators, first = Generators(monkeypatch), subject("AdamW")
    before = dict(generators.states)
    run = saved(tmp_path / "run", first, step=0)
    generators.states = {number: state + 7 for number, state in before.items()}
    restore_checkpoint(run.latest(), first.model, first.moving)
    assert all(torch.equal(generators.states[number], before[number]) for number in (0, 1))


def test_an_older_checkpoint_of_one_gpu_is_taken_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = subject("AdamW")
    run = saved(tmp_path / "run", first, step=0)
    path = run.latest().path / "training.safetensors"
    save_tensors(read_tensors(path) | {"random.cuda": torch.tensor([5, 6], dtype=torch.uint8)}, path)
    restore_checkpoint(run.latest(), first.model, first.moving)  # and where there is no GPU it is left alone
    generators = Generators(monkeypatch)
    restore_checkpoint(run.latest(), first.model, first.moving)
    assert generators.states[0].tolist() == [5, 6]
