"""T5's config.json: published ones, what is refused, what is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderDecoderConfig
from tests.formats.hugging_face.given import as_saved, family_of, read, same_names_and_shapes

hf = pytest.importorskip("transformers", reason="transformers is not installed")

SMALL: dict[str, Any] = {
    "architectures": ["T5ForConditionalGeneration"],
    "d_ff": 2048,
    "d_kv": 64,
    "d_model": 512,
    "decoder_start_token_id": 0,
    "dropout_rate": 0.1,
    "eos_token_id": 1,
    "initializer_factor": 1.0,
    "is_encoder_decoder": True,
    "layer_norm_epsilon": 1e-06,
    "model_type": "t5",
    "n_positions": 512,
    "num_heads": 8,
    "num_layers": 6,
    "output_past": True,
    "pad_token_id": 0,
    "relative_attention_num_buckets": 32,
    "task_specific_params": {"summarization": {"prefix": "summarize: "}},
    "vocab_size": 32128,
}
"""t5-small."""
FLAN: dict[str, Any] = SMALL | {
    "d_ff": 1024,
    "feed_forward_proj": "gated-gelu",
    "num_decoder_layers": 8,
    "num_heads": 6,
    "num_layers": 8,
    "relative_attention_max_distance": 128,
    "tie_word_embeddings": False,
    "transformers_version": "4.23.1",
    "use_cache": True,
}
"""google/flan-t5-small."""
OURS = EncoderDecoderConfig(
    vocab=32_128,
    layers=6,
    heads=8,
    width=512,
    context=512,
    dropout=0.1,
    activation=kinds.ReLU(),
    norm=kinds.RMSNorm(),
    positions=kinds.Relative(),
    attention_scale=1.0,
    tied=True,
    scale_head=True,
)
FLAN_OURS = replace(
    OURS,
    layers=8,
    heads=6,
    head_width=64,
    feedforward_width=1024,
    activation=kinds.GEGLUTanh(),
    tied=False,
    scale_head=False,
)


def test_published_configurations() -> None:
    assert read(SMALL) == OURS
    assert read(FLAN) == FLAN_OURS
    assert read(SMALL | {"num_decoder_layers": 2}) == replace(OURS, layers=2, encoder_layers=6)


@pytest.mark.parametrize("data", [SMALL, FLAN, SMALL | {"num_decoder_layers": 2}], ids=["small", "flan", "uneven"])
def test_what_is_written_is_read_back(data: dict[str, Any]) -> None:
    family = family_of("t5")
    written = family.write(read(data)) | {"model_type": "t5"}
    assert read(written) == read(data)
    assert read(as_saved(hf.T5Config(**written))) == read(data)


@pytest.mark.parametrize("data", [SMALL, FLAN], ids=["1.0", "1.1"])
def test_the_rows_are_their_tensors(data: dict[str, Any]) -> None:
    sizes = {"d_model": 12, "d_ff": 14, "d_kv": 5, "num_heads": 3, "num_layers": 3, "num_decoder_layers": 2}
    small = {**data, **sizes, "vocab_size": 19}
    config, theirs = read(small), hf.T5ForConditionalGeneration(hf.T5Config(**small))
    copies = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    same_names_and_shapes(family_of("t5").rows(config), build(config), theirs, copies)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("feed_forward_proj", "gated-mish"),
        ("is_gated_act", True),
        ("dense_act_fn", "gelu"),
        ("is_encoder_decoder", False),
        ("is_decoder", True),
        ("tie_encoder_decoder", True),
        ("relative_attention_num_buckets", "32"),
        ("parallel_attention", True),
    ],
)
def test_what_is_not_understood_is_refused(field: str, value: Any) -> None:
    with pytest.raises(UserError, match=field) as caught:
        read(SMALL | {field: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"kv_heads": 2},
        {"bias": True},
        {"qkv_bias": True},
        {"block": kinds.PostNorm()},
        {"norm": kinds.LayerNorm()},
        {"positions": kinds.Learned()},
        {"attention_scale": None},
        {"activation": kinds.ReLUSquared(), "qk_norm": True},
        {"tied": False},
        {"source_vocab": 99},
        {"source_context": 77},
        {"scale_embedding": True},
    ],
    ids=str,
)
def test_what_t5_cannot_say_is_lost(fields: dict[str, Any]) -> None:
    """Export compares, and refuses."""
    family, mine = family_of("t5"), replace(OURS, **fields)
    assert read(family.write(mine) | {"model_type": "t5"}) != family.completed(mine)


def test_a_head_that_is_not_scaled_is_written_beside_the_embedding() -> None:
    """Also where they are one, which nothing but the tensors says."""
    family, mine = family_of("t5"), replace(OURS, scale_head=False)
    written = family.completed(mine)
    assert written == replace(mine, tied=False) == read(family.write(written) | {"model_type": "t5"})
    assert "lm_head.weight" in {part.name for each in family.rows(written) for part in each.parts}


def test_what_goes_without_saying_is_not_lost() -> None:
    family = family_of("t5")
    more = {"kv_heads": 8, "head_width": 64, "feedforward_width": 2048, "encoder_layers": 6, "source_context": 512}
    mine = family.completed(replace(OURS, **more, output_bias=False, kernel=kinds.Visible()))
    assert mine == OURS == read(family.write(mine) | {"model_type": "t5"})
