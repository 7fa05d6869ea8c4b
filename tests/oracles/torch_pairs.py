"""PyTorch's stacks and ours with the same weights: what both are made of, and how they are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.models import choices as kinds
from clearhead.models.encoder_decoder import EncoderDecoder
from tests.oracles.compare import assert_finite, assert_within
from tests.oracles.torch_weights import Place, assembled, copy_weights, gradients, own_weights

B, T, M, D, H, FF = 3, 4, 5, 12, 2, 14
READS, WRITES = 2, 3
WITHIN = 1e-12
# Rows with all places real, padded at the right, padded at the left.
SOURCE_REAL = torch.tensor([[True] * M, [True, True, True, False, False], [False, True, True, True, True]])
TARGET_REAL = torch.tensor([[True] * T, [True, True, True, False], [True, True, False, False]])
ACTIVATIONS: dict[str, kinds.Activation] = {"relu": kinds.ReLU(), "gelu": kinds.GELU()}
SIZES: dict[str, Any] = {
    "heads": H,
    "width": D,
    "feedforward_width": FF,
    "context": 6,
    "positions": kinds.NoPositions(),
    "qkv_bias": True,
    "bias": True,
}
THEIR_SIZES: dict[str, Any] = {"dim_feedforward": FF, "dropout": 0.0, "batch_first": True, "dtype": torch.float64}
Run = Callable[..., Tensor]


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def ids(length: int) -> Tensor:
    return torch.zeros(B, length, dtype=torch.long)


def filled(part: Any) -> Any:
    """The part with every weight random, in training mode: their short cuts of inference are not taken."""
    for parameter in part.parameters():
        nn.init.normal_(parameter, std=0.4)
    return part


def compare(
    ours: nn.Module,
    theirs: nn.Module,
    lines: dict[str, Place],
    runs: tuple[Run, Run],
    inputs: list[Tensor],
    *,
    real: Tensor,
) -> float:
    """Outputs at real places, gradients of inputs and of all weights; the largest difference."""
    parts = trained(ours)
    copy_weights(parts, assembled(own_weights(theirs), lines))
    parameters = dict(parts.named_parameters())
    weights, sides = random(*real.shape, D) * real[..., None], []
    for run in runs:
        given = [tensor.clone().requires_grad_() for tensor in inputs]
        output = run(*given)
        (output * weights).sum().backward()
        assert_finite(*(tensor.grad for tensor in given))
        sides.append((output[real].detach(), [tensor.grad for tensor in given]))
    pairs = [(sides[0][0], sides[1][0]), *zip(sides[0][1], sides[1][1], strict=True)]
    pairs += [(parameters[name].grad, expected) for name, expected in assembled(gradients(theirs), lines).items()]
    for one, other in pairs:
        assert one is not None
        assert_within(one, other, WITHIN)
    return max((one - other).abs().max().item() for one, other in pairs)


def trained(ours: nn.Module) -> nn.Module:
    """Blocks and last norm of each stack: theirs has no embedding and no head."""
    if isinstance(ours, EncoderDecoder):
        return nn.ModuleDict({"encoder": trained(ours.encoder), "decoder": trained(ours.decoder)})
    return nn.ModuleDict({"blocks": ours.blocks, "norm": ours.norm})
