"""`clearhead info`: what models of every kind cost, and how two differ."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import copytree

import pytest

from clearhead.formats.load import load
from clearhead.models.build import build
from clearhead.models.choices import Pooled
from clearhead.models.codec import to_plain
from clearhead.models.config import DecoderConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.cost import parameters
from clearhead.models.explain import explain
from clearhead.models.presets import PRESETS
from tests.cli.runs import Clearhead


def test_info_counts_the_built_model(clearhead: Clearhead, trained: Path) -> None:
    facts = json.loads(clearhead("info", trained, "--json").out)
    assert set(facts) == {"parameters", "flops_per_token", "training_bytes", "generation_bytes"}
    model = load(trained).model
    assert facts["parameters"]["total"] == sum(parameter.numel() for parameter in model.parameters())
    for kind in ("parameters", "flops_per_token", "training_bytes"):
        assert 2 * facts[kind]["total"] == sum(facts[kind].values())


def test_info_of_a_model_that_is_not_built(clearhead: Clearhead) -> None:
    asked = ("--model.layers", 3, "--model.width", 48, "--model.kv-heads", 2, "--model.tied", "false")
    facts = json.loads(clearhead("info", *asked, "--json").out)
    built = build(DecoderConfig(layers=3, width=48, kv_heads=2, tied=False), device="meta")
    assert facts["parameters"]["total"] == sum(parameter.numel() for parameter in built.parameters())


def test_info_in_words(clearhead: Clearhead, trained: Path) -> None:
    said = clearhead("info", trained, "--batch", 5)
    assert (said.status, said.err) == (0, "")
    assert "1 blocks, 2 heads" in said.out
    assert "5 windows of 12 tokens" in said.out
    assert said.out.count("100.0%") >= 4
    assert clearhead("info").status == 0


@pytest.mark.parametrize(
    ("model", "config"),
    [
        (("EncoderConfig", "--model.segments", 2), EncoderConfig(segments=2, layers=3)),
        (("EncoderConfig", "--model.head", "Pooled"), EncoderConfig(head=Pooled(), layers=3)),
        (("EncoderDecoderConfig", "--model.encoder-layers", 2), EncoderDecoderConfig(encoder_layers=2, layers=3)),
        (("EncoderDecoderConfig", "--model.source_vocab", 9), EncoderDecoderConfig(source_vocab=9, layers=3)),
    ],
    ids=str,
)
def test_info_of_models_with_an_encoder_counts_the_built_model(
    clearhead: Clearhead, model: tuple[object, ...], config: StackConfig
) -> None:
    facts = json.loads(clearhead("info", "--model", *model, "--model.layers", 3, "--json").out)
    assert set(facts) == {"parameters", "flops_per_token", "training_bytes", "generation_bytes"}
    built = build(config, device="meta")
    assert facts["parameters"]["total"] == sum(parameter.numel() for parameter in built.parameters())
    pair = isinstance(config, EncoderDecoderConfig)
    assert ("cross_attention" in facts["parameters"], "encoder" in facts["flops_per_token"]) == (pair, pair)
    assert (facts["generation_bytes"]["cache"] > 0) == pair
    for parts in facts.values():
        assert 2 * parts["total"] == sum(parts.values())


# What the lines above the numbers must say, so that the numbers are not taken for others.
SAID = {
    "gpt2": (["12 blocks, 12 heads", "12 windows of 1024 tokens"], ["12 个块", "12 个长 1024 token 的窗口"]),
    "bert": (
        ["an encoder: 12 blocks", "2 segments, head MaskedToken", "all 512 positions", "12 rows of 512", "no cache"],
        ["编码器：12 个块", "段 2 种，输出头 MaskedToken", "全部 512 个位置", "12 行，每行 512", "没有缓存"],
    ),
    "bart": (
        [
            "an encoder-decoder: 6 + 6 blocks",
            "context 1024 (source) and 1024 (target), vocabulary 50265",
            "one target token looking at 1024 keys of its own and 1024 of the source, and, as encoder, of one source token",
            "12 pairs of 1024 source and 1024 target tokens",
            "generate 1024 tokens from 1024",
        ],
        [
            "编码器-解码器：6 + 6 个块",
            "1024（源）与 1024（目标），词表 50265",
            "一个目标 token（可看自身 1024 个键与源的 1024 个键），以及 encoder 一行的一个源 token",
            "12 对，每对 1024 个源 token 与 1024 个目标 token",
            "由 1024 个源 token 生成 1024 个 token",
        ],
    ),
}


@pytest.mark.parametrize("preset", SAID)
def test_info_says_in_both_languages_what_it_counts(
    clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch, preset: str
) -> None:
    for language, wanted in zip(("en", "zh"), SAID[preset], strict=True):
        monkeypatch.setenv("CLEARHEAD_LANG", language)
        said = clearhead("info", preset)
        assert (said.status, said.err) == (0, "")
        assert [words for words in wanted if words not in said.out] == []
        assert said.out.count("100.0%") == 4


def test_info_tells_source_and_target_apart(clearhead: Clearhead, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (
        "--model.context",
        30,
        "--model.source_context",
        20,
        "--model.source_vocab",
        9,
        "--model.encoder_layers",
        2,
    )
    said = clearhead("info", "--model", "EncoderDecoderConfig", *sizes, "--batch", 5).out
    assert "2 + 4 blocks" in said
    assert "context 20 (source) and 30 (target), vocabulary 9 (source) and 256 (target)" in said
    assert "looking at 30 keys of its own and 20 of the source" in said
    assert "5 pairs of 20 source and 30 target tokens" in said
    assert "generate 30 tokens from 20" in said
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    said = clearhead("info", "--model", "EncoderDecoderConfig", *sizes, "--batch", 5).out
    assert "2 + 4 个块" in said
    assert "上下文 20（源）与 30（目标），词表 9（源）与 256（目标）" in said
    assert "可看自身 30 个键与源的 20 个键" in said
    assert "每次 5 对，每对 20 个源 token 与 30 个目标 token" in said
    assert "由 20 个源 token 生成 30 个 token" in said


@pytest.mark.parametrize(("dtype", "times"), [("float64", 2), ("bfloat16", 0.5), ("float16", 0.5)])
def test_info_counts_what_generating_takes_in_a_type(
    clearhead: Clearhead, trained: Path, dtype: str, times: float
) -> None:
    usual, found = (json.loads(clearhead("info", trained, "--json", *more).out) for more in ([], ["--dtype", dtype]))
    assert found["generation_bytes"] == {name: value * times for name, value in usual["generation_bytes"].items()}
    assert found["training_bytes"] == usual["training_bytes"]
    for model in (trained, "bert", "t5"):
        assert f" in {dtype}" in clearhead("info", model, "--dtype", dtype).out
    assert "there is no number type int8" in clearhead("info", trained, "--dtype", "int8").mistake


def test_info_of_a_run_of_any_kind(clearhead: Clearhead, trained: Path, tmp_path: Path) -> None:
    run = copytree(trained, tmp_path / "run")
    written = json.loads((run / "config.json").read_text(encoding="utf-8"))
    config = EncoderDecoderConfig(vocab=11, layers=2, encoder_layers=1, width=8, heads=2)
    (run / "config.json").write_text(json.dumps({**written, "model": to_plain(config)}), encoding="utf-8")
    facts = json.loads(clearhead("info", run, "--json").out)
    assert facts["parameters"]["total"] == sum(parameters(config).values())
    assert clearhead("info", "--explain", run, "t5").out.startswith("vocab: 11 → 32,128.")


def test_info_explains_two_models(clearhead: Clearhead, trained: Path) -> None:
    for first, second in (("gpt2", "qwen3"), ("bart", "t5"), ("gpt2", "bert"), ("transformer", "bert")):
        said = clearhead("info", "--explain", first, second)
        assert (said.status, said.err) == (0, "")
        assert said.out.splitlines() == explain(PRESETS[first], PRESETS[second])
    answer = json.loads(clearhead("info", "--explain", "bert", trained, "--json").out)
    assert answer["differences"][0].startswith("the first is an encoder, the second a decoder;")
    assert set(answer) == {"first", "second", "differences"}


def test_the_help_of_info_lists_every_preset(clearhead: Clearhead) -> None:
    words = re.findall(r"\w+", clearhead("info", "--help").out)
    assert set(PRESETS) <= set(words)


def test_info_memory_grows_with_the_batch(clearhead: Clearhead, trained: Path) -> None:
    one, four = (json.loads(clearhead("info", trained, "--batch", n, "--json").out) for n in (1, 4))
    assert four["training_bytes"]["activations"] == 4 * one["training_bytes"]["activations"]
