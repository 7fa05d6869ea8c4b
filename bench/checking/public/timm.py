"""timm: attention, norms, rotary positions and blocks of its image models, as sequences of tokens.

The package asks for torchvision when it is imported; no class here has a use for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from bench.checking.public.absent import absent
from bench.checking.public.subject import Subject

D, H = 32, 4
NEEDS = ("torchvision", "torchvision.datasets", "torchvision.ops", "torchvision.ops.misc")
NEEDS += ("torchvision.transforms", "torchvision.transforms.functional")


def _kind(place: str) -> Any:
    module, _, name = place.partition(":")
    with absent(*NEEDS):
        return getattr(importlib.import_module(f"timm.{module}"), name)


def _made(place: str, *positional: Any, fused: bool = True, **named: Any) -> Callable[[], Any]:
    """Makes one; without the fused kernel, where it has one, if asked."""

    def make() -> Any:
        made = _kind(place)(*positional, **named)
        for part in made.modules():
            if not fused and hasattr(part, "fused_attn"):
                part.fused_attn = False
        return made

    return make


def _of(
    kind: str,
    place: str,
    *positional: Any,
    said: str = "",
    call: Any = None,
    known: tuple[str, ...] = (),
    blind: Mapping[str, str] | None = None,
    **named: Any,
) -> Subject:
    file, _, name = place.rpartition(".")[2].partition(":")
    title = name if file in ("attention", "norm", "attention_pool") else f"{file} {name}"
    options = {} if call is None else {"call": call}
    title = ", ".join(filter(None, (title, said)))
    return Subject("timm", title, _made(place, *positional, **named), kind, options, known, blind or {})


def _with_norm(place: str) -> Callable[..., Any]:
    """A norm that is imported when it is asked for."""

    def made(*positional: Any, **named: Any) -> Any:
        return _kind(place)(*positional, **named)

    return made


def _square(module: nn.Module, x: Tensor) -> Tensor:
    """A stream of tokens is an image of one row."""
    return module(x, [1, x.shape[1]])


def _rows(module: nn.Module, x: Tensor) -> Tensor:
    """An image of one row, channels last."""
    return module(x.unsqueeze(1)).squeeze(1)


def _each_first(module: nn.Module, x: Tensor) -> Tensor:
    """The first token alone sees the others: each is the first once."""
    return torch.cat([module(x.roll(-place, 1)) for place in range(x.shape[1])], 1)


def _class_beside(module: nn.Module, x: Tensor) -> Tensor:
    """The class token is given apart: each token is it once."""
    return torch.cat([module(x.roll(-place, 1)[:, 1:], x[:, place : place + 1]) for place in range(x.shape[1])], 1)


def _before_pool(module: nn.Module, x: Tensor) -> Tensor:
    """What the first token is taken from: each is the first once."""
    return torch.stack([module(x.roll(-place, 1)) for place in range(x.shape[1])], 1)


def _rotated(module: nn.Module, x: Tensor) -> Tensor:
    """The model gives the angles of the places behind the first tokens."""
    wide = module.head_dim if hasattr(module, "head_dim") else x.shape[-1] // module.num_heads
    kept = x.shape[1] - module.num_prefix_tokens
    powers = torch.arange(0, wide, 2, dtype=torch.float64) / wide
    angles = torch.arange(kept, dtype=torch.float64)[:, None] * 100.0**-powers
    angles = angles.repeat(1, 2) if module.rotate_half else angles.repeat_interleave(2, -1)
    return module(x, torch.cat([angles.sin(), angles.cos()], -1).to(x.dtype))


NORMED = {"scale.missing": "queries and keys have norms with weights of their own, into which any scale can go"}
TWO = {"softmax.axis": "two softmaxes are mixed, and the mixture is normalised again"}
EMPTY = ("mask.empty-row",)
CHANNELS = {
    "scale.missing": "features attend to features, with scales of their own",
    "softmax.axis": "features attend to features",
}
NORM = _with_norm("layers.norm:LayerNorm")

SUBJECTS: list[Subject] = [
    # Attention of the vision transformer and its kin.
    _of("attention", "layers.attention:Attention", D, H),
    _of("attention", "layers.attention:Attention", D, H, fused=False, known=EMPTY, said="written out"),
    _of("attention", "layers.attention:Attention", D, H, qkv_bias=True, qk_norm=True, norm_layer=NORM, said="qk_norm"),
    _of("attention", "layers.attention:Attention", D, H, scale_norm=True, norm_layer=NORM, said="scale_norm"),
    _of("attention", "layers.attention:Attention", D, H, gated=True, said="gated"),
    _of("attention", "layers.attention:Attention", D, H, attn_drop=0.2, said="dropout"),
    _of("attention", "layers.attention:AttentionRope", D, H, num_prefix_tokens=0),
    _of("attention", "layers.attention:AttentionRope", D, H, qkv_fused=False, num_kv_heads=2, said="grouped"),
    _of("attention", "layers.attention:AttentionRope", D, H, num_prefix_tokens=0, call=_rotated, said="rotated"),
    _of("attention", "layers.attention:AttentionRope", D, H, call=_rotated, said="rotated behind the first"),
    _of("attention", "layers.attention:AttentionRope", D, H, rotate_half=True, call=_rotated, said="rotated halves"),
    _of("attention", "layers.attention:AttentionRope", D, H, fused=False, known=EMPTY, said="written out"),
    _of("attention", "models.eva:EvaAttention", D, H, norm_layer=NORM),
    _of("attention", "models.eva:EvaAttention", D, H, scale_norm=False, fused=False, known=EMPTY, said="written out"),
    _of("attention", "models.eva:EvaAttention", D, H, qkv_fused=False, norm_layer=NORM, said="apart"),
    _of("attention", "models.eva:EvaAttention", D, H, scale_norm=False, call=_rotated, said="rotated"),
    _of("attention", "models.beit:Attention", D, H, qkv_bias=True),
    _of("attention", "models.beit:Attention", D, H, fused=False, said="written out"),
    _of("attention", "models.convit:MHSA", D, H),
    _of("attention", "models.cait:TalkingHeadAttn", D, H),
    _of("attention", "models.tnt:Attention", D, 24, H),
    _of("attention", "models.metaformer:Attention", D, 8),
    _of("attention", "models.metaformer:Attention", D, 8, fused=False, said="written out"),
    _of("attention", "models.xcit:XCA", D, H, blind=CHANNELS),
    _of("attention", "models.edgenext:CrossCovarianceAttn", D, H, blind=CHANNELS),
    _of("attention", "models.davit:ChannelAttention", D, H, blind=CHANNELS),
    _of("attention", "models.davit:ChannelAttentionV2", D, H, blind=CHANNELS),
    _of("attention", "models.davit:WindowAttention", D, (3, 3), H),
    _of("attention", "models.maxxvit:AttentionCl", D, dim_head=8),
    _of("attention", "models.maxxvit:AttentionCl", D, dim_head=8, head_first=False, said="head last"),
    _of("attention", "models.maxxvit:AttentionCl", D, dim_head=8, fused=False, said="written out"),
    _of("attention", "models.pvt_v2:Attention", D, H, call=_square),
    _of("attention", "models.pvt_v2:Attention", D, H, fused=False, call=_square, said="written out"),
    _of("attention", "models.twins:GlobalSubSampleAttn", D, H, call=_square),
    _of("attention", "models.volo:Attention", D, H, call=_rows),
    _of("attention", "models.hiera:MaskUnitAttention", D, D, H),
    _of(
        "attention",
        "models.mvitv2:MultiScaleAttention",
        D,
        D,
        (1, 8),
        H,
        has_cls_token=False,
        rel_pos_type="",
        blind=NORMED,
        call=_square,
    ),
    # Fixed numbers of tokens.
    _of("attention", "models.swin_transformer:WindowAttention", D, H, window_size=3),
    _of("attention", "models.swin_transformer:WindowAttention", D, H, window_size=3, fused=False, said="written out"),
    _of("attention", "models.swin_transformer_v2:WindowAttention", D, (3, 3), H),
    _of("attention", "models.swin_transformer_v2_cr:WindowMultiHeadAttention", D, H, (3, 3)),
    _of("attention", "models.beit:Attention", D, H, window_size=(3, 3), said="relative positions"),
    _of("attention", "models.levit:Attention", D, 8, H, resolution=3),
    _of("attention", "models.efficientformer:Attention", D, 8, H, resolution=3),
    _of("attention", "models.convit:GPSA", D, H, blind=TWO),
    _of("attention", "models.nest:Attention", D, H, call=_rows),
    # One token that sees all.
    _of("attention", "models.cait:ClassAttn", D, H, call=_each_first),
    _of("attention", "models.volo:ClassAttention", D, H, call=_each_first),
    _of("attention", "models.crossvit:CrossAttention", D, H, call=_each_first),
    _of(
        "attention",
        "layers.attention_pool:AttentionPoolLatent",
        D,
        num_heads=H,
        latent_len=5,
        pool_type="",
        said="five",
    ),
    _of("attention", "layers.attention_pool:AttentionPoolPrr", D, H, call=_before_pool),
    # Blocks.
    _of("block", "models.vision_transformer:Block", D, H),
    _of("block", "models.vision_transformer:Block", D, H, fused=False, known=EMPTY, said="written out"),
    _of("block", "models.vision_transformer:Block", D, H, init_values=0.1, qk_norm=True, said="scaled, qk_norm"),
    _of("block", "models.vision_transformer:Block", D, H, proj_drop=0.1, attn_drop=0.1, drop_path=0.1, said="dropout"),
    _of("block", "models.vision_transformer:ResPostBlock", D, H),
    _of("block", "models.vision_transformer:ParallelScalingBlock", D, H),
    _of("block", "models.vision_transformer:DiffParallelScalingBlock", D, H),
    _of("block", "models.vision_transformer:ParallelThingsBlock", D, H),
    _of("block", "models.eva:EvaBlock", D, H),
    _of("block", "models.eva:EvaBlock", D, H, swiglu_mlp=True, scale_mlp=True, init_values=0.1, said="swiglu"),
    _of("block", "models.eva:EvaBlockPostNorm", D, H),
    _of("block", "models.beit:Block", D, H, init_values=0.1),
    _of("block", "models.convit:Block", D, H, use_gpsa=False),
    _of("block", "models.cait:LayerScaleBlock", D, H, init_values=0.1),
    _of("block", "models.cait:LayerScaleBlockClassAttn", D, H, init_values=0.1, call=_class_beside),
    _of("block", "models.xcit:ClassAttentionBlock", D, H, known=("residual.missing",)),
    _of("block", "models.volo:ClassBlock", D, H),
    _of("block", "models.nest:TransformerLayer", D, H, call=_rows),
    _of("block", "models.hiera:HieraBlock", D, D, H),
    _of("block", "models.pvt_v2:Block", D, H, call=_square),
    # Norms.
    _of("norm", "layers.norm:LayerNorm", D),
    _of("norm", "layers.norm:LayerNormFp32", D),
    _of("norm", "layers.norm:RmsNorm", D),
    _of("norm", "layers.norm:RmsNormFp32", D),
    _of("norm", "layers.norm:SimpleNorm", D),
    _of("norm", "layers.norm:SimpleNormFp32", D),
]
