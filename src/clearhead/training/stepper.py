"""What moves the weights: optimisers, and where a training has them, master weights and a loss scale."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from clearhead.messages import UserError, say

SCALE, GOOD_UPDATES = "loss_scale", "loss_scale_good_updates"
MASTER = "master."


class Stepper:
    """Goes from a loss to new weights, in the four steps between which `fit` clips.

        stepper.clear()
        stepper.backward(loss)           # once for each part of the batch
        gradients = stepper.gradients()  # once: unscaled, of what the optimisers move
        stepper.step(lr)                 # or stepper.leave_out()

    An optimiser alone, `Stepper(model, optimizer)`, is what everybody writes: zero_grad, backward, step.

    Args:
        model: what is trained.
        optimizers: one or several; together they move every parameter that learns, each once.
        masters: name of a parameter -> the wider copy that the optimisers move in its place; the parameter follows it, rounded.
            Gradients are summed in the wider type, over the parts of a batch too.
        scaler: of the loss, so that small gradients do not vanish in float16; None leaves the loss as it is.

    Attributes:
        optimizers: as given.

    Source: Micikevicius et al. 2018 §3 (arXiv:1710.03740) for both.
    """

    def __init__(
        self,
        model: nn.Module,
        *optimizers: torch.optim.Optimizer,
        masters: Mapping[str, Tensor] | None = None,
        scaler: torch.amp.GradScaler | None = None,
    ) -> None:
        self.model, self.optimizers = model, optimizers
        self.masters, self.scaler = dict(masters or {}), scaler
        parameters = dict(model.named_parameters())
        self._followers = [(parameters[name], master) for name, master in self.masters.items()]

    @property
    def named(self) -> dict[str, Tensor]:
        """What the optimisers move, by the name of the parameter, in the model's order: parameters, or their masters.

        What they move beside the model (a temperature of the loss) comes last, as `outside.0` ...
        """
        moved = {id(each): each for one in self.optimizers for group in one.param_groups for each in group["params"]}
        named: dict[str, Tensor] = {}
        for name, parameter in self.model.named_parameters():
            tensor = self.masters.get(name, parameter)
            if moved.pop(id(tensor), None) is not None:
                named[name] = tensor
        return named | {f"outside.{number}": tensor for number, tensor in enumerate(moved.values())}

    def clear(self) -> None:
        """Forget the gradients of the update before."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of this loss to those that are there."""
        scaled = loss if self.scaler is None else self.scaler.scale(loss)
        scaled.backward()  # type: ignore[no-untyped-call]
        for parameter, master in self._followers:
            if parameter.grad is not None:
                wide = parameter.grad.to(master.dtype)
                master.grad = wide if master.grad is None else master.grad.add_(wide)
                parameter.grad = None

    def gradients(self) -> list[Tensor]:
        """The gradients of `named`, their scale taken off, to be clipped in place; asked once an update."""
        if self.scaler is not None:
            for optimizer in self.optimizers:
                self.scaler.unscale_(optimizer)
        return [tensor.grad for tensor in self.named.values() if tensor.grad is not None]

    def step(self, lr: float) -> None:
        """Move the weights.

        Args:
            lr: the learning rate; a group that has an `lr_factor` takes so many times this.
        """
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr * group.get("lr_factor", 1.0)
            if self.scaler is None:
                optimizer.step()
            else:
                self.scaler.step(optimizer)
        if self.scaler is not None:
            self.scaler.update()
        self._follow()

    @property
    def overflowed(self) -> bool:
        """Whether the loss scale may be what made a gradient overflow: a smaller one is worth trying.

        At a scale of 1 or less it is not the scale's doing.
        """
        return self.scaler is not None and self.scaler.get_scale() > 1.0

    def leave_out(self, *, overflow: bool = False) -> None:
        """End an update without a step: weights, means and learning rates stay as they are.

        Args:
            overflow: whether the loss scale was too large; it becomes smaller. Otherwise it stays, too.
        """
        if self.scaler is not None:
            self.scaler.update(None if overflow else self.scaler.get_scale())

    def extra_state(self) -> dict[str, Tensor]:
        """What is neither the model's nor an optimiser's state: the masters, and the loss scale with its count of good updates."""
        state = {f"{MASTER}{name}": master.detach() for name, master in self.masters.items()}
        if self.scaler is not None:
            scale = self.scaler.state_dict()
            state[SCALE] = torch.tensor(scale["scale"], dtype=torch.float64)
            state[GOOD_UPDATES] = torch.tensor(scale["_growth_tracker"])
        return state

    def load_extra(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `extra_state` gave, bit for bit; the weights follow their masters.

        Raises:
            UserError: if a tensor is missing, too many or of another shape: the state is that of another dtype or model.
        """
        wanted = self.extra_state()
        for name in sorted(wanted.keys() | state.keys()):
            if name not in wanted or name not in state or wanted[name].shape != state[name].shape:
                raise UserError(say("updates.other_state", name=name))
        with torch.no_grad():
            for name, master in self.masters.items():
                master.copy_(state[f"{MASTER}{name}"])
        if self.scaler is not None:
            scale = {"scale": state[SCALE].item(), "_growth_tracker": int(state[GOOD_UPDATES].item())}
            self.scaler.load_state_dict(self.scaler.state_dict() | scale)
        self._follow()

    @torch.no_grad()
    def _follow(self) -> None:
        for parameter, master in self._followers:
            parameter.copy_(master)
