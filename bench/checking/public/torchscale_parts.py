"""torchscale: attention with its options, retention, norm, positions, encoder and decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.checking.public.absent import absent
from bench.checking.public.subject import Subject

PACKAGE = "torchscale"
D, H, V = 32, 4, 61
EMPTY = ("mask.empty-row",)
NEEDS = ("timm", "timm.models", "timm.models.layers", "fairscale", "fairscale.nn")


def _config(encoder: bool = False, **options: Any) -> Any:
    from torchscale.architecture.config import DecoderConfig, EncoderConfig  # noqa: PLC0415

    side = "encoder" if encoder else "decoder"
    sizes = {f"{side}_embed_dim": D, f"{side}_attention_heads": H, f"{side}_ffn_embed_dim": 48, f"{side}_layers": 2}
    return (EncoderConfig if encoder else DecoderConfig)(vocab_size=V, **sizes, **options)


def _attention(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from torchscale.component.multihead_attention import MultiheadAttention  # noqa: PLC0415

        return MultiheadAttention(_config(**options), D, H, self_attention=True, subln=options.get("subln", False))

    return make


def _decoder(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from torch import nn  # noqa: PLC0415

        with absent(*NEEDS):
            from torchscale.architecture.decoder import Decoder  # noqa: PLC0415
            from torchscale.component.embedding import PositionalEmbedding  # noqa: PLC0415

        return Decoder(_config(**options), nn.Embedding(V, D), PositionalEmbedding(66, D))

    return make


def _encoder(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from torch import nn  # noqa: PLC0415

        with absent(*NEEDS):
            from torchscale.architecture.encoder import Encoder  # noqa: PLC0415
            from torchscale.component.embedding import PositionalEmbedding  # noqa: PLC0415

        return Encoder(_config(True, no_output_layer=True, **options), nn.Embedding(V, D), PositionalEmbedding(66, D))

    return make


def _layer(encoder: bool, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        with absent(*NEEDS):
            from torchscale.architecture.decoder import DecoderLayer  # noqa: PLC0415
            from torchscale.architecture.encoder import EncoderLayer  # noqa: PLC0415

        return (EncoderLayer if encoder else DecoderLayer)(_config(encoder, **options), 0)

    return make


def _norm() -> Any:
    from torchscale.component.rms_norm import RMSNorm  # noqa: PLC0415

    return RMSNorm(D)


def _xpos() -> Any:
    from torchscale.component.xpos_relative_position import XPOS  # noqa: PLC0415

    return XPOS(8)


def _encoded(module: Any, ids: Any) -> Any:
    return module(ids)["encoder_out"]


SUBJECTS: list[Subject] = [
    Subject(PACKAGE, "MultiheadAttention", _attention(), "attention", confirmed=EMPTY),
    Subject(PACKAGE, "MultiheadAttention, subln", _attention(subln=True), "attention", confirmed=EMPTY),
    Subject(PACKAGE, "MultiheadAttention, xpos_rel_pos", _attention(xpos_rel_pos=True), "attention", confirmed=EMPTY),
    Subject(PACKAGE, "RMSNorm", _norm, "norm"),
    Subject(PACKAGE, "EncoderLayer", _layer(True), "block", confirmed=EMPTY),
    Subject(PACKAGE, "EncoderLayer, deepnorm", _layer(True, deepnorm=True), "block", confirmed=EMPTY),
    Subject(PACKAGE, "DecoderLayer", _layer(False), "block", confirmed=EMPTY),
    Subject(PACKAGE, "DecoderLayer, deepnorm", _layer(False, deepnorm=True), "block", confirmed=EMPTY),
    Subject(PACKAGE, "Decoder", _decoder(), "lm", {"vocab": V}, EMPTY),
    Subject(
        PACKAGE, "Decoder, relative positions", _decoder(rel_pos_buckets=8, max_rel_pos=16), "lm", {"vocab": V}, EMPTY
    ),
    Subject(PACKAGE, "Decoder, xpos_rel_pos", _decoder(xpos_rel_pos=True), "lm", {"vocab": V}, EMPTY),
    Subject(PACKAGE, "Encoder", _encoder(), "encoder", {"vocab": V}, EMPTY),
]
