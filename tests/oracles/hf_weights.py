"""Where transformers keeps the weights of encoders and encoder-decoders: tables for `torch_weights.assembled`."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from tests.oracles.torch_weights import From, Place, assembled, copy_weights, own_weights, spelled


def attention(ours: str, theirs: str, names: tuple[str, str, str, str]) -> dict[str, Place]:
    """Queries, keys and values one under the other, and the output."""
    *parts, output = (f"{theirs}.{name}" for name in names)
    return {f"{ours}.qkv": tuple(parts), f"{ours}.output": output}


BERT_BLOCK = "bert.encoder.layer.{i}"
BERT: dict[str, Place] = {
    "embedding": "bert.embeddings.word_embeddings",
    "positions.table": "bert.embeddings.position_embeddings.weight",
    "segments.table": "bert.embeddings.token_type_embeddings.weight",
    "embedding_norm": "bert.embeddings.LayerNorm",
    "blocks.{i}.attention.qkv": tuple(f"{BERT_BLOCK}.attention.self.{part}" for part in ("query", "key", "value")),
    "blocks.{i}.attention.output": f"{BERT_BLOCK}.attention.output.dense",
    "blocks.{i}.attention_norm": f"{BERT_BLOCK}.attention.output.LayerNorm",
    "blocks.{i}.feedforward.up": f"{BERT_BLOCK}.intermediate.dense",
    "blocks.{i}.feedforward.down": f"{BERT_BLOCK}.output.dense",
    "blocks.{i}.feedforward_norm": f"{BERT_BLOCK}.output.LayerNorm",
}
BERT_MASKED: dict[str, Place] = {
    **BERT,
    "head.transform": "cls.predictions.transform.dense",
    "head.norm": "cls.predictions.transform.LayerNorm",
    "head.output": "cls.predictions.decoder",
}
BERT_POOLED: dict[str, Place] = {
    **{ours: place.removeprefix("bert.") for ours, place in BERT.items() if isinstance(place, str)},
    "blocks.{i}.attention.qkv": tuple(f"{BERT_BLOCK[5:]}.attention.self.{part}" for part in ("query", "key", "value")),
    "head.after.0": "pooler.dense",
}


def t5_stack(stack: str, layers: tuple[str, ...]) -> dict[str, Place]:
    """One of T5's stacks; `layers` names our branches in the order in which a block of theirs numbers them."""
    table: dict[str, Place] = {
        f"{stack}.embedding": "shared",
        f"{stack}.biases.0.table": f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        f"{stack}.norm": f"{stack}.final_layer_norm",
    }
    for number, branch in enumerate(layers):
        ours, theirs = f"{stack}.blocks.{{i}}.{branch}", f"{stack}.block.{{i}}.layer.{number}"
        table[f"{ours}_norm"] = f"{theirs}.layer_norm"
        if branch == "feedforward":
            names = {"gate": "wi_0", "up": "wi_1", "down": "wo"}
            table |= {f"{ours}.{name}": f"{theirs}.DenseReluDense.{name_there}" for name, name_there in names.items()}
        else:
            kind = "EncDecAttention" if branch == "cross_attention" else "SelfAttention"
            table |= attention(ours, f"{theirs}.{kind}", ("q", "k", "v", "o"))
    return table


def t5(reads: int, writes: int) -> dict[str, Place]:
    """T5 1.1, with a head of its own."""
    return {
        **spelled(t5_stack("encoder", ("attention", "feedforward")), reads),
        **spelled(t5_stack("decoder", ("attention", "cross_attention", "feedforward")), writes),
        "decoder.head": "lm_head",
    }


def bart_stack(stack: str, *, embedding_norm: bool, positions: int | None) -> dict[str, Place]:
    """One of BART's or Marian's stacks; `positions` is the first row of the table that stands for a position."""
    ours, theirs = f"{stack}.blocks.{{i}}", f"model.{stack}.layers.{{i}}"
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    table: dict[str, Place] = {
        f"{stack}.embedding": "model.shared",
        **attention(f"{ours}.attention", f"{theirs}.self_attn", names),
        f"{ours}.attention_norm": f"{theirs}.self_attn_layer_norm",
        f"{ours}.feedforward.up": f"{theirs}.fc1",
        f"{ours}.feedforward.down": f"{theirs}.fc2",
        f"{ours}.feedforward_norm": f"{theirs}.final_layer_norm",
    }
    if embedding_norm:
        table[f"{stack}.embedding_norm"] = f"model.{stack}.layernorm_embedding"
    if positions is not None:
        table[f"{stack}.positions.table"] = From(f"model.{stack}.embed_positions.weight", positions)
    if stack == "decoder":
        table |= attention(f"{ours}.cross_attention", f"{theirs}.encoder_attn", names)
        table[f"{ours}.cross_attention_norm"] = f"{theirs}.encoder_attn_layer_norm"
    return table


def bart(reads: int, writes: int, *, embedding_norm: bool, positions: int | None) -> dict[str, Place]:
    """Both stacks, tied, with a bias of the logits."""
    sizes = {"embedding_norm": embedding_norm, "positions": positions}
    return {
        **spelled(bart_stack("encoder", **sizes), reads),
        **spelled(bart_stack("decoder", **sizes), writes),
        "decoder.head.weight": "lm_head.weight",
        "decoder.head.bias": "final_logits_bias",
    }


def copy_from(ours: nn.Module, theirs: nn.Module, lines: Mapping[str, Place], *, leave: tuple[str, ...] = ()) -> None:
    """Copy the weights of a model of transformers; its buffer of the logits' bias is one of them."""
    weights: dict[str, Tensor] = own_weights(theirs)
    weights |= {name: buffer for name, buffer in theirs.named_buffers() if name == "final_logits_bias"}
    copies = {name for name in weights if name.endswith("embed_tokens.weight")}
    copy_weights(ours, assembled(weights, lines, (*leave, *copies)))
