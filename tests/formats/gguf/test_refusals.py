"""Whole GGUF files that clearhead cannot compute as they mean it: refused by name, never loaded as something else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearhead.formats.gguf.file import open_gguf
from clearhead.messages import UserError
from tests.formats.gguf.written import L, model_in, tiny, under, write, write_model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def refusal(path: Path, architecture: str, more: dict[str, Any], tensors: Mapping[str, np.ndarray] = {}) -> str:
    """The one line with which a file with these keys is refused; without them it is a model."""
    theirs = tiny(architecture)
    write_model(path, architecture, theirs)
    model_in(path)
    write_model(path, architecture, theirs, more=more, tensors=tensors)
    with pytest.raises(UserError) as error:
        model_in(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


CHANGED: list[tuple[str, Any]] = [
    ("attention.scale", 0.5),
    ("attention.scale", 0.0),
    ("attention.causal", False),
    ("attention.clamp_kqv", 8.0),
    ("attention.max_alibi_bias", 8.0),
    ("attention.temperature_scale", 0.5),
    ("attention.sliding_window_pattern", 4),
    ("attention.value_length", 12),
    ("attn_logit_softcapping", 50.0),
    ("expert_count", 8),
    ("expert_used_count", 2),
    ("final_logit_softcapping", 30.0),
    ("logit_scale", 0.5),
    ("embedding_scale", 2.0),
    ("residual_scale", 2.0),
    ("pooling_type", 3),
    ("rope.dimension_count", 8),
    ("rope.dimension_sections", [4, 4]),
    ("rope.scaling.type", "longrope"),
    ("rope.scaling.attn_factor", 2.0),
    ("rope.scaling.yarn_log_multiplier", 0.1),
    ("something.new", 1),
    ("use_parallel_residual", True),
    ("tensor_data_layout", "another"),
]


@pytest.mark.parametrize(("key", "value"), CHANGED)
def test_keys_that_change_the_computation(path: Path, key: str, value: object) -> None:
    assert key in refusal(path, "llama", {f"llama.{key}": value})


def test_keys_that_say_the_usual(path: Path) -> None:
    usual = {
        "attention.causal": True,
        "attention.clamp_kqv": 0.0,
        "expert_count": 0,
        "expert_used_count": 0,
        "rope.dimension_count": 16,
        "rope.scaling.attn_factor": 1.0,
        "rope.scaling.finetuned": True,
        "tensor_data_layout": "Meta AI original pth",
        "attention.head_count": [4] * L,
        "attention.head_count_kv": [2] * L,
        "feed_forward_length": [160] * L,
    }
    theirs = tiny("llama")
    write_model(path, "llama", theirs)
    plain = open_gguf(path).config
    more = {
        **under("llama", usual),
        "general.name": "A",
        "general.sampling.temp": 0.5,
        "another.key": 3,
        "general.type": "model",
    }
    write_model(path, "llama", theirs, more=more)
    assert open_gguf(path).config == plain
    model_in(path)


@pytest.mark.parametrize(
    ("architecture", "key", "value", "named"),
    [
        ("llama", "attention.head_count_kv", [2, 4], "attention.head_count_kv is [2, 4]"),
        ("llama", "feed_forward_length", [160, 128], "feed_forward_length is [160, 128]"),
        ("llama", "attention.head_count", "four", "attention.head_count"),
        ("llama", "context_length", None, "context_length"),
        ("llama", "context_length", 0, "context_length = 0 must be at least 1;"),
        ("llama", "attention.layer_norm_rms_epsilon", None, "attention.layer_norm_rms_epsilon"),
        ("llama", "attention.layer_norm_rms_epsilon", 0.0, "eps"),
        ("llama", "attention.layer_norm_rms_epsilon", float("nan"), "eps"),
        ("llama", "rope.freq_base", float("nan"), "theta"),
        ("llama", "rope.freq_base", float("inf"), "theta"),
        ("llama", "rope.scaling.factor", float("inf"), "factor"),
        ("llama", "attention.head_count_kv", 3, "by attention.head_count_kv = 3;"),
        ("llama", "attention.head_count", 0, "head"),
        ("llama", "attention.head_count", 2, "blk.0.attn_output.weight"),
        ("llama", "vocab_size", 36, "token_embd.weight"),
        ("llama", "embedding_length", 64, "token_embd.weight"),
        ("llama", "embedding_length", 4_000_000_000, "token_embd.weight"),
        ("llama", "feed_forward_length", 4_000_000_000, "blk.0.ffn_up.weight"),
        ("llama", "attention.key_length", 4_000_000_000, "value_length"),
        ("llama", "block_count", 4_000_000_000, "block_count"),
        ("llama", "block_count", 3, "blk.2."),
        ("llama", "block_count", 1, "blk.1."),
        ("llama", "block_count", 0, "block_count = 0 must"),
        ("gpt2", "context_length", 25, "position_embd.weight"),
        ("gpt2", "attention.head_count", 5, "by attention.head_count = 5;"),
        ("gpt2", "rope.freq_base", 1e4, "rope.freq_base"),
    ],
)
def test_keys_that_do_not_fit(path: Path, architecture: str, key: str, value: object, named: str) -> None:
    assert named in refusal(path, architecture, {f"{architecture}.{key}": value})


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("llama", "blk.1.attn_q.bias"),
        ("llama", "blk.0.ffn_gate_inp.weight"),
        ("llama", "rope_factors_long.weight"),
        ("llama", "blk.0.attn_post_norm.weight"),
        ("qwen3", "blk.1.attn_sinks.weight"),
        ("gpt2", "blk.1.attn_q_norm.weight"),
    ],
)
def test_tensors_that_have_no_place(path: Path, architecture: str, name: str) -> None:
    assert name in refusal(path, architecture, {}, {name: np.ones(16, np.float32)})


def test_what_a_file_may_be_instead(path: Path) -> None:
    assert "adapter" in refusal(path, "llama", {"general.type": "adapter"})
    # What the file says cannot break the line.
    assert r"a\nb" in refusal(path, "llama", {"general.type": "a\nb"})
    assert r"a\nb" in refusal(path, "llama", {"llama.rope.scaling.type": "a\nb"})
    assert "one of 3 parts" in refusal(path, "llama", {"split.count": 3})


@pytest.mark.parametrize(
    ("found", "nearest"), [("llama4", "llama"), ("qwen2moe", "qwen2"), ("gptj", "gpt2"), ("llama\n", "llama")]
)
def test_other_architectures(path: Path, found: str, nearest: str) -> None:
    write(path, {"general.name": "x"}, {}, "F32", found)
    with pytest.raises(UserError) as error:
        open_gguf(path)
    assert "gpt2, llama, qwen2, qwen3" in str(error.value)
    assert nearest in str(error.value).rsplit(",", 1)[1]


def test_a_file_without_tensors(path: Path) -> None:
    write(path, {}, {}, "F32", "llama")
    with pytest.raises(UserError, match="block_count"):
        open_gguf(path)
