"""Functions that are no modules: each planted fault is named, and what is right is right."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.checking.accumulating import check_accumulation
from clearhead.checking.report import Report
from clearhead.checking.resuming import check_resume
from clearhead.checking.speculating import TableCache, TableModel, check_speculative
from clearhead.messages import UserError
from tests.checking import wrong_loops as wrong
from tests.checking import wrong_loops_course as course


def ids(report: Report) -> list[str]:
    return [fault.id for fault in report.faults]


def summed(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")


def right_step(model, optimizer, batches) -> None:
    optimizer.zero_grad()
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    for inputs, targets in batches:
        (summed(model, inputs, targets) / count).backward()
    optimizer.step()


def mean_of_means(model, optimizer, batches) -> None:
    for inputs, targets in batches:
        (summed(model, inputs, targets) / (targets != -100).sum() / len(batches)).backward()
    optimizer.step()
    optimizer.zero_grad()


def undivided(model, optimizer, batches) -> None:
    for inputs, targets in batches:
        (summed(model, inputs, targets) / (targets != -100).sum()).backward()
    optimizer.step()
    optimizer.zero_grad()


def kept(model, optimizer, batches) -> None:
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    for inputs, targets in batches:
        (summed(model, inputs, targets) / count).backward()
    optimizer.step()


def test_accumulation() -> None:
    report = check_accumulation(right_step)
    assert report.ok
    assert [check.verdict for check in report.checks] == ["pass", "pass"]
    assert ids(check_accumulation(mean_of_means)) == ["loss.mean-of-means"]
    assert ids(check_accumulation(undivided)) == ["train.accumulation"]
    assert ids(check_accumulation(kept)) == ["train.gradients-kept"]
    with pytest.raises(UserError, match=r"moved|optimi"):
        check_accumulation(lambda model, optimizer, batches: None)


def test_resume() -> None:
    assert check_resume(wrong.Sound()).ok
    assert ids(check_resume(course.WithoutRandom())) == ["resume.rng"]
    assert ids(check_resume(course.WithoutOptimizer())) == ["resume.optimizer"]
    assert ids(check_resume(course.DataFromTheStart())) == ["resume.data"]


def draw(chances: Tensor) -> int:
    return int(torch.multinomial(chances, 1))


class Speculate:
    """Speculative sampling with a cache or without; each way of making a mistake is a word."""

    def __init__(self, *mistakes: str, cached: bool = False, drafts: int = 3) -> None:
        self.mistakes, self.cached, self.drafts = mistakes, cached, drafts

    def __call__(self, target: TableModel, draft: TableModel, prompt: Tensor, count: int) -> list[int]:
        text = prompt[0].tolist()
        wanted, cache = len(text) + count, target.new_cache() if self.cached else None
        while len(text) < wanted:
            self.round(target, draft, text, cache)
        return text

    def round(self, target: TableModel, draft: TableModel, text: list[int], cache: TableCache | None) -> None:
        guesses: list[int] = []
        chances = []
        for _ in range(self.drafts):
            chances.append(draft(torch.tensor([text + guesses]))[0, -1].softmax(-1))
            guesses.append(draw(chances[-1]))
        if cache is None:
            rows = target(torch.tensor([text + guesses]))[0, len(text) - 1 :].softmax(-1)
        else:
            new = (text + guesses)[len(text) - 1 :] if cache.length else text + guesses
            rows = target(torch.tensor([new]), cache=cache)[0, -len(guesses) - 1 :].softmax(-1)
        begin = len(text)
        for guess, q, p in zip(guesses, chances, rows, strict=False):
            if "always" in self.mistakes or torch.rand(()) < p[guess] / q[guess]:
                text.append(guess)
                continue
            left = p if "from-target" in self.mistakes else (p - q).clamp_min(0)
            text.append(draw(left))
            break
        else:
            text.append(draw(rows[-1] if "bonus" not in self.mistakes else rows[-2]))
        if cache is not None and "rollback" not in self.mistakes:
            cache.truncate(len(text) - 1)
        assert len(text) > begin


@pytest.mark.parametrize("cached", [False, True])
def test_speculation_that_is_exact(cached: bool) -> None:
    report = check_speculative(Speculate(cached=cached))
    assert report.ok
    assert {check.verdict for check in report.checks} == ({"pass"} if cached else {"pass", "skipped"})


@pytest.mark.parametrize("mistake", ["always", "from-target", "bonus"])
def test_speculation_that_is_biased(mistake: str) -> None:
    assert ids(check_speculative(Speculate(mistake))) == ["speculative.biased"]


def test_rejected_drafts_that_stay_in_the_cache() -> None:
    assert ids(check_speculative(Speculate("rollback", cached=True))) == ["speculative.rollback"]


def test_what_is_too_short_is_said() -> None:
    with pytest.raises(UserError, match="2 new tokens"):
        check_speculative(lambda target, draft, prompt, count: [0, 1])
    with pytest.raises(UserError, match="ZeroDivisionError"):
        check_speculative(lambda target, draft, prompt, count: [1 // 0])
