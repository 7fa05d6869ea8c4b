"""transformer-implementations: attention, layers, positions, and models built of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.absent import absent
from bench.checking.public.subject import Subject

PACKAGE = "transformer-implementations"
D, H, V = 32, 4, 61
SCALE = ("scale.model-width",)


def _of(name: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        with absent("torchvision", "torchvision.models"):
            from transformer_package.models import transformer  # noqa: PLC0415

        return getattr(transformer, name)(*arguments, **options)

    return make


def _rows_second(module: Any, x: Any) -> Any:
    """Positions first, as `batch_dim=1` wants them."""
    return module(x.transpose(0, 1)).transpose(0, 1)


def _decoded(module: Any, x: Any) -> Any:
    """The stream is the second argument."""
    import torch  # noqa: PLC0415

    length = x.shape[1]
    memory = torch.ones(x.shape[0], 3, x.shape[2], dtype=x.dtype)
    return module(memory, x, torch.ones(length, length).tril())


def _classless(module: Any, ids: Any) -> Any:
    """Without the class token, which stands at the end."""
    return module(ids)[:, :-1]


def _pair(module: Any, given: Any) -> Any:
    """Positions first."""
    source, target = (each.transpose(0, 1) for each in given)
    return module(source, target).transpose(0, 1)


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "MultiHeadAttention", _of("MultiHeadAttention", D, H), "attention", confirmed=SCALE),
    Subject(
        PACKAGE,
        "MultiHeadAttention, batch_dim=1",
        _of("MultiHeadAttention", D, H, batch_dim=1),
        "attention",
        {"call": lambda m, x: m(*[x.transpose(0, 1)] * 3).transpose(0, 1)},
        (*SCALE, "batch.mixing"),
    ),
    Subject(
        PACKAGE,
        "Transformer_Encoder, batch_dim=0",
        _of("Transformer_Encoder", D, H, 48, batch_dim=0),
        "block",
        confirmed=SCALE,
    ),
    Subject(
        PACKAGE,
        "Transformer_Encoder",
        _of("Transformer_Encoder", D, H, 48),
        "block",
        {"call": _rows_second},
        (*SCALE, "batch.mixing"),
    ),
    Subject(
        PACKAGE,
        "Transformer_Decoder, batch_dim=0",
        _of("Transformer_Decoder", D, H, 48, batch_dim=0),
        "block",
        {"call": _decoded, "causal": True},
        SCALE,
    ),
    Subject(
        PACKAGE,
        "VisionEncoder",
        _of("VisionEncoder", D, H, 48),
        "block",
        confirmed=(*SCALE, "residual.from-norm"),
    ),
    Subject(PACKAGE, "PositionalEncoding", _of("PositionalEncoding", 64, D), "positions"),
    Subject(
        PACKAGE,
        "BERT",
        _of("BERT", V, 2, D, 2, H, 48),
        "encoder",
        {"vocab": V, "call": _classless},
        (*SCALE, "position.unused"),
    ),
    Subject(PACKAGE, "Transformer", _of("Transformer", V, V, D, H, 48, 2, 2, 48), "seq2seq", {"vocab": V}),
    Subject(
        PACKAGE,
        "Transformer_with_nn",
        _of("Transformer_with_nn", V, V, D, H, 48, 2, 2),
        "seq2seq",
        {"vocab": V, "call": _pair},
        ("causal.future-leak", "parameter.unused"),
    ),
]
