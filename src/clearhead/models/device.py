"""The one choice of device and of number type."""

from __future__ import annotations

import torch

from clearhead.messages import UserError, say

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def pick_device(name: str = "auto") -> torch.device:
    """The device called `name`; "auto" takes CUDA, then Apple's MPS, then the CPU.

    Raises:
        UserError: if the name is unknown or this PyTorch cannot reach such a device.
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    kind, colon, index = name.partition(":")
    count = torch.cuda.device_count() if kind == "cuda" else 1
    if not available.get(kind, False) or (colon and not (index.isdecimal() and int(index) < count)):
        there = ", ".join(kind for kind, yes in available.items() if yes)
        raise UserError(say("models.no_device", name=name, there=there))
    return torch.device(name)


def pick_dtype(name: str) -> torch.dtype:
    """The number type called `name`.

    Raises:
        UserError: if there is no such type here.
    """
    if name not in DTYPES:
        raise UserError(say("models.no_dtype", name=name, known=", ".join(DTYPES)))
    return DTYPES[name]
