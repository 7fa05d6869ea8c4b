"""Choices: their own numbers, what does not go together, and the way through JSON."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from clearhead.messages import UserError
from clearhead.models import choices as kinds
from clearhead.models.codec import KINDS, from_plain, to_plain
from clearhead.models.config import DecoderConfig, ModelConfig, Sight, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from tests.models import choices_drawn
from tests.models.choices_drawn import decoders, encoder_decoders, encoders, models

BASE = DecoderConfig(vocab=11, layers=3, heads=4, kv_heads=2, width=12, head_width=6, context=9)
WINDOWED = (Sight(window=3), Sight())
BARE = (Sight(positions=kinds.NoPositions()),)


# What may not be written


def refused(**fields: Any) -> str:
    """What is said of a configuration that may not be written."""
    try:
        made = DecoderConfig(**fields)
    except UserError as error:
        return str(error)
    raise AssertionError(f"{made} was not refused")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"kernel": kinds.Fused(), "softcap": 30.0}, ["kernel Fused", "softcap", "kernel Visible or Auto"]),
        ({"kernel": kinds.Fused(), "sinks": True}, ["kernel Fused", "sinks", "kernel Visible or Auto"]),
        ({"softcap": 30.0, "sinks": True}, ["softcap", "sinks", "one of them"]),
        ({"window": 4, "cycle": WINDOWED}, ["window", "cycle", "the window inside the cycle"]),
        ({"cycle": BARE}, ["positions Learned", "positions inside the cycle", "positions Rotary"]),
        ({"cycle": BARE, "positions": kinds.ALiBi()}, ["positions ALiBi", "positions inside the cycle"]),
        ({"cycle": BARE, "positions": kinds.Sinusoidal()}, ["positions Sinusoidal", "positions inside the cycle"]),
        ({"positions": kinds.Rotary(), "width": 4, "heads": 4}, ["fraction 1.0", "head width of 1"]),
        ({"positions": kinds.Rotary(fraction=0.1), "head_width": 8}, ["fraction 0.1", "head width of 8"]),
        (
            {
                "positions": kinds.Rotary(),
                "head_width": 8,
                "cycle": (Sight(positions=kinds.Rotary(fraction=0.2)),),
            },
            ["fraction 0.2", "head width of 8"],
        ),
        ({"positions": kinds.Sinusoidal(), "width": 9, "heads": 3}, ["width = 9", "Sinusoidal"]),
        ({"softcap": 0.0}, ["softcap = 0.0", "> 0"]),
        ({"softcap": float("nan")}, ["softcap = nan", "> 0"]),
        ({"attention_scale": -1.0}, ["attention_scale = -1.0", "> 0"]),
        ({"attention_scale": float("inf")}, ["attention_scale = inf", "> 0"]),
        ({"window": 0}, ["window = 0", "at least 1"]),
        ({"window": 2.5}, ["window = 2.5", "int"]),
        ({"head_width": 0}, ["head_width = 0", "at least 1"]),
        ({"kv_heads": True}, ["kv_heads = True", "int"]),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_one_line_with_both(wrong: dict[str, Any], named: list[str]) -> None:
    said = refused(**wrong)
    assert "\n" not in said
    for name in named:
        assert name in said


def test_each_half_of_a_clash_alone_is_legal() -> None:
    rotary = kinds.Rotary()
    for legal in (
        {"kernel": kinds.Fused()},
        {"softcap": 30.0},
        {"softcap": 30.0, "kernel": kinds.Visible()},
        {"sinks": True, "kernel": kinds.Auto()},
        {"window": 4, "kernel": kinds.Fused()},
        {"cycle": WINDOWED},
        {"cycle": BARE, "positions": rotary},
        {"positions": kinds.Sinusoidal(), "width": 10, "heads": 5},
        {"positions": kinds.Learned(), "width": 9, "heads": 3},
    ):
        assert isinstance(DecoderConfig(**legal), DecoderConfig)


@pytest.mark.parametrize("head", [kinds.Features(), kinds.Pooled(kinds.Mean(), dense=True)], ids=["features", "pooled"])
def test_a_bias_of_a_head_that_has_none_is_refused(head: kinds.EncoderHead) -> None:
    """It would be accepted, built nowhere, and missed by nobody."""
    with pytest.raises(UserError, match=f"^head_bias and head {type(head).__name__} do not go together; [^\n]*$"):
        EncoderConfig(head=head, head_bias=True)
    assert EncoderConfig(head=head).head == head
    assert EncoderConfig(head_bias=True).head == kinds.MaskedToken()
    # The decoder's head has one; the encoder that reads for it has none.
    pair = EncoderDecoderConfig(head_bias=True)
    assert (pair.decoder.head_bias, pair.encoder.head_bias) == (True, False)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda x: kinds.LayerNorm(eps=x), "norm.eps"),
        (lambda x: kinds.RMSNorm(eps=x), "norm.eps"),
        (lambda x: kinds.Sinusoidal(base=x), "positions.base"),
        (lambda x: kinds.Linear(factor=x), "scaling.factor"),
        (lambda x: kinds.YaRN(factor=x, original_context=8), "scaling.factor"),
        (lambda x: kinds.Llama3(factor=x), "scaling.factor"),
    ],
)
def test_numbers_of_choices_are_above_0(make: Any, field: str, wrong: float) -> None:
    with pytest.raises(UserError, match=rf"^{field} = {wrong} must be > 0$"):
        make(wrong)


@pytest.mark.parametrize("theta", [1.0, 0.0, -1.0, float("nan"), float("inf")])
def test_the_base_of_rotary_frequencies_is_above_1(theta: float) -> None:
    with pytest.raises(UserError, match=rf"^positions.theta = {theta} must be > 1"):
        kinds.Rotary(theta=theta)


@pytest.mark.parametrize(
    "make",
    [
        lambda: kinds.YaRN(2.0, 8, fast=1.0, slow=2.0),
        lambda: kinds.YaRN(2.0, 8, fast=1.0, slow=1.0),
        lambda: kinds.YaRN(2.0, 0),
        lambda: kinds.YaRN(2.0, 8, slow=0.0),
        lambda: kinds.Llama3(low=4.0, high=1.0),
        lambda: kinds.Llama3(original_context=-5),
    ],
)
def test_scalings_have_their_bounds_in_order(make: Any) -> None:
    with pytest.raises(UserError, match=r"^scaling\."):
        make()


@pytest.mark.parametrize(
    ("field", "wrong", "wanted"),
    [
        ("positions", kinds.Rotary, "Positions"),
        ("positions", "Rotary", "Positions"),
        ("norm", kinds.RMSNorm, "Norm"),
        ("kernel", "Visible", "Kernel"),
        ("tied", "no", "bool"),
        ("dropout", "0.1", "float"),
        ("width", 64.0, "int"),
        ("layers", True, "int"),
        ("cycle", (3,), "tuple"),
    ],
)
def test_a_class_or_a_name_in_place_of_a_choice_is_refused(field: str, wrong: object, wanted: str) -> None:
    with pytest.raises(UserError, match=rf"DecoderConfig\.{field} = .* must be {wanted}"):
        DecoderConfig(**{field: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("fraction", [0.0, -0.5, 1.01, float("nan")])
def test_a_fraction_is_above_0_and_at_most_1(fraction: float) -> None:
    with pytest.raises(UserError, match=rf"positions.fraction = {fraction} "):
        kinds.Rotary(fraction=fraction)


@pytest.mark.parametrize(("fraction", "width", "turned"), [(1, 8, 8), (1, 7, 6), (0.5, 8, 4), (0.4, 8, 2), (0.2, 8, 0)])
def test_an_even_number_of_features_is_turned(fraction: float, width: int, turned: int) -> None:
    assert kinds.Rotary(fraction=fraction).turned(width) == turned


def test_a_sight_has_rotary_or_no_positions_and_a_window_of_1_or_more() -> None:
    for wrong in (kinds.Learned(), kinds.ALiBi(), kinds.Sinusoidal()):
        with pytest.raises(UserError, match=f"Rotary or NoPositions of its own, not {type(wrong).__name__}"):
            Sight(positions=wrong)
    with pytest.raises(UserError, match="window = 0 must be at least 1"):
        Sight(window=0)


# Through JSON


@given(models())
def test_every_configuration_survives_json(config: ModelConfig) -> None:
    plain = json.loads(json.dumps(to_plain(config)))
    assert from_plain(plain, ModelConfig) == config


def test_every_choice_can_be_named_and_is_drawn() -> None:
    """No class is forgotten by the codec or by the test above."""
    source = Path(choices_drawn.__file__).read_text(encoding="utf-8")
    leaves = {name for name, kind in vars(kinds).items() if is_dataclass(kind) and issubclass(kind, kinds.Choice)}
    assert {"GELU", "Max", "Pooled"} <= leaves <= set(KINDS)
    assert {leaf for leaf in leaves if re.search(rf"\bkinds\.{leaf}\b", source)} == leaves


@pytest.mark.parametrize("kind", [DecoderConfig, EncoderConfig, EncoderDecoderConfig])
def test_every_field_of_every_kind_is_drawn(kind: type[StackConfig]) -> None:
    """Each field is seen with two values at least."""
    seen: dict[str, set[str]] = {field.name: set() for field in fields(kind)}

    @settings(database=None, derandomize=True, max_examples=150)
    @given({DecoderConfig: decoders, EncoderConfig: encoders, EncoderDecoderConfig: encoder_decoders}[kind]())
    def look(config: StackConfig) -> None:
        for name, values in seen.items():
            values.add(repr(getattr(config, name)))

    look()
    assert [name for name, values in seen.items() if len(values) < 2] == []


def test_a_cycle_is_a_list_of_sights() -> None:
    config = replace(BASE, positions=kinds.Rotary(), cycle=(Sight(window=3), *BARE))
    written = to_plain(config)["init_args"]["cycle"]
    assert [sight["class_path"] for sight in written] == ["Sight", "Sight"]
    assert written[1]["init_args"]["positions"] == {"class_path": "NoPositions", "init_args": {}}
    assert from_plain(to_plain(config), ModelConfig) == config
    for wrong in (3, "Sight", {"class_path": "Sight"}):
        with pytest.raises(UserError, match=r"DecoderConfig\.cycle = .* must be list"):
            from_plain({"class_path": "DecoderConfig", "init_args": {"cycle": wrong}}, ModelConfig)
    with pytest.raises(UserError, match="no Sight called GELU"):
        from_plain({"class_path": "DecoderConfig", "init_args": {"cycle": [{"class_path": "GELU"}]}}, ModelConfig)


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"class_path": "YaRN", "init_args": {"factor": 2.0}}, "YaRN lacks the field original_context"),
        ({"class_path": "Linear"}, "Linear lacks the field factor"),
        ({"class_path": "RMSNorm"}, "no Scaling called RMSNorm; there are Linear, Llama3, Unscaled, YaRN"),
        ({"class_path": "Linear", "init_args": {"factor": "2"}}, "Linear.factor = '2' must be float"),
        ({"class_path": "Linear", "factor": 2.0}, "Linear has no field factor; it has class_path, init_args"),
        ({"class_path": "Linear", "init_args": [2.0]}, "Linear.init_args = [2.0] must be dict"),
    ],
)
def test_a_choice_that_does_not_fit_is_one_line(plain: dict[str, Any], message: str) -> None:
    rotary = {"class_path": "Rotary", "init_args": {"scaling": plain}}
    with pytest.raises(UserError) as raised:
        from_plain({"class_path": "DecoderConfig", "init_args": {"positions": rotary}}, ModelConfig)
    assert message in str(raised.value)
