"""BERT's config.json: published ones, what is refused, what is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.config_encoders import EncoderConfig
from tests.formats.hugging_face.given import as_saved, family_of, read

hf = pytest.importorskip("transformers", reason="transformers is not installed")

BASE: dict[str, Any] = {
    "architectures": ["BertForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": False,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0",
    "type_vocab_size": 2,
    "use_cache": True,
    "vocab_size": 30522,
}
"""bert-base-uncased."""
CHINESE = BASE | {
    "directionality": "bidi",
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
    "vocab_size": 21128,
}
MINILM = BASE | {
    "_name_or_path": "nreimers/MiniLM-L6-H384-uncased",
    "architectures": ["BertModel"],
    "hidden_size": 384,
    "intermediate_size": 1536,
    "num_hidden_layers": 6,
    "transformers_version": "4.8.2",
}
OURS = EncoderConfig(
    vocab=30_522,
    layers=12,
    heads=12,
    width=768,
    context=512,
    dropout=0.1,
    norm=kinds.LayerNorm(eps=1e-12),
    block=kinds.PostNorm(),
    embedding_norm=True,
    qkv_bias=True,
    bias=True,
    head_bias=True,
    segments=2,
)
SMALL = replace(OURS, layers=6, width=384, head_bias=False, head=kinds.Pooled(kinds.First(), dense=True))


def test_published_configurations() -> None:
    assert read(BASE) == OURS
    assert read(CHINESE) == replace(OURS, vocab=21_128)
    assert read(MINILM) == SMALL


@pytest.mark.parametrize("data", [BASE, MINILM], ids=["base", "MiniLM"])
def test_what_is_written_is_read_back(data: dict[str, Any]) -> None:
    family = family_of("bert", data["architectures"])
    written = family.write(read(data)) | {"model_type": "bert", "architectures": list(family.architectures[:1])}
    assert read(written) == read(data)
    assert read(as_saved(hf.BertConfig(**written)) | {"architectures": data["architectures"]}) == read(data)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("directionality", "left-to-right"),
        ("hidden_act", "mish"),
        ("embedding_size", 128),
        ("type_vocab_size", 0),
    ],
)
def test_what_is_not_understood_is_refused(field: str, value: Any) -> None:
    with pytest.raises(UserError, match=field) as caught:
        read(BASE | {field: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"kv_heads": 4},
        {"head_width": 7},
        {"norm": kinds.RMSNorm()},
        {"block": kinds.PreNorm()},
        {"positions": kinds.Rotary()},
        {"activation": kinds.SwiGLU()},
        {"qk_norm": True},
        {"head_bias": False, "head": kinds.Pooled(kinds.Mean())},
        {"head_bias": False, "head": kinds.Pooled(kinds.First(), dense=True, unit=True)},
    ],
    ids=str,
)
def test_what_bert_cannot_say_is_lost(fields: dict[str, Any]) -> None:
    """Export compares, and refuses."""
    for classes in (["BertForMaskedLM"], ["BertModel"]):
        family, mine = family_of("bert", classes), replace(OURS, **fields)
        assert read(family.write(mine) | {"model_type": "bert", "architectures": classes}) != family.completed(mine)


def test_what_goes_without_saying_is_not_lost() -> None:
    """A model of ours without biases, whose feed-forward part is as wide as the usual one."""
    family = family_of("bert", ["BertForMaskedLM"])
    plain = replace(OURS, bias=False, qkv_bias=False, head_bias=False, segments=0, norm=kinds.LayerNorm(1e-12, False))
    mine = family.completed(replace(plain, feedforward_width=3072, kv_heads=12, head_width=64, kernel=kinds.Visible()))
    assert mine == replace(OURS, segments=1)
    assert read(family.write(mine) | {"model_type": "bert", "architectures": ["BertForMaskedLM"]}) == mine
