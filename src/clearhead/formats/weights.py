"""A model's tensors to and from safetensors, exactly."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from clearhead.messages import UserError, say


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter and persistent buffer by name; a tensor with several names (a tied head) under its first."""
    kept = set(model.state_dict())
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach() for name, tensor in named if name in kept}


def save_tensors(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors to `path` as safetensors, as they are.

    Raises:
        OSError: if the system refuses (no space, no permission).
    """
    try:
        save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, path, metadata)
    except SafetensorError as error:
        raise OSError(str(error).splitlines()[0]) from error


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU.

    Raises:
        UserError: if the file is missing, cut short or not safetensors.
    """
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (OSError, SafetensorError) as error:
        raise UserError(say("formats.bad_tensors", path=path, reason=str(error).splitlines()[0])) from error


def fill(model: nn.Module, tensors: dict[str, Tensor], source: Path) -> None:
    """Give every tensor of the model its stored value; nothing is left as initialised, nothing is ignored.

    Raises:
        UserError: if a tensor is missing, too many or of another shape, naming the first such.
    """
    own = own_tensors(model)
    missing, unexpected = own.keys() - tensors.keys(), tensors.keys() - own.keys()
    if missing:
        raise UserError(say("formats.missing", path=source, name=min(missing), count=len(missing)))
    if unexpected:
        raise UserError(say("formats.unexpected", path=source, name=min(unexpected), count=len(unexpected)))
    with torch.no_grad():
        for name, tensor in own.items():
            stored = tensors[name]
            if stored.shape != tensor.shape:
                raise UserError(
                    say("formats.shape", path=source, name=name, found=tuple(stored.shape), wanted=tuple(tensor.shape))
                )
            tensor.copy_(stored)
