"""How parts of transformers are called that want more than a stream and a mask from the model around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

SPAN = 4
"""The window to whose multiples the sparse layers want their input padded."""


def _first(result: Any) -> Tensor:
    found: Tensor = result[0] if isinstance(result, tuple | list) else result
    return found


def relative(module: Any, x: Tensor) -> Tensor:
    """DeBERTa: the table of relative positions is the encoder's."""
    drawn = torch.Generator().manual_seed(3)
    table = torch.randn(16, x.shape[-1], generator=drawn, dtype=torch.float64).to(x.dtype)
    mask = torch.ones(x.shape[0], 1, x.shape[1], x.shape[1], dtype=torch.bool)
    return _first(module(x, mask, rel_embeddings=table))


def padded(module: Any, x: Tensor) -> Tensor:
    """Longformer and LED: the model pads to a multiple of the window, and hides what it has added."""
    more = -x.shape[1] % SPAN
    wide = F.pad(x, (0, 0, 0, more))
    hidden = torch.zeros(wide.shape[:2], dtype=torch.bool)
    hidden[:, x.shape[1] :] = True
    mask = torch.zeros(wide.shape[:2], dtype=x.dtype).masked_fill(hidden, torch.finfo(x.dtype).min)
    kept = torch.zeros_like(hidden)
    given = {"attention_mask": mask, "is_index_masked": hidden, "is_index_global_attn": kept, "is_global_attn": False}
    return _first(module(wide, **given))[:, : x.shape[1]]


def all_kept(module: Any, x: Tensor) -> Tensor:
    """YOSO: a mask has to be given, 1 for what is kept."""
    return _first(module(x, torch.ones(x.shape[:2], dtype=x.dtype)))


def three_times(module: Any, x: Tensor) -> Tensor:
    """MobileBERT: queries, keys, values and the skip are given apart."""
    names = (
        ("key_tensor", "value_tensor")
        if "Self" in type(module).__name__
        else ("key_tensor", "value_tensor", "layer_input")
    )
    return _first(module(x, **dict.fromkeys(names, x)))


def shifted(module: Any, x: Tensor) -> Tensor:
    """XLNet: positions come first, and the vectors of relative positions are the model's."""
    drawn = torch.Generator().manual_seed(3)
    places = torch.randn(2 * x.shape[1], 1, x.shape[-1], generator=drawn, dtype=torch.float64).to(x.dtype)
    empty = dict.fromkeys(("attn_mask_h", "attn_mask_g", "seg_mat"))
    first = ("output_h", "output_g") if "Layer" in type(module).__name__ else ("h", "g")
    given = {first[0]: x.transpose(0, 1), first[1]: None, "r": places.expand(-1, x.shape[0], -1)}
    return _first(module(**given, **empty)).transpose(0, 1)


def streams(module: Any, x: Tensor) -> Tensor:
    """ProphetNet: behind the text come the streams that predict, one for each token ahead; masks and distances are the decoder's."""
    from transformers.models.prophetnet import modeling_prophetnet as published  # noqa: PLC0415

    attention = getattr(module, "self_attn", module)
    length, ahead = x.shape[1], attention.ngram
    places = torch.arange(1, length + 1)[None]
    sizes = (attention.num_buckets, attention.relative_max_distance)
    buckets = [b.repeat(len(x), 1, 1) for b in published.compute_all_stream_relative_buckets(*sizes, places)]
    hidden = torch.full((length, length), torch.finfo(x.dtype).min, dtype=x.dtype).triu(1)
    given = {"main_relative_position_buckets": buckets[0], "predict_relative_position_buckets": buckets[1]}
    bias = published.ngram_attention_bias(length, ahead, x.device, x.dtype)
    masks = {
        "attention_mask": hidden,
        "extended_predict_attention_mask": bias[None, None].expand(len(x), 1, -1, -1, -1),
    }
    return _first(module(torch.cat([x] * (1 + ahead), 1), position_ids=places, **given, **masks))[:, :length]


CALLS: Mapping[str, Any] = {
    **dict.fromkeys(("DebertaV2Layer", "DebertaV2Attention", "DisentangledSelfAttention"), relative),
    **dict.fromkeys(("LongformerLayer", "LongformerAttention", "LongformerSelfAttention"), padded),
    **dict.fromkeys(("LEDEncoderLayer", "LEDEncoderAttention", "LEDEncoderSelfAttention"), padded),
    **dict.fromkeys(("YosoLayer", "YosoAttention", "YosoSelfAttention"), all_kept),
    **dict.fromkeys(("MobileBertAttention", "MobileBertSelfAttention"), three_times),
    **dict.fromkeys(("XLNetLayer", "XLNetRelativeAttention"), shifted),
    **dict.fromkeys(("ProphetNetDecoderLayer", "ProphetNetNgramSelfAttention"), streams),
}
"""By the name of a class the way in which the model around it calls it."""
CONFIRMED: Mapping[str, tuple[str, ...]] = {
    "OpenAIGPTLMHeadModel": ("activation.variant", "causal.finite-mask"),
    "Block": ("causal.finite-mask", "activation.variant"),
    "Attention": ("causal.finite-mask",),
    "NemotronLayerNorm1P": ("norm.offset",),
    "NemotronForCausalLM": ("norm.offset",),
    "NemotronDecoderLayer": ("norm.offset",),
    "YosoModel": ("mask.ignored",),
    "YosoSelfAttention": ("dropout.never-active",),
    # The convolution's leak is taken for a mask that is used as a number where a layer stands alone.
    "NystromformerModel": ("mask.ignored", "dropout.never-active"),
    **dict.fromkeys(
        ("NystromformerLayer", "NystromformerAttention", "NystromformerSelfAttention"),
        ("mask.ignored", "mask.added-as-number", "dropout.never-active"),
    ),
    "FunnelModel": ("mask.ignored",),
    "ProphetNetPositionalEmbeddings": ("position.unused",),
}
"""By the name of a class the faults that docs/findings.md describes."""

NORMED = {"scale.missing": "queries and keys have norms with weights of their own, into which any scale can go"}
APART = {
    "scale.missing": "three scores are added, each with a scale of its own",
}
BLIND: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("Qwen3Attention", "Qwen3MoeAttention"), NORMED),
    **dict.fromkeys(("DebertaV2Attention", "DebertaAttention", "DisentangledSelfAttention"), APART),
    "XLNetRelativeAttention": {"batch.mixing": "what it gives has positions first, so that the plant mixes those"},
    "GPTNeoAttention": {"scale.missing": "its scores have no scale, and the weights are trained so"},
}
"""By the name of a class the planted faults that cannot show in it, with the reason."""
