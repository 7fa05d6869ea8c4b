"""The estimate of patching is the slope at the corrupted run: exact where the metric is linear, close for small differences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from clearhead.messages import UserError
from clearhead.models.decoder import Decoder
from clearhead.tracing import Edit, Editor, activation_patching, attribution_patching, gradients, trace
from clearhead.tracing import patching as module
from clearhead.tracing.names import axes_of
from clearhead.tracing.patched import By
from tests.equalities.variants import model_of
from tests.oracles.compare import assert_within
from tests.tracing.test_patching import CLEAN, CORRUPTED, METRIC, largest, measured


def straight(variant: str) -> Decoder:
    """The logits are linear in the stream: no norm before the head."""
    model = model_of(variant)
    model.norm = nn.Identity()
    return model


LINEAR = {
    "rotary, fused": [
        "blocks.1.feedforward.output",
        "blocks.1.feedforward.hidden",
        "blocks.1.output",
        "norm",
        "logits",
    ],
    "parallel, biases": [
        "blocks.1.feedforward.hidden",
        *(f"blocks.1.attention.{n}" for n in ("weights", "mixed", "v")),
    ],
    "rotary partial, parallel": [f"blocks.1.attention.{name}" for name in ("weights", "mixed", "output", "v")],
}


@pytest.mark.parametrize("by", ["position", "head", "name"])
@pytest.mark.parametrize("variant", LINEAR)
def test_the_estimate_is_exact_where_the_metric_is_linear(variant: str, by: By) -> None:
    model, names = straight(variant), LINEAR[variant]
    if by == "head" and not any("H" in axes_of(name) for name in names):
        with pytest.raises(UserError, match="by head"):
            activation_patching(model, CLEAN, CORRUPTED, METRIC, names=names, by=by)
        return
    ours, wanted = (
        patched(model, CLEAN, CORRUPTED, METRIC, names=names, by=by)
        for patched in (attribution_patching, activation_patching)
    )
    assert (ours.names, ours.labels, ours.clean, ours.corrupted) == (
        wanted.names, wanted.labels, wanted.clean, wanted.corrupted,
    )  # fmt: skip
    assert_within(ours.shares.nan_to_num(0), wanted.shares.nan_to_num(0), 1e-9)
    assert wanted.shares.nan_to_num(0).abs().max() > 1e-2
    assert (ours.estimated, wanted.estimated) == (True, False)


@pytest.mark.parametrize("by", ["position", "head"])
@pytest.mark.parametrize("variant", ["rotary, fused", "sinusoidal, post-norm", "around, QK-norm"])
def test_the_estimate_is_the_slope_at_the_corrupted_run(variant: str, by: By) -> None:
    """d/dα of the metric at α = 0, where a part is corrupted + α (clean - corrupted)."""
    model, step = model_of(variant), 1e-4
    names = ["blocks.0.attention.q", "blocks.0.attention.scores", "blocks.0.attention.mixed", "blocks.1.attention.v"]
    names += [] if by == "head" else ["input", "blocks.0.feedforward.up"]
    found = attribution_patching(model, CLEAN, CORRUPTED, METRIC, names=names, by=by)
    clean, corrupted = trace(model, CLEAN, names=names), trace(model, CORRUPTED, names=names)
    for part in found:
        axes = axes_of(part.name)
        letter = "T" if by == "position" else "H" if "H" in axes else "K"
        mask = torch.zeros_like(clean[part.name])
        mask.select(axes.index(letter), part.index).fill_(1.0)
        way = (clean[part.name] - corrupted[part.name]) * mask
        ends = [
            measured(model, CORRUPTED, Editor(Edit(part.name, lambda _, t, move=sign * step * way: t + move)))
            for sign in (1, -1)
        ]
        wanted = (ends[0] - ends[1]) / (2 * step) / (found.clean - found.corrupted)
        assert part.share == pytest.approx(wanted, rel=1e-4, abs=1e-6), part


def near(apart: float) -> Decoder:
    """A model in which the two tokens that differ are almost the same."""
    model = model_of("rotary, fused", tied=False)
    with torch.no_grad():
        model.embedding.weight[8] = model.embedding.weight[4] + apart * model.embedding.weight[8]
    return model


def test_the_estimate_is_close_for_small_differences() -> None:
    """It is of first order: ten times nearer, ten times closer."""
    names, errors = ["input", "blocks.0.attention.*", "blocks.0.output"], []
    for apart in (1e-3, 1e-4):
        shares = [
            patched(near(apart), CLEAN, CORRUPTED, METRIC, names=names).shares
            for patched in (activation_patching, attribution_patching)
        ]
        errors.append(largest(shares[0] - shares[1]))
    assert errors[0] < 0.02
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.2)


# --- planted faults


def test_a_gradient_of_the_clean_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    read = module.input_of
    calls = iter([CLEAN, CORRUPTED, CLEAN])
    monkeypatch.setattr(module, "input_of", lambda model, text, target: read(model, next(calls), target))
    with pytest.raises(AssertionError):
        test_the_estimate_is_the_slope_at_the_corrupted_run("rotary, fused", "position")


def test_a_gradient_where_the_way_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient alone, not times the way from corrupted to clean."""

    class Still(module.Watch):
        def values(self) -> dict[str, Tensor]:
            return {name: torch.zeros_like(tensor) for name, tensor in super().values().items()}

    monkeypatch.setattr(module, "Watch", Still)
    with pytest.raises(AssertionError):
        test_the_estimate_is_exact_where_the_metric_is_linear("parallel, biases", "position")
    with pytest.raises(AssertionError):
        test_the_estimate_is_close_for_small_differences()


def test_where_the_metric_bends_the_estimate_is_not_the_measurement() -> None:
    """Else the tests of the estimate would prove nothing."""
    model = model_of("rotary, fused")
    shares = [
        patched(model, CLEAN, CORRUPTED, METRIC, names="input").shares
        for patched in (activation_patching, attribution_patching)
    ]
    assert largest(shares[0] - shares[1]) > 0.05
    assert gradients(model, CLEAN, METRIC, names="input")["input"].abs().max() > 1e-3
