"""Configurations of which no model can be made: said with the path and in the file's own names, whatever kind of file it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clearhead.formats.fields import Fields
from clearhead.formats.hugging_face.folder import open_folder
from clearhead.formats.impossible import possible
from clearhead.messages import UserError
from clearhead.models.choices import Linear, Rotary
from clearhead.models.config import DecoderConfig
from tests.formats.hugging_face.published import GPT2, LLAMA_1, LLAMA_2, LLAMA_3_2_1B, MISTRAL_7B, PYTHIA_70M

T5: dict[str, Any] = {
    "model_type": "t5",
    **{"vocab_size": 40, "num_layers": 2, "num_heads": 3, "d_model": 12, "d_kv": 5, "d_ff": 20},
    "relative_attention_num_buckets": 32,
}
GEMMA: dict[str, Any] = {
    "model_type": "gemma3_text",
    **{"vocab_size": 40, "num_hidden_layers": 2, "num_attention_heads": 5, "num_key_value_heads": 1},
    **{"hidden_size": 12, "intermediate_size": 20, "head_dim": 8},
}
LINEAR = {"rope_scaling": {"type": "linear", "factor": -1}}

NOT_POSSIBLE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "kv heads": (
        LLAMA_3_2_1B,
        {"num_key_value_heads": 3},
        "num_attention_heads = 32 is not divisible by num_key_value_heads = 3",
    ),
    "no positions": (LLAMA_2, {"max_position_embeddings": 0}, "max_position_embeddings = 0 must be at least 1"),
    "theta": (LLAMA_3_2_1B, {"rope_theta": -1}, "rope_theta = -1.0 must be"),
    "eps": (LLAMA_1, {"rms_norm_eps": 0}, "rms_norm_eps = 0.0 must be > 0"),
    "window": (MISTRAL_7B, {"sliding_window": 0}, "sliding_window = 0 must be at least 1"),
    "factor": (LLAMA_2, LINEAR, "rope_scaling.factor = -1.0 must be > 0"),
    "buckets": (T5, {"relative_attention_num_buckets": 1}, "relative_attention_num_buckets = 1 must be"),
    "heads": (GPT2, {"n_head": 5}, "n_embd = 768 is not divisible by n_head = 5"),
}

IMPOSSIBLE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "heads": (
        LLAMA_1,
        {"num_attention_heads": 6, "head_dim": 8},
        "num_attention_heads is 6, which does not divide hidden_size, 4096",
    ),
    "heads of Gemma": (GEMMA, {}, "num_attention_heads is 5, which does not divide hidden_size, 12"),
    "layers": (LLAMA_1, {"num_hidden_layers": 10**12}, "num_hidden_layers is 1000000000000, and no model has more"),
    "width": (
        LLAMA_1,
        {"hidden_size": 10**15},
        "hidden_size is 1000000000000000, and no model has more than 2147483647",
    ),
    "vocabulary": (LLAMA_1, {"vocab_size": 2**62}, "vocab_size is 4611686018427387904, and no model has more"),
    "head": (LLAMA_1, {"head_dim": 9}, "by head_dim (9) a llama turns 9 features of each head, an odd number"),
    "part": (PYTHIA_70M, {"hidden_size": 96}, "by rotary_pct (0.25) a gpt_neox turns 3 features of each head, an odd"),
}


def refusal(folder: Path, data: dict[str, Any]) -> str:
    """The line that a configuration without weights is refused with."""
    (folder / "config.json").write_text(json.dumps(data))
    with pytest.raises(UserError) as caught:
        open_folder(folder)
    line = str(caught.value)
    assert "\n" not in line
    assert str(folder / "config.json") in line
    return line


@pytest.mark.parametrize("case", NOT_POSSIBLE)
def test_numbers_that_do_not_fit(tmp_path: Path, case: str) -> None:
    data, changes, named = NOT_POSSIBLE[case]
    line = refusal(tmp_path, {**data, **changes})
    assert f"describes a model that cannot be: {named}" in line
    assert "choose" not in line


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_numbers_that_no_model_has(tmp_path: Path, case: str) -> None:
    data, changes, named = IMPOSSIBLE[case]
    line = refusal(tmp_path, {**data, **changes})
    assert named in line
    assert "use a model without it" not in line


def said(data: dict[str, Any], config: type[DecoderConfig] = DecoderConfig, **given: Any) -> str:
    with pytest.raises(UserError) as caught, possible(Fields(data, Path("there/file"), "llama")):
        config(**given)
    return str(caught.value)


def test_a_name_is_given_for_its_own_value_alone() -> None:
    """A number that the file does not say keeps our name: another field's would be a wrong one."""
    assert "heads = 4 is not divisible by kv_heads = 3" in said({"n_head": 8, "n_layer": 3}, heads=4, kv_heads=3)
    assert "n_head = 4 is not divisible by kv_heads = 3" in said({"n_head": 4, "n_layer": 3}, heads=4, kv_heads=3)


def test_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    line = said({"n_head": 5, "n_embd": 32}, heads=5, width=32)
    assert "n_embd = 32 不能被 n_head = 5 整除；文件" in line


def test_what_names_the_file_is_left_as_it_is() -> None:
    own = UserError("there/file: heads = 5; choose another")
    with pytest.raises(UserError) as caught, possible(Fields({"n_head": 5}, Path("there/file"), "llama")):
        raise own
    assert caught.value is own


def test_without_it_our_own_names_would_be_told() -> None:
    for make in (lambda: DecoderConfig(heads=5), lambda: Rotary(scaling=Linear(-1.0))):
        with pytest.raises(UserError) as caught:
            make()
        assert "file" not in str(caught.value)
