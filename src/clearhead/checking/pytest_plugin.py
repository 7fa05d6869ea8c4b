"""The pytest plug-in: fixtures that check a module, or compare two, and fail the test with what is wrong.

    def test_attention(clearhead_check): clearhead_check(MyAttention(64, 4), kind="attention")
    def test_rewritten(clearhead_same): clearhead_same(OldAttention(64, 4), NewAttention)

Every project that has clearhead installed loads this file when pytest starts, so that nothing is imported before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import pytest


class CheckFixture(Protocol):
    """What the fixture gives; arguments and errors are those of `clearhead.checking.check.check`."""

    def __call__(
        self,
        module: Any,
        *,
        kind: str | None = None,
        call: Callable[..., Any] | None = None,
        causal: bool | None = None,
        vocab: int | None = None,
        values: dict[str, Any] | None = None,
        only: tuple[str, ...] = (),
        seed: int = 0,
    ) -> Any:
        """The report, if the module is right; otherwise the test fails with it."""


class SameFixture(Protocol):
    """What the other fixture gives; arguments and errors are those of `clearhead.checking.diff.diff.diff`."""

    def __call__(
        self,
        a: Any,
        b: Any,
        *,
        text: str | None = None,
        weights: Literal["own", "a"] | None = None,
        kind: str | None = None,
        values: dict[str, Any] | None = None,
        seed: int = 0,
    ) -> Any:
        """What was compared, if the two are the same to rounding; otherwise the test fails with where and why they part."""


@pytest.fixture
def clearhead_check() -> CheckFixture:
    """Checks anybody's module: `clearhead_check(module, kind="attention")` fails the test with the name of the mistake and its remedy."""

    def run(
        module: Any,
        *,
        kind: str | None = None,
        call: Callable[..., Any] | None = None,
        causal: bool | None = None,
        vocab: int | None = None,
        values: dict[str, Any] | None = None,
        only: tuple[str, ...] = (),
        seed: int = 0,
    ) -> Any:
        # Imported here: torch takes seconds, and most sessions never use the fixture.
        from clearhead.checking.asserts import report_text  # noqa: PLC0415
        from clearhead.checking.check import check  # noqa: PLC0415

        report = check(
            module, kind=kind, call=call, causal=causal, vocab=vocab, values=values, only=frozenset(only), seed=seed
        )
        if not report.ok:
            pytest.fail(report_text(report), pytrace=False)
        return report

    return run


@pytest.fixture
def clearhead_same() -> SameFixture:
    """Compares two: `clearhead_same(old, New)` fails the test with the place where they part, the reason and the stages around it."""

    def run(
        a: Any,
        b: Any,
        *,
        text: str | None = None,
        weights: Literal["own", "a"] | None = None,
        kind: str | None = None,
        values: dict[str, Any] | None = None,
        seed: int = 0,
    ) -> Any:
        # Imported here, as above.
        from clearhead.checking.asserts import assert_same  # noqa: PLC0415

        try:
            return assert_same(a, b, text=text, weights=weights, kind=kind, values=values, seed=seed)
        except AssertionError as error:
            told = str(error)
        pytest.fail(told, pytrace=False)

    return run
