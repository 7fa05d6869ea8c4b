"""The table of names and axes tells the truth about encoders and encoder-decoders, too."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead.generation.stores import GrowingStore
from clearhead.models import choices as kinds
from clearhead.models.build import build
from clearhead.models.choices import EncoderHead, Features, MaskedToken, Mean, Pooled
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.tracing import NAMES, Recorder, attention_distance, axes_of, trace
from clearhead.tracing import names as names_module
from tests.tracing.test_names import check_axes

LAYERS, ENCODER_LAYERS, SEGMENTS = 2, 3, 4
# The decoder has read two tokens before, so S = T + 2.
SIZES = {"B": 2, "T": 3, "S": 5, "M": 7, "D": 10, "H": 8, "K": 4, "d": 6, "F": 14, "V": 11}
SHARED = {
    "heads": SIZES["H"], "kv_heads": SIZES["K"], "width": SIZES["D"], "head_width": SIZES["d"],
    "feedforward_width": SIZES["F"], "context": 9, "activation": kinds.GEGLU(),
}  # fmt: skip
KERNELS = [kinds.Visible(), kinds.Fused(), kinds.Blockwise(block=2)]
BLOCKS = [kinds.PreNorm(), kinds.PostNorm(), kinds.AroundNorm()]
HEADS = [Features(), MaskedToken(), Pooled(), Pooled(Mean(), dense=True)]


def encoder_tensors(
    head: EncoderHead, kernel: kinds.Kernel = KERNELS[0], block: kinds.Block = BLOCKS[0]
) -> dict[str, Tensor]:
    """What a forward of an encoder shows, every token in a segment."""
    config = EncoderConfig(
        vocab=SIZES["V"], layers=ENCODER_LAYERS, segments=SEGMENTS, head=head, kernel=kernel, block=block, **SHARED
    )
    shape, recorder = (SIZES["B"], SIZES["T"]), Recorder()
    build(config, seed=0)(torch.randint(SIZES["V"], shape), segments=torch.randint(SEGMENTS, shape), tap=recorder)
    return recorder.tensors


def pair_tensors(kernel: kinds.Kernel = KERNELS[0], block: kinds.Block = BLOCKS[0]) -> dict[str, Tensor]:
    """What an encoder-decoder shows while it reads a source, and then some tokens more after those in its cache."""
    config = EncoderDecoderConfig(
        vocab=SIZES["V"],
        layers=LAYERS,
        encoder_layers=ENCODER_LAYERS,
        source_vocab=13,
        kernel=kernel,
        block=block,
        **SHARED,
    )
    model, recorder = build(config, seed=0), Recorder()
    memory = model.remember(torch.randint(13, (SIZES["B"], SIZES["M"])), tap=recorder)
    store = memory.beside(GrowingStore(model.decoder))
    target = torch.randint(SIZES["V"], (SIZES["B"], SIZES["S"]))
    model.decoder(target[:, :2], store=store)
    model.decoder(target[:, 2:], store=store, tap=recorder.within("decoder"))
    return recorder.tensors


def check_encoder(tensors: dict[str, Tensor]) -> None:
    """An encoder has no store, so its keys are its queries."""
    check_axes(tensors, SIZES | {"S": SIZES["T"]})


def rows_of(tensors: dict[str, Tensor], prefix: str = "") -> list[str]:
    """The rows of the table that one block and what stands outside the blocks show, in order."""
    names = [name.removeprefix(prefix) for name in tensors if name.startswith(prefix)]
    return [name.replace("blocks.0.", "blocks.*.") for name in names if not name.startswith(("blocks.1.", "blocks.2."))]


def rows_without(*beginnings: str) -> list[str]:
    """The rows of the table that do not begin so."""
    return [name for name in NAMES if not name.startswith(beginnings)]


def test_all_sizes_differ() -> None:
    assert len(set(SIZES.values())) == len(SIZES)


@pytest.mark.parametrize("block", [*BLOCKS, kinds.Parallel()])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("head", HEADS)
def test_every_tensor_of_an_encoder_has_the_axes_of_the_table(
    head: EncoderHead, kernel: kinds.Kernel, block: kinds.Block
) -> None:
    check_encoder(encoder_tensors(head, kernel, block))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_tensor_of_an_encoder_decoder_has_the_axes_of_the_table(kernel: kinds.Kernel, block: kinds.Block) -> None:
    check_axes(pair_tensors(kernel, block), SIZES)


def test_the_whole_forward_shows_the_same_names_as_its_parts() -> None:
    """Without a cache the keys are the queries."""
    config = EncoderDecoderConfig(vocab=SIZES["V"], layers=LAYERS, kernel=kinds.Visible(), **SHARED)
    recorder = Recorder()
    ids = [torch.randint(SIZES["V"], (SIZES["B"], SIZES[axis])) for axis in "MT"]
    build(config, seed=0)(*ids, tap=recorder)
    check_axes(recorder.tensors, SIZES | {"S": SIZES["T"]})
    named = {name.replace("encoder.blocks.2.", "encoder.blocks.0.") for name in pair_tensors()}
    assert set(recorder.tensors) == named


def test_an_encoder_shows_its_rows_in_the_order_of_the_table() -> None:
    own = rows_without("logits", "blocks.*.cross", "head.")
    assert rows_of(encoder_tensors(Features())) == own
    assert rows_of(encoder_tensors(MaskedToken())) == [*own, "head.transformed", "head.logits"]
    for pooled in HEADS[2:]:
        assert rows_of(encoder_tensors(pooled)) == [*own, "head.pooled", "head.output"]


def test_an_encoder_decoder_shows_its_rows_in_the_order_of_the_table_the_memory_first() -> None:
    tensors = pair_tensors()
    assert rows_of(tensors, "encoder.") == rows_without("segments", "logits", "blocks.*.cross", "head.")
    asked = ["blocks.*.cross_attention.k", "blocks.*.cross_attention.v"]
    rest = [name for name in rows_without("segments", "head.") if name not in asked]
    assert rows_of(tensors, "decoder.") == asked + rest


def test_every_block_shows_the_same() -> None:
    for prefix, blocks in (("encoder.", ENCODER_LAYERS), ("decoder.", LAYERS)):
        names = [name.removeprefix(prefix) for name in pair_tensors() if name.startswith(f"{prefix}blocks.")]
        each = [[name for name in names if name.startswith(f"blocks.{block}.")] for block in range(blocks)]
        assert sum(map(len, each)) == len(names)
        assert {tuple(name.split(".", 2)[2] for name in block) for block in each} == {
            tuple(name.split(".", 2)[2] for name in each[0])
        }


@pytest.mark.parametrize("kernel", KERNELS[1:])
def test_what_faster_kernels_do_not_hold_is_computed_again_in_its_place(kernel: kinds.Kernel) -> None:
    assert list(pair_tensors(kernel)) == list(pair_tensors())


def test_a_padded_row_has_positions_of_its_own() -> None:
    config = EncoderConfig(vocab=SIZES["V"], layers=1, **SHARED)
    recorder, real = Recorder("positions"), torch.tensor([[True, True, True], [False, True, True]])
    build(config, seed=0)(torch.randint(SIZES["V"], real.shape), real=real, tap=recorder)
    assert tuple(recorder.tensors["positions"].shape) == tuple(SIZES[axis] for axis in ("B", *axes_of("positions")))


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("encoder.blocks.3.attention.weights", "B H M M"),
        ("encoder.blocks.3.attention.k", "B K M d"),
        ("encoder.positions", "M D"),
        ("encoder.norm", "B M D"),
        ("decoder.blocks.0.attention.scores", "B H T S"),
        ("decoder.blocks.11.cross_attention.scores", "B H T M"),
        ("decoder.logits", "B T V"),
        ("blocks.1.cross_attention.v", "B K M d"),
        ("head.pooled", "B D"),
    ],
)
def test_the_axes_of_a_name(name: str, axes: str) -> None:
    assert axes_of(name) == tuple(axes.split())


@pytest.mark.parametrize(
    "name",
    [
        "encoder.logits", "encoder.blocks.0.crossed", "encoder.blocks.0.cross_attention.k", "decoder.segments",
        "decoder.head.pooled", "decoder.encoder.norm", "encoder.encoder.norm", "encoder", "decoder.", "encodernorm",
        "coder.norm", "head", "cross_attention.k",
    ],
)  # fmt: skip
def test_a_name_that_no_forward_shows_is_an_error(name: str) -> None:
    with pytest.raises(KeyError):
        axes_of(name)


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("blocks.*.cross_attention.k", "B K T d"),
        ("blocks.*.cross_attention.v", "B K S d"),
        ("blocks.*.cross_attention.weights", "B H T S"),
        ("blocks.*.attention.weights", "B H T M"),
        ("blocks.*.attention.q", "B H M d"),
        ("blocks.*.crossed", "B M D"),
        ("norm", "B D T"),
    ],
)
def test_a_wrong_row_in_the_table_is_found(monkeypatch: pytest.MonkeyPatch, name: str, axes: str) -> None:
    monkeypatch.setitem(names_module.NAMES, name, axes)
    with pytest.raises(AssertionError):
        check_axes(pair_tensors(), SIZES)


@pytest.mark.parametrize(
    ("head", "name", "axes"),
    [
        (MaskedToken(), "segments", "T D"),
        (MaskedToken(), "head.transformed", "B T V"),
        (MaskedToken(), "head.logits", "B T D"),
        (Pooled(), "head.pooled", "B T D"),
        (Pooled(), "head.output", "B V"),
    ],
)
def test_a_wrong_row_for_an_encoder_is_found(
    monkeypatch: pytest.MonkeyPatch, head: EncoderHead, name: str, axes: str
) -> None:
    monkeypatch.setitem(names_module.NAMES, name, axes)
    with pytest.raises(AssertionError):
        check_encoder(encoder_tensors(head))


def test_an_encoder_whose_axes_are_not_the_source_is_found() -> None:
    tensors = {
        name.replace("encoder.", "decoder."): tensor for name, tensor in pair_tensors().items() if "encoder." in name
    }
    with pytest.raises(AssertionError):
        check_axes(tensors, SIZES)


def test_positions_are_those_of_the_text_that_a_tensor_is_about() -> None:
    config = EncoderDecoderConfig(vocab=11, layers=1, heads=2, width=8, context=9)
    model = build(config, seed=0)
    names = ["encoder.blocks.0.attention.weights", "decoder.blocks.0.cross_attention.weights"]
    source, target = [1, 2, 3, 4, 5], [6, 7]
    made = trace(model, source, target=target, names=names, positions=[-1])
    assert [made.places(name) for name in names] == [[4], [1]]
    # A place of the source that the target does not have.
    far = trace(model, source, target=target, names=names[0], positions=[3, -1])
    assert far.places(names[0]) == [3, 4]
    assert trace(model, source, target=target, names=names[1]).places(names[1]) == [0, 1]
    distances = attention_distance(trace(model, source, target=target, names=names[0]))[names[0]]
    assert attention_distance(far)[names[0]].equal(distances[..., [3, 4]])
