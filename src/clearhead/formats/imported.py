"""Somebody else's model as a run directory of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clearhead.formats.atomic import clear_failure, new_folder, new_place, write_json
from clearhead.formats.load import Loaded
from clearhead.formats.run import Run, create_run, read_run
from clearhead.formats.safetensors_written import Entry, write_safetensors
from clearhead.formats.weights import digest, own_tensors

__all__ = ["import_model", "import_size"]


def import_size(loaded: Loaded) -> int:
    """How many bytes of weights an import writes."""
    return sum(tensor.nbytes for tensor in own_tensors(loaded.model).values())


def import_model(loaded: Loaded, destination: Path, *, written: Callable[[int], object] | None = None) -> Run:
    """Make a run directory of a model: what it is, its tokenizer and chat template, and one checkpoint, of step 0.

    The run says where it came from, as `details["imported"]`: `origin`, `source`, and `sha256`, the digest of its weights as they are
    kept. There is no training in it that could go on; `clearhead train --init` begins one with its weights.

    Args:
        loaded: the model, in the type in which its weights are to be kept.
        destination: where; it must not be there, or be empty. A process that is killed leaves all of it or none.
        written: is told how many bytes of weights have been written more.

    Raises:
        UserError: if there is something at `destination`, or it cannot be written.
    """
    destination = new_place(destination)
    tensors = own_tensors(loaded.model)
    imported = {"origin": loaded.origin, "source": str(loaded.source.resolve()), "sha256": digest(tensors)}
    details: dict[str, Any] = {"imported": imported, "opening": [*loaded.opening], "closing": [*loaded.closing]}
    details |= {"ends": [*loaded.ends]}
    with clear_failure(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(destination) as partial:
        run = create_run(partial, loaded.config, loaded.tokenizer, details, loaded.chat_template)
        checkpoint = run.new_checkpoint(0)
        checkpoint.mkdir()
        entries = [Entry(name, tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()]
        write_safetensors(checkpoint, entries, tensors.values(), written=written)
        write_json(checkpoint / "state.json", {"step": 0, "val_loss": None})
    return read_run(destination)
