"""How a loss changes with each tensor of a forward: d loss / d tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from clearhead.messages import UserError, say
from clearhead.ops.tap import Ran
from clearhead.tracing.metrics import Metric
from clearhead.tracing.parts import Model, must_not_drop
from clearhead.tracing.record import Recorder
from clearhead.tracing.select import Heads
from clearhead.tracing.trace import Input, Trace, input_of, must_have_kept, run, traced


class Watch(Recorder):
    """A recorder of the tensors that a forward goes on with, whole, so that a loss can be differentiated to them.

    A part of a tensor is a copy beside the way from the input to the loss: its gradient would be that of nothing. So parts are taken
    from the gradients afterwards. Weights that are computed again are those of the heads and queries asked, as in a `Recorder`.

    Args:
        names: patterns of names.
        heads: which heads; all if None.
        positions: which queries; all if None.
    """

    def __init__(self, names: str | Sequence[str], heads: Heads = None, positions: Sequence[int] | None = None) -> None:
        super().__init__(names, heads=heads, positions=positions, detach=False)
        self._whole: set[str] = set()

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """The tensor that the forward goes on with; one that no parameter makes differentiable begins a graph of its own."""
        if not self.selection.wants(name) or not tensor.is_floating_point():
            return tensor
        watched = tensor if tensor.requires_grad else tensor.detach().requires_grad_()
        self.tensors[name] = watched
        self._whole.add(name)
        return watched

    def attended(self, name: str, ran: Ran) -> Ran:
        """As a recorder's; queries that no parameter makes differentiable begin a graph of their own."""
        asked = ran if ran.q.requires_grad else ran._replace(q=ran.q.detach().requires_grad_())
        return super().attended(name, asked)

    def derivatives(self, loss: Tensor) -> dict[str, Tensor]:
        """d loss / d tensor for each tensor that was watched, of its shape or that of the part asked; 0 where none leads there.

        Args:
            loss: one number, computed from the forward that was watched.

        Raises:
            UserError: if the loss is not one number, or depends on none of the forward's tensors.
        """
        if loss.numel() != 1:
            raise UserError(say("tracing.loss_not_scalar", shape=tuple(loss.shape)))
        if not loss.requires_grad:
            raise UserError(say("tracing.loss_constant"))
        # One tensor may pass under several names: a norm that does nothing gives what it was given.
        distinct = {id(tensor): tensor for tensor in self.tensors.values()}
        found = torch.autograd.grad(loss.reshape(()), list(distinct.values()), materialize_grads=True)
        by_id = dict(zip(distinct, found, strict=True))
        return {name: self._part_of(name, by_id[id(tensor)]) for name, tensor in self.tensors.items()}

    def values(self) -> dict[str, Tensor]:
        """What was watched, cut from the graph, in the shapes of `derivatives`."""
        return {name: self._part_of(name, tensor.detach()) for name, tensor in self.tensors.items()}

    def _part_of(self, name: str, tensor: Tensor) -> Tensor:
        return tensor[self.selection.index(name, tensor)] if name in self._whole else tensor


def watched(model: Model, read: Input, loss: Metric, watch: Watch) -> Tensor:
    """One forward under a watch: the loss, one number.

    Args:
        model: what `load` gave, or a model.
        read: what it reads.
        loss: of the logits.
        watch: keeps the tensors.

    Raises:
        UserError: if no tensor has such a name.
    """
    computed = loss(run(model, read, watch))
    must_have_kept(watch)
    return computed


@contextmanager
def differentiable() -> Iterator[None]:
    """A graph is kept, whatever the caller switched off."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def gradients(
    model: Model,
    text: str | Sequence[int],
    loss: Metric,
    *,
    names: str | Sequence[str] = "*",
    heads: Heads = None,
    positions: Sequence[int] | None = None,
    target: str | Sequence[int] | None = None,
) -> Trace:
    """d loss / d tensor for each named tensor of one forward: a trace of the shapes and axes of `trace`, with gradients in it.

        gradients(loaded, "小猫趴在", logit_difference(7, 9), names="blocks.*.attention.weights", heads={3: [2]})

    The gradient is the whole one: how the loss changes if this tensor changes and everything behind it follows. Its unit is the loss's
    (nats, logits) over the tensor's. Weights and scores of a fused kernel are computed again from the q and k that ran; the forward goes
    on with what those mix, and `differences` says how far that is from what ran. A score that a mask hides, and whatever else does
    not reach the loss, has a gradient of 0.

    Nothing stays on the model: parameters keep `requires_grad` and `.grad`, and may be frozen. Memory is that of one forward with
    its graph.

    Args:
        model: what `load` gave, or a model.
        text: text or ids; for an encoder-decoder the source, without marks.
        loss: from the logits (1,T,V) to one number.
        names: patterns, as in `trace`.
        heads: which heads of all blocks, or a mapping from blocks to heads; all if None.
        positions: which queries, negative ones from the end; all if None.
        target: for an encoder-decoder, what it has written so far.

    Raises:
        UserError: if the loss is not one number, depends on no tensor (it was detached, or is a constant), no tensor is named so, or the
            model drops features at random: weights that are computed again would go on without what was dropped.

    Source: reverse accumulation, `torch.autograd.grad`.
    """
    must_not_drop(model)
    watch = Watch(names, heads, positions)
    with differentiable():
        read = input_of(model, text, target)
        watch.tensors = watch.derivatives(watched(model, read, loss, watch))
    return traced(watch, read)
