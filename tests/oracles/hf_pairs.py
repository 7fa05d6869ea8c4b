"""T5, BART and Marian of transformers, small and with random weights, and ours with the same weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.encoder_decoder import EncoderDecoder
from tests.oracles import hf_weights as tables

hf = pytest.importorskip("transformers", reason="transformers is not installed")

# More blocks read than write: the cache of T5 in transformers has as many places as there are blocks that read.
B, T, M, D, H, d, FF, V, READS, WRITES, CONTEXT = 3, 7, 9, 12, 2, 5, 14, 17, 3, 2, 11
QUIET: dict[str, Any] = {"attn_implementation": "eager", "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
ENDLESS: dict[str, Any] = {**QUIET, "decoder_start_token_id": 1, "forced_eos_token_id": None}


def random_weights(model: Any, std: float = 0.3, table_std: float = 0.3) -> Any:
    """Every weight random, no norm is 1, no bias is 0.

    Matrices that are wide beside the tables of embeddings add to every position much the same, and the best token of a decoder
    would be one and the same.

    Args:
        model: of transformers.
        std: of the matrices.
        table_std: standard deviation of the tables.
    """
    looked_up = ("shared", "embed", "relative_attention_bias")
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if "norm" in name.lower() and name.endswith("weight"):
                tensor.normal_(mean=1.0, std=0.3)
            elif name.endswith("bias"):
                tensor.normal_(std=0.1)
            elif name.endswith("weight"):
                tensor.normal_(std=table_std if any(part in name for part in looked_up) else std)
    return model.eval()


def ids(length: int) -> Tensor:
    return torch.randint(2, V, (B, length))


def loaded(config: Any, theirs: Any, lines: Any, dtype: torch.dtype, leave: tuple[str, ...] = ()) -> Any:
    """Ours with the weights of theirs, both in this type."""
    theirs.to(dtype)
    ours = build(config).to(dtype).eval()
    tables.copy_from(ours, theirs, lines, leave=leave)
    return ours


SHARED: dict[str, Any] = {
    "vocab": V,
    "layers": WRITES,
    "encoder_layers": READS,
    "heads": H,
    "width": D,
    "feedforward_width": FF,
    "context": CONTEXT,
}
T5 = EncoderDecoderConfig(
    **SHARED,
    head_width=d,
    positions=kinds.Relative(buckets=8, farthest=5),
    norm=kinds.RMSNorm(eps=1e-6),
    activation=kinds.GEGLUTanh(),
    attention_scale=1.0,
    tied=False,
)
BART = EncoderDecoderConfig(
    **SHARED, block=kinds.PostNorm(), embedding_norm=True, qkv_bias=True, bias=True, head_bias=True
)
MARIAN = replace(
    BART, positions=kinds.Sinusoidal(halves=True), scale_embedding=True, embedding_norm=False, activation=kinds.ReLU()
)
CONFIGS = {"T5": T5, "BART": BART, "Marian": MARIAN}


def their_pair(name: str, std: float = 0.3, table_std: float = 0.3) -> Any:
    """The model of transformers."""
    if name == "T5":
        sizes = {"d_model": D, "d_kv": d, "d_ff": FF, "num_layers": READS, "num_decoder_layers": WRITES, "num_heads": H}
        buckets = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 5}
        config = hf.T5Config(
            vocab_size=V, feed_forward_proj="gated-gelu", tie_word_embeddings=False, **sizes, **buckets, **ENDLESS
        )
        return random_weights(hf.T5ForConditionalGeneration(config), std, table_std)
    sizes = {"d_model": D, "encoder_layers": READS, "decoder_layers": WRITES, "max_position_embeddings": CONTEXT}
    sizes |= {
        f"{stack}_{part}": n
        for stack in ("encoder", "decoder")
        for part, n in (("attention_heads", H), ("ffn_dim", FF))
    }
    if name == "BART":
        return random_weights(
            hf.BartForConditionalGeneration(hf.BartConfig(vocab_size=V, **sizes, **ENDLESS)), std, table_std
        )
    choices = {"scale_embedding": True, "activation_function": "relu", "decoder_vocab_size": V}
    theirs = hf.MarianMTModel(hf.MarianConfig(vocab_size=V, **sizes, **choices, **ENDLESS))
    fixed = [stack.embed_positions.weight.clone() for stack in (theirs.model.encoder, theirs.model.decoder)]
    random_weights(theirs, std, table_std)
    for stack, weight in zip((theirs.model.encoder, theirs.model.decoder), fixed, strict=True):
        stack.embed_positions.weight = nn.Parameter(weight, requires_grad=False)
    return theirs


def our_pair(
    name: str, config: EncoderDecoderConfig, theirs: Any, dtype: torch.dtype, first: int = 2
) -> EncoderDecoder:
    leave = tuple(f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder"))
    if name == "T5":
        return loaded(config, theirs, tables.t5(READS, WRITES), dtype)
    lines = tables.bart(READS, WRITES, embedding_norm=name == "BART", positions=first if name == "BART" else None)
    return loaded(config, theirs, lines, dtype, leave if name == "Marian" else ())
