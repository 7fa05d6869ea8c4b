"""What a training is expected to need follows from its data, not from what its model could read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from clearhead.cli import follow
from clearhead.cli.follow import estimate_of
from clearhead.models.choices import Relative
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.training.plan import Plan, new_plan

CPU = torch.device("cpu")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Short pairs, and a model that has no longest text of its own."""
    monkeypatch.setattr(follow, "present_memory", lambda _: 0)
    monkeypatch.setattr(follow, "measured_speed", lambda *_, **__: 100.0)
    pairs = "".join(f"{'abc'[n % 3] * (n % 4 + 1)}{n}\t{n}\n" for n in range(60))
    (tmp_path / "pairs.tsv").write_text(pairs, encoding="utf-8")
    config = EncoderDecoderConfig(layers=2, heads=2, width=8, context=512, source_context=300, positions=Relative())
    typed = frozenset({"layers", "heads", "width", "context", "source_context", "positions"})
    return new_plan(
        tmp_path / "run",
        [str(tmp_path / "pairs.tsv")],
        {"steps": 2, "batch": 5},
        model=config,
        typed=typed,
        device=CPU,
    )


def test_short_pairs_need_what_they_fill(plan: Plan) -> None:
    longest = plan.data.longest
    assert longest == (7, 3)
    config = plan.run.model
    assert isinstance(config, EncoderDecoderConfig)
    assert (config.context, config.encoder.context) == (512, 300)
    fitting = replace(plan, run=replace(plan.run, model=replace(config, context=3, source_context=7)))
    assert estimate_of(plan, CPU).memory == estimate_of(fitting, CPU).memory
    needed = estimate_of(plan, CPU).memory
    assert needed is not None
    assert needed < 70e6


def test_the_contexts_alone_would_say_much_more(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted faults: the lengths that the model could read; the tokens that an evaluation could have."""
    needed = estimate_of(plan, CPU).memory
    assert needed is not None
    with monkeypatch.context() as patch:
        patch.setattr(follow, "_lengths", lambda *_: (None, 512))
        long = estimate_of(plan, CPU).memory
    monkeypatch.setattr(follow, "_evaluated", lambda _: 16_384)
    many = estimate_of(plan, CPU).memory
    assert long is not None
    assert many is not None
    assert min(long, many) > needed + 5e6
