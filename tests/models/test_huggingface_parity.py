"""BERT, T5, BART and Marian of transformers, and ours with the same weights: logits, and what leaves every block.

In float64 the differences are those of the order of sums, where theirs computes in float64 throughout. It does not in two
places, which are asked for twice: as they are, and with that place computed in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.models import choices as kinds
from clearhead.models.choices import First, MaskedToken, Pooled
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.ops import sinusoids_in_halves
from clearhead.tracing import Recorder
from tests.oracles import hf_weights as tables
from tests.oracles.compare import assert_within
from tests.oracles.hf_pairs import (
    CONFIGS,
    CONTEXT,
    FF,
    READS,
    B,
    D,
    H,
    M,
    T,
    V,
    hf,
    ids,
    loaded,
    our_pair,
    random_weights,
    their_pair,
)
from tests.oracles.torch_weights import spelled

FLOAT64, FLOAT32 = 1e-12, 1e-5
REAL = torch.arange(M) < torch.tensor([[M], [6], [2]])
LEFT = REAL.flip(-1)


def check_hidden(recorder: Recorder, scope: str, theirs: tuple[Tensor, ...], places: Tensor, within: float) -> float:
    """What enters the first block and leaves each one; the last of theirs is after the last norm."""
    blocks = len(theirs) - 1
    names = ["input", *(f"blocks.{index}.output" for index in range(blocks - 1)), "norm"]
    for name, expected in zip(names, theirs, strict=True):
        assert_within(recorder.tensors[f"{scope}{name}"][places], expected[places], within)
    found = zip(names, theirs, strict=True)
    return max((recorder.tensors[f"{scope}{name}"] - there)[places].abs().max().item() for name, there in found)


# BERT

BERT = EncoderConfig(
    vocab=V,
    layers=READS,
    heads=H,
    width=D,
    feedforward_width=FF,
    context=CONTEXT,
    segments=3,
    block=kinds.PostNorm(),
    norm=kinds.LayerNorm(eps=1e-12),
    embedding_norm=True,
    qkv_bias=True,
    bias=True,
    head_bias=True,
)


def their_bert(kind: str) -> Any:
    sizes = {"hidden_size": D, "num_hidden_layers": READS, "num_attention_heads": H, "intermediate_size": FF}
    config = hf.BertConfig(
        vocab_size=V,
        max_position_embeddings=CONTEXT,
        type_vocab_size=3,
        pad_token_id=0,
        attn_implementation="eager",
        **sizes,
    )
    return random_weights(getattr(hf, kind)(config))


def check_bert(
    config: EncoderConfig, dtype: torch.dtype, within: float, *, padding: bool = True, forget: str = ""
) -> float:
    """Logits of masked tokens, or the pooled vector, and every block's output at real tokens."""
    masked = isinstance(config.head, MaskedToken)
    theirs = their_bert("BertForMaskedLM" if masked else "BertModel")
    lines = spelled(tables.BERT_MASKED if masked else tables.BERT_POOLED, READS)
    ours = loaded(config, theirs, lines, dtype, ("cls.predictions.bias",))
    source, segments, recorder = ids(M), torch.randint(3, (B, M)), Recorder()
    real = REAL if padding else None
    with torch.no_grad():
        given = {"segments": segments, "real": real, forget: None}
        found = ours(source, segments=given["segments"], real=given["real"], tap=recorder)
        expected = theirs(
            source,
            attention_mask=None if real is None else real.long(),
            token_type_ids=segments,
            output_hidden_states=True,
        )
    places = REAL if padding else torch.ones_like(REAL)
    worst = check_hidden(recorder, "", expected.hidden_states, places, within)
    theirs_made = expected.logits[places] if masked else expected.pooler_output
    found = found[places] if masked else found
    assert_within(found, theirs_made, within)
    return max(worst, (found - theirs_made).abs().max().item())


POOLED = replace(BERT, head=Pooled(First(), dense=True), head_bias=False)


@pytest.mark.parametrize("padding", [True, False], ids=["padding", "no padding"])
@pytest.mark.parametrize("config", [BERT, POOLED], ids=["masked tokens", "pooled"])
def test_bert(config: EncoderConfig, padding: bool) -> None:
    check_bert(config, torch.float64, FLOAT64, padding=padding)
    check_bert(config, torch.float32, FLOAT32, padding=padding)


@pytest.mark.parametrize(
    "config",
    [
        replace(BERT, norm=kinds.LayerNorm(eps=1e-5)),
        replace(BERT, activation=kinds.GELUTanh()),
        replace(BERT, attention_scale=1.0),
        replace(BERT, scale_embedding=True),
    ],
    ids=["epsilon", "gelu's approximation", "no scale", "scaled embedding"],
)
def test_what_is_not_bert_is_caught(config: EncoderConfig) -> None:
    with pytest.raises(AssertionError):
        check_bert(config, torch.float64, FLOAT64)


