"""Tiny models of transformers, written as converters write them: ours computes what theirs does with the numbers that are in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.gguf.file import open_gguf
from clearhead.formats.gguf.rotation import _fraction, decimal
from clearhead.messages import UserError
from clearhead.models.choices import (
    GELUTanh,
    LayerNorm,
    Learned,
    Linear,
    Llama3,
    RMSNorm,
    Rotary,
    SwiGLU,
    Unscaled,
    YaRN,
)
from clearhead.models.config import DecoderConfig
from clearhead.ops.rotary import llama3_scaled, rotary_frequencies
from tests.formats.gguf.written import CONTEXT, L, V, laid_out, model_in, tiny, under, write_model
from tests.oracles.compare import assert_within

B, T = 2, 11
IDS = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(3))
KINDS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1")
BIASED: dict[str, Any] = {"attention_bias": True, "mlp_bias": True}


@torch.no_grad()
def check(path: Path, theirs: nn.Module) -> None:
    """Both give the same logits."""
    assert_within(model_in(path)(IDS), theirs(IDS).logits, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gpt2"])
@torch.no_grad()
def test_logits(tmp_path: Path, architecture: str, kind: str) -> None:
    theirs = tiny(architecture)
    before = {name: parameter.clone() for name, parameter in theirs.named_parameters()}
    write_model(tmp_path / "model.gguf", architecture, theirs, kind)
    check(tmp_path / "model.gguf", theirs)
    # Formats that lose something did lose it: what is compared is not what was there before.
    assert (kind == "F32") is all(torch.equal(before[name], now) for name, now in theirs.named_parameters())


@pytest.mark.parametrize(
    ("architecture", "more"),
    [
        ("llama", BIASED),
        ("llama", BIASED | {"tie_word_embeddings": True}),
        ("llama", {"attention_bias": True}),
        ("llama", {"mlp_bias": True}),
        ("qwen2", {"tie_word_embeddings": True}),
        ("qwen3", {"tie_word_embeddings": True, "attention_bias": True}),
        ("gpt2", {"tie_word_embeddings": False}),
        ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}, "rms_norm_eps": 0.03}),
        ("gpt2", {"layer_norm_epsilon": 0.03}),
    ],
)
def test_variants(tmp_path: Path, architecture: str, more: dict[str, Any]) -> None:
    theirs = tiny(architecture, more)
    write_model(tmp_path / "model.gguf", architecture, theirs)
    check(tmp_path / "model.gguf", theirs)


@pytest.mark.parametrize("without", ["q", "k"])
def test_rows_left_in_pairs_are_noticed(tmp_path: Path, without: str) -> None:
    def halves(architecture: str, model: nn.Module, name: str, x: Tensor) -> Tensor:
        return x if f"{without}_proj" in name else laid_out(architecture, model, name, x)

    theirs = tiny("llama")
    write_model(tmp_path / "model.gguf", "llama", theirs, layout=halves)
    with pytest.raises(AssertionError):
        check(tmp_path / "model.gguf", theirs)


def test_configurations(tmp_path: Path) -> None:
    found = {}
    for architecture in ("llama", "qwen2", "qwen3", "gpt2"):
        write_model(tmp_path / "model.gguf", architecture, tiny(architecture))
        found[architecture] = open_gguf(tmp_path / "model.gguf").config
    shared: dict[str, Any] = {
        "vocab": V,
        "layers": L,
        "context": CONTEXT,
        "feedforward_width": 160,
        "output_bias": False,
    }
    plain = Rotary(10_000.0)
    assert found["llama"] == DecoderConfig(
        **shared, heads=4, kv_heads=2, width=96, head_width=16, tied=False, positions=plain, **swiglu()
    )
    assert found["qwen2"] == DecoderConfig(
        **shared, heads=6, kv_heads=2, width=96, head_width=16, tied=False, positions=plain, qkv_bias=True, **swiglu()
    )
    assert found["qwen3"] == DecoderConfig(
        **shared, heads=3, kv_heads=1, width=64, head_width=32, tied=False, positions=plain, qk_norm=True, **swiglu()
    )
    biased = {**shared, "output_bias": True, "bias": True, "qkv_bias": True}
    assert found["gpt2"] == DecoderConfig(
        **biased, heads=3, width=96, activation=GELUTanh(), norm=LayerNorm(1e-5), positions=Learned()
    )


def swiglu() -> dict[str, Any]:
    return {"activation": SwiGLU(), "norm": RMSNorm(1e-6)}


def test_what_a_person_wrote() -> None:
    assert decimal(float(np.float32(1e-5))) == 1e-5
    assert decimal(float(np.float32(1e6))) == 1e6
    assert decimal(1 / 3) == 1 / 3
    assert decimal(1e300) == 1e300


LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
THETA = 5e5


def factors(scaling: Llama3, turned: int = 16) -> np.ndarray:
    """What converters write for Llama 3's scaling."""
    plain = rotary_frequencies(turned, THETA)
    scaled = llama3_scaled(
        plain, scaling.factor, low=scaling.low, high=scaling.high, original_context=scaling.original_context
    )
    return (plain / scaled).float().numpy()


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_scaling_of_llama3(tmp_path: Path, factor: float) -> None:
    rope = {"rope_type": "llama3", "rope_theta": THETA, "factor": factor, **LLAMA3}
    theirs = tiny("llama", {"rope_parameters": rope})
    known = {"rope_freqs.weight": factors(Llama3(factor))}
    # The numbers of the tensor are those by which transformers divides.
    plain = 1.0 / THETA ** (np.arange(0, 16, 2) / 16)
    np.testing.assert_allclose(plain / theirs.model.rotary_emb.inv_freq.numpy(), known["rope_freqs.weight"], rtol=1e-5)
    write_model(tmp_path / "model.gguf", "llama", theirs, tensors=known)
    assert open_gguf(tmp_path / "model.gguf").config.positions == Rotary(THETA, scaling=Llama3(factor))
    check(tmp_path / "model.gguf", theirs)
    # Without them, or with those of the other factor, the same check fails.
    for other in ({}, {"rope_freqs.weight": factors(Llama3(40.0 - factor))}):
        write_model(tmp_path / "model.gguf", "llama", theirs, tensors=other)
        with pytest.raises(AssertionError):
            check(tmp_path / "model.gguf", theirs)


