"""What a training loop is to the checks: a callable that trains the model of a task, and what is found about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from torch import nn

from clearhead.checking.finding import Finding
from clearhead.training.batches import Batch


@dataclass(frozen=True)
class LoopTask:
    """One training that a loop is asked for.

    What a loop cannot do it says by raising `NotImplementedError` with a reason: that question is then not asked.
    """

    model: nn.Module
    """Trained in place. `model(inputs)` gives logits (B,T,V) for ids (B,T); in training mode, as modules are made."""
    batches: Sequence[Batch]
    """All micro-batches of the whole training, in order: ids, and targets that are `IGNORED` (-100) where none counts.
    Update u, counted from 0, takes those from u · `accumulation` on. Real targets differ in number from one to the next."""
    updates: int
    """How many updates the whole training has."""
    lr: Callable[[int], float]
    """Update -> learning rate. A loop with a schedule of its own may use that one instead, or none."""
    accumulation: int = 1
    """How many micro-batches an update is made of."""
    clip: float | None = None
    """The largest norm that the gradient of an update may have; None leaves it alone."""
    weight_decay: float = 0.0
    """λ of the parameters that decay."""
    scale: float | None = None
    """Multiply the loss by this, as a `GradScaler` does whose scale stays; None: no loss scale."""
    evaluate_every: int | None = None
    """Score `validation` after every so many updates; None: never."""
    validation: Sequence[Batch] = ()
    """What evaluations read."""
    save_every: int | None = None
    """Write all of the training's state into `folder` after every so many updates; None: never."""
    folder: Path | None = None
    """Where it is saved; empty before the first time."""
    resume: bool = False
    """Go on from what `folder` holds. The model comes with other weights and the process with other random numbers."""


class Loop(Protocol):
    """Somebody's training loop, as a callable of one argument.

    A script in the style of nanoGPT is wrapped by putting the task's values where its own constants stand:

        def loop(task):
            if task.save_every or task.evaluate_every or task.scale:
                raise NotImplementedError("this wrapper neither saves nor evaluates nor scales")
            optimizer = configure_optimizers(task.model, task.weight_decay)   # its own
            for step in range(task.updates):
                for group in optimizer.param_groups:
                    group["lr"] = task.lr(step)
                first = step * task.accumulation
                for inputs, targets in task.batches[first : first + task.accumulation]:
                    logits = task.model(inputs)
                    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
                    (loss / task.accumulation).backward()      # loss.mean-of-means: the check says so
                if task.clip is not None:
                    torch.nn.utils.clip_grad_norm_(task.model.parameters(), task.clip)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

    A loop in the style of Hugging Face's Trainer, sketched, wants a model that gives the loss, a data set of dictionaries and
    arguments; a module around the task's model gives the first, and what is checked is still the model inside:

        class WithLoss(nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner

            def forward(self, input_ids, labels, num_items_in_batch=None):
                logits = self.inner(input_ids)
                how = "mean" if num_items_in_batch is None else "sum"
                loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction=how)
                return {"loss": loss if num_items_in_batch is None else loss / num_items_in_batch, "logits": logits}

        def loop(task):
            rows = [{"input_ids": row, "labels": labels} for batch in task.batches for row, labels in zip(*batch)]
            arguments = TrainingArguments(output_dir=task.folder, max_steps=task.updates,
                per_device_train_batch_size=len(task.batches[0].inputs), gradient_accumulation_steps=task.accumulation,
                max_grad_norm=task.clip or 0.0, weight_decay=task.weight_decay, save_steps=task.save_every or 10**9, ...)
            Trainer(WithLoss(task.model), arguments, train_dataset=rows).train(resume_from_checkpoint=task.resume)

    What is seen is what every loop must touch: the rows and the modes of each forward of the model, the gradients,
    groups, rates and states of each optimiser (`torch.optim.Optimizer`) at the moment it steps.
    """

    def __call__(self, task: LoopTask, /) -> None:
        """Train `task.model` in place."""
        ...


Question = Literal["accumulation", "clearing", "clipping", "scaling", "schedule", "groups", "modes", "resume"]

QUESTIONS: dict[Question, str] = {
    "accumulation": "train.accumulation",
    "clearing": "train.gradients-kept",
    "clipping": "train.clip-per-microbatch",
    "scaling": "train.clip-before-unscale",
    "schedule": "train.schedule-per-microbatch",
    "groups": "train.decay-on-norms",
    "modes": "train.eval-left-on",
    "resume": "resume.mismatch",
}
"""What a loop can be asked, in the order of the answers -> the id of the fault that is looked for first."""


@dataclass(frozen=True)
class LoopFinding(Finding):
    """The answer to one question about a loop.

    `id` is the fault that was found, or the one that is looked for first if none was. `largest` is the difference from
    what is right (of gradients and rates: beside the largest right value); `evidence` says what was done and seen.
    """

    question: Question
    asked: bool = True
    """False if the loop does not do what the question is about; `evidence` says why, and `passed` means nothing."""

    @property
    def verdict(self) -> Literal["yes", "no", "not asked"]:
        """Is it right?"""
        return ("yes" if self.passed else "no") if self.asked else "not asked"


def not_asked(question: Question, reason: str) -> LoopFinding:
    """The finding of a question that a loop has no answer to, and why, in words."""
    return LoopFinding(QUESTIONS[question], True, 0.0, reason, question, asked=False)


def right(question: Question, largest: float, evidence: str) -> LoopFinding:
    """The finding of a loop that does it right."""
    return LoopFinding(QUESTIONS[question], True, largest, evidence, question)