@pytest.mark.parametrize("config", [BERT, POOLED], ids=["masked tokens", "pooled"])
@pytest.mark.parametrize("forget", ["segments", "real"])
def test_segments_and_padding_that_are_forgotten_are_caught(forget: str, config: EncoderConfig) -> None:
    with pytest.raises(AssertionError, match=r"^differs by"):
        check_bert(config, torch.float64, FLOAT64, forget=forget)


# Encoder-decoders


def check_pair(
    name: str,
    dtype: torch.dtype,
    within: float,
    *,
    config: EncoderDecoderConfig | None = None,
    real: Tensor | None = REAL,
    prepare: Callable[[Any], None] | None = None,
    first: int = 2,
) -> float:
    """Logits, and what leaves every block of both stacks."""
    theirs = their_pair(name)
    ours = our_pair(name, CONFIGS[name] if config is None else config, theirs, dtype, first)
    if prepare is not None:
        prepare(theirs)
    source, target, recorder = ids(M), ids(T), Recorder()
    mask = None if real is None else real.long()
    with torch.no_grad():
        found = ours(source, target, source_real=real, tap=recorder)
        made = theirs(source, attention_mask=mask, decoder_input_ids=target, output_hidden_states=True, use_cache=False)
    places = torch.ones_like(REAL) if real is None else real
    worst = [check_hidden(recorder, "encoder.", made.encoder_hidden_states, places, within)]
    worst += [check_hidden(recorder, "decoder.", made.decoder_hidden_states, torch.ones_like(target) > 0, within)]
    assert_within(found, made.logits, within)
    return max(*worst, (found - made.logits).abs().max().item())


def norms_in_float64(theirs: Any) -> None:
    """T5's norm takes its mean square in float32, also of float64."""
    for module in theirs.modules():
        if isinstance(module, hf.models.t5.modeling_t5.T5LayerNorm):
            norm = nn.RMSNorm(D, eps=1e-6, dtype=torch.float64)
            norm.weight = module.weight
            module.forward = norm.forward


def sinusoids_in_float64(theirs: Any) -> None:
    """Marian keeps its sines and cosines as float32."""
    for stack in (theirs.model.encoder, theirs.model.decoder):
        table = sinusoids_in_halves(range(CONTEXT), D)
        assert_within(stack.embed_positions.weight.detach(), table, 1e-7)
        stack.embed_positions.weight = nn.Parameter(table, requires_grad=False)


EXACT = [("T5", norms_in_float64), ("BART", None), ("Marian", sinusoids_in_float64)]


@pytest.mark.parametrize("real", [REAL, None], ids=["padding", "no padding"])
@pytest.mark.parametrize(("name", "prepare"), EXACT, ids=["T5", "BART", "Marian"])
def test_encoder_decoders_in_float64(name: str, prepare: Any, real: Tensor | None) -> None:
    check_pair(name, torch.float64, FLOAT64, prepare=prepare, real=real)


@pytest.mark.parametrize("name", CONFIGS)
def test_encoder_decoders_as_they_are(name: str) -> None:
    """In float32, and in float64 with their places of float32."""
    check_pair(name, torch.float32, FLOAT32)
    check_pair(name, torch.float64, FLOAT64 if name == "BART" else FLOAT32)


def test_t5_with_padding_at_the_left() -> None:
    """Distances are the same wherever a row begins."""
    check_pair("T5", torch.float64, FLOAT64, prepare=norms_in_float64, real=LEFT)


FAULTS = {
    "T5, scaled": ("T5", {"attention_scale": None}, 2),
    "T5, farthest": ("T5", {"positions": kinds.Relative(buckets=8, farthest=9)}, 2),
    "T5, exact gelu": ("T5", {"activation": kinds.GEGLU()}, 2),
    "T5, epsilon": ("T5", {"norm": kinds.RMSNorm(eps=1e-5)}, 2),
    "BART, positions without offset": ("BART", {"context": CONTEXT + 1}, 1),
    "BART, epsilon": ("BART", {"norm": kinds.LayerNorm(eps=1e-6)}, 2),
    "Marian, columns interleaved": ("Marian", {"positions": kinds.Sinusoidal()}, 2),
    "Marian, embedding not scaled": ("Marian", {"scale_embedding": False}, 2),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_theirs_is_caught(fault: str) -> None:
    name, changes, first = FAULTS[fault]
    with pytest.raises(AssertionError, match=r"^differs by"):
        check_pair(
            name,
            torch.float64,
            FLOAT64,
            config=replace(CONFIGS[name], **changes),
            prepare=dict(EXACT)[name],
            first=first,
        )
