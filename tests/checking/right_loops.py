"""Loops that are right in another way, and loops that cannot do something."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from clearhead.checking.loop_kinds import LoopTask
from clearhead.training.batches import Batch
from tests.checking.wrong_loops import Sound

# Legal variants: not one of them may be named.


class Concatenated(Sound):
    """One forward of all micro-batches together, and the mean that PyTorch takes."""

    def backward(self, batches: Sequence[Batch]) -> None:
        inputs, targets = (torch.cat(parts) for parts in zip(*batches, strict=True))
        self.back(self.loss(Batch(inputs, targets), "mean"))


class RowByRow(Sound):
    """Smaller micro-batches than it was given."""

    def backward(self, batches: Sequence[Batch]) -> None:
        real = sum(int((targets != -100).sum()) for _, targets in batches)
        for inputs, targets in batches:
            for row in zip(inputs.split(1), targets.split(1), strict=True):
                self.back(self.loss(Batch(*row)) / real)


class Shuffles(Sound):
    """Reads rows in an order of its own, the same at each start."""

    def __call__(self, task: LoopTask) -> None:
        inputs, targets = (torch.cat(parts) for parts in zip(*task.batches, strict=True))
        order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(9)).split(
            len(task.batches[0].inputs)
        )
        super().__call__(replace(task, batches=[Batch(inputs[places], targets[places]) for places in order]))


class DividesGradients(Sound):
    """Sums first, divides the gradients once at the end."""

    def backward(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self.back(self.loss(batch))
        real = sum(int((targets != -100).sum()) for _, targets in batches)
        for parameter in self.model.parameters():
            assert parameter.grad is not None
            parameter.grad /= real


class ClearsAfter(Sound):
    def before_backward(self) -> None:
        """Done after the step before."""

    def step(self) -> None:
        super().step()
        self.optimizer.zero_grad(set_to_none=False)


class LossInFloat32(Sound):
    def loss(self, batch: Batch, reduction: str = "sum") -> Tensor:
        logits = self.model(batch.inputs).float()
        return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=-100, reduction=reduction)


class ClipsByHand(Sound):
    """By the formula, without PyTorch's 1e-6."""

    def clip(self) -> None:
        if self.task.clip is None:
            return
        self.scaler.unscale_(self.optimizer)
        gradients = [each.grad for each in self.model.parameters() if each.grad is not None]
        norm = torch.stack([each.norm() for each in gradients]).norm()
        torch._foreach_mul_(gradients, (self.task.clip / norm).clamp(max=1.0))


class FusedWithScaler(Sound):
    """A fused optimiser takes the scale out itself, where nothing was clipped before."""

    def make_optimizer(self) -> torch.optim.Optimizer:
        kept = ("params", "weight_decay")
        groups = [{key: group[key] for key in kept} for group in super().make_optimizer().param_groups]
        return torch.optim.AdamW(groups, lr=1.0, fused=True)

    def clip(self) -> None:
        if self.task.scale is None:
            super().clip()


class TwoOptimizers(Sound):
    """Muon for hidden matrices, AdamW for the rest; both step in one update."""

    def __call__(self, task: LoopTask) -> None:
        if task.scale or task.save_every:
            raise NotImplementedError("no scale, no checkpoints")
        super().__call__(task)

    def make_optimizer(self) -> torch.optim.Optimizer:
        hidden = [self.model.get_parameter("hidden.weight")]
        rest = [each for each in self.model.parameters() if each is not hidden[0]]
        self.muon = torch.optim.Muon(hidden, lr=1e-3, weight_decay=self.task.weight_decay)
        return torch.optim.AdamW(rest, lr=1.0, weight_decay=0.0)

    def before_backward(self) -> None:
        super().before_backward()
        self.muon.zero_grad()

    def step(self) -> None:
        super().step()
        self.muon.step()


class OwnSchedule(Sound):
    """Warms up and falls as it likes, by updates."""

    def rate(self, update: int) -> float:
        return 1e-4 * min(update + 1, 4) * 0.9**update


class EvaluatesFirst(Sound):
    def start(self) -> None:
        if self.task.validation:
            self.evaluate()
        super().start()


class TrainsEachTime(Sound):
    """Does not restore the mode, but sets it before each update."""

    def before_backward(self) -> None:
        super().before_backward()
        self.model.train()

    def evaluate(self) -> None:
        super().evaluate()
        self.model.eval()


class SeedsEachUpdate(Sound):
    """Random numbers that are a function of the update need no saving."""

    def before_backward(self) -> None:
        super().before_backward()
        done = int(next(iter(self.optimizer.state.values()), {}).get("step", torch.zeros(())).item())
        torch.manual_seed(1000 + done)

    def load_others(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])


class SavesWhenKilled(Sound):
    """Saves in a `finally`, as loops do that want to survive Ctrl-C."""

    def __call__(self, task: LoopTask) -> None:
        self.done = 0
        try:
            super().__call__(task)
        finally:
            if task.save_every:
                self.save(self.done)

    def step(self) -> None:
        super().step()
        self.done += 1

    def restore(self) -> int:
        self.done = super().restore()
        return self.done


# Loops that cannot do something.


class Plain(Sound):
    """Trains, and nothing else: one batch an update, plain SGD at one rate, nothing clipped, no decay."""

    def __call__(self, task: LoopTask) -> None:
        if task.accumulation > 1:
            raise NotImplementedError("one batch an update")
        if task.save_every is not None:
            raise NotImplementedError("no checkpoints")
        super().__call__(task)

    def make_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.model.parameters(), lr=1.0)

    def rate(self, update: int) -> float:
        return 1e-3

    def back(self, loss: Tensor) -> None:
        loss.backward()

    def clip(self) -> None:
        """Never."""

    def step(self) -> None:
        self.optimizer.step()

    def evaluate(self) -> None:
        """Never."""


class ConstantRate(Sound):
    def rate(self, update: int) -> float:
        return 1e-3


class SavesNothing(Sound):
    def save(self, done: int) -> None:
        """Forgotten."""


class TrainsACopy(Sound):
    def __call__(self, task: LoopTask) -> None:
        super().__call__(replace(task, model=copy.deepcopy(task.model)))


class OtherRows(Sound):
    """Reads rows that nobody gave it, one token shorter."""

    def loss(self, batch: Batch, reduction: str = "sum") -> Tensor:
        return super().loss(Batch(batch.inputs[:, 1:], batch.targets[:, 1:]), reduction)
