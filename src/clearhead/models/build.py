"""From a configuration to Modules: the one place that chooses."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.layers.attention import MultiHeadAttention
from clearhead.layers.block import PreNormBlock
from clearhead.layers.embedding import LearnedPositions, TokenEmbedding
from clearhead.layers.feedforward import FeedForward
from clearhead.layers.norm import LayerNorm
from clearhead.models import config as kinds
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.initialise import initialise
from clearhead.ops.attention import Attend, attend_fused, attend_visible

KERNELS: dict[type[kinds.Kernel], Attend] = {kinds.Visible: attend_visible, kinds.Fused: attend_fused}


def _gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


# PyTorch's kernels; the tests hold them to the definitions in ops/activation.py.
ACTIVATIONS: dict[type[kinds.Activation], Callable[[Tensor], Tensor]] = {
    kinds.ReLU: F.relu,
    kinds.GELU: F.gelu,
    kinds.GELUTanh: _gelu_tanh,
}


def build(config: DecoderConfig, *, seed: int | None = None, device: torch.device | str = "cpu") -> Decoder:
    """The model that `config` describes, freshly initialised, float32, in training mode.

    Args:
        config: what to build.
        seed: of the initial weights; the same seed gives the same weights on every machine with the same PyTorch,
            and leaves the global random state as it was. None draws from the global random state.
        device: where the parameters live; "meta" gives shapes without memory.
    """
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        # Weights are drawn on the CPU, so that a seed means the same weights on every device.
        with torch.device("meta" if torch.device(device).type == "meta" else "cpu"):
            model = _decoder(config)
            initialise(model)
    return model.to(device)


def _decoder(config: DecoderConfig) -> Decoder:
    embedding = TokenEmbedding(config.vocab, config.width)
    head = nn.Linear(config.width, config.vocab, bias=config.head_bias)
    if config.tied:
        head.weight = embedding.weight
    return Decoder(
        embedding,
        LearnedPositions(config.context, config.width),
        nn.ModuleList(_block(config) for _ in range(config.layers)),
        _norm(config),
        head,
        context=config.context,
        dropout=config.dropout,
    )


def _block(config: DecoderConfig) -> PreNormBlock:
    attention = MultiHeadAttention(
        config.width,
        config.heads,
        config.key_value_heads,
        config.width_of_head,
        bias=config.qkv_bias,
        output_bias=config.bias,
        dropout=config.dropout,
        attend=KERNELS[type(config.kernel)],
    )
    feedforward = FeedForward(
        config.width, config.hidden, ACTIVATIONS[type(config.activation)], bias=config.bias, dropout=config.dropout
    )
    return PreNormBlock(_norm(config), attention, _norm(config), feedforward)


def _norm(config: DecoderConfig) -> nn.Module:
    norm = config.norm
    if not isinstance(norm, kinds.LayerNorm):
        raise TypeError(f"no part builds {norm!r}")
    return LayerNorm(config.width, eps=norm.eps, bias=norm.bias)
