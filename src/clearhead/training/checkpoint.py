"""The state of a training between two updates: saved whole, restored bit for bit."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.formats.atomic import new_folder, write_json
from clearhead.formats.run import Checkpoint, Run
from clearhead.formats.weights import fill, own_tensors, read_tensors, save_tensors
from clearhead.messages import UserError, say


def save_checkpoint(
    run: Run, model: nn.Module, optimizer: torch.optim.Optimizer, *, step: int, val_loss: float | None
) -> None:
    """Write the checkpoint of `step` under a temporary name, rename it, then delete all but the latest and the best.

    It holds the weights, the optimiser's running means and the state of the random numbers (dropout). The place in
    the data needs no record: it follows from the step.

    Raises:
        UserError: if it cannot be written; the checkpoints that were there stay.
    """
    with new_folder(run.new_checkpoint(step)) as folder:
        save_tensors(own_tensors(model), folder / "model.safetensors", {"format": "pt"})
        save_tensors(_optimizer_tensors(optimizer) | _random_states(), folder / "training.safetensors")
        write_json(folder / "state.json", {"step": step, "val_loss": val_loss})
    run.prune()


def restore_checkpoint(checkpoint: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put model, optimiser and random numbers back to where `checkpoint` saved them, in place.

    Raises:
        UserError: if a file is damaged or belongs to another model.
    """
    source = checkpoint.path / "model.safetensors"
    fill(model, read_tensors(source), source)
    tensors = read_tensors(checkpoint.path / "training.safetensors")
    state = optimizer.state_dict()
    for name, tensor in tensors.items():
        index, dot, key = name.partition(".")
        if dot and index.isdigit():
            state["state"].setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict(state)
    if "random.cpu" not in tensors:
        raise UserError(say("formats.missing", path=checkpoint.path, name="random.cpu", count=1))
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    states = optimizer.state_dict()["state"]
    return {f"{index}.{key}": tensor for index, state in states.items() for key, tensor in state.items()}


def _random_states() -> dict[str, Tensor]:
    states = {"random.cpu": torch.get_rng_state()}
    return states | ({"random.cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})
