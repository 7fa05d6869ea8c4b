"""Our own loop under the checks that other people's get: everything must be right, with each optimiser and each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from clearhead.checking.loop_kinds import QUESTIONS, LoopTask
from clearhead.checking.loop_subject import Subject
from clearhead.checking.loops import check_loop
from clearhead.formats.run import Checkpoint, create_run
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.text import ByteTokenizer
from clearhead.training.batches import Batch
from clearhead.training.checkpoint import restore_checkpoint, save_checkpoint
from clearhead.training.fit import evaluate, fit
from clearhead.training.losses import next_token
from clearhead.training.optimizer import optimizers, roles
from clearhead.training.stepper import Stepper
from tests.checking.test_loops import faults

CONFIG = DecoderConfig(vocab=29, layers=2, heads=2, kv_heads=1, width=8, context=7, dropout=0.5)


def together(batches: Sequence[Batch]) -> Batch:
    return Batch(*(torch.cat(parts) for parts in zip(*batches, strict=True)))


@dataclass(frozen=True)
class Own:
    """`fit` with our stepper and our checkpoints; the parts of an update are cut from its one batch."""

    optimizer: str = "adamw"

    def __call__(self, task: LoopTask) -> None:
        stepper = self.stepper(task)
        run = create_run(task.folder, CONFIG, ByteTokenizer(), {}) if task.folder else None
        first = 0
        if task.resume:
            assert run is not None
            self.restore(run.latest(), task.model, stepper)
            first = run.latest().step
        updates = fit(
            task.model,
            lambda step: together(task.batches[step * task.accumulation : (step + 1) * task.accumulation]),
            next_token,
            optimizer=stepper,
            schedule=task.lr,
            steps=task.updates,
            first=first,
            clip=task.clip,
            micro_batch=len(task.batches[0].inputs),
        )
        for update in updates:
            if task.evaluate_every and update.step % task.evaluate_every == 0:
                evaluate(task.model, task.validation, next_token)
            if task.save_every and update.step % task.save_every == 0:
                assert run is not None
                save_checkpoint(run, task.model, stepper, step=update.step, val_loss=None)

    def restore(self, checkpoint: Checkpoint, model: nn.Module, stepper: Stepper) -> None:
        restore_checkpoint(checkpoint, model, stepper)

    def stepper(self, task: LoopTask) -> Stepper:
        named = list(task.model.named_parameters())
        moving = optimizers(named, roles(task.model), kind=self.optimizer, lr=1.0, weight_decay=task.weight_decay)
        scaler = None if task.scale is None else torch.amp.GradScaler("cpu", init_scale=task.scale)
        return Stepper(task.model, *moving, scaler=scaler)


def decoder(dropout: float) -> nn.Module:
    return build(replace(CONFIG, dropout=dropout), seed=int(torch.randint(99, ())))


DECODER = Subject(decoder, CONFIG.vocab)


@pytest.mark.parametrize(
    ("loop", "subject"),
    [(Own(), Subject()), (Own(), DECODER), (Own("muon"), DECODER)],
    ids=["probe", "decoder", "decoder by muon"],
)
def test_our_own_loop_is_right_in_everything(loop: Own, subject: Subject) -> None:
    findings = check_loop(loop, subject=subject)
    assert [(finding.question, finding.verdict) for finding in findings] == [(each, "yes") for each in QUESTIONS]
    assert max(finding.largest for finding in findings) < 1e-12


class Forgets(Own):
    """Our own loop with the planted fault that its checkpoints are there to prevent."""

    def restore(self, checkpoint: Checkpoint, model: nn.Module, stepper: Stepper) -> None:
        before = torch.get_rng_state()
        super().restore(checkpoint, model, stepper)
        torch.set_rng_state(before)


def test_a_fault_in_our_own_loop_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(check_loop(Forgets(), subject=DECODER, questions=["resume"])) == {"resume.rng"}
    # The correction that makes the gradient of the parts that of the whole batch.
    monkeypatch.setattr("clearhead.training.fit._clipped", lambda stepper, correction, clip: 1.0)
    assert faults(check_loop(Own(), questions=["accumulation"])) == {"train.accumulation"}
