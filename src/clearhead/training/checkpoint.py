"""The state of a training between two updates: saved whole, restored bit for bit."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

import torch
from torch import Tensor, nn

from clearhead.formats.atomic import new_folder, write_json
from clearhead.formats.run import Checkpoint, Run
from clearhead.formats.weights import changing_tensors, fill_tensors, read_tensors, save_tensors
from clearhead.messages import UserError, say


def save_checkpoint(
    run: Run, model: nn.Module, optimizer: torch.optim.Optimizer, *, step: int, val_loss: float | None
) -> None:
    """Write the checkpoint of `step` under a temporary name, rename it, then delete all but the latest and the best.

    It holds the weights (of a model with frozen ones only the others), the optimiser's running means and the state of the random numbers (dropout). The place in
    the data needs no record: it follows from the step.

    Raises:
        UserError: if it cannot be written; the checkpoints that were there stay.
    """
    with new_folder(run.new_checkpoint(step)) as folder:
        save_tensors(changing_tensors(model), folder / "model.safetensors", {"format": "pt"})
        save_tensors(_optimizer_tensors(model, optimizer) | _random_states(), folder / "training.safetensors")
        write_json(
            folder / "state.json",
            {"step": step, "val_loss": val_loss if val_loss is None or isfinite(val_loss) else None},
        )
    run.prune()


def restore_checkpoint(checkpoint: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put model, optimiser and random numbers back to where `checkpoint` saved them, in place.

    What of the model is frozen is in no checkpoint and stays as it is.

    Raises:
        UserError: if a file is damaged or belongs to another model.
    """
    source = checkpoint.path / "model.safetensors"
    fill_tensors(changing_tensors(model), read_tensors(source), source)
    source = checkpoint.path / "training.safetensors"
    tensors = read_tensors(source)
    state = optimizer.state_dict()
    # An optimiser has no means before its first update.
    state["state"] = _states(_numbered(model, optimizer) if checkpoint.step else [], tensors, source)
    optimizer.load_state_dict(state)
    if "random.cpu" not in tensors:
        raise UserError(say("formats.missing", path=source, name="random.cpu", count=1))
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])


def _numbered(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[tuple[str, Tensor]]:
    """The optimiser's parameters in the order in which it numbers them, each with its name in the model."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return [(names[id(parameter)], parameter) for parameter in parameters]


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's means by the name of their parameter: `exp_avg:blocks.0.attention.qkv.weight`."""
    states = optimizer.state_dict()["state"]
    numbered = enumerate(_numbered(model, optimizer))
    return {f"{key}:{name}": tensor for index, (name, _) in numbered for key, tensor in states.get(index, {}).items()}


def _states(
    numbered: list[tuple[str, Tensor]], tensors: dict[str, Tensor], source: Path
) -> dict[int, dict[str, Tensor]]:
    """The optimiser's state from a file's tensors: every parameter has all of it, in its own shape.

    A wrong shape would not only be wrong: fused kernels read as far as the parameter goes.
    """
    keys = sorted({name.partition(":")[0] for name in tensors if ":" in name})
    wanted = {f"{key}:{name}": parameter for key in keys for name, parameter in numbered}
    missing = sorted(wanted.keys() - tensors.keys()) or ([] if keys else [name for name, _ in numbered])
    if missing:
        raise UserError(say("formats.missing", path=source, name=missing[0], count=len(missing)))
    unexpected = sorted(name for name in tensors if ":" in name and name not in wanted)
    if unexpected:
        raise UserError(say("formats.unexpected", path=source, name=unexpected[0], count=len(unexpected)))
    for name, parameter in wanted.items():
        if tensors[name].shape not in (parameter.shape, torch.Size([])):
            found, shape = tuple(tensors[name].shape), tuple(parameter.shape)
            raise UserError(say("formats.shape", path=source, name=name, found=found, wanted=shape))
    return {index: {key: tensors[f"{key}:{name}"] for key in keys} for index, (name, _) in enumerate(numbered)}


def _random_states() -> dict[str, Tensor]:
    states = {"random.cpu": torch.get_rng_state()}
    return states | ({"random.cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})
