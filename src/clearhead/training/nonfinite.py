"""Where an update that is not finite comes from: its first tensor that is not, and the rows that made it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.messages import say
from clearhead.ops.recompute import scores_of, weights_of
from clearhead.ops.tap import Ran, Scoped, Tap

SHOWN_VALUES, SHOWN_RUNS = 8, 6
"""How many values of a row a message shows, and how many runs of rows."""


def random_state(device: torch.device) -> Callable[[], None]:
    """The state of the random numbers now, as a function that puts it back.

    Args:
        device: whose numbers count beside the CPU's.
    """
    cpu = torch.get_rng_state()
    if device.type not in ("cuda", "mps"):
        return partial(torch.set_rng_state, cpu)
    there = torch.get_device_module(device)
    state = there.get_rng_state()

    def restore() -> None:
        torch.set_rng_state(cpu)
        there.set_rng_state(state)

    return restore


class FirstNotFinite(Tap):
    """A tap that remembers the first tensor that is not finite, and changes nothing.

    Attributes:
        name: of that tensor; None as long as all are finite.
        tensor: itself.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.tensor: Tensor | None = None

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """`tensor`, untouched."""
        if self.name is None and not bool(tensor.isfinite().all()):
            self.name, self.tensor = name, tensor.detach()
        return tensor

    def within(self, scope: str) -> Tap:
        """The same tap, with longer names."""
        return Scoped(self, f"{scope}.")

    def attended(self, name: str, ran: Ran) -> Ran:
        """`ran`, untouched; if it is not finite, its scores and weights are computed again to see whether they were."""
        if self.name is None and not bool(ran.mixed.isfinite().all()):
            heads = range(ran.mixed.shape[-3])
            scores = self(f"{name.removesuffix('weights')}scores", scores_of(ran, heads))
            self(name, weights_of(ran, scores, heads))
        return ran


@contextmanager
def watched(model: nn.Module) -> Iterator[FirstNotFinite]:
    """Inside, whatever is asked of the model passes a `FirstNotFinite`.

    A model whose `forward` (and `features`, if it has them) takes a `tap` shows all its named tensors; of another, the output of
    each module is seen, under the module's name.
    """
    first = FirstNotFinite()
    shown = [name for name in ("forward", "features") if _takes_tap(getattr(model, name, None))]
    with ExitStack() as stack:
        for name in shown:
            stack.callback(partial(_put_back, model, name, vars(model).get(name)))
            # An attribute of the object hides the method of its class, for all who call it.
            setattr(model, name, partial(getattr(model, name), tap=first))
        if not shown:
            for name, module in model.named_modules():
                stack.callback(module.register_forward_hook(partial(_see, first, name or "output")).remove)
        yield first


def _takes_tap(function: object) -> bool:
    return callable(function) and "tap" in inspect.signature(function).parameters


def _put_back(model: nn.Module, name: str, before: object) -> None:
    if before is None:
        delattr(model, name)
    else:
        setattr(model, name, before)


def _see(first: FirstNotFinite, name: str, module: nn.Module, inputs: object, outputs: object) -> None:
    for each in outputs if isinstance(outputs, tuple) else (outputs,):
        if isinstance(each, Tensor):
            first(name, each)


def explain(
    model: nn.Module,
    parts: Sequence[Any],
    loss: Callable[[nn.Module, Any], tuple[Tensor, Tensor]],
    *,
    moved: Mapping[str, Tensor],
    autocast: torch.dtype | None,
    restore: Callable[[], None],
) -> tuple[str, str]:
    """What of an update was not finite first, and where: two pieces of a message.

    Asked are, in this order: the weights; the tensors of the forward, which runs again with the same random numbers; the loss; the
    gradients, on the way back from the loss; and if all are finite, it is the gradients' norm.

    Args:
        model: before the update, in the mode in which it was trained.
        parts: of the batch.
        loss: as for `fit`.
        moved: what the optimisers move, with its gradients.
        autocast: as for `fit`.
        restore: puts the random numbers back to where they were before the first part.
    """
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if not bool(tensor.isfinite().all()):
            return say("updates.not_finite_weight", name=name), _place(parts, None, None)
    restore()
    device = next(model.parameters()).device
    # A compiled loss runs eagerly here: a compiled one has no places to look into.
    with torch.no_grad(), torch.compiler.set_stance("force_eager"), watched(model) as first:
        for number, part in enumerate(parts):
            with torch.autocast(device.type, dtype=autocast, enabled=autocast is not None):
                total, _ = loss(model, part)
            first(say("updates.not_finite_loss"), total)
            if first.name is not None:
                return first.name, _place(parts, number, first.tensor)
    for name, tensor in reversed(list(moved.items())):
        if tensor.grad is not None and not bool(tensor.grad.isfinite().all()):
            return say("updates.not_finite_gradient", name=name), _place(parts, None, None)
    return say("updates.not_finite_norm"), _place(parts, None, None)


def _place(parts: Sequence[Any], number: int | None, tensor: Tensor | None) -> str:
    """Which rows of the batch a tensor of one part tells of, and how the first of them begins; all rows without a tensor."""
    sizes = [_size(part) for part in parts]
    known = [size for size in sizes if size is not None]
    if len(known) != len(sizes):
        return say("updates.in_batch", kind=type(parts[0]).__name__)
    if number is None or tensor is None:
        chosen = list(range(sum(known)))
    elif tensor.dim() and len(tensor) == known[number]:
        bad = (~tensor.isfinite()).reshape(len(tensor), -1).any(-1)
        chosen = [sum(known[:number]) + int(row) for row in bad.nonzero()]
    else:
        chosen = list(range(sum(known[:number]), sum(known[: number + 1])))
    values = torch.cat([part[0] for part in parts])[chosen[0]].flatten()[:SHOWN_VALUES].tolist()
    begins = " ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values)
    return say("updates.in_rows", rows=_runs(chosen), row=chosen[0], begins=begins)


def _size(part: Any) -> int | None:
    """How many rows a part has, if it is a NamedTuple of tensors."""
    first = part[0] if isinstance(part, tuple) and part else None
    return len(first) if isinstance(first, Tensor) and first.dim() else None


def _runs(rows: Sequence[int]) -> str:
    """Rising numbers, written shortly: 0-2, 5."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and runs[-1][-1] == row - 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    shown = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return ", ".join(shown[:SHOWN_RUNS] + (["..."] if len(shown) > SHOWN_RUNS else []))
