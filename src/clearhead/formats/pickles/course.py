"""The GPT of the course that the notes follow as one of ours: every head has layers of its own, and the activation is ReLU.

The exercise of chapter 19, one projection to the queries, keys and values of all heads (`sa.qkv`), is read as well; how many heads it
has is then to be said by the file (`n_head`), for no shape tells it.
"""

from __future__ import annotations

from clearhead.formats.pickles.layout import Found, Layout, rows_of_layers
from clearhead.formats.rows import Row, row, stacked
from clearhead.models.choices import LayerNorm, ReLU
from clearhead.models.config import DecoderConfig

_FIRST = "blocks.0.sa"


def _is_fused(found: Found) -> bool:
    return f"{_FIRST}.qkv.weight" in found


def _config(found: Found) -> DecoderConfig:
    vocab, width = found.matrix("token_embedding_table.weight")
    context, _ = found.matrix("position_embedding_table.weight")
    hidden, _ = found.matrix("blocks.0.ffwd.net.0.weight")
    if _is_fused(found):
        heads = found.heads()
        head_width, biased = found.matrix(f"{_FIRST}.qkv.weight")[0] // (3 * max(1, heads)), f"{_FIRST}.qkv.bias"
    else:
        heads = found.agreed("n_head", int, found.count(f"{_FIRST}.heads."))
        head_width, biased = found.matrix(f"{_FIRST}.heads.0.key.weight")[0], f"{_FIRST}.heads.0.key.bias"
    return DecoderConfig(
        vocab=found.agreed("vocab_size", int, vocab),
        layers=found.agreed("n_layer", int, found.count("blocks.")),
        heads=heads,
        width=found.agreed("n_embd", int, width),
        head_width=None if heads * head_width == width else head_width,
        feedforward_width=None if hidden == 4 * width else hidden,
        context=found.agreed("block_size", int, context),
        dropout=found.said.take("dropout", float, 0.0),
        activation=ReLU(),
        norm=LayerNorm(bias="ln_f.bias" in found),
        tied=False,
        qkv_bias=biased in found,
        bias=f"{_FIRST}.proj.bias" in found,
        head_bias="lm_head.bias" in found,
    )


def _rows(found: Found, config: DecoderConfig) -> list[Row]:
    layers, rows = {"norm": "ln_f", "head": "lm_head"}, []
    for index in range(config.layers):
        ours, theirs = f"blocks.{index}", f"blocks.{index}"
        layers |= {
            f"{ours}.attention_norm": f"{theirs}.ln1",
            f"{ours}.attention.output": f"{theirs}.sa.proj",
            f"{ours}.feedforward_norm": f"{theirs}.ln2",
            f"{ours}.feedforward.up": f"{theirs}.ffwd.net.0",
            f"{ours}.feedforward.down": f"{theirs}.ffwd.net.2",
        }
        if _is_fused(found):
            layers[f"{ours}.attention.qkv"] = f"{theirs}.sa.qkv"
        else:
            rows += [_of_heads(f"{ours}.attention.qkv", f"{theirs}.sa.heads", kind, config) for kind in _kinds(config)]
    return [
        row("embedding.weight", "token_embedding_table.weight"),
        row("positions.table", "position_embedding_table.weight"),
        *rows,
        *rows_of_layers(layers, config),
    ]


def _kinds(config: DecoderConfig) -> tuple[str, ...]:
    return ("weight", "bias") if config.qkv_bias else ("weight",)


def _of_heads(ours: str, theirs: str, kind: str, config: DecoderConfig) -> Row:
    """All queries, then all keys, then all values, a head below the other."""
    parts = [f"{theirs}.{head}.{part}.{kind}" for part in ("query", "key", "value") for head in range(config.heads)]
    return stacked(f"{ours}.{kind}", dict.fromkeys(parts, config.width_of_head))


COURSE = Layout(
    origin="course GPT",
    mark="token_embedding_table.weight",
    head="lm_head.weight",
    unused=("blocks.*.sa.heads.*.tril", "blocks.*.sa.tril"),
    config=_config,
    rows=_rows,
)
