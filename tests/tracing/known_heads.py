"""A model of two blocks whose heads are known: their weights were written down, not trained."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.models import choices as c
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.decoder import Decoder

V, CONTEXT = 32, 48
TOKEN, PLACE, BEFORE = slice(0, V), slice(V, V + CONTEXT), slice(V + CONTEXT, V + CONTEXT + V)
"""Where the stream holds one-hot vectors: the token, its position, the token before (written by the first head)."""
WIDTH, HEAD, HEADS = 2 * V + CONTEXT, V + CONTEXT, 3
LAG = 23

HEADS_OF = {"previous_token": (0, 0), "first_token": (0, 1), "duplicate_token": (0, 2), "induction": (1, 0)}
"""Kind -> the one head of it. Head (1, 1) looks LAG tokens back, (1, 2) everywhere alike."""


def known(kernel: c.Kernel = c.Fused()) -> Decoder:  # noqa: B008
    """float64, evaluation mode."""
    config = DecoderConfig(
        vocab=V, layers=2, heads=HEADS, width=WIDTH, head_width=HEAD, feedforward_width=1, context=CONTEXT, tied=False,
        norm=c.RMSNorm(), activation=c.ReLU(), positions=c.Learned(), attention_scale=1.0, kernel=kernel,
    )  # fmt: skip
    model = build(config, seed=0).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if name.endswith("norm.weight") else 0.0)
        model.embedding.weight[:, TOKEN] = torch.eye(V).double()
        model.positions.table[:, PLACE] = torch.eye(CONTEXT).double()
        model.head.weight[:, TOKEN] = torch.eye(V).double()
        _write(model)
    return model


def _write(model: Decoder) -> None:
    # A one-hot vector of two has length √(D/2) behind the norm; scores of what fits are 50.
    gain = (50 / (WIDTH / 2)) ** 0.5
    tokens, places = torch.eye(V).double() * gain, torch.eye(CONTEXT).double() * gain
    first = torch.zeros_like(places)
    first[0] = gain
    q, k, v = _matrices(model, 0)
    k[:, V:, PLACE] = places
    q[0, V:, PLACE] = _back(1) * gain
    q[1, V:, PLACE] = first
    q[2, :V, TOKEN], k[2, :V, TOKEN] = tokens, tokens
    q[2, V:, PLACE] = -places
    v[0, :V, TOKEN] = torch.eye(V).double()
    # The first head writes what it read into the place of the token before.
    model.blocks[0].attention.output.weight[BEFORE, :V] = torch.eye(V).double() / (WIDTH / 2) ** 0.5
    q, k, _ = _matrices(model, 1)
    k[:, V:, PLACE] = places
    q[0, :V, TOKEN], k[0, :V, BEFORE] = tokens, tokens
    # The first position has no token before it, and holds its own.
    q[0, V:, PLACE] = -first
    q[1, V:, PLACE] = _back(LAG) * gain


def _matrices(model: Decoder, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """The weights of a block's queries, keys and values, (H,d,D) each, views of what the model holds."""
    q, k, v = model.blocks[block].attention.qkv.weight.data.reshape(3, HEADS, HEAD, WIDTH)
    return q, k, v


def _back(steps: int) -> Tensor:
    """From the one-hot position t to that of t - steps; to nothing where there is none."""
    return torch.diag(torch.ones(CONTEXT - steps), steps).double()