@pytest.mark.parametrize(
    "numbers",
    [factors(Llama3(16.0)), factors(Llama3(8.0, high=8.0)), factors(Llama3(8.0))[:-1], factors(Llama3(8.0))[::-1]],
)
def test_other_factors_are_refused(tmp_path: Path, numbers: np.ndarray) -> None:
    rope = {"rope_type": "default", "rope_theta": THETA}
    theirs = tiny("llama", {"rope_parameters": rope})
    write_model(tmp_path / "model.gguf", "llama", theirs, tensors={"rope_freqs.weight": numbers})
    assert "rope_freqs" in refusal(tmp_path / "model.gguf")
    write_model(tmp_path / "model.gguf", "llama", theirs, tensors={"rope_freqs.weight": np.ones(8, np.float32)})
    check(tmp_path / "model.gguf", theirs)


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_other_scalings(tmp_path: Path, architecture: str) -> None:
    path = tmp_path / "model.gguf"
    linear = {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}
    theirs = tiny(architecture, {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}})
    write_model(path, architecture, theirs, more=under(architecture, linear))
    assert positions(path).scaling == Linear(4.0)
    check(path, theirs)
    yarn = {**linear, "rope.scaling.type": "yarn", "rope.scaling.original_context_length": 6}
    named = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 6}
    theirs = tiny(architecture, {"rope_parameters": named})
    write_model(path, architecture, theirs, more=under(architecture, yarn))
    assert positions(path).scaling == YaRN(4.0, 6)
    check(path, theirs)
    # Without the context of the training the same check fails; it is the whole context then.
    del yarn["rope.scaling.original_context_length"]
    write_model(path, architecture, theirs, more=under(architecture, yarn))
    assert positions(path).scaling == YaRN(4.0, CONTEXT)
    with pytest.raises(AssertionError):
        check(path, theirs)
    for nothing in ({"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, {"rope.scale_linear": 1.0}):
        write_model(path, architecture, theirs, more=under(architecture, nothing))
        assert positions(path).scaling == Unscaled()
    write_model(path, architecture, theirs, more=under(architecture, {"rope.scale_linear": 2.0}))
    assert positions(path).scaling == Linear(2.0)


def positions(path: Path) -> Rotary:
    found = open_gguf(path).config.positions
    assert isinstance(found, Rotary)
    return found


@pytest.mark.parametrize("turned", [8, 30])
def test_a_part_is_turned(tmp_path: Path, turned: int) -> None:
    write_model(tmp_path / "model.gguf", "qwen3", tiny("qwen3"), more={"qwen3.rope.dimension_count": turned})
    assert positions(tmp_path / "model.gguf").turned(32) == turned


def test_every_part_can_be_said() -> None:
    for width in range(2, 130, 2):
        for turned in range(2, width + 1, 2):
            assert Rotary(fraction=_fraction(turned, width)).turned(width) == turned


def test_a_window(tmp_path: Path) -> None:
    for architecture, more in (("qwen2", {"attention.sliding_window": 4}), ("llama", {"attention.sliding_window": 0})):
        write_model(tmp_path / "model.gguf", architecture, tiny(architecture), more=under(architecture, more))
        config = open_gguf(tmp_path / "model.gguf").config
        assert isinstance(config, DecoderConfig)
        assert config.window == (4 if architecture == "qwen2" else None)


def refusal(path: Path) -> str:
    """The one line with which a file is refused."""
    with pytest.raises(UserError) as error:
        model_in(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)
