"""A few pairs in a file, and the smallest model that learns from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.training.plan import Plan, new_plan
from clearhead.training.run import Training
from tests.training.toy import CPU

# The longest source has 9 characters, the longest target 6.
LINES = [f"day {n}\t{'鸟' * (n % 4)}{n}" for n in range(30)] + ["longest!!\tshort", "short\tlonger"]
TINY = EncoderDecoderConfig(layers=1, heads=2, width=8, context=8, source_context=12, dropout=0.3)


def written(path: Path, lines: Sequence[str] = LINES) -> str:
    """A file of pairs."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def planned(out: Path, *files: str, steps: int = 8, **given: float) -> Plan:
    """A new run of the tiny model."""
    return new_plan(out, files, {"steps": steps, "batch": 7, **given}, model=TINY, device=CPU)


def training_of(plan: Plan) -> Training:
    """The training that was planned."""
    objective = plan.data.objective(plan.run.model, batch=plan.settings.batch, seed=plan.settings.seed)
    return Training(plan.run, plan.settings, objective, CPU)
