"""PyTorch's Transformer with the same weights: values, gradients of the inputs and of every weight, in float64.

The stacks of `nn.Transformer` read vectors and give vectors, so ours are given theirs in place of the embedded ids, and are
looked at before the head.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from clearhead.layers import LayerNorm, Look
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from tests.oracles.given import Given
from tests.oracles.torch_pairs import (
    ACTIVATIONS,
    READS,
    SIZES,
    SOURCE_REAL,
    TARGET_REAL,
    THEIR_SIZES,
    WRITES,
    B,
    D,
    H,
    M,
    T,
    compare,
    filled,
    ids,
    random,
)
from tests.oracles.torch_weights import DECODER, ENCODER, LAST_NORM, Place, spelled, under

# nn.TransformerEncoder


def encoder_pair(activation: str, *, pre: bool) -> tuple[Encoder, nn.TransformerEncoder, dict[str, Place]]:
    layer = nn.TransformerEncoderLayer(D, H, activation=activation, norm_first=pre, **THEIR_SIZES)
    norm = nn.LayerNorm(D, dtype=torch.float64) if pre else None
    theirs = filled(nn.TransformerEncoder(layer, READS, norm=norm, enable_nested_tensor=False))
    block = kinds.PreNorm() if pre else kinds.PostNorm()
    config = EncoderConfig(
        layers=READS, head=kinds.Features(), block=block, activation=ACTIVATIONS[activation], **SIZES
    )
    return build(config).double(), theirs, spelled({**ENCODER, **(LAST_NORM if pre else {})}, READS)


def check_encoder(
    activation: str, *, pre: bool, real: Tensor | None, spoil: Callable[[Encoder], None] | None = None
) -> float:
    ours, theirs, lines = encoder_pair(activation, pre=pre)
    if spoil is not None:
        spoil(ours)
    mask = None if real is None else ~real

    def run(x: Tensor) -> Tensor:
        return ours(ids(M), real=real, tap=Given({"input": x}, ""))

    def run_theirs(x: Tensor) -> Tensor:
        return theirs(x, src_key_padding_mask=mask)

    places = torch.ones(B, M, dtype=torch.bool) if real is None else real
    return compare(ours, theirs, lines, (run, run_theirs), [random(B, M, D)], real=places)


@pytest.mark.parametrize("real", [None, SOURCE_REAL], ids=["no padding", "padding"])
@pytest.mark.parametrize("pre", [True, False], ids=["pre-norm", "post-norm"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_encoder_is_pytorch_s(activation: str, pre: bool, real: Tensor | None) -> None:
    check_encoder(activation, pre=pre, real=real)


def norms_exchanged(ours: Encoder) -> None:
    for block in ours.blocks:
        block.attention_norm, block.feedforward_norm = block.feedforward_norm, block.attention_norm


def epsilon(ours: Encoder) -> None:
    ours.blocks[0].attention_norm.eps = 1e-6


def another_activation(ours: Encoder) -> None:
    ours.blocks[1].feedforward.activation = lambda x: nn.functional.gelu(x, approximate="tanh")


def looks_back_only(ours: Encoder) -> None:
    ours.looks = (Look(),) * READS


def one_block_twice(ours: Encoder) -> None:
    ours.blocks[1] = ours.blocks[0]


@pytest.mark.parametrize("spoil", [norms_exchanged, epsilon, another_activation, looks_back_only, one_block_twice])
@pytest.mark.parametrize("pre", [True, False], ids=["pre-norm", "post-norm"])
def test_a_spoilt_encoder_is_caught(pre: bool, spoil: Callable[[Encoder], None]) -> None:
    """Spoilt after the weights have been copied."""

    def later(ours: Encoder) -> None:
        ours.register_forward_pre_hook(lambda *_: spoil(ours))

    with pytest.raises(AssertionError, match=r"^differs by"):
        check_encoder("gelu", pre=pre, real=SOURCE_REAL, spoil=later)


# nn.Transformer, and nn.TransformerDecoder within it


def transformer(activation: str, *, pre: bool, last: bool) -> nn.Transformer:
    """PyTorch's always ends its stacks with a norm, also after post-norm blocks; `last` says whether it stays."""
    theirs = nn.Transformer(
        D, H, num_encoder_layers=READS, num_decoder_layers=WRITES, activation=activation, norm_first=pre, **THEIR_SIZES
    )
    if not last:
        theirs.encoder.norm = theirs.decoder.norm = None
    return filled(theirs)


