"""Samples: what a model writes while it is trained, handed on to whoever records it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from clearhead.cli.progress import Progress
from clearhead.cli.samples import sampled
from clearhead.training.plan import Plan, resumed_plan
from clearhead.training.run import Evaluated, Saved, Training


@pytest.fixture
def resumed(trained: Path) -> tuple[Training, Plan]:
    """The finished run, as a training that has nothing left to do."""
    plan = resumed_plan(trained, [str(trained.parent / "text.txt")], {})
    objective = plan.data.objective(plan.run.model, batch=plan.settings.batch, seed=0)
    return Training(plan.run, plan.settings, objective, torch.device("cpu")), plan


def test_a_sample_is_what_is_shown_and_handed_on(
    resumed: tuple[Training, Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    training, plan = resumed
    with Progress(training, plan) as progress:
        text = progress.take(Evaluated(6, 2.5))
        assert text == sampled(training, plan)
        assert progress.take(Evaluated(6, float("nan"))) is None
        assert progress.take(Saved(6)) is None
    assert text
    shown = capsys.readouterr().err
    assert "step 6: validation loss 2.5000" in shown
    assert all(f"    {line}" in shown for line in text.strip().splitlines())
    assert shown.count(f"    {text.strip().splitlines()[0]}") == 1


def test_a_sample_leaves_the_training_as_it_was(resumed: tuple[Training, Plan]) -> None:
    """Modes and random numbers: an update after it is the same as without it."""
    training, plan = resumed
    training.model.train()
    before = torch.get_rng_state()
    assert sampled(training, plan) == sampled(training, plan)
    assert all(module.training for module in training.model.modules())
    assert torch.equal(torch.get_rng_state(), before)
