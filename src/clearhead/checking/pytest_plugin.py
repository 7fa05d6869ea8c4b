"""The pytest plug-in: a fixture that checks a module and fails the test with what is wrong.

    def test_attention(clearhead_check): clearhead_check(MyAttention(64, 4), kind="attention")

Every project that has clearhead installed loads this file when pytest starts, so that nothing is imported before the fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

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
