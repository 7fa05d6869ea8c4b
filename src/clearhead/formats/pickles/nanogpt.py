"""nanoGPT's model as one of ours: GPT-2's shape with exact GELU and a tied head, with or without biases.

Checkpoints from before nanoGPT took PyTorch's GELU were trained with its tanh approximation, which nothing in them tells.
"""

from __future__ import annotations

from clearhead.formats.pickles.layout import Found, Layout, rows_of_layers
from clearhead.formats.rows import Row, row
from clearhead.models.choices import GELU, LayerNorm
from clearhead.models.config import DecoderConfig

_FIRST = "transformer.h.0"


def _config(found: Found) -> DecoderConfig:
    vocab, width = found.matrix("transformer.wte.weight")
    context, _ = found.matrix("transformer.wpe.weight")
    hidden, _ = found.matrix(f"{_FIRST}.mlp.c_fc.weight")
    return DecoderConfig(
        vocab=found.agreed("vocab_size", int, vocab),
        layers=found.agreed("n_layer", int, found.count("transformer.h.")),
        heads=found.heads(),
        width=found.agreed("n_embd", int, width),
        feedforward_width=None if hidden == 4 * width else hidden,
        context=found.agreed("block_size", int, context),
        dropout=found.said.take("dropout", float, 0.0),
        activation=GELU(),
        norm=LayerNorm(bias=found.agreed("bias", bool, "transformer.ln_f.bias" in found)),
        tied=found.tied,
        qkv_bias=f"{_FIRST}.attn.c_attn.bias" in found,
        bias=f"{_FIRST}.attn.c_proj.bias" in found,
    )


def _rows(_: Found, config: DecoderConfig) -> list[Row]:
    layers = {"norm": "transformer.ln_f"}
    for index in range(config.layers):
        ours, theirs = f"blocks.{index}", f"transformer.h.{index}"
        layers |= {
            f"{ours}.attention_norm": f"{theirs}.ln_1",
            f"{ours}.attention.qkv": f"{theirs}.attn.c_attn",
            f"{ours}.attention.output": f"{theirs}.attn.c_proj",
            f"{ours}.feedforward_norm": f"{theirs}.ln_2",
            f"{ours}.feedforward.up": f"{theirs}.mlp.c_fc",
            f"{ours}.feedforward.down": f"{theirs}.mlp.c_proj",
        }
    return [
        row("embedding.weight", "transformer.wte.weight"),
        row("positions.table", "transformer.wpe.weight"),
        row("head.weight", "lm_head.weight"),
        *rows_of_layers(layers, config),
    ]


NANOGPT = Layout(
    origin="nanoGPT",
    mark="transformer.wte.weight",
    head="lm_head.weight",
    unused=("transformer.h.*.attn.bias",),
    config=_config,
    rows=_rows,
)
