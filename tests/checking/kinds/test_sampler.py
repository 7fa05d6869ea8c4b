"""The kind `sampler`: each planted fault is named first, right samplers are silent, and draws that cannot tell are said to be so."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from bench.checking.case import Case
from bench.checking.first import sampler as first
from clearhead.checking.check import check
from clearhead.checking.kinds import sampler_references as references
from clearhead.checking.kinds.sampler_calling import CHANCES, log_chances, opened
from clearhead.checking.kinds.sampler_probes import judged
from clearhead.checking.kinds.sampler_result import CHANCE, Drawn, counted, given, read
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of


def kept_for_later(case: Case) -> bool:
    """Each fault once in the quick tests."""
    same = [other for other in first.CASES if other.fault == case.fault]
    return case.fault is not None and same.index(case) > 0


@pytest.mark.parametrize(
    "case",
    [pytest.param(each, marks=pytest.mark.slow if kept_for_later(each) else ()) for each in first.CASES],
    ids=lambda case: case.name,
)
def test_the_first_set(case: Case) -> None:
    report = check(getattr(first, case.name), kind=case.kind)
    found = [fault.id for fault in report.faults]
    assert found[:1] == [case.fault] if case.fault else not found
    assert all(fault.fix and fault.evidence for fault in report.faults)


def test_draws_reject_what_is_improbable_alone() -> None:
    wanted = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    assert Drawn(wanted, 1200).is_like(wanted)
    assert not Drawn(torch.tensor([0.6, 0.2, 0.2], dtype=torch.float64), 1200).is_like(wanted)
    # What must never be drawn and was, once, is enough; what is drawn seldom may be missing.
    assert not Drawn(torch.tensor([0.999, 0.001, 0.0], dtype=torch.float64), 1000).is_like(torch.tensor([1.0, 0, 0]))
    assert Drawn(torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64), 1000).is_like(torch.tensor([0.99, 0.01, 0.0]))
    # The bound itself, for one coin: 2 (1 - w)^n.
    edge = 1 - (CHANCE / 2) ** (1 / 1000)
    for w, same in ((edge * 0.99, True), (edge * 1.01, False)):
        assert (
            Drawn(torch.tensor([1.0, 0.0], dtype=torch.float64), 1000).is_like(
                torch.tensor([1 - w, w], dtype=torch.float64)
            )
            is same
        )
    assert math.isclose(2 * (1 - edge) ** 1000, CHANCE, rel_tol=1e-6)


def test_too_few_draws_are_said_to_be_blind() -> None:
    case = opened(target_of(first.gumbel, "gumbel", Settings()), Settings())
    logits = log_chances()
    chances = logits.softmax(-1)
    few = Drawn(chances, 5)
    found = judged(case, few, "asked", chances, references.plain(logits), usual="sampling.double-softmax")
    assert [each.verdict for each in found.checks] == ["skipped"]
    enough = judged(
        case, Drawn(chances, 4000), "asked", chances, references.plain(logits), usual="sampling.double-softmax"
    )
    assert [each.verdict for each in enough.checks] == ["pass"]


def test_references_by_hand() -> None:
    chances = log_chances().softmax(-1)
    assert torch.allclose(chances, torch.tensor(CHANCES, dtype=torch.float64))
    assert references.best(chances, 2).nonzero().flatten().tolist() == [1, 3]
    assert [references.nucleus(chances, p) for p in (0.2, 0.5, 0.66, 0.8, 0.95)] == [1, 2, 3, 4, 6]
    assert references.of(chances, references.best(chances, 2))[1] == pytest.approx(0.34 / 0.58)


def test_what_is_returned_is_read() -> None:
    assert read(3, 1, 7).ids is not None
    assert read(torch.tensor([[1], [2]]), 2, 7).ids.tolist() == [1, 2]  # type: ignore[union-attr]
    best = torch.tensor([[0.7, 0.3]]), torch.tensor([[4, 1]])
    spread = read(best, 1, 7).values
    assert spread is not None
    assert spread[0].tolist() == pytest.approx([0, 0.3, 0, 0, 0.7, 0, 0])
    with pytest.raises(TypeError, match="neither"):
        read("text", 1, 7)
    assert given(torch.tensor([0.0, 0.0]), "chances").failed
    assert given(torch.full((3,), -torch.inf), "logits").failed
    assert counted(torch.tensor([0, 9]), 7).failed


def test_settings_that_change_nothing_and_temperatures_that_multiply() -> None:
    def multiplied(logits: Tensor, temperature: float = 1.0) -> Tensor:
        return (
            (logits * temperature).softmax(-1)
            if temperature
            else torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).double()
        )

    def divided_late(logits: Tensor, temperature: float = 1.0) -> Tensor:
        if temperature == 0:
            return logits.argmax(-1)
        return torch.multinomial(logits.softmax(-1) / temperature, 1)

    for wrong in (multiplied, divided_late):
        assert [fault.id for fault in check(wrong, kind="sampler").faults] == ["sampling.temperature"]


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("top_k_sample", {"top_k"}),
        ("NucleusSampler", {"top_p"}),
        ("sample_with_temperature_and_top_k", {"temperature", "top_k"}),
        ("TopPLogitsWarper", {"top_p"}),
        ("sample", set()),
        ("eager_nucleus", set()),
    ],
)
def test_a_name_asks_for_what_it_is_of_alone(name: str, features: set[str]) -> None:
    def given(logits: Tensor, temperature: float = 1.0, top_k: int = 4, top_p: float = 0.9) -> Tensor:
        return logits

    given.__name__ = name
    assert opened(target_of(given, name, Settings()), Settings()).named_for == features
