"""Compiled updates: forward, loss and backward as kernels made for them by `torch.compile`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.messages import UserError, say
from clearhead.training.fit import Loss, Sample


def compiled(loss: Loss[Sample], device: torch.device, *, sizes_vary: bool) -> Loss[Sample]:
    """The loss, compiled together with the model that it asks; the first update takes tens of seconds.

    What is compiled is the loss of an update, not the model: names and checkpoints stay as they are, evaluation and generation
    run as before. Every size of a batch gets kernels of its own, or all sizes the same ones: which kernels an update runs does
    not depend on the updates before it, so that a training that was stopped goes on with the same bits.

    Args:
        loss: of an update.
        device: where the model is.
        sizes_vary: whether batches differ in size from step to step by more than a few sizes.

    Raises:
        UserError: if there is nothing here to compile with.
    """
    _must_compile(device)

    def of_model_and_batch(model: nn.Module, batch: Sample) -> tuple[Tensor, Tensor]:
        return loss(model, batch)

    made: Loss[Sample] = torch.compile(of_model_and_batch, dynamic=sizes_vary)
    return made


def _must_compile(device: torch.device) -> None:
    from torch._dynamo.eval_frame import is_dynamo_supported  # noqa: PLC0415 - slow to import, needed here alone
    from torch._inductor import cpp_builder, exc  # noqa: PLC0415

    if not is_dynamo_supported():
        raise UserError(say("updates.no_compile"))
    try:
        # Kernels for a GPU are started from compiled C++, too.
        cpp_builder.get_cpp_compiler()
    except exc.InvalidCxxCompiler as error:
        raise UserError(say("updates.no_compiler")) from error
    if device.type == "cuda":
        from torch.utils._triton import has_triton  # noqa: PLC0415

        if not has_triton():
            raise UserError(say("updates.no_triton"))
