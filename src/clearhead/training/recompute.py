"""Memory for time: a block keeps its input alone, and computes what is between again on the way back."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from clearhead.layers.store import NO_STORE, LayerStore
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.ops.masks import Mask
from clearhead.ops.rotary import Rotate, unrotated
from clearhead.ops.tap import NO_TAP, NoTap, Tap


def recompute(model: nn.Module) -> None:
    """Let every block of the model keep, in a training forward, its input alone; in place.

    Backward runs each block's forward once more, with the same random numbers, so gradients are the same bits; an update takes
    about a third longer. Names, state dicts and what the model computes stay; so does a forward in evaluation mode, without
    gradients or with a tap.

    Args:
        model: a decoder, an encoder or an encoder-decoder, adapted or not.

    Raises:
        UserError: if it has no such blocks.

    Source: Chen et al. 2016 (arXiv:1604.06174).
    """
    blocks = [
        block for stack in model.modules() if isinstance(stack, Decoder | Encoder) for block in stack.blocks.children()
    ]
    if not blocks:
        raise UserError(say("updates.no_blocks", kind=type(model).__name__))
    for block in blocks:
        # An attribute of the object hides the method of its class; a module around the block would change every name.
        block.forward = _Twice(block)


class _Twice:
    """The forward of a block, run again on the way back.

    Not a function that closes over the block: a deep copy of the model must run the copy's block.
    """

    def __init__(self, block: nn.Module) -> None:
        self.block = block

    def __call__(
        self,
        x: Tensor,
        visible: Mask,
        *,
        rotate: Rotate = unrotated,
        bias: Tensor | None = None,
        store: LayerStore = NO_STORE,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """As the block's own."""

        def once(x: Tensor) -> Tensor:
            made: Tensor = type(self.block).forward(
                self.block, x, visible, rotate=rotate, bias=bias, store=store, tap=tap
            )
            return made

        if self.block.training and torch.is_grad_enabled() and isinstance(tap, NoTap):
            made: Tensor = checkpoint(once, x, use_reentrant=False)
            return made
        return once(x)
