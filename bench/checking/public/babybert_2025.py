"""babybert: its attention, block and models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "babybert"
D, H, V, T = 32, 4, 61, 16
EMPTY = ("mask.empty-row",)


def _of(name: str) -> Callable[[], Any]:
    def make() -> Any:
        from babybert import model  # noqa: PLC0415

        config = model.BabyBERTConfig(V, T, D, 2, H)
        return model.BabyBERTForMLM(model.BabyBERT(config)) if name == "MLM" else getattr(model, name)(config)

    return make


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "MultiHeadSelfAttention", _of("MultiHeadSelfAttention"), "attention", confirmed=EMPTY),
    Subject(PACKAGE, "TransformerBlock", _of("TransformerBlock"), "block", confirmed=EMPTY),
    Subject(PACKAGE, "BabyBERT", _of("BabyBERT"), "encoder", {"vocab": V}, confirmed=EMPTY),
    Subject(PACKAGE, "BabyBERTForMLM", _of("MLM"), "encoder", {"vocab": V}, confirmed=EMPTY),
]
