"""A recorder keeps what the pattern asks for and changes nothing."""

from __future__ import annotations

import pytest
import torch

from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.ops import NO_TAP
from clearhead.tracing import Recorder
from tests.oracles.compare import assert_same

CONFIG = DecoderConfig(vocab=11, layers=2, heads=4, kv_heads=2, width=12, context=5, kernel=kinds.Visible())
IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("logits", ["logits"]),
        ("blocks.*.attention.weights", ["blocks.0.attention.weights", "blocks.1.attention.weights"]),
        ("blocks.1.attention.[qk]", ["blocks.1.attention.q", "blocks.1.attention.k"]),
        ("*norm", [*(f"blocks.{i}.{n}_norm" for i in range(2) for n in ("attention", "feedforward")), "norm"]),
        ("Logits", []),
        ("nothing", []),
    ],
)
def test_the_pattern_decides_what_is_kept(pattern: str, kept: list[str]) -> None:
    recorder = Recorder(pattern)
    build(CONFIG, seed=0)(IDS, tap=recorder)
    assert list(recorder.tensors) == kept


def test_recording_does_not_change_the_forward() -> None:
    model = build(CONFIG, seed=0)
    recorder = Recorder()
    logits = model(IDS, tap=recorder)
    assert_same(logits, model(IDS))
    assert_same(recorder.tensors["logits"], logits)


def test_kept_tensors_are_cut_from_the_graph_unless_asked() -> None:
    model = build(CONFIG, seed=0)
    cut, whole = Recorder(), Recorder("blocks.0.middle", detach=False)
    model(IDS, tap=cut)
    assert not any(tensor.requires_grad for tensor in cut.tensors.values())
    logits = model(IDS, tap=whole)
    (gradient,) = torch.autograd.grad(logits.sum(), whole.tensors["blocks.0.middle"])
    assert gradient.abs().sum() > 0


def test_a_scope_prefixes_names_and_writes_into_the_same_record() -> None:
    recorder = Recorder("a.b.*")
    x = torch.ones(1)
    scoped = recorder.within("a").within("b")
    assert scoped("c", x) is x
    assert recorder.within("a")("c", x) is x
    assert list(recorder.tensors) == ["a.b.c"]


def test_the_latest_forward_is_kept() -> None:
    recorder = Recorder("x")
    for value in (1.0, 2.0):
        recorder("x", torch.tensor(value))
    assert recorder.tensors["x"].item() == 2.0


def test_the_tap_that_does_nothing_returns_its_input_and_itself() -> None:
    x = torch.ones(1)
    assert NO_TAP("x", x) is x
    assert NO_TAP.within("a") is NO_TAP
