"""The flow: costs that add up to the model's, formulas for every name, source lines that say what they say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import clearhead
from clearhead.models import choices as c
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.cost import flops_per_token, parameters
from clearhead.tracing.names import NAMES
from clearhead.tracing.trace import summary
from clearhead.web import flow, sources
from clearhead.web.costs import Made, flops_of, made_of
from clearhead.web.files import static_files
from clearhead.web.formulas import FORMULAS, formula, row_of
from clearhead.web.opening import opened
from clearhead.web.sources import source_of
from tests.equalities.variants import VARIANTS, model_of
from tests.equalities.variants_encoders import ENCODERS, PAIRS, encoder_of, pair_of
from tests.web.read_models import ALL, TEXT, decoder, loaded_of, pair, target_of
from tests.web.test_opening import traced

GRID = [
    *(("decoder", each) for each in VARIANTS),
    *(("encoder", each) for each in ENCODERS),
    *(("pair", each) for each in PAIRS),
]
MODELS: dict[str, Callable[[str], object]] = {"decoder": model_of, "encoder": encoder_of, "pair": pair_of}
CONFIGS = {"decoder": VARIANTS, "encoder": ENCODERS, "pair": PAIRS}


def check_parameters(made: dict[str, Made], config: DecoderConfig | EncoderConfig | EncoderDecoderConfig) -> None:
    """The sum is the model's, and each part's that the names tell apart."""
    wanted = parameters(config)
    assert sum(each.parameters for each in made.values()) == sum(wanted.values())
    embedding = sum(each.parameters for name, each in made.items() if name.endswith("embedding"))
    assert embedding == wanted["embedding"]


@pytest.mark.parametrize(("kind", "variant"), GRID)
def test_parameters_add_up_to_the_models(kind: str, variant: str) -> None:
    made, config = made_of(MODELS[kind](variant)), CONFIGS[kind][variant]  # type: ignore[arg-type]
    check_parameters(made, config)
    name = "decoder.blocks.0.middle" if kind == "pair" else "blocks.0.attention.q"
    with pytest.raises(AssertionError):
        check_parameters({**made, name: made[name]._replace(parameters=made[name].parameters + 1)}, config)


def test_what_is_shared_is_counted_once() -> None:
    made = made_of(decoder("learned").model)
    assert made["logits"] == Made(0, 11 * 24)
    assert made["blocks.0.attention.q"].parameters == 24 * 24
    assert made["blocks.0.attention.k"].parameters == made["blocks.0.attention.v"].parameters == 24 * 12
    assert made_of(decoder("untied, biases").model)["logits"] == Made(11 * 24 + 11, 0)
    assert made_of(decoder("rotary partial, parallel").model)["blocks.1.feedforward_norm"] == Made(0, 24)
    assert made_of(pair("T5").model)["encoder.blocks.2.attention.scores"] == Made(0, 8 * 4)


PARTS = {"q": "qkv", "k": "qkv", "v": "qkv", "scores": "scores", "mixed": "mixing", "output": "output"}


def by_part(flops: dict[str, int]) -> dict[str, int]:
    """What costs, by the parts of `models.cost`."""
    found: dict[str, int] = {}
    for name, each in flops.items():
        own = name.removeprefix("decoder.")
        last = own.rpartition(".")[2]
        if own.startswith("encoder.") or "cross_attention.k" in own or "cross_attention.v" in own:
            part = "encoder"
        elif "cross_attention" in own:
            part = "cross_attention"
        else:
            part = PARTS[last] if ".attention." in own else "feedforward" if "feedforward" in own else "head"
        found[part] = found.get(part, 0) + each
    return found


@pytest.mark.parametrize(("kind", "variant"), GRID)
def test_arithmetic_adds_up_to_the_models(kind: str, variant: str) -> None:
    config = CONFIGS[kind][variant]
    length, source = 13, 7
    wanted = {
        part: each * (source if part == "encoder" else length)
        for part, each in flops_per_token(config, length, source=source).items()
    }
    if isinstance(config, EncoderConfig) and isinstance(config.head, c.Pooled) and config.head.dense:
        wanted["head"] = 2 * 24**2
    found = by_part(flops_of(config, length, source))
    assert found == {part: each for part, each in wanted.items() if each}
    assert by_part(flops_of(config, length + 1, source)) != found


@pytest.mark.parametrize(("kind", "variant"), ALL)
def test_what_the_flow_tells_is_what_a_trace_shows(kind: str, variant: str) -> None:
    session = opened(loaded_of(kind, variant), TEXT, target_of(kind))
    stages, wanted = json.loads(flow.answer(session, {}).body)["stages"], traced(session)
    assert [each["name"] for each in stages] == list(wanted)
    for stage in stages:
        tensor = wanted[stage["name"]]
        told = summary(tensor)
        assert (stage["bytes"], stage["shape"]) == (told.pop("bytes"), list(tensor.shape))
        assert stage["summary"] == pytest.approx(told, rel=1e-6, abs=1e-6)
        assert stage["formula"]
        assert stage["source"]
        assert (stage["block"] is None) == ("blocks" not in stage["name"])
    config = loaded_of(kind, variant).config
    assert sum(each["parameters"] for each in stages) == sum(parameters(config).values())
    assert sum(each["flops"] for each in stages) == sum(
        flops_of(config, len(session.ids), len(session.source)).values()
    )


def test_many_scores_are_left_to_whoever_opens_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "FEW", 100)
    stages = json.loads(flow.answer(opened(decoder(), TEXT), {}).body)["stages"]
    unknown = [each["name"] for each in stages if each["summary"]["mean"] is None]
    assert len(unknown) == 4
    assert all(name.endswith((".scores", ".weights")) for name in unknown)


def test_parts_and_blocks_of_a_name() -> None:
    assert flow.part_of("decoder.blocks.10.cross_attention.q") == "decoder.cross_attention"
    assert [flow.part_of(name) for name in ("logits", "blocks.3.middle", "head.output", "encoder.norm")] == [
        "", "", "head", "encoder",
    ]  # fmt: skip
    assert [flow.block_of(name) for name in ("decoder.blocks.10.output", "norm")] == [10, None]


def test_the_tables_of_names_and_formulas_have_the_same_keys() -> None:
    assert list(FORMULAS) == list(NAMES)
    assert all(FORMULAS.values())
    assert row_of("encoder.blocks.12.attention.q") == "blocks.*.attention.q"


def test_formulas_follow_the_models_choices() -> None:
    plain, turned = VARIANTS["learned"], VARIANTS["rotary, fused"]
    assert formula("blocks.0.attention.q", plain) == "q = n W_Q"
    assert "R(t)" in formula("blocks.0.attention.k", turned)
    assert "R(t)" not in formula("blocks.0.attention.v", turned)
    assert "R(t)" not in formula("blocks.1.attention.q", VARIANTS["cycle"]), "that block does not turn"
    assert formula("blocks.0.attention.scores", VARIANTS["soft-cap"]) == "scores = c · tanh(q kᵀ / √d / c), c = 5"
    assert "m_h" in formula("blocks.0.attention.scores", VARIANTS["ALiBi"])
    assert "sink" in formula("blocks.0.attention.weights", VARIANTS["sinks"])
    assert formula("blocks.0.middle", VARIANTS["sinusoidal, post-norm"]).startswith("u = N(x + a)")
    assert formula("blocks.0.middle", VARIANTS["around, QK-norm"]).startswith("u = x + N(a)")
    assert formula("blocks.0.output", VARIANTS["parallel, biases"]) == "z = x + a + f"
    assert formula("blocks.0.output", plain) == "z = u + f"
    assert formula("decoder.blocks.0.output", PAIRS["learned"].decoder) == "z = w + f"
    assert "N(x) = γ x / √(mean(x²) + ε)" in formula("norm", turned)
    assert formula("logits", plain) == "logits = y Eᵀ"
    assert formula("logits", VARIANTS["untied, biases"]) == "logits = y W_V + b_V"
    assert formula("blocks.0.attention.of_my_own", plain) == ""


def test_words_of_formulas_are_said_by_the_page() -> None:
    """What is written in letters of its own is a name, a function or a word in braces that both languages have."""
    every = [
        *((name, config) for config in VARIANTS.values() for name in FORMULAS),
        *((name, config) for config in ENCODERS.values() for name in FORMULAS),
        *((name, config.decoder) for config in PAIRS.values() for name in FORMULAS),
    ]
    written = {formula(re.sub(r"\*", "0", name), config) for name, config in every}
    words = {word for each in written for word in re.findall(r"\{(\w+)\}", each)}
    for language in ("en", "zh"):
        table = json.loads(static_files()[f"{language}.json"])
        own = {name.removeprefix("formula.") for name in table if name.startswith("formula.")}
        assert words <= own
        assert own - words <= {"norm"}, "a text for nobody"
    assert plain_words(written) == []
    assert plain_words({"a = the sum of b"}) == ["the sum"], "planted"


def plain_words(formulas: set[str]) -> list[str]:
    """English in formulas, outside the braces: two words side by side."""
    return sorted({found for each in formulas for found in re.findall(r"\b[a-z]{2,} [a-z]{2,}\b", each)})


def check_line(source: sources.Source, name: str) -> None:
    """The file has that statement at that line, and it is about the name."""
    lines = (Path(clearhead.__file__).parent.parent / source.file).read_text(encoding="utf-8").splitlines()
    text = source.text.splitlines()
    assert [each.strip() for each in lines[source.line - 1 :][: len(text)]] == [each.strip() for each in text]
    last = name.rpartition(".")[2]
    assert f'tap("{last}"' in source.text or source.text.startswith((f"{last} = ", "chosen = "))


@pytest.mark.parametrize(("kind", "variant"), ALL)
def test_every_tensor_has_its_line(kind: str, variant: str) -> None:
    loaded = loaded_of(kind, variant)
    for stage in opened(loaded, TEXT, target_of(kind)).stages:
        source = source_of(loaded.model, stage.name)
        assert source is not None, stage.name
        check_line(source, stage.name)
        with pytest.raises(AssertionError):
            check_line(source._replace(line=source.line + 1), stage.name)


def test_lines_are_where_one_would_look() -> None:
    model = decoder("rotary, fused").model
    found = {name: source_of(model, name) for name in ("blocks.0.attention.mixed", "blocks.1.attention.scores", "norm")}
    assert [each and each.file for each in found.values()] == [
        "clearhead/layers/attention.py", "clearhead/ops/attention.py", "clearhead/models/decoder.py",
    ]  # fmt: skip
    mixed = found["blocks.0.attention.mixed"]
    assert mixed is not None
    assert mixed.text.startswith("mixed = self.attend(q, k, v, visible")
    assert source_of(model, "blocks.0.attention.of_my_own") is None
    cross = source_of(pair().model, "decoder.blocks.0.cross_attention.k")
    assert cross is not None
    assert "self.k_norm" in cross.text


def test_a_model_in_another_number_type_has_other_bytes() -> None:
    loaded = replace(decoder(), model=model_of("learned").float())
    first = json.loads(flow.answer(opened(loaded, TEXT), {}).body)["stages"][0]
    assert first["bytes"] == 4 * 11 * 24
