"""pytorch-nlp: its attention over a context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "pytorch-nlp"
D = 32


def _attention(kind: str) -> Callable[[], Any]:
    def make() -> Any:
        from torchnlp.nn import Attention  # noqa: PLC0415

        return Attention(D, kind)

    return make


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "Attention, general", _attention("general"), "attention", {"heads": 1}),
    Subject(PACKAGE, "Attention, dot", _attention("dot"), "attention", {"heads": 1}),
]
