"""Right modules in ways of writing that published models have, and that were once taken for faults or could not be run."""

import torch
import torch.nn.functional as F
from torch import nn

from bench.checking.case import Case


class SplitAsTrained(nn.Module):
    """Values stand before keys, as in the weights that exist."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        # The layout of this projection is that of the released checkpoints.
        self.qkv_proj = nn.Linear(dim, 3 * dim, bias=False)
        self.out_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        query, value, key = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv_proj(x).chunk(3, -1))
        return self.out_proj(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


def _angles(length, width):
    return torch.arange(length).double()[:, None] * 10000.0 ** (-torch.arange(0, width, 2).double() / width)


class RowsOfPlaces(nn.Module):
    """Sinusoids for positions (B,T)."""

    def __init__(self, num_positions=64, embedding_dim=32):
        super().__init__()
        angles = _angles(num_positions, embedding_dim)
        self.register_buffer("weights", torch.cat([angles.sin(), angles.cos()], 1))

    def forward(self, position_ids, cache_length=0):
        rows, length = position_ids.size()
        return self.weights.index_select(0, position_ids.view(-1)).view(rows, length, -1)


class SinesFirst(nn.Module):
    """Rotary tables, the sines before the cosines, at positions that are given."""

    def __init__(self, positions=64, width=8):
        super().__init__()
        angles = _angles(positions, width)
        self.register_buffer("table", torch.cat([angles.sin(), angles.cos()], 1))

    def forward(self, x, position_ids):
        sin, cos = self.table[position_ids].to(x.dtype).chunk(2, -1)
        return sin, cos


class OfLayerTypes(nn.Module):
    """Rotary tables of two bases; which of them is wanted is said."""

    def __init__(self, width=8):
        super().__init__()
        self.layer_types = ["sliding", "full"]
        for name, base in zip(self.layer_types, (10000.0, 500000.0), strict=True):
            self.register_buffer(f"{name}_inv_freq", base ** (-torch.arange(0, width, 2).double() / width))

    def forward(self, x, position_ids, layer_type):
        angles = position_ids[..., None].double() * getattr(self, f"{layer_type}_inv_freq")
        both = torch.cat([angles, angles], -1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)


def classes_loss(input, target, ignore_index=-100):
    """The loss of logits (N,V), targets (N)."""
    return F.cross_entropy(input, target, ignore_index=ignore_index)


CASES = [
    Case("SplitAsTrained", "attention"),
    Case("RowsOfPlaces", "positions"),
    Case("SinesFirst", "rotary"),
    Case("OfLayerTypes", "rotary"),
    Case("classes_loss", "loss"),
]
