"""gtrxl-torch: positions, a layer with gates, and the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.subject import Subject

PACKAGE = "gtrxl-torch"
D, H = 32, 4


def _of(name: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from gtrxl_torch import gtrxl_torch  # noqa: PLC0415

        return getattr(gtrxl_torch, name)(*arguments, **options)

    return make


def _through(module: Any, x: Any) -> Any:
    """Positions first, layer by layer: PyTorch's stack now hands its layers a keyword that these do not know."""
    x = module.embed(x.transpose(0, 1))
    for layer in module.transfomer.layers:
        x = layer(x)
    return x.transpose(0, 1)


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "PositionalEncoding", _of("PositionalEncoding", D), "positions"),
    Subject(
        PACKAGE,
        "TEL",
        _of("TEL", D, H, dim_feedforward=D),
        "block",
        confirmed=("residual.missing", "batch.mixing", "mask.wrong-row"),
    ),
    Subject(
        PACKAGE,
        "TEL, batch_first",
        _of("TEL", D, H, dim_feedforward=D, batch_first=True),
        "block",
        confirmed=("residual.missing", "mask.ignored"),
    ),
    Subject(
        PACKAGE, "GTrXL", _of("GTrXL", D, H, 2, D), "encoder", {"call": _through}, ("residual.missing", "batch.mixing")
    ),
]
