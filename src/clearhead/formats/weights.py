"""A model's tensors to and from safetensors, exactly."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from clearhead.formats.atomic import PARTIAL, clear_failure
from clearhead.messages import UserError, say
from clearhead.text.lines import reason_of


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter and persistent buffer by name; a tensor with several names (a tied head) under its first."""
    kept = set(model.state_dict())
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach() for name, tensor in named if name in kept}


def changing_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The model's own tensors but for the parameters that are frozen: what a training has to keep."""
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    return {name: tensor for name, tensor in own_tensors(model).items() if name not in frozen}


def digest(tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 of tensors: names, types, shapes and every byte; the order in which they are given has no part in it."""
    made = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        made.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        made.update(tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return made.hexdigest()


def save_tensors(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors to `path` as safetensors, as they are.

    Raises:
        OSError: if the system refuses (no space, no permission).
    """
    try:
        save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, path, metadata)
    except SafetensorError as error:
        raise OSError(reason_of(error)) from error


def write_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write tensors to `path` under a temporary name, then rename it, so that a kill leaves all of it or nothing.

    Raises:
        UserError: if the system refuses (no space, no permission), with its reason; `path` is as it was.
    """
    partial = path.with_name(f"{PARTIAL}{os.getpid()}-{path.name}")
    with clear_failure(path):
        try:
            save_tensors(tensors, partial, {"format": "pt"})
            with partial.open("rb+") as file:
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def read_base(path: Path, sha256: str | None) -> dict[str, Tensor]:
    """The weights that a run began with and that its changes of low rank belong to, proved to be those.

    Args:
        path: the run's `base.safetensors`.
        sha256: their `digest`, as the run recorded it.

    Raises:
        UserError: if the file is missing, damaged or not what was recorded.
    """
    try:
        tensors = _read(path)
    except (OSError, SafetensorError) as error:
        raise UserError(say("formats.bad_base", path=path, reason=reason_of(error))) from error
    if digest(tensors) != sha256:
        raise UserError(say("formats.other_base", path=path, recorded=str(sha256)[:12], found=digest(tensors)[:12]))
    return tensors


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU.

    Raises:
        UserError: if the file is missing, cut short or not safetensors.
    """
    try:
        return _read(path)
    except (OSError, SafetensorError) as error:
        raise UserError(say("formats.bad_tensors", path=path, reason=reason_of(error))) from error


def _read(path: Path) -> dict[str, Tensor]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping


def fill(model: nn.Module, tensors: Mapping[str, Tensor], source: Path) -> None:
    """Give every tensor of the model its stored value; nothing is left as initialised, nothing is ignored.

    Raises:
        UserError: if a tensor is missing, too many or of another shape, naming the first such.
    """
    fill_tensors(own_tensors(model), tensors, source)


def fill_tensors(own: Mapping[str, Tensor], tensors: Mapping[str, Tensor], source: Path) -> None:
    """Give each of `own` its stored value, in place.

    Raises:
        UserError: as `fill`.
    """
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
