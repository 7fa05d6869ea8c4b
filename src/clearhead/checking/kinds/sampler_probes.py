"""The questions that a sampler is asked, one function each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from clearhead.checking.kinds import sampler_references as references
from clearhead.checking.kinds.kind import Found
from clearhead.checking.kinds.sampler_calling import SamplerCase, log_chances
from clearhead.checking.kinds.sampler_references import BOUNDARY, EMPTY, MIN_P, TEMPERATURE, TOP_K, TWICE, ZERO, Wrong
from clearhead.checking.kinds.sampler_result import Drawn, counted, given
from clearhead.checking.report import Certainty, Check, Fault
from clearhead.checking.strangers import Attempt, Seeded
from clearhead.checking.watch import _ROOTS
from clearhead.messages import say

MANY, FEW = 4000, 1200
"""Draws for a question: of a sampler that draws all rows at once, and of one that takes its time."""
SLOW = 10e-6
"""Seconds a row from which a sampler takes its time."""


def paced(case: SamplerCase) -> SamplerCase:
    """The case, with what is known of how fast it is."""
    rows = 200 if case.form in ("rows", "steps") else 1
    with Attempt():
        begun = time.perf_counter()
        case.run(log_chances().expand(rows, -1))
        return replace(case, slow=(time.perf_counter() - begun) / rows > SLOW)
    return replace(case, slow=True)


def drawn(
    case: SamplerCase, logits: Tensor, options: Mapping[str, Any] | None = None, *, defaults: bool = False, number: int | None = None
) -> Drawn:  # fmt: skip
    """The distribution that a sampler gives for logits (V)."""
    many, vocab = number or (FEW if case.slow else MANY), len(logits)
    with Seeded(3), Attempt() as attempt:
        if case.gives != "ids":
            result = case.run(logits.unsqueeze(0), options, defaults=defaults)
            assert result.values is not None
            return given(result.values[0], case.gives)
        if case.form in ("rows", "steps") and "seed" not in case.places:
            ids = case.run(logits.expand(many, -1), options, defaults=defaults).ids
            assert ids is not None
            return counted(ids, vocab)
        one, asked = logits.unsqueeze(0), dict(options or {})
        each = [case.run(one, {"seed": n} | asked, defaults=defaults).ids for n in range(many)]
        return counted(torch.cat([ids for ids in each if ids is not None]), vocab)
    return Drawn(torch.zeros(vocab), failed=attempt.reason, error=attempt.error)


def failed(
    case: SamplerCase, id: str, evidence: str, fix: str, effect: float, *, certainty: Certainty = "reproduced"
) -> Found:
    """A fault."""
    sure: Certainty = certainty if case.gives != "ids" else "consistent"
    return Found((Check(id, "fail", evidence, effect),), (Fault(id, sure, evidence, "", fix, effect),))


def shown(drawn: Drawn | Tensor) -> str:
    """A distribution in words."""
    if isinstance(drawn, Drawn) and drawn.failed:
        return drawn.failed
    chances = drawn.chances if isinstance(drawn, Drawn) else drawn
    return " ".join(f"{each:.2f}" for each in chances.tolist())


def judged(case: SamplerCase, seen: Drawn, asked: str, right: Tensor, wrong: Wrong, *, usual: str) -> Found:
    """A distribution held against the right one and those of known mistakes.

    Args:
        case: the sampler.
        seen: what it gave.
        asked: the setting, in words.
        right: the right one (V).
        wrong: of known mistakes.
        usual: the id of the check.
    """
    if seen.is_like(right):
        others = [each for _, _, each in wrong]
        if others and not any(seen.tells(each, right) for each in others):
            return Found((Check(usual, "skipped", say("sampler.blind", asked=asked)),))
        return Found((Check(usual, "pass", say("sampler.right", asked=asked, seen=shown(seen), wanted=shown(right))),))
    effect = float((seen.chances - right).abs().max()) if not seen.failed else 1.0
    for id, how, each in wrong:
        if seen.is_like(each):
            evidence = say(
                "sampler.wrong", asked=asked, seen=shown(seen), wanted=shown(right), how=say(f"sampler.how_{how}")
            )
            return failed(case, id, evidence, say(f"sampler.fix_{how}"), effect)
    return Found((Check(usual, "skipped", say("sampler.unknown", asked=asked, seen=shown(seen), wanted=shown(right))),))


def plain(case: SamplerCase) -> Found:
    """With no setting the model's own distribution."""
    logits = log_chances()
    seen = drawn(case, logits)
    if seen.failed:
        return Found((Check(TWICE, "skipped", say("sampler.not_plain", reason=seen.failed)),))
    right = logits.softmax(-1)
    found = judged(case, seen, say("sampler.nothing"), right, references.plain(logits), usual=TWICE)
    if found.checks[0].verdict != "skipped" or not seen.is_like(references.of(right, references.best(right, 1))):
        return found
    return Found((Check(TWICE, "skipped", say("sampler.greedy")),))


