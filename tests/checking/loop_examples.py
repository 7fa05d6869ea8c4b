"""The two examples in the docstring of `Loop`: a script that is wrapped, and a trainer object that is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.checking.loop_kinds import Loop, LoopTask


def script(task: LoopTask) -> None:
    if task.save_every or task.evaluate_every or task.scale:
        raise NotImplementedError("this wrapper neither saves nor evaluates nor scales")
    optimizer = configure_optimizers(task.model, task.weight_decay)
    for step in range(task.updates):
        for group in optimizer.param_groups:
            group["lr"] = task.lr(step)
        first = step * task.accumulation
        for inputs, targets in task.batches[first : first + task.accumulation]:
            logits = task.model(inputs)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
            (loss / task.accumulation).backward()
        if task.clip is not None:
            torch.nn.utils.clip_grad_norm_(task.model.parameters(), task.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def configure_optimizers(model: nn.Module, weight_decay: float) -> torch.optim.Optimizer:
    decay = [each for each in model.parameters() if each.dim() >= 2]
    rest = [each for each in model.parameters() if each.dim() < 2]
    groups = [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.95))


class WithLoss(nn.Module):
    """Gives the loss, as a trainer wants it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: Tensor, labels: Tensor, num_items_in_batch: int | None = None) -> dict[str, Tensor]:
        logits = self.inner(input_ids)
        how = "mean" if num_items_in_batch is None else "sum"
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction=how)
        return {"loss": loss if num_items_in_batch is None else loss / num_items_in_batch, "logits": logits}


class SmallTrainer:
    """Data as dictionaries, a method a step, checkpoints in folders of their own; nothing of it knows of a task.

    Args:
        counted: tell the model how many targets an update has.
    """

    def __init__(self, model: nn.Module, rows: list[dict[str, Tensor]], task: LoopTask, *, counted: bool) -> None:
        self.model, self.rows, self.args, self.counted = model, rows, task, counted
        self.size = len(task.batches[0].inputs)
        self.optimizer = configure_optimizers(model, task.weight_decay)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda done: 1e3 * task.lr(done))

    def train(self, *, resume_from_checkpoint: bool) -> None:
        done = self.load() if resume_from_checkpoint else 0
        micro = self.loader(done * self.args.accumulation)
        for step in range(done, self.args.updates):
            batches = [next(micro) for _ in range(self.args.accumulation)]
            items = sum(int((batch["labels"] != -100).sum()) for batch in batches)
            for batch in batches:
                self.training_step(batch, items)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip or float("inf"))
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()
            if self.args.evaluate_every and (step + 1) % self.args.evaluate_every == 0:
                self.evaluate()
            if self.args.save_every and (step + 1) % self.args.save_every == 0:
                self.save(step + 1)

    def loader(self, skipped: int) -> Iterator[dict[str, Tensor]]:
        for first in range(skipped * self.size, len(self.rows), self.size):
            rows = self.rows[first : first + self.size]
            yield {key: torch.stack([row[key] for row in rows]) for key in rows[0]}

    def training_step(self, batch: dict[str, Tensor], items: int) -> None:
        self.model.train()
        if self.counted:
            self.model(**batch, num_items_in_batch=items)["loss"].backward()
        else:
            (self.model(**batch)["loss"] / self.args.accumulation).backward()

    @torch.no_grad()
    def evaluate(self) -> None:
        self.model.eval()
        for inputs, targets in self.args.validation:
            self.model(input_ids=inputs, labels=targets)

    @property
    def parts(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def save(self, done: int) -> None:
        folder = Path(str(self.args.folder), f"checkpoint-{done}")
        folder.mkdir()
        state = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({**state, "random": torch.get_rng_state()}, folder / "state.pt")

    def load(self) -> int:
        folder = max(Path(str(self.args.folder)).iterdir(), key=lambda each: int(each.name.partition("-")[2]))
        state = torch.load(folder / "state.pt")
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        torch.set_rng_state(state["random"])
        return int(folder.name.partition("-")[2])


def trainer_loop(counted: bool) -> Loop:
    def loop(task: LoopTask) -> None:
        if task.scale:
            raise NotImplementedError("no loss scale on the CPU")
        pairs = [pair for batch in task.batches for pair in zip(*batch, strict=True)]
        rows = [{"input_ids": inputs, "labels": labels} for inputs, labels in pairs]
        trainer = SmallTrainer(WithLoss(task.model), rows, task, counted=counted)
        trainer.train(resume_from_checkpoint=task.resume)

    return loop
