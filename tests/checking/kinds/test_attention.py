"""Attention under the check: each mistake is named first, right modules are silent, and a probe that cannot see says so."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench.checking.case import Case
from bench.checking.first import (
    attention_causal,
    attention_masks,
    attention_right,
    attention_right_masks,
    attention_windows,
)
from clearhead.checking.check import check
from clearhead.checking.kinds.sequence import SequenceCase, open_sequence, run
from clearhead.checking.report import Report
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of

FAULTY = (attention_causal, attention_windows, attention_masks)
RIGHT = (attention_right, attention_right_masks)
EVERY = [pytest.param(file, case, id=case.name) for file in (*FAULTY, *RIGHT) for case in file.CASES]


def once() -> list[Any]:
    """Each id once."""
    first = {case.fault: (file, case) for file in FAULTY for case in reversed(file.CASES)}
    return [pytest.param(file, case, id=f"{case.fault}") for file, case in first.values()]


def report(file: Any, case: Case) -> Report:
    return check(getattr(file, case.name), kind=case.kind, **case.options)


def holds(file: Any, case: Case) -> None:
    found = [fault.id for fault in report(file, case).faults]
    assert found[:1] == ([] if case.fault is None else [case.fault])


@pytest.mark.parametrize(("file", "case"), once())
def test_the_mistake_is_named_first(file: Any, case: Case) -> None:
    holds(file, case)


@pytest.mark.parametrize("name", ["NanoGPT", "LlamaGrouped", "Window", "TimeFirst", "Cached"])
def test_right_modules_are_silent(name: str) -> None:
    assert report(attention_right, Case(name, "attention")).ok


@pytest.mark.parametrize("name", ["DropTorch", "Additive", "CausalPadded", "Wrapped"])
def test_right_masks_are_silent(name: str) -> None:
    assert report(attention_right_masks, Case(name, "attention")).ok


@pytest.mark.slow
@pytest.mark.parametrize(("file", "case"), EVERY)
def test_every_module_of_the_first_set(file: Any, case: Case) -> None:
    holds(file, case)


def opened(module: nn.Module, **settings: Any) -> SequenceCase:
    return open_sequence(target_of(module, "module", Settings(**settings)), Settings(**settings))


def verdicts(found: Report) -> dict[str, str]:
    return {each.id: each.verdict for each in found.checks}


class Nothing(nn.Module):
    """Its output does not depend on its input."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        return self.w(x * 0)


def test_a_probe_that_cannot_see_is_skipped() -> None:
    seen = verdicts(check(Nothing(), kind="attention", causal=True))
    assert seen["causal.future-leak"] == seen["causal.past-lost"] == "skipped"


def test_without_a_mask_nothing_is_said_of_masks() -> None:
    seen = verdicts(check(attention_right.Lucid, kind="attention"))
    assert {seen[name] for name in seen if name.startswith("mask.")} == {"skipped"}


def test_what_true_means_is_found_and_can_be_said() -> None:
    assert opened(attention_right_masks.DropTorch()).masks[0].keeps is False
    assert opened(attention_right_masks.KeepHF()).masks[0].keeps is True
    module = attention_right_masks.PlainDrop
    assert check(module, kind="attention", mask_true="drop").ok
    assert check(module, kind="attention", mask_true="keep").faults[0].id == "mask.polarity"


def test_a_causal_claim_of_the_user_is_held_against_the_module() -> None:
    assert check(attention_right.Lucid, kind="attention").ok
    assert check(attention_right.Lucid, kind="attention", causal=True).faults[0].id == "causal.future-leak"


@pytest.mark.parametrize(("window", "named"), [(3, ["window.off-by-one"]), (4, []), (5, ["window.off-by-one"])])
def test_a_window_is_counted(window: int, named: list[str]) -> None:
    module = attention_right.Window(window=4)
    assert [fault.id for fault in check(module, kind="attention", window=window).faults] == named


class Fixed(nn.Module):
    """Takes inputs of one length alone: its buffer is not cut."""

    def __init__(self, dim: int = 24, context: int = 9) -> None:
        super().__init__()
        self.context = context
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.register_buffer("tril", torch.ones(context, context).tril())

    def forward(self, x: Tensor) -> Tensor:
        s = self.q(x) @ self.k(x).mT / 24**0.5
        return s.masked_fill(self.tril == 0, -torch.inf).softmax(-1) @ self.v(x)


class Limited(nn.Module):
    """A table of few positions, and one input by name alone."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.v = nn.Linear(20, 20), nn.Linear(20, 20)
        self.table = nn.Parameter(torch.randn(11, 20))

    def forward(self, *, hidden: Tensor, cache: None) -> dict[str, Tensor]:
        x = hidden + self.table[: hidden.shape[1]]
        return {"out": (self.q(x) @ x.mT / 20**0.5).softmax(-1) @ self.v(x)}


class Narrow(nn.Module):
    """Refuses float64."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.v = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype == torch.float64:
            raise TypeError("float32 only")
        return (self.q(x) @ x.mT / 4).softmax(-1) @ self.v(x)


def test_interfaces_are_found() -> None:
    assert (opened(Fixed()).fixed, opened(Fixed()).width) == (9, 24)
    assert opened(Limited()).limit == 11
    assert opened(Narrow()).case.dtype == torch.float32
    theirs = opened(nn.MultiheadAttention(12, 3))
    assert (theirs.batch_first, theirs.width, len(theirs.masks)) == (False, 12, 2)
    x = theirs.inputs(2, 5)
    assert run(theirs, theirs.case.ready(), x).shape == (2, 5, 12)


@pytest.mark.parametrize("module", [Fixed, Limited, Narrow])
def test_odd_interfaces_are_right(module: Any) -> None:
    assert check(module(), kind="attention").ok


def test_a_hidden_key_is_not_seen_and_a_kept_one_is() -> None:
    case = opened(attention_right_masks.DropTorch())
    module, x = case.case.ready(), case.inputs(2, 6)
    keep = torch.ones(2, 6, dtype=torch.bool)
    keep[0, 3] = False
    other = x.clone()
    other[:, 3] += 1.0
    with torch.no_grad():
        apart = (run(case, module, other, keep) - run(case, module, x, keep)).abs().amax(-1)
    assert float(apart[0, :3].max()) == 0.0
    assert float(apart[1, :3].min()) > 0.0
