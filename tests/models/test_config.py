"""Configurations: what does not fit cannot be written, and plain data comes back as what it was."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.codec import from_plain, to_plain
from clearhead.models.config import DecoderConfig, ModelConfig


def test_a_choice_is_written_by_its_class_name() -> None:
    plain = to_plain(DecoderConfig(activation=kinds.ReLU(), norm=kinds.LayerNorm(eps=0.5)))
    assert plain["class_path"] == "DecoderConfig"
    assert plain["init_args"]["activation"] == {"class_path": "ReLU", "init_args": {}}
    assert plain["init_args"]["norm"] == {"class_path": "LayerNorm", "init_args": {"eps": 0.5, "bias": True}}
    assert plain["init_args"]["kv_heads"] is None


def test_a_whole_module_path_is_read_too() -> None:
    plain = {"class_path": "clearhead.models.config.DecoderConfig"}
    assert from_plain(plain, ModelConfig) == DecoderConfig()


def test_fields_left_out_take_their_defaults() -> None:
    plain = {"class_path": "DecoderConfig", "init_args": {"width": 64, "norm": {"class_path": "LayerNorm"}}}
    assert from_plain(plain, ModelConfig) == DecoderConfig(width=64)


def decoder(**fields: object) -> dict[str, object]:
    return {"class_path": "DecoderConfig", "init_args": fields}


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (None, "no ModelConfig called None"),
        ([], "no ModelConfig called None"),
        ({}, "no ModelConfig called None"),
        ({"class_path": "Encoder"}, "no ModelConfig called Encoder; there are DecoderConfig"),
        ({"class_path": "ModelConfig"}, "no ModelConfig called ModelConfig"),
        ({"class_path": "LayerNorm"}, "no ModelConfig called LayerNorm"),
        (decoder(depth=3), "DecoderConfig has no field depth"),
        (decoder(width="64"), "DecoderConfig.width = '64' must be int"),
        (decoder(width=64.0), "DecoderConfig.width = 64.0 must be int"),
        (decoder(width=True), "DecoderConfig.width = True must be int"),
        (decoder(width=None), "DecoderConfig.width = None must be int"),
        (decoder(tied=1), "DecoderConfig.tied = 1 must be bool"),
        (decoder(kv_heads="2"), "DecoderConfig.kv_heads = '2' must be int"),
        (decoder(dropout="a"), "DecoderConfig.dropout = 'a' must be float"),
        (decoder(norm=3), "no Norm called None; there are LayerNorm"),
        (decoder(norm={"class_path": "GELU"}), "no Norm called GELU"),
        (decoder(norm={"class_path": "LayerNorm", "init_args": {"epsilon": 1}}), "LayerNorm has no field epsilon"),
        (decoder(width=65), "width = 65 is not divisible by heads = 4"),
    ],
)
def test_edited_data_that_does_not_fit_is_one_line(plain: Any, message: str) -> None:
    with pytest.raises(UserError) as raised:
        from_plain(plain, ModelConfig)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"width": 130, "heads": 4}, r"width = 130 is not divisible by heads = 4; choose heads from 1, 2, 5, 10, 13"),
        ({"heads": 4, "kv_heads": 3}, r"heads = 4 is not divisible by kv_heads = 3; choose kv_heads from 1, 2, 4"),
        ({"heads": 4, "kv_heads": 8}, r"heads = 4 is not divisible by kv_heads = 8"),
        ({"layers": 0}, r"layers = 0 must be at least 1"),
        ({"vocab": -1}, r"vocab = -1 must be at least 1"),
        ({"heads": 0}, r"heads = 0 must be at least 1"),
        ({"kv_heads": 0}, r"kv_heads = 0 must be at least 1"),
        ({"context": 0}, r"context = 0 must be at least 1"),
        ({"feedforward_width": 0}, r"feedforward_width = 0 must be at least 1"),
        ({"dropout": 1.0}, r"dropout = 1.0 must be at least 0 and below 1"),
        ({"dropout": 1}, r"dropout = 1 must be at least 0 and below 1"),
        ({"dropout": -0.1}, r"dropout = -0.1 must be at least 0 and below 1"),
        ({"dropout": float("nan")}, r"dropout = nan must be at least 0 and below 1"),
    ],
)
def test_numbers_that_do_not_fit_together_are_one_line_with_both(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=rf"^{message}[^\n]*$"):
        DecoderConfig(**fields)


def test_what_is_not_given_follows_from_the_rest() -> None:
    config = DecoderConfig(width=24, heads=3)
    assert (config.key_value_heads, config.width_of_head, config.hidden) == (3, 8, 96)
    config = DecoderConfig(width=10, heads=4, kv_heads=2, head_width=6, feedforward_width=14)
    assert (config.key_value_heads, config.width_of_head, config.hidden) == (2, 6, 14)


def test_a_configuration_is_a_value() -> None:
    config = DecoderConfig()
    assert config == DecoderConfig()
    assert hash(config) == hash(DecoderConfig())
    assert replace(config, width=64) != config
    with pytest.raises(FrozenInstanceError):
        config.width = 64  # type: ignore[misc]


def test_configurations_are_read_and_written_without_torch() -> None:
    code = (
        "import sys, json\n"
        "from clearhead.models.codec import from_plain, to_plain\n"
        "from clearhead.models.config import DecoderConfig, ModelConfig\n"
        "config = DecoderConfig(width=64)\n"
        "assert from_plain(json.loads(json.dumps(to_plain(config))), ModelConfig) == config\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