def transformer_pair(
    activation: str, *, pre: bool, last: bool
) -> tuple[EncoderDecoder, nn.Transformer, dict[str, Place]]:
    block = kinds.PreNorm() if pre else kinds.PostNorm()
    config = EncoderDecoderConfig(
        layers=WRITES, encoder_layers=READS, block=block, activation=ACTIVATIONS[activation], **SIZES
    )
    ours = build(config).double()
    if last and not pre:
        ours.encoder.norm, ours.decoder.norm = LayerNorm(D).double(), LayerNorm(D).double()
    ends = LAST_NORM if last else {}
    lines = {
        **spelled(under("encoder", {**ENCODER, **ends}), READS),
        **spelled(under("decoder", {**DECODER, **ends}), WRITES),
    }
    return ours, transformer(activation, pre=pre, last=last), lines


def check_transformer(
    activation: str,
    *,
    pre: bool,
    last: bool,
    source_real: Tensor | None,
    target_real: Tensor | None,
    spoil: Callable[[EncoderDecoder], None] | None = None,
) -> float:
    ours, theirs, lines = transformer_pair(activation, pre=pre, last=last)
    if spoil is not None:
        spoil(ours)
    hidden = [None if real is None else ~real for real in (source_real, target_real)]
    future = torch.ones(T, T, dtype=torch.bool).triu(1)

    def run(source: Tensor, target: Tensor) -> Tensor:
        tap = Given({"encoder.input": source, "decoder.input": target}, "decoder.norm")
        ours(ids(M), ids(T), source_real=source_real, target_real=target_real, tap=tap)
        return tap.found

    def run_theirs(source: Tensor, target: Tensor) -> Tensor:
        return theirs(
            source,
            target,
            tgt_mask=future,
            src_key_padding_mask=hidden[0],
            tgt_key_padding_mask=hidden[1],
            memory_key_padding_mask=hidden[0],
        )

    places = torch.ones(B, T, dtype=torch.bool) if target_real is None else target_real
    return compare(ours, theirs, lines, (run, run_theirs), [random(B, M, D), random(B, T, D)], real=places)


# PyTorch says that its short cut for nested tensors is not for pre-norm; it is not wanted here either.
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("padding", ["none", "source", "target", "both"])
@pytest.mark.parametrize(
    ("pre", "last"), [(True, True), (False, False), (False, True)], ids=["pre", "post", "post and a last norm"]
)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_encoder_decoder_is_pytorch_s(activation: str, pre: bool, last: bool, padding: str) -> None:
    """Post-norm without PyTorch's last norms is ours; with them, ours with such a norm in the place of the identity."""
    source_real = SOURCE_REAL if padding in ("source", "both") else None
    target_real = TARGET_REAL if padding in ("target", "both") else None
    check_transformer(activation, pre=pre, last=last, source_real=source_real, target_real=target_real)


def cross_norms_exchanged(ours: EncoderDecoder) -> None:
    block = ours.decoder.blocks[1]
    block.cross_attention_norm, block.feedforward_norm = block.feedforward_norm, block.cross_attention_norm


def attentions_exchanged(ours: EncoderDecoder) -> None:
    block = ours.decoder.blocks[0]
    block.attention, block.cross_attention = block.cross_attention, block.attention


def memory_of_one_block(ours: EncoderDecoder) -> None:
    """All blocks ask what the first one's projection gives."""
    for block in list(ours.decoder.blocks)[1:]:
        block.cross_attention.keys_values = ours.decoder.blocks[0].cross_attention.keys_values


def features_before_the_norm(ours: EncoderDecoder) -> None:
    ours.encoder.norm = nn.Identity()


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("pre", [True, False], ids=["pre-norm", "post-norm"])
@pytest.mark.parametrize(
    "spoil", [cross_norms_exchanged, attentions_exchanged, memory_of_one_block, features_before_the_norm]
)
def test_a_spoilt_encoder_decoder_is_caught(spoil: Callable[[EncoderDecoder], None], pre: bool) -> None:
    """Spoilt after the weights have been copied."""

    def later(ours: EncoderDecoder) -> None:
        ours.register_forward_pre_hook(lambda *_: spoil(ours))

    with pytest.raises(AssertionError, match=r"^differs by"):
        check_transformer("relu", pre=pre, last=True, source_real=SOURCE_REAL, target_real=None, spoil=later)


def test_padding_that_is_forgotten_is_caught() -> None:
    """The source's; padding at the right of a target is seen by no real position anyway."""

    def forget(ours: EncoderDecoder) -> None:
        ours.register_forward_pre_hook(
            lambda _, args, kwargs: (args, {**kwargs, "source_real": None}), with_kwargs=True
        )

    with pytest.raises(AssertionError, match=r"^differs by"):
        check_transformer("relu", pre=False, last=False, source_real=SOURCE_REAL, target_real=None, spoil=forget)
