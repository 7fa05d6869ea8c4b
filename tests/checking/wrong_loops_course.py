"""Loops whose course is wrong: rates, groups, modes, resumption. Each differs from `Sound` in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.loop_kinds import LoopTask
from clearhead.training.batches import Batch
from tests.checking.wrong_loops import Sound


class ScheduleOfParts(Sound):
    """Looks its rate up by the number of the micro-batch."""

    def __call__(self, task: LoopTask) -> None:
        self.read = 0
        super().__call__(task)

    def back(self, loss: Tensor) -> None:
        super().back(loss)
        for group in self.optimizer.param_groups:
            group["lr"] = self.task.lr(self.read)
        self.read += 1

    def restore(self) -> int:
        done = super().restore()
        self.read = done * self.task.accumulation
        return done


class ScheduleOfPartsAfter(Sound):
    def step(self) -> None:
        super().step()
        for _ in range(self.task.accumulation - 1):
            self.schedule.step()


class ScheduleOfTokens(Sound):
    """A function of what was read, and not of the updates."""

    def rate(self, update: int) -> float:
        return self.task.lr(update) / self.task.accumulation**0.5


class DecaysAll(Sound):
    def make_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.model.parameters(), lr=1.0, weight_decay=self.task.weight_decay)


class DecaysNorms(Sound):
    """By name, as scripts do that look for "bias" alone."""

    def make_optimizer(self) -> torch.optim.Optimizer:
        named = list(self.model.named_parameters())
        groups = [
            {"params": [each for name, each in named if "bias" not in name], "weight_decay": self.task.weight_decay},
            {"params": [each for name, each in named if "bias" in name], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=1.0)


class ForgetsParameter(Sound):
    def make_optimizer(self) -> torch.optim.Optimizer:
        kept = [each for name, each in self.model.named_parameters() if name != "hidden.bias"]
        return torch.optim.AdamW(kept, lr=1.0, weight_decay=0.0)


class FreezesParameter(Sound):
    def start(self) -> None:
        super().start()
        self.model.get_submodule("hidden").bias.requires_grad_(False)


class HoldsTwice(Sound):
    """The head has an optimiser of its own, and is in the one of all."""

    def make_optimizer(self) -> torch.optim.Optimizer:
        self.second = torch.optim.SGD([self.model.get_parameter("head.weight")], lr=1e-3)
        return super().make_optimizer()

    def step(self) -> None:
        super().step()
        self.second.step()


class EvalLeftOn(Sound):
    def evaluate(self) -> None:
        super().evaluate()
        self.model.eval()


class OnePartLeftInEval(Sound):
    def evaluate(self) -> None:
        super().evaluate()
        self.model.get_submodule("dropout").eval()


class EvaluatesInTraining(Sound):
    def evaluate(self) -> None:
        with torch.no_grad():
            for batch in self.task.validation:
                self.loss(batch)


class NeverTrains(Sound):
    def start(self) -> None:
        self.model.eval()

    def evaluate(self) -> None:
        with torch.no_grad():
            self.loss(self.task.validation[0])


class WithoutRandom(Sound):
    def load_others(self, state: dict[str, Any]) -> None:
        before = torch.get_rng_state()
        super().load_others(state)
        torch.set_rng_state(before)


class SeedsAtStart(Sound):
    """Repeatable, and yet the random numbers begin again at each restart."""

    def __call__(self, task: LoopTask) -> None:
        torch.manual_seed(5)
        super().__call__(task)

    def load_others(self, state: dict[str, Any]) -> None:
        before = torch.get_rng_state()
        super().load_others(state)
        torch.set_rng_state(before)


class WithoutOptimizer(Sound):
    def load_others(self, state: dict[str, Any]) -> None:
        groups = [group["lr"] for group in state["optimizer"]["param_groups"]]
        self.schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["random"])
        for group, lr in zip(self.optimizer.param_groups, groups, strict=True):
            group["lr"] = lr


class WithoutSchedule(Sound):
    def load_others(self, state: dict[str, Any]) -> None:
        super().load_others(state)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(0)


class WithoutWeights(Sound):
    def restore(self) -> int:
        fresh = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        done = super().restore()
        self.model.load_state_dict(fresh)
        return done


class DataFromTheStart(Sound):
    """Counts its updates right, and reads what a fresh data loader gives."""

    def __call__(self, task: LoopTask) -> None:
        self.read = 0
        super().__call__(task)

    def backward(self, batches: Sequence[Batch]) -> None:
        first, self.read = self.read, self.read + len(batches)
        super().backward(self.task.batches[first : self.read])


class RestartsNowhere(Sound):
    def restore(self) -> int:
        super().restore()
        return self.task.updates


class Unrepeatable(Sound):
    """Everything is restored, but each run adds noise of its own."""

    noise = 0

    def step(self) -> None:
        super().step()
        Unrepeatable.noise += 1
        with torch.no_grad():
            next(self.model.parameters()).add_(1e-9 * Unrepeatable.noise)
