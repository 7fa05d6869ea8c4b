"""Watching a loop: what each forward reads, and what each optimiser holds at the moment it steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from clearhead.checking.loop_kinds import Loop, LoopTask
from clearhead.checking.loop_subject import Rows, process
from clearhead.messages import UserError, say


class Killed(BaseException):
    """The process of a loop ends here. No loop that goes on after errors catches it."""


@dataclass(frozen=True)
class Forward:
    """One forward of the model."""

    rows: tuple[int, ...] | None
    """The places of the rows that it read; None if they are none of the task's."""
    updates: int
    """How many updates this run of the loop had done."""
    asleep: tuple[str, ...]
    """The parts that are in evaluation mode, the model itself by the name of its class."""
    random: Tensor
    """The state of PyTorch's random numbers before it."""


@dataclass(frozen=True)
class Group:
    """A parameter group of an optimiser."""

    names: tuple[str, ...]
    lr: float
    weight_decay: float


@dataclass
class Moved:
    """One update: all optimisers that step with no forward between them."""

    forwards: list[Forward]
    """Those since the update before; of the training data."""
    before: dict[str, Tensor]
    """The parameters before it."""
    arrived: dict[str, Tensor]
    """The gradients as the last backward left them: summed up, before anything was done to them."""
    gradients: dict[str, Tensor] = field(default_factory=dict)
    """The gradients that the optimisers step with, free of a loss scale; 0 where there is none."""
    groups: list[Group] = field(default_factory=list)
    state: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of the optimisers before they step, by parameter."""


@dataclass
class Seen:
    """What a run of a loop showed."""

    model: nn.Module
    moved: list[Moved] = field(default_factory=list)
    forwards: list[Forward] = field(default_factory=list)
    """All, those of evaluations among them."""
    killed: bool = False


def watch(loop: Loop, task: LoopTask, *, seed: int = 0, die_after: int | None = None) -> Seen:
    """Run `loop` on `task` in what looks like a process of its own, and hand back what was seen.

    Args:
        loop: it.
        task: its model is trained.
        seed: of the process's random numbers.
        die_after: end the process at the first training forward after so many updates.

    Raises:
        UserError: if no optimiser of PyTorch's moved a parameter of the task's model after a forward of it.
        NotImplementedError: what the loop says it cannot do.
    """
    seen = Seen(task.model)
    watcher = _Watcher(seen, Rows([*task.batches, *task.validation]), _rows_of(task.batches), die_after)
    handles = [
        task.model.register_forward_pre_hook(watcher.forward, with_kwargs=True),
        register_optimizer_step_pre_hook(watcher.step),
        *(
            parameter.register_post_accumulate_grad_hook(watcher.arrived)  # type: ignore[no-untyped-call]
            for parameter in task.model.parameters()
            if parameter.requires_grad
        ),
    ]
    try:
        with process(seed):
            loop(task)
    except Killed:
        seen.killed = True
    finally:
        for handle in handles:
            handle.remove()
    # A restart that has nothing left to do is a fault of its own, found by what was to be trained.
    if not (seen.moved or seen.killed or task.resume):
        raise UserError(say("loops.nothing_moved"))
    return seen


def _rows_of(batches: Any) -> int:
    return sum(len(batch.inputs) for batch in batches)


class _Watcher:
    """The hooks, and what they share."""

    def __init__(self, seen: Seen, rows: Rows, training: int, die_after: int | None) -> None:
        self.seen, self.rows, self.training, self.die_after = seen, rows, training, die_after
        self.names = {id(parameter): name for name, parameter in seen.model.named_parameters()}
        self.since: list[Forward] = []
        self.latest: dict[str, Tensor] = {}

    def forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Before a forward: which rows, in which mode."""
        inputs = next((value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)), None)
        places = None if inputs is None else self.rows.places(inputs)
        asleep = tuple(name or type(part).__name__ for name, part in module.named_modules() if not part.training)
        forward = Forward(places, len(self.seen.moved), asleep, torch.get_rng_state())
        trains = is_training(forward, self.training)
        if trains and self.die_after is not None and len(self.seen.moved) >= self.die_after:
            raise Killed
        self.seen.forwards.append(forward)
        if trains:
            self.since.append(forward)

    def arrived(self, parameter: Tensor) -> None:
        """After a backward has added to a parameter's gradient."""
        if parameter.grad is not None:
            self.latest[self.names[id(parameter)]] = parameter.grad.detach().clone()

    def step(self, optimizer: Optimizer, *_: object) -> None:
        """Before an optimiser steps."""
        if not any(id(parameter) in self.names for group in optimizer.param_groups for parameter in group["params"]):
            return
        if self.since or not self.seen.moved:
            before = {name: parameter.detach().clone() for name, parameter in self.seen.model.named_parameters()}
            self.seen.moved.append(Moved(self.since, before, self.latest))
            self.since, self.latest = [], {}
        self._read(optimizer, self.seen.moved[-1])

    def _read(self, optimizer: Optimizer, moved: Moved) -> None:
        # A fused optimiser divides by the loss scale itself.
        scale = getattr(optimizer, "grad_scale", None)
        for group in optimizer.param_groups:
            names = [(self.names[id(p)], p) for p in group["params"] if id(p) in self.names]
            moved.groups.append(
                Group(tuple(name for name, _ in names), float(group["lr"]), float(group.get("weight_decay", 0.0)))
            )
            for name, parameter in names:
                gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.detach().clone()
                moved.gradients[name] = gradient if scale is None else gradient / scale
                state = optimizer.state.get(parameter, {})
                moved.state[name] = {
                    key: value.detach().clone() if isinstance(value, Tensor) else value for key, value in state.items()
                }


def is_training(forward: Forward, training: int) -> bool:
    """Whether a forward read training rows, which come before those of the validation; unknown rows count as such."""
    return forward.rows is None or all(place < training for place in forward.rows)
