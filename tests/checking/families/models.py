"""Small models of transformers, no two sizes alike, and what a check of their family finds in them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from clearhead.checking.families.found import checked
from clearhead.checking.families.known import recognised
from clearhead.checking.kinds.kind import Found
from clearhead.checking.settings import Settings
from tests.formats.hugging_face.decoders import theirs
from tests.formats.hugging_face.given import random_weights
from tests.oracles.hf_pairs import hf

BERT: dict[str, Any] = {
    "vocab_size": 23,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 14,
    "max_position_embeddings": 19,
}
T5: dict[str, Any] = {
    "vocab_size": 23,
    "d_model": 12,
    "d_kv": 5,
    "d_ff": 14,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 2,
}
GEMMA: dict[str, Any] = {
    "vocab_size": 23,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "intermediate_size": 14,
    "max_position_embeddings": 29,
    "sliding_window": 4,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": None,
}


def decoder(variant: str) -> Callable[[], Any]:
    """A maker of a decoder with a head."""
    return lambda: theirs(variant)


def bare(name: str, variant: str) -> Callable[[], Any]:
    """A maker of a decoder without one."""
    return lambda: random_weights(getattr(hf, name)(theirs(variant).config))


def bert(name: str = "BertForMaskedLM") -> Any:
    """An encoder."""
    return random_weights(getattr(hf, name)(hf.BertConfig(**BERT)))


def t5(**fields: Any) -> Any:
    """An encoder-decoder."""
    return random_weights(hf.T5ForConditionalGeneration(hf.T5Config(**T5, **fields)))


def gemma() -> Any:
    """A decoder with norms around its branches and two kinds of blocks."""
    return random_weights(
        hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(**{**GEMMA, "layer_types": [*GEMMA["layer_types"]]}))
    )


def found_in(module: nn.Module, against: Any = None) -> Found:
    """What a check of its family finds; every copy is one of the module."""
    known = recognised(module)
    assert known is not None
    return checked(known, lambda: copy.deepcopy(module), Settings(against=against))


def made(make: Callable[[], Any]) -> Any:
    """A module, the same at each call."""
    torch.manual_seed(0)
    return make()