def top_k(case: SamplerCase) -> Found:
    """Only the k best can be drawn."""
    if "top_k" not in case.places:
        return Found()
    logits = log_chances()
    chances = logits.softmax(-1)
    found = Found()
    for k in (3, 1):
        kept = references.best(chances, k)
        seen, right = drawn(case, logits, {"top_k": k}), references.of(chances, kept)
        made = judged(
            case,
            seen,
            f"top_k={k}",
            right,
            references.mistakes(logits, kept, twice=case.twice) if k > 1 else [],
            usual=TOP_K,
        )
        outside = float((seen.chances * ~kept).sum())
        if made.checks[0].verdict == "skipped" and not seen.failed and (outside > 1e-6 or seen.seen < k):
            evidence = say(
                "sampler.outside", asked=f"top_k={k}", seen=shown(seen), number=seen.seen, share=f"{outside:.3f}"
            )
            made = failed(case, TOP_K, evidence, say("sampler.fix_zero"), outside, certainty="consistent")
        found += made
        if made.faults:
            break
    return found


def top_p(case: SamplerCase) -> Found:
    """The smallest set of best tokens that reaches p, and never none."""
    if "top_p" not in case.places:
        return Found()
    logits = log_chances()
    chances = logits.softmax(-1)
    small = drawn(case, logits, {"top_p": 0.2})
    found = _smallest(case, small, chances)
    # Last what the best token reaches alone: a set of one.
    for p in (0.5, 0.66, 0.8, 0.95, *(() if found.faults else (0.2,))):
        number = references.nucleus(chances, p)
        kept = references.best(chances, number)
        seen = drawn(case, logits, {"top_p": p})
        made = judged(
            case, seen, f"top_p={p}", references.of(chances, kept), _nuclei(chances, number) + references.mistakes(logits, kept, twice=case.twice), usual=BOUNDARY
        )  # fmt: skip
        found += made
        if made.faults:
            break
    return found


def _smallest(case: SamplerCase, seen: Drawn, chances: Tensor) -> Found:
    """p below the best token's own probability."""
    if seen.failed:
        evidence = say("sampler.emptied", best=f"{float(chances.max()):.2f}", seen=seen.failed)
        return failed(case, EMPTY, evidence, say("sampler.fix_empty"), 1.0)
    even = torch.full_like(chances, 1 / len(chances))
    if seen.is_like(even) and seen.tells(chances, even):
        # One finite number for all logits, or 0 for all probabilities and a little to each: nothing was left.
        evidence = say("sampler.emptied", best=f"{float(chances.max()):.2f}", seen=shown(seen))
        return failed(case, EMPTY, evidence, say("sampler.fix_empty"), 1.0)
    return Found((Check(EMPTY, "pass", say("sampler.never_empty", seen=shown(seen))),))


def _nuclei(chances: Tensor, number: int) -> Wrong:
    """Sets that have too few or too many."""
    sizes = [*range(number - 1, 0, -1), *range(number + 1, len(chances) + 1)]
    return [
        (
            BOUNDARY,
            "no_effect" if size == len(chances) else "too_few" if size < number else "too_many",
            references.of(chances, references.best(chances, size)),
        )
        for size in sizes
    ]


def min_p(case: SamplerCase) -> Found:
    """Only tokens that are at least p times as probable as the best."""
    if "min_p" not in case.places:
        return Found()
    logits, p = log_chances(), 0.3
    chances = logits.softmax(-1)
    kept = chances >= p * chances.max()
    wrong: Wrong = [(MIN_P, "absolute", references.of(chances, chances >= p)), (MIN_P, "no_effect", chances)]
    seen = drawn(case, logits, {"min_p": p})
    return judged(
        case,
        seen,
        f"min_p={p}",
        references.of(chances, kept),
        wrong + references.mistakes(logits, kept, twice=case.twice),
        usual=MIN_P,
    )


def temperature(case: SamplerCase) -> Found:
    """Logits are divided by the temperature; at 0 the best token is taken."""
    if "temperature" not in case.places:
        return Found()
    logits, found = log_chances(), Found()
    for value in (0.5, 2.0):
        right = (logits / value).softmax(-1)
        made = judged(
            case,
            drawn(case, logits, {"temperature": value}),
            f"temperature={value}",
            right,
            references.warmer(logits, value),
            usual=TEMPERATURE,
        )
        found += made
        if made.faults:
            break
    return found + _zero(case, logits)


def _zero(case: SamplerCase, logits: Tensor) -> Found:
    """Temperature 0."""
    seen, chances = drawn(case, logits, {"temperature": 0.0}), logits.softmax(-1)
    if seen.failed and _refused(seen.error):
        return Found((Check(ZERO, "pass", say("sampler.refused", reason=seen.failed)),))
    right = references.of(chances, references.best(chances, 1))
    if seen.is_like(right):
        return Found((Check(ZERO, "pass", say("sampler.argmax", seen=shown(seen))),))
    if case.gives == "logits" and seen.is_like(chances):
        note = say("sampler.zero_untouched")
        return Found((Check(ZERO, "skipped", note),), notes=(note,))
    evidence = say("sampler.not_argmax", seen=shown(seen), wanted=shown(right))
    return failed(case, ZERO, evidence, say("sampler.fix_zero_temperature"), 1.0)


def _refused(error: Exception | None) -> bool:
    """Whether the code itself refuses, not something that it calls."""
    if not isinstance(error, ValueError | AssertionError | NotImplementedError):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and not trace.tb_frame.f_code.co_filename.startswith(_ROOTS[0])
