"""Assertions for anybody's tests: each shows the smallest thing that contradicts it.

from clearhead.checking import assert_causal
def test_attention(): assert_causal(MyAttention(64, 4))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from torch import nn

from clearhead.checking.check import check
from clearhead.checking.diff.diff import diff
from clearhead.checking.diff.report import Difference
from clearhead.checking.diff.said import comparable, lines
from clearhead.checking.report import Fault, Report
from clearhead.checking.rounding import Rounding, rounding_of
from clearhead.checking.sight import drawn
from clearhead.formats.load import Loaded
from clearhead.messages import say

CAUSAL = (
    "causal.future-leak",
    "causal.self-masked",
    "causal.past-lost",
    "causal.top-left",
    "causal.after-softmax",
    "causal.finite-mask",
    "window.off-by-one",
)
CACHE = (
    "cache.mismatch",
    "cache.prefill-unmasked",
    "cache.stale",
    "cache.aliased",
    "cache.overflow",
    "cache.shared-between-blocks",
    "position.offset",
)
PADDING = (
    "mask.ignored",
    "mask.polarity",
    "mask.added-as-number",
    "mask.query-axis",
    "mask.empty-row",
    "mask.wrong-row",
    "position.left-padding",
)
ROWS = ("batch.mixing",)
TELLING = frozenset({*CAUSAL[:1], *CACHE, *PADDING, *ROWS} - {"cache.stale", "position.offset"})
"""Of these one at least must have passed: the others are asked of code without a cache, too."""

Checked = nn.Module | type | Callable[..., Any] | str


def assert_causal(
    module: Checked,
    *,
    kind: str | None = None,
    call: Callable[..., Any] | None = None,
    values: Mapping[str, Any] | None = None,
    vocab: int | None = None,
    seed: int = 0,
) -> Report:
    """No position may depend on a later one, and each sees itself and the past; gives the report.

    Args:
        module: anybody's, as `check` takes it.
        kind: as what it is checked; guessed if None.
        call: how it is run, `call(module, input)`, where no known interface fits.
        values: arguments for a constructor.
        vocab: how many ids there are.
        seed: of all random inputs.

    Raises:
        AssertionError: if that is not so, with the smallest T and positions and who sees whom; or if it could not be seen.
        UserError: if the module cannot be run.
    """
    report = check(module, kind=kind, causal=True, call=call, values=values, vocab=vocab, seed=seed)
    return _held(report, CAUSAL, say("asserts.causal"))


def assert_cache_consistent(
    module: Checked,
    *,
    kind: str | None = "lm",
    call: Callable[..., Any] | None = None,
    values: Mapping[str, Any] | None = None,
    vocab: int | None = None,
    seed: int = 0,
) -> Report:
    """One full forward equals a prefill and decoding at every split; gives the report; arguments and errors as `assert_causal`."""
    report = check(module, kind=kind, call=call, values=values, vocab=vocab, seed=seed)
    return _held(report, CACHE, say("asserts.cache"))


def assert_padding_invariant(
    module: Checked,
    *,
    kind: str | None = None,
    call: Callable[..., Any] | None = None,
    values: Mapping[str, Any] | None = None,
    vocab: int | None = None,
    seed: int = 0,
) -> Report:
    """What stands in masked positions moves no other; gives the report; arguments and errors as `assert_causal`."""
    report = check(module, kind=kind, call=call, values=values, vocab=vocab, seed=seed)
    return _held(report, PADDING, say("asserts.padding"))


def assert_batch_independent(
    module: Checked,
    *,
    kind: str | None = None,
    call: Callable[..., Any] | None = None,
    values: Mapping[str, Any] | None = None,
    vocab: int | None = None,
    seed: int = 0,
) -> Report:
    """A row alone is the row in a batch; gives the report; arguments and errors as `assert_causal`."""
    report = check(module, kind=kind, call=call, values=values, vocab=vocab, seed=seed)
    return _held(report, ROWS, say("asserts.rows"))


def assert_rounding_only(one: Any, other: Any, *inputs: Any) -> Rounding:
    """Two results differ by no more than rounding in the narrowest number type that was used; gives the verdict and its numbers.

    Tensors are compared as they are; of modules and functions, the first tensor that they give for copies of the inputs, while it is
    watched which types their operations have.

    Args:
        one: a tensor, or a module or function.
        other: another one of the same kind.
        inputs: what modules and functions are called with.

    Raises:
        AssertionError: if the difference is larger, with the place of the largest one and the size that was expected.
    """
    found = rounding_of(one, other, *inputs)
    if found.verdict == "fault":
        raise AssertionError(found.text)
    return found


def assert_same(
    a: Checked | Loaded,
    b: Checked | Loaded,
    *,
    text: str | None = None,
    weights: Literal["own", "a"] | None = None,
    kind: str | None = None,
    values: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Difference:
    """Two models, or two pieces of code, compute the same to rounding, stage by stage; gives what was compared.

    Args:
        a: anybody's module, class or factory, or a MODEL, as `diff` takes it.
        b: another one.
        text: a text that both read; random inputs if None.
        weights: "own" to leave each its own, "a" to give B those of A; by default B gets A's if it is a class.
        kind: of code; guessed if None.
        values: arguments for constructors.
        seed: of all random inputs.

    Raises:
        AssertionError: if they part, with the place, why, and the stages around it; or if no result could be compared.
        UserError: if one of them cannot be run, or they do not take the same inputs.
    """
    found = diff(a, b, text=text, weights=weights, kind=kind, values=values, seed=seed)
    if found.a == found.b:
        found = replace(found, a=_whole_name(a), b=_whole_name(b))
    plain = found.to_dict()
    if found.ok and not comparable(plain):
        raise AssertionError(say("asserts.same_vacuous", a=found.a, b=found.b))
    if not found.ok:
        raise AssertionError("\n".join([say("asserts.same", a=found.a, b=found.b), *lines(plain)]))
    return found


def _whole_name(found: Checked | Loaded) -> str:
    """What tells two of one name apart: the module they are in."""
    if isinstance(found, str):
        return found
    named = found if hasattr(found, "__qualname__") else type(found)
    return f"{named.__module__}.{named.__qualname__}"


def _held(report: Report, names: tuple[str, ...], claim: str) -> Report:
    """The report, if nothing in it contradicts the claim and something in it could have."""
    asked = [each for each in report.checks if each.id in names]
    failed = [each for each in asked if each.verdict in ("fail", "error")]
    named = [fault for fault in report.faults if fault.id in names]
    if named or failed:
        # The cause may have another name: a norm over tokens lets the future in, too.
        faults = report.faults if failed else tuple(named)
        raise AssertionError("\n".join(_lines(report, claim, faults, [each.evidence for each in failed])))
    if not any(each.verdict == "pass" and each.id in TELLING for each in asked):
        reasons = "; ".join(dict.fromkeys(each.evidence for each in asked))
        raise AssertionError(say("asserts.vacuous", name=report.target, claim=claim, kind=report.kind, reasons=reasons))
    return report


def _lines(report: Report, claim: str, faults: tuple[Fault, ...], evidence: list[str]) -> Iterator[str]:
    yield say("asserts.contradicted", name=report.target, kind=report.kind, claim=claim)
    yield from fault_lines(faults)
    if not faults:
        yield from (f"  {each}" for each in evidence)
    if report.sight is not None and report.sight.expected != report.sight.found:
        yield from drawn(report.sight)


def fault_lines(faults: tuple[Fault, ...]) -> Iterator[str]:
    """Each fault with its evidence, its place and its remedy."""
    for fault in faults:
        where = f" ({fault.where})" if fault.where else ""
        yield f"  {fault.id}{where}: {fault.evidence}"
        yield f"    {say('asserts.fix')} {fault.fix}"


def report_text(report: Report) -> str:
    """A report that is not right, as the message of a failed test."""
    failed = [each.evidence for each in report.checks if each.verdict in ("fail", "error")]
    return "\n".join(_lines(report, say("asserts.right"), report.faults, failed))
