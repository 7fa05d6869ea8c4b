"""The state of a training between two updates: saved whole, restored bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from clearhead.formats.atomic import new_folder, write_json
from clearhead.formats.run import Checkpoint, Run, read_json
from clearhead.formats.weights import changing_tensors, fill_tensors, read_tensors, save_tensors
from clearhead.messages import UserError, say
from clearhead.training.environment import environment

_EXTRA = "extra."
_RANDOM = "random."


class Moving(Protocol):
    """What moves the weights, as far as a checkpoint must know it."""

    @property
    def named(self) -> Mapping[str, Tensor]:
        """Every tensor that an optimiser moves by the name of its parameter; each is in exactly one optimiser."""
        ...

    @property
    def optimizers(self) -> Sequence[Optimizer]:
        """The optimisers, always in the same order."""
        ...

    def extra_state(self) -> dict[str, Tensor]:
        """Whatever else has a state (master weights, a loss scale); the same names before the first update and after it."""
        ...

    def load_extra(self, extra: dict[str, Tensor], /) -> None:
        """Take back what `extra_state` gave, on whatever device; the tensors of `named` stay the same objects."""
        ...


@dataclass(frozen=True)
class _Alone:
    """An optimiser over the model's own parameters, which nothing else belongs to."""

    named: Mapping[str, Tensor]
    optimizers: Sequence[Optimizer]

    def extra_state(self) -> dict[str, Tensor]:
        return {}

    def load_extra(self, extra: dict[str, Tensor], /) -> None:
        assert not extra  # as extra_state has no names


def save_checkpoint(
    run: Run, model: nn.Module, moving: Moving | Optimizer, *, step: int, val_loss: float | None, keep: int = 2
) -> None:
    """Write the checkpoint of `step` under a temporary name, rename it, then delete all but the latest and the best.

    It holds the weights (of a model with frozen ones only the others), the state of every optimiser, whatever else moves with
    them, and the state of the random numbers (dropout). The place in the data needs no record: it follows from the step.

    Args:
        run: where it is kept.
        model: its weights.
        moving: what moves them: a stepper, or one optimiser over the model's parameters.
        step: how many updates the weights have had.
        val_loss: the validation loss there, if it was evaluated.
        keep: how many of the latest checkpoints stay, beside the best.

    Raises:
        UserError: if it cannot be written; the checkpoints that were there stay.
    """
    mover = _mover(model, moving)
    device = next(model.parameters()).device
    with new_folder(run.new_checkpoint(step)) as folder:
        save_tensors(changing_tensors(model), folder / "model.safetensors", {"format": "pt"})
        extra = {f"{_EXTRA}{name}": tensor for name, tensor in mover.extra_state().items()}
        means = _optimizer_tensors(mover)
        save_tensors(means | extra | _random_states(), folder / "training.safetensors")
        state: dict[str, Any] = {
            "step": step,
            "val_loss": val_loss if val_loss is None or isfinite(val_loss) else None,
            "optimizers": _kinds(mover),
            "moved": bool(means),
            "versions": environment(device),
        }
        # The settings may change where a run goes on (more steps), so each checkpoint says which it was trained with.
        settings = run.details.get("training")
        write_json(folder / "state.json", state | ({} if settings is None else {"training": settings}))
    run.prune(keep)


def restore_checkpoint(checkpoint: Checkpoint, model: nn.Module, moving: Moving | Optimizer) -> None:
    """Put model, optimisers and random numbers back to where `checkpoint` saved them, in place.

    What of the model is frozen is in no checkpoint and stays as it is.

    Raises:
        UserError: if a file is damaged or belongs to another model or other optimisers.
    """
    mover = _mover(model, moving)
    source = checkpoint.path / "model.safetensors"
    fill_tensors(changing_tensors(model), read_tensors(source), source)
    source = checkpoint.path / "training.safetensors"
    tensors = read_tensors(source)
    state = read_json(checkpoint.path / "state.json")
    _must_be_the_same(checkpoint, state, mover)
    extra = {name.removeprefix(_EXTRA): tensor for name, tensor in tensors.items() if name.startswith(_EXTRA)}
    _must_have(source, wanted=mover.extra_state().keys(), found=extra.keys())
    mover.load_extra(extra)
    # Older checkpoints do not say whether anything was moved; of theirs no update was left out.
    _restore_optimizers(mover, tensors, source, begun=bool(state.get("moved", checkpoint.step > 0)))
    if f"{_RANDOM}cpu" not in tensors:
        raise UserError(say("formats.missing", path=source, name=f"{_RANDOM}cpu", count=1))
    _set_random_states(tensors)


def _mover(model: nn.Module, moving: Moving | Optimizer) -> Moving:
    return _Alone(dict(model.named_parameters()), [moving]) if isinstance(moving, Optimizer) else moving


def _kinds(mover: Moving) -> list[str]:
    return [type(optimizer).__name__ for optimizer in mover.optimizers]


