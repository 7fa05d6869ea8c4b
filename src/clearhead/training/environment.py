"""What the bits of a training depend on beside its settings: versions, threads, device, processor."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import torch

from clearhead import __version__
from clearhead.formats.run import Checkpoint, Run, read_json
from clearhead.messages import say

DECISIVE = ("torch", "threads", "device", "machine")
"""With these the same, a training that goes on is the same to the last bit; with another, only within rounding."""


def environment(device: torch.device) -> dict[str, Any]:
    """Everything that is recorded of where a training runs, by name."""
    return {
        "clearhead": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "device": _named(device),
        "machine": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
    }


def recorded_environment(run: Run, checkpoint: Checkpoint | None = None) -> dict[str, Any]:
    """Where a checkpoint (the latest if none is named) was trained; where the run was started if it does not say."""
    checkpoint = checkpoint or next(reversed(run.checkpoints()), None)
    said = None if checkpoint is None else read_json(checkpoint.path / "state.json").get("versions")
    said = said if isinstance(said, dict) else run.details.get("versions")
    return dict(said) if isinstance(said, dict) else {}


def differences(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What decides over bits and is not as recorded, each as `torch 2.12.0 -> 2.13.0`; what either does not say is no difference.

    Args:
        recorded: of the run, as `recorded_environment` gives it.
        now: of this process, as `environment` gives it.
    """
    both = [name for name in DECISIVE if name in recorded and name in now]
    return [f"{name} {recorded[name]} -> {now[name]}" for name in both if recorded[name] != now[name]]


def resume_warning(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """One line for whoever goes on with a run elsewhere than it was trained; None if nothing decisive differs."""
    found = differences(recorded, now)
    return say("resuming.elsewhere", differences=", ".join(found)) if found else None


def _named(device: torch.device) -> str:
    """`cpu`, `mps`, or a GPU with its name: kernels, and with them roundings, differ from one to the other."""
    return f"cuda ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else device.type
