"""Continuing from another model's weights: where a run begins, what of it is trained, and the proof that the rest stays."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from clearhead.formats.load import Loaded, weights_of
from clearhead.formats.run import Run
from clearhead.formats.weights import digest, fill, read_base
from clearhead.messages import UserError, say
from clearhead.models.adapt import adapt, frozen_tensors
from clearhead.models.build import build


def begun_with(model: str, loaded: Loaded) -> dict[str, str]:
    """What a run records of the model that it begins with, as `details["init"]`: its name and the digest of its weights.

    Args:
        model: what the user called it.
        loaded: what `load` gave for that.
    """
    return {"model": model, "sha256": digest(weights_of(loaded))}


def prepared(run: Run, init: Mapping[str, Tensor] | None, *, seed: int) -> nn.Module:
    """The model of a run before its first update, on the CPU; with LoRA all but the changes is frozen.

    Args:
        run: where it lives.
        init: the weights that it begins with, or None: then fresh ones, or those of the run's base file.
        seed: of what is drawn.

    Raises:
        UserError: if `init`, or the run's base file, is not what the run recorded, or does not fit the model.
    """
    model = build(run.model, seed=seed)
    if init is not None and digest(init) != run.begins_with:
        # The model that it was to begin with may have been trained further since.
        raise UserError(say("adapting.other_init", out=run.path, model=_name_of_init(run)))
    if init is not None:
        fill(model, init, run.path)
    elif run.lora is not None:
        fill(model, read_base(run.base, run.begins_with), run.base)
    if run.lora is not None:
        adapt(model, run.lora, seed=seed)
    return model


def must_have_begun(run: Run) -> None:
    """Raise a UserError if the run was to begin with another model's weights: they are nowhere in it."""
    if run.begins_with is not None or run.lora is not None:
        raise UserError(say("adapting.not_begun", out=run.path, model=_name_of_init(run)))


def frozen_digest(model: nn.Module) -> str | None:
    """The SHA-256 of everything that the model does not train, names and bytes; None if it trains everything.

    Where all but the changes of low rank is frozen, it is the digest of the weights that the run began with.
    """
    frozen = frozen_tensors(model)
    return digest(frozen) if frozen else None


def unchanged(model: nn.Module, before: str | None) -> bool:
    """Whether everything that the model does not train is, to the last bit, what it was when `frozen_digest` gave `before`."""
    return frozen_digest(model) == before


def _name_of_init(run: Run) -> str:
    """What the user called the model that the run begins with."""
    begun = run.details.get("init")
    return str(begun.get("model")) if isinstance(begun, dict) else "?"