def _must_be_the_same(checkpoint: Checkpoint, state: Mapping[str, Any], mover: Moving) -> None:
    """Another optimiser's means may fit in shape and mean something else; older checkpoints do not say whose they are."""
    said = state.get("optimizers")
    if said is not None and said != _kinds(mover):
        found, wanted = ", ".join(map(str, said)), ", ".join(_kinds(mover))
        raise UserError(say("resuming.other_optimizer", path=checkpoint.path, found=found, wanted=wanted))


def _numbered(mover: Moving) -> Iterator[tuple[Optimizer, list[str]]]:
    """Each optimiser, and the names of its tensors in the order in which it numbers them."""
    names = {id(tensor): name for name, tensor in mover.named.items()}
    seen: set[str] = set()
    for optimizer in mover.optimizers:
        own = [names[id(tensor)] for group in optimizer.param_groups for tensor in group["params"]]
        if seen.intersection(own):
            raise ValueError(f"{min(seen.intersection(own))} is in two optimisers")
        seen.update(own)
        yield optimizer, own


def _optimizer_tensors(mover: Moving) -> dict[str, Tensor]:
    """The optimisers' state by the name of the parameter: `exp_avg:blocks.0.attention.qkv.weight`."""
    found: dict[str, Tensor] = {}
    for optimizer, names in _numbered(mover):
        states = optimizer.state_dict()["state"]
        for index, name in enumerate(names):
            found |= {f"{key}:{name}": _as_tensor(value) for key, value in states.get(index, {}).items()}
    return found


def _as_tensor(value: Tensor | float) -> Tensor:
    return value if isinstance(value, Tensor) else torch.tensor(value)


def _restore_optimizers(mover: Moving, tensors: Mapping[str, Tensor], source: Path, *, begun: bool) -> None:
    """Give every optimiser its part of the file's tensors: all of its own, and nothing is left over.

    An optimiser has no means before its first update (`begun` is False), which is the second of the training if the first was left out.
    """
    stored = {name: tensor for name, tensor in tensors.items() if _is_state(name)}
    taken: set[str] = set()
    for optimizer, names in _numbered(mover):
        own = {name for name in stored if begun and name.partition(":")[2] in set(names)}
        keys = sorted({name.partition(":")[0] for name in own})
        wanted = {f"{key}:{name}" for key in keys for name in names}
        _must_have(source, wanted=wanted if keys or not begun else set(names), found=own)
        state = optimizer.state_dict()
        state["state"] = {
            index: {key: _fitting(f"{key}:{name}", mover.named[name], stored, source) for key in keys}
            for index, name in enumerate(names if keys else [])
        }
        optimizer.load_state_dict(state)
        taken |= own
    _must_have(source, wanted=taken, found=stored.keys() if begun else set())


def _is_state(name: str) -> bool:
    return ":" in name and not name.startswith((_EXTRA, _RANDOM))


def _must_have(source: Path, *, wanted: Set[str], found: Set[str]) -> None:
    """Raise a UserError unless a file has the wanted tensors and no others, naming the first."""
    missing, unexpected = sorted(wanted - found), sorted(found - wanted)
    if missing:
        raise UserError(say("formats.missing", path=source, name=missing[0], count=len(missing)))
    if unexpected:
        raise UserError(say("formats.unexpected", path=source, name=unexpected[0], count=len(unexpected)))


def _fitting(name: str, moved: Tensor, tensors: Mapping[str, Tensor], source: Path) -> Tensor:
    """A stored mean, in the shape of what it belongs to (or one number, as a count is).

    A wrong shape would not only be wrong: fused kernels read as far as the parameter goes.
    """
    found = tensors[name]
    if found.shape not in (moved.shape, torch.Size([])):
        raise UserError(
            say("formats.shape", path=source, name=name, found=tuple(found.shape), wanted=tuple(moved.shape))
        )
    return found


def _random_states() -> dict[str, Tensor]:
    """The state of every generator that a training may draw from, on whatever device."""
    states = {f"{_RANDOM}cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        states |= {f"{_RANDOM}cuda.{number}": torch.cuda.get_rng_state(number) for number in range(count)}
    if torch.backends.mps.is_available():
        states |= {f"{_RANDOM}mps": torch.mps.get_rng_state()}
    return states


def _set_random_states(tensors: Mapping[str, Tensor]) -> None:
    """Put back the state of every generator that is there; older checkpoints have that of one GPU, without its number."""
    torch.set_rng_state(tensors[f"{_RANDOM}cpu"])
    if torch.cuda.is_available():
        if f"{_RANDOM}cuda" in tensors:
            torch.cuda.set_rng_state(tensors[f"{_RANDOM}cuda"])
        for number in range(torch.cuda.device_count()):
            if f"{_RANDOM}cuda.{number}" in tensors:
                torch.cuda.set_rng_state(tensors[f"{_RANDOM}cuda.{number}"], number)
    if f"{_RANDOM}mps" in tensors and torch.backends.mps.is_available():
        torch.mps.set_rng_state(tensors[f"{_RANDOM}mps"])
