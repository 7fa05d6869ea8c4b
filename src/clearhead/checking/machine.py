"""What a machine can do, and whether it computes right."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import torch

from clearhead import __version__
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig

PROBE = DecoderConfig(vocab=97, layers=3, heads=4, kv_heads=2, width=96, context=64)
ROUNDINGS = 16
"""How many roundings of the number type a three-block forward may be away from float64, beside the largest logit."""


def examine(device: torch.device, dtype: torch.dtype) -> dict[str, Any]:
    """Versions, devices, what compiles here, and the largest difference of a small model from float64 on the CPU.

    Args:
        device: where the small model runs.
        dtype: in which numbers it runs.
    """
    return {
        "clearhead": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "mps": torch.backends.mps.is_available(),
        "device": str(device),
        "dtype": str(dtype).removeprefix("torch."),
        "compile": _compiles(),
        "parity": parity(device, dtype),
    }


def parity(device: torch.device, dtype: torch.dtype) -> dict[str, Any]:
    """The same small model on `device` in `dtype` and on the CPU in float64, with the same stored weights.

    allowed = ROUNDINGS · ε · max |logit|, ε the rounding of `dtype`.
    """
    ids = torch.randint(PROBE.vocab, (3, PROBE.context), generator=torch.Generator().manual_seed(0))
    model = build(PROBE, seed=0).eval().to(dtype)
    with torch.no_grad():
        exact = build(PROBE, seed=0).eval()
        exact.load_state_dict({name: tensor.float() for name, tensor in model.state_dict().items()})
        wanted = exact.double()(ids)
        found = model.to(device)(ids.to(device)).cpu().double()
    difference = (found - wanted).abs().max().item()
    allowed = ROUNDINGS * torch.finfo(dtype).eps * wanted.abs().max().item()
    return {"difference": difference, "allowed": allowed, "ok": difference <= allowed}


def _compiles() -> str:
    """What `torch.compile` can use here."""
    from torch._dynamo.eval_frame import is_dynamo_supported  # noqa: PLC0415 - slow to import, needed here alone

    if not is_dynamo_supported():
        return "no"
    if torch.cuda.is_available():
        return "inductor (CUDA)"
    from torch._inductor import cpp_builder, exc  # noqa: PLC0415

    try:
        return f"inductor ({cpp_builder.get_cpp_compiler()})"
    except exc.InvalidCxxCompiler:
        return "eager backend only (no C++ compiler)"
