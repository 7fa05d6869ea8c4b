"""A sound training loop in plain PyTorch, and loops whose gradients are wrong: each differs from it in one place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.checking.loop_kinds import LoopTask
from clearhead.training.batches import Batch


class Sound:
    """Written as people write theirs, and right; each of the others overrides one method."""

    def __call__(self, task: LoopTask) -> None:
        self.task, self.model = task, task.model
        self.optimizer = self.make_optimizer()
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.rate)
        self.scaler = torch.amp.GradScaler(
            "cpu", init_scale=task.scale or 1.0, growth_interval=10**6, enabled=task.scale is not None
        )
        self.start()
        for update in range(self.restore() if task.resume else 0, task.updates):
            first = update * task.accumulation
            self.before_backward()
            self.backward(task.batches[first : first + task.accumulation])
            self.clip()
            self.step()
            if task.evaluate_every and (update + 1) % task.evaluate_every == 0:
                self.evaluate()
            if task.save_every and (update + 1) % task.save_every == 0:
                self.save(update + 1)

    def rate(self, update: int) -> float:
        return self.task.lr(update)

    def make_optimizer(self) -> torch.optim.Optimizer:
        parameters = list(self.model.parameters())
        groups = [
            {"params": [each for each in parameters if each.dim() >= 2], "weight_decay": self.task.weight_decay},
            {"params": [each for each in parameters if each.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=1.0)

    def start(self) -> None:
        self.model.train()

    def before_backward(self) -> None:
        self.optimizer.zero_grad()

    def backward(self, batches: Sequence[Batch]) -> None:
        real = sum(int((targets != -100).sum()) for _, targets in batches)
        for batch in batches:
            self.back(self.loss(batch) / real)

    def loss(self, batch: Batch, reduction: str = "sum") -> Tensor:
        logits = self.model(batch.inputs)
        return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=-100, reduction=reduction)

    def back(self, loss: Tensor) -> None:
        self.scaler.scale(loss).backward()

    def clip(self) -> None:
        if self.task.clip is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.task.clip)

    def step(self) -> None:
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()

    def evaluate(self) -> None:
        self.model.eval()
        with torch.no_grad():
            for batch in self.task.validation:
                self.loss(batch)
        self.model.train()

    @property
    def file(self) -> Path:
        assert self.task.folder is not None
        return self.task.folder / "last.pt"

    def save(self, done: int) -> None:
        torch.save(self.state(done), self.file)

    def state(self, done: int) -> dict[str, Any]:
        return {
            "done": done,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": torch.get_rng_state(),
        }

    def restore(self) -> int:
        state = torch.load(self.file)
        self.model.load_state_dict(state["model"])
        self.load_others(state)
        done: int = state["done"]
        return done

    def load_others(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["random"])


class MeanOfMeans(Sound):
    def backward(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self.back(self.loss(batch, "mean") / len(batches))


class SumOfMeans(Sound):
    def backward(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self.back(self.loss(batch, "mean"))


class LastOnly(Sound):
    """Clears in every micro-batch."""

    def backward(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self.optimizer.zero_grad()
            self.back(self.loss(batch, "mean"))


class PadsCounted(Sound):
    def backward(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self.back(self.loss(batch) / sum(targets.numel() for _, targets in batches))


class DividedTwice(Sound):
    def back(self, loss: Tensor) -> None:
        super().back(loss / self.task.accumulation)


class StepEachPart(Sound):
    """Takes the micro-batches of an update for updates."""

    def backward(self, batches: Sequence[Batch]) -> None:
        for number, batch in enumerate(batches):
            super().backward([batch])
            if number < len(batches) - 1:
                self.clip()
                self.step()
                self.optimizer.zero_grad()


class HalfTheLoss(Sound):
    """A mistake that nobody has a name for."""

    def back(self, loss: Tensor) -> None:
        super().back(loss * 0.5)


class ClearsTooEarly(Sound):
    """Between backward and step."""

    def clip(self) -> None:
        if self.task.scale:
            raise NotImplementedError("PyTorch's scaler refuses this itself")
        self.optimizer.zero_grad()


class GradientsKept(Sound):
    def before_backward(self) -> None:
        """Nothing is cleared."""


class MeanOfMeansKept(GradientsKept, MeanOfMeans):
    """Two faults in one loop."""


class ClipsParts(Sound):
    def back(self, loss: Tensor) -> None:
        super().back(loss)
        if self.task.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.task.clip)

    def clip(self) -> None:
        """Already done."""


class ClipsEachAlone(Sound):
    """As differentially private training does with single rows: what a micro-batch adds is clipped by itself."""

    def backward(self, batches: Sequence[Batch]) -> None:
        real = sum(int((targets != -100).sum()) for _, targets in batches)
        parameters, total = list(self.model.parameters()), []
        for batch in batches:
            self.optimizer.zero_grad()
            self.back(self.loss(batch) / real)
            if self.task.clip is not None:
                nn.utils.clip_grad_norm_(parameters, self.task.clip)
            total.append([each.grad.clone() for each in parameters if each.grad is not None])
        for parameter, *gradients in zip(parameters, *total, strict=True):
            parameter.grad = torch.stack(gradients).sum(0)

    def clip(self) -> None:
        """Already done."""


class ClipsEachParameter(Sound):
    """Not the norm of all together."""

    def clip(self) -> None:
        for parameter in self.model.parameters() if self.task.clip is not None else ():
            nn.utils.clip_grad_norm_([parameter], self.task.clip)


class ClipsBeforeUnscale(Sound):
    def clip(self) -> None:
        if self.task.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.task.clip)


class NeverUnscales(ClipsBeforeUnscale):
    def step(self) -> None:
        self.optimizer.step()
        self.schedule.step()
