"""The shipped configurations: what they are, what they cost, and how they begin."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead import UserError
from clearhead.models.build import build
from clearhead.models.choices import (
    GELU,
    Choice,
    GEGLUTanh,
    LayerNorm,
    Learned,
    MaskedToken,
    PostNorm,
    PreNorm,
    Relative,
    ReLU,
    RMSNorm,
    Sinusoidal,
)
from clearhead.models.config import DecoderConfig, StackConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.cost import parameters
from clearhead.models.presets import PRESETS, preset

# Counted by others: Radford et al. 2019 (with tied head), Touvron et al. 2023, and the models' own pages. BERT's is the
# model with its head of masked tokens and without the pooled vector, which has a layer more (590,592).
PUBLISHED = {
    "gpt2": 124_439_808,
    "llama": 6_738_415_616,
    "qwen2": 494_032_768,
    "qwen3": 596_049_920,
    "bert": 109_514_298,
    "t5": 76_961_152,
    # Its two tables of positions have two rows more, and the head's bias is kept beside the trained numbers.
    "bart": 139_420_416 - 2 * 2 * 768 + 50_265,
}


def reading(config: StackConfig, length: int, **options: Any) -> list[Tensor]:
    """Ids for a forward of any kind of model; an encoder-decoder reads one token more than it writes."""
    lengths = [length + 1, length] if isinstance(config, EncoderDecoderConfig) else [length]
    return [torch.randint(config.vocab, (2, each), **options) for each in lengths]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_has_the_published_number_of_parameters(name: str) -> None:
    assert sum(parameters(PRESETS[name]).values()) == PUBLISHED[name]


def test_the_original_transformer_has_the_number_that_its_sizes_make() -> None:
    """Table 3 says 65 million; about 37,000 tokens and 6 + 6 blocks, counted from §3, make 63 million."""
    embedding, attention, norm = 37_000 * 512, 4 * (512 * 512 + 512), 2 * 512
    feedforward = 512 * 2048 + 2048 + 2048 * 512 + 512
    wanted = embedding + 6 * (attention + feedforward + 2 * norm) + 6 * (2 * attention + feedforward + 3 * norm)
    assert sum(parameters(PRESETS["transformer"]).values()) == wanted == pytest.approx(65e6, rel=0.03)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_builds_on_meta_with_as_many_parameters_as_the_formula_says(name: str) -> None:
    model = build(PRESETS[name], device="meta")
    assert sum(parameter.numel() for parameter in model.parameters()) == sum(parameters(PRESETS[name]).values())
    assert model(*reading(PRESETS[name], 3, device="meta")).shape == (2, 3, PRESETS[name].vocab)


def fresh(name: str, **fields: Any) -> StackConfig:
    """A preset at its own width and vocabulary where they fit; blocks, and what memory would not hold, are fewer."""
    config = PRESETS[name]
    shown = replace(config, layers=min(config.layers, 2), vocab=min(config.vocab, 50_257), context=33, **fields)
    return replace(shown, width=1024, heads=8, feedforward_width=2752) if config.width > 1024 else shown


def first_logits(config: StackConfig) -> tuple[Tensor, Tensor]:
    """Logits of a fresh model, and the ids of its own sequence."""
    model = build(config, seed=0).eval()
    read = reading(config, 32, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return model(*read), read[-1]


def loss_of(logits: Tensor) -> float:
    """The loss on targets drawn by chance, in nats a token."""
    targets = torch.randint(logits.shape[-1], logits.shape[:2], generator=torch.Generator().manual_seed(2))
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "bart"])
def test_the_first_loss_of_a_preset_is_near_ln_v(name: str) -> None:
    config = fresh(name)
    assert loss_of(first_logits(config)[0]) == pytest.approx(math.log(config.vocab), rel=0.03)


def test_a_fresh_bart_repeats_its_input_and_starts_a_little_above_ln_v() -> None:
    """With a normalised embedding, post-norm and a tied head the stream still is the input's token: its own row of E.

    Its logit is then the largest everywhere, as in the published implementation. A head of its own starts near ln V.
    """
    logits, ids = first_logits(fresh("bart"))
    assert torch.equal(logits.argmax(-1), ids)
    assert 1.03 < loss_of(logits) / math.log(50_257) < 1.1
    untied = first_logits(fresh("bart", tied=False))[0]
    assert loss_of(untied) == pytest.approx(math.log(50_257), rel=0.03)


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"gpt3.*gpt2"):
        preset("gpt3")


@pytest.mark.parametrize(
    ("name", "sizes", "choices"),
    [
        ("transformer", (37_000, 6, 6, 512, 8, 64, 2048), (ReLU(), PostNorm(), LayerNorm(1e-5), Sinusoidal())),
        ("bert", (30_522, 12, 12, 768, 12, 64, 3072), (GELU(), PostNorm(), LayerNorm(1e-12), Learned())),
        ("t5", (32_128, 8, 8, 512, 6, 64, 1024), (GEGLUTanh(), PreNorm(), RMSNorm(1e-6), Relative(32, 128))),
        ("bart", (50_265, 6, 6, 768, 12, 64, 3072), (GELU(), PostNorm(), LayerNorm(1e-5), Learned())),
    ],
)
def test_a_preset_is_as_published(name: str, sizes: tuple[int, ...], choices: tuple[Choice, ...]) -> None:
    config = PRESETS[name]
    encoder = config.encoder if isinstance(config, EncoderDecoderConfig) else config
    assert sizes == (
        config.vocab,
        encoder.layers,
        config.layers,
        config.width,
        config.heads,
        config.width_of_head,
        config.hidden,
    )
    assert choices == (config.activation, config.block, config.norm, config.positions)


def test_switches_of_the_presets_with_an_encoder_are_as_published() -> None:
    """In turn: biases inside, bias of the head, tied, scaled embedding, normalised embedding, scale of the scores, dropout."""
    found = {
        name: (
            c.qkv_bias and c.bias,
            c.head_bias,
            c.tied,
            c.scale_embedding,
            c.embedding_norm,
            c.attention_scale,
            c.dropout,
        )
        for name, c in PRESETS.items()
        if not isinstance(c, DecoderConfig)
    }
    assert found == {
        "transformer": (True, False, True, True, False, None, 0.1),
        "bert": (True, True, True, False, True, None, 0.1),
        "t5": (False, False, False, False, False, 1.0, 0.0),
        "bart": (True, True, True, False, True, None, 0.1),
    }
    bert = PRESETS["bert"]
    assert isinstance(bert, EncoderConfig)
    assert (bert.segments, bert.head, bert.context) == (2, MaskedToken(), 512)
    assert [PRESETS[name].context for name in ("t5", "bart")] == [512, 1024]


def test_the_course_is_the_notes_own() -> None:
    course = PRESETS["course"]
    assert isinstance(course.activation, ReLU)
    assert (course.qkv_bias, course.bias, course.head_bias, course.tied) == (False, True, True, False)
