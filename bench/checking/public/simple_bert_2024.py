"""simple-bert-pytorch: attention, layer, and the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "simple-bert-pytorch"
D, H, V = 32, 4, 61


def _of(name: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from simple_bert_pytorch import modules  # noqa: PLC0415

        return getattr(modules, name)(*arguments, **options)

    return make


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "SelfAttention", _of("SelfAttention", D, H), "attention"),
    Subject(PACKAGE, "Layer", _of("Layer", D, H, 48), "block"),
    Subject(PACKAGE, "Encoder", _of("Encoder", 2, D, H, 48), "encoder"),
    Subject(PACKAGE, "Backbone", _of("Backbone", V, 2, D, H, 48, 64), "encoder", {"vocab": V}),
]
