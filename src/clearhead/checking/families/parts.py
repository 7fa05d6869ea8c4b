"""Where each of our traced tensors is to be seen in the modules of each family: one table a family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig


class Part(NamedTuple):
    """A tensor of theirs that should be one of ours."""

    stage: str
    """Our name of it: "blocks.3.attention.output"."""
    path: str
    """The family's name of the module that gives or takes it."""
    end: Literal["out", "in"] = "out"
    """Whether it is what the module gives, or what it takes; the first tensor of either."""


OUTER = (
    *(
        "input",
        "attention_norm",
        "attention.output",
        "middle",
        "cross_attention_norm",
        "cross_attention.output",
        "crossed",
    ),
    *("feedforward_norm", "feedforward.output", "output", "norm", "logits"),
    *("head.transformed", "head.logits", "head.pooled", "head.output"),
)
"""Ends of the names of what one component hands to the next; all other tensors are a component's own affair."""

COMPONENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("cross-attention", ("cross_attention.",)),
    ("attention", ("attention.", "biases.")),
    ("feedforward", ("feedforward.",)),
    (
        "norm",
        (
            *("attention_norm", "cross_attention_norm", "feedforward_norm", "norm", "norm.norm"),
            *("attention_after", "cross_attention_after", "feedforward_after", "embedding_norm"),
        ),
    ),
    ("residual", ("middle", "crossed", "output")),
    ("head", ("logits", "head", "head.")),
    ("embedding", ("embedding", "positions", "segments", "input")),
)
"""The kinds of components, and how the names of their tensors begin within a block or a stack."""


def component(stage: str) -> str:
    """The kind of component that a tensor of ours belongs to: "blocks.3.attention.q" -> "attention"."""
    own = inside(stage)
    for kind, begins in COMPONENTS:
        if own.startswith(tuple(each for each in begins if each.endswith("."))) or own in begins:
            return kind
    return "residual"


def inside(stage: str) -> str:
    """The name within its block, or its stack: "decoder.blocks.3.attention.q" -> "attention.q"."""
    words = stage.split(".")
    if words[0] in ("encoder", "decoder"):
        words = words[1:]
    return ".".join(words[2:] if words[0] == "blocks" else words)


def is_outer(stage: str) -> bool:
    """Whether one component hands it to the next."""
    return inside(stage) in OUTER


def block_of(stage: str) -> str:
    """The block, "decoder.blocks.3"; "" outside all blocks."""
    words = stage.split(".")
    return ".".join(words[: words.index("blocks") + 2]) if "blocks" in words else ""


def parts(family: str, config: Any) -> list[Part]:
    """The table of a family for a model of this size.

    Args:
        family: its `model_type`.
        config: ours.
    """
    return _TABLES[family](config)


def attentions(family: str, config: Any) -> dict[str, str]:
    """The path of each attention of the family, and how the names of our tensors in it begin: "blocks.3.attention"."""
    return {part.path: part.stage.rpartition(".")[0] for part in parts(family, config) if _attends(part)}


def _attends(part: Part) -> bool:
    # BERT's attention ends before its last projection, which stands in another module.
    words = part.path.split(".")
    return part.end == "out" and part.stage.endswith(("attention.output", "attention.mixed")) and "dense" not in words


def _block(ours: str, theirs: str, rows: dict[str, str]) -> list[Part]:
    """Rows of a block: our name -> their path, a `<` before what is taken, not given."""
    return [
        Part(f"{ours}.{stage}", f"{theirs}.{path.lstrip('<')}".rstrip("."), "in" if path.startswith("<") else "out")
        for stage, path in rows.items()
    ]


def _gpt2(config: DecoderConfig) -> list[Part]:
    found = [
        Part("embedding", "transformer.wte"),
        Part("positions", "transformer.wpe"),
        Part("input", "transformer.h.0", "in"),
    ]
    rows = {
        "attention_norm": "ln_1",
        "attention.mixed": "<attn.c_proj",
        "attention.output": "attn",
        "middle": "<ln_2",
        "feedforward_norm": "ln_2",
        "feedforward.up": "mlp.c_fc",
        "feedforward.hidden": "<mlp.c_proj",
        "feedforward.output": "mlp",
        "output": "",
    }
    for index in range(config.layers):
        found += _block(f"blocks.{index}", f"transformer.h.{index}", rows)
    return [*found, Part("norm", "transformer.ln_f"), Part("logits", "lm_head")]


