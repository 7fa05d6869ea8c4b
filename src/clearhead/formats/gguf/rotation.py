"""What a GGUF file says about rotary positions."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from clearhead.formats.fields import Fields
from clearhead.formats.gguf.header import GgufHeader
from clearhead.formats.gguf.tensors import GgufTensors
from clearhead.messages import UserError, say
from clearhead.models.choices import Linear, Llama3, Rotary, Scaling, Unscaled, YaRN
from clearhead.ops.rotary import llama3_scaled, rotary_frequencies

FACTORS = "rope_freqs.weight"
"""A tensor by whose numbers frequencies are divided; converters write Llama 3's scaling so."""
_KNOWN: tuple[Unscaled | Llama3, ...] = (Unscaled(), Llama3(8.0), Llama3(32.0))


def decimal(value: float) -> float:
    """What a person wrote, of which the file holds the nearest float32: 1e-05 and not 9.999999747378752e-06."""
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    return float(str(narrow)) if float(narrow) == value else value


def rotary(fields: Fields, header: GgufHeader, head_width: int) -> Rotary:
    """How queries and keys are turned; all keys that begin with `rope.` are taken.

    Args:
        fields: the architecture's own.
        header: whose tensors may say more.
        head_width: d.

    Raises:
        UserError: if it is turned in a way that is not known.
    """
    theta = decimal(fields.take("rope.freq_base", float, 10_000.0))
    turned = fields.take("rope.dimension_count", int, head_width)
    plain = Rotary(theta, _fraction(turned, head_width))
    scaling = _scaling(fields)
    if FACTORS in header.tensors:
        scaling = _of_factors(header, theta, plain.turned(head_width), scaling)
    return Rotary(theta, plain.fraction, scaling=scaling)


def _fraction(turned: int, head_width: int) -> float:
    """The fraction of `Rotary` that turns this many features: of 44, 30/44 would turn 28, since its float is a little below."""
    fraction = turned / max(1, head_width)
    return fraction if int(fraction * head_width) == turned else math.nextafter(fraction, 1)


def _scaling(fields: Fields) -> Scaling:
    kinds = {"none": Unscaled, "linear": Linear, "yarn": YaRN}
    fields.neutral("rope.scaling.type", *kinds)
    kind = kinds[fields.take("rope.scaling.type", str, "linear")]
    # Old files call it so.
    factor = decimal(fields.take("rope.scaling.factor", float, fields.take("rope.scale_linear", float, 0.0)))
    original = fields.take("rope.scaling.original_context_length", int, None)
    fast = decimal(fields.take("rope.scaling.yarn_beta_fast", float, 32.0))
    slow = decimal(fields.take("rope.scaling.yarn_beta_slow", float, 1.0))
    fields.neutral("rope.scaling.attn_factor", 1.0)
    fields.neutral("rope.scaling.yarn_attn_factor", 1.0)
    fields.neutral("rope.scaling.yarn_ext_factor", 1.0, -1.0)
    fields.neutral("rope.scaling.yarn_log_multiplier", 0.0)
    fields.ignore("rope.scaling.finetuned")
    # No factor is a factor of one.
    if kind is Unscaled or factor in (0.0, 1.0):
        return Unscaled()
    if kind is Linear:
        return Linear(factor)
    return YaRN(factor, fields.take("context_length", int) if original is None else original, fast, slow)


def _of_factors(header: GgufHeader, theta: float, turned: int, said: Scaling) -> Scaling:
    """The scaling that the file's factors are those of.

    Raises:
        UserError: if they are none that is known, or another is said beside them.
    """
    if header.tensors[FACTORS].shape == (turned // 2,):
        found = GgufTensors(header).read(FACTORS).double()
        frequencies = rotary_frequencies(turned, theta)
        for scaling in _KNOWN:
            factors = frequencies / _scaled(frequencies, scaling)
            if said in (Unscaled(), scaling) and torch.allclose(found, factors, rtol=1e-4, atol=0):
                return scaling
        if torch.equal(found, torch.ones_like(found)):
            return said
    raise UserError(say("gguf.turns", path=header.path))


def _scaled(frequencies: Tensor, scaling: Unscaled | Llama3) -> Tensor:
    if isinstance(scaling, Unscaled):
        return frequencies
    return llama3_scaled(
        frequencies,
        scaling.factor,
        low=scaling.low,
        high=scaling.high,
        original_context=scaling.original_context,
    )
