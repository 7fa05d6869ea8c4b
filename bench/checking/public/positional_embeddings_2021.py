"""positional-embeddings-pytorch: the two that add to the input."""

from __future__ import annotations

from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "positional-embeddings-pytorch"
D, H = 32, 4


def _sinusoids() -> Any:
    from positional_embeddings_pytorch import SinusoidalPositionalEmbedding  # noqa: PLC0415

    return SinusoidalPositionalEmbedding(max_length=64, embed_dim=D, padding_idx=0)


def _places(module: Any, x: Any) -> Any:
    """Positions are counted from one: the first row of the table is that of pads."""
    import torch  # noqa: PLC0415

    return x + module(torch.arange(1, x.shape[1] + 1).expand(x.shape[0], -1))


SUBJECTS: list[Subject] = [
    Subject(
        PACKAGE,
        "SinusoidalPositionalEmbedding",
        _sinusoids,
        "positions",
        {"call": _places},
        blind={"batch.mixing": "its table has one row, or the same in all"},
    ),
]