def _neox(config: DecoderConfig) -> list[Part]:
    found = [Part("embedding", "gpt_neox.embed_in"), Part("input", "gpt_neox.layers.0", "in")]
    rows = {
        "attention_norm": "input_layernorm",
        "attention.mixed": "<attention.dense",
        "attention.output": "attention",
        "middle": "<post_attention_layernorm",
        "feedforward_norm": "post_attention_layernorm",
        "feedforward.up": "mlp.dense_h_to_4h",
        "feedforward.hidden": "<mlp.dense_4h_to_h",
        "feedforward.output": "mlp",
        "output": "",
    }
    for index in range(config.layers):
        found += _block(f"blocks.{index}", f"gpt_neox.layers.{index}", rows)
    return [*found, Part("norm", "gpt_neox.final_layer_norm"), Part("logits", "embed_out"), Part("logits", "lm_head")]


def _llama(config: DecoderConfig, before: str = "post_attention_layernorm") -> list[Part]:
    found = [Part("embedding", "model.embed_tokens"), Part("input", "model.layers.0", "in")]
    rows = {
        "attention_norm": "input_layernorm",
        "attention.mixed": "<self_attn.o_proj",
        "attention.output": "self_attn",
        "middle": f"<{before}",
        "feedforward_norm": before,
        "feedforward.gate": "mlp.gate_proj",
        "feedforward.up": "mlp.up_proj",
        "feedforward.hidden": "<mlp.down_proj",
        "feedforward.output": "mlp",
        "output": "",
    }
    for index in range(config.layers):
        found += _block(f"blocks.{index}", f"model.layers.{index}", rows)
    return [*found, Part("norm", "model.norm"), Part("logits", "lm_head")]


def _gemma3(config: DecoderConfig) -> list[Part]:
    return _llama(config, "pre_feedforward_layernorm")


def _bert(config: EncoderConfig) -> list[Part]:
    found = [Part("embedding", "bert.embeddings.word_embeddings"), Part("input", "bert.embeddings")]
    rows = {
        "attention.mixed": "attention.self",
        "attention.output": "attention.output.dense",
        "middle": "attention",
        "feedforward.up": "intermediate.dense",
        "feedforward.hidden": "intermediate",
        "feedforward.output": "output.dense",
        "output": "",
    }
    for index in range(config.layers):
        found += _block(f"blocks.{index}", f"bert.encoder.layer.{index}", rows)
    head = [Part("head.transformed", "cls.predictions.transform"), Part("head.logits", "cls.predictions.decoder")]
    return [*found, Part("norm", "bert.encoder"), Part("head.output", "bert.pooler"), *head]


def _t5(config: EncoderDecoderConfig) -> list[Part]:
    def branch(number: int, name: str, module: str, after: str) -> dict[str, str]:
        layer = f"layer.{number}"
        ends = {f"{name}.mixed": f"<{layer}.{module}.o"} if "attention" in name else {}
        return {
            f"{name}_norm": f"{layer}.layer_norm",
            **ends,
            f"{name}.output": f"{layer}.{module}",
            after: layer,
        }

    gated = {"feedforward.gate": "wi_0", "feedforward.up": "wi_1", "feedforward.hidden": "<wo"}
    plain = {"feedforward.up": "wi", "feedforward.hidden": "<wo"}
    found = []
    for stack, layers in (("encoder", config.encoder.layers), ("decoder", config.layers)):
        found.append(Part(f"{stack}.input", f"{stack}.block.0", "in"))
        last = 1 if stack == "encoder" else 2
        names = gated if config.activation.__class__.__name__ in ("SwiGLU", "GEGLU", "GEGLUTanh") else plain
        rows = branch(0, "attention", "SelfAttention", "middle")
        if stack == "decoder":
            rows |= branch(1, "cross_attention", "EncDecAttention", "crossed")
        rows |= branch(last, "feedforward", "DenseReluDense", "output")
        inner = {
            name: f"<layer.{last}.DenseReluDense.{there[1:]}"
            if there.startswith("<")
            else f"layer.{last}.DenseReluDense.{there}"
            for name, there in names.items()
        }
        for index in range(layers):
            found += _block(f"{stack}.blocks.{index}", f"{stack}.block.{index}", {**rows, **inner})
    # 1.0 scales what the head reads, outside of any module.
    return [
        *found,
        Part("encoder.norm", "encoder.final_layer_norm"),
        Part("decoder.norm", "lm_head", "in"),
        Part("decoder.logits", "lm_head"),
    ]


_TABLES: dict[str, Callable[[Any], list[Part]]] = {
    "gpt2": _gpt2,
    "gpt_neox": _neox,
    "llama": _llama,
    "mistral": _llama,
    "qwen2": _llama,
    "qwen3": _llama,
    "gemma3_text": _gemma3,
    "bert": _bert,
    "t5": _t5,
}
"""A family for each `model_type` that is mapped."""
