"""The lens asks the model's own norm and head at every stage, and the size of a branch is that of what it adds."""

from __future__ import annotations

import re
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from clearhead.formats.load import Loaded
from clearhead.messages import UserError
from clearhead.models import choices as c
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.ops import layer_norm, rms_norm
from clearhead.text import CharacterTokenizer
from clearhead.tracing import Edit, Editor, Recorder, branch_sizes, lenses, logit_lens, zero
from tests.equalities.variants import VARIANTS, ids_of, model_of
from tests.oracles.compare import assert_same, assert_within

IDS = ids_of(1)[0].tolist()


def recorded(model: Decoder, names: str = "*") -> dict[str, Tensor]:
    recorder = Recorder(names)
    with torch.no_grad():
        model(torch.tensor([IDS]), tap=recorder)
    return recorder.tensors


# --- the lens


def check_last(variant: str) -> None:
    model, blocks = model_of(variant), VARIANTS[variant].layers
    with torch.no_grad():
        logits = model(torch.tensor([IDS]))[0]
    lens = logit_lens(model, IDS)
    assert_same(lens.logits[-1], logits)
    assert lens.stages == ["input", *(f"blocks.{i}.output" for i in range(blocks))]
    assert lens.logits.shape == (blocks + 1, *logits.shape)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_last_stage_is_the_model_bit_for_bit(variant: str) -> None:
    check_last(variant)


def check_stages(variant: str) -> None:
    """Every stage by the formulas of the norms."""
    model, tensors = model_of(variant), recorded(model_of(variant))
    norm = model.norm
    lens = logit_lens(model, IDS, middle=True)
    assert lens.stages == [name for name in tensors if re.fullmatch(r"input|blocks\.\d\.(middle|output)", name)]
    for stage, logits in zip(lens.stages, lens.logits, strict=True):
        x = tensors[stage][0]
        if isinstance(VARIANTS[variant].norm, c.LayerNorm):
            normed = layer_norm(x, norm.weight, norm.bias, norm.eps)
        else:
            normed = rms_norm(x, norm.weight + VARIANTS[variant].norm.offset, norm.eps)
        bias = 0.0 if model.head.bias is None else model.head.bias
        assert_within(logits, (normed @ model.head.weight.T + bias).detach(), 1e-12)


FORMULAS = ["learned", "rotary, fused", "parallel, biases", "around, QK-norm", "untied, biases"]


@pytest.mark.parametrize("variant", FORMULAS)
def test_every_stage_is_norm_and_head_of_the_stream(variant: str) -> None:
    check_stages(variant)


class Bare:
    """The planted fault: a head that is asked without the norm before it."""

    def __init__(self, decoder: Decoder) -> None:
        self.head, self.norm, self.blocks = decoder.head, nn.Identity(), decoder.blocks


def test_a_lens_without_the_norm_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lenses, "decoder_of", Bare)
    for check in (check_last, check_stages):
        with pytest.raises(AssertionError):
            check("rotary, fused")


def test_a_lens_of_what_the_blocks_read_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream before each block: the last stage is not the answer."""
    monkeypatch.setattr(lenses, "_stages", lambda decoder, middle: ["input", "blocks.0.output"])
    with pytest.raises(AssertionError):
        check_last("rotary, fused")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_also_in_other_types(dtype: torch.dtype) -> None:
    model = model_of("learned").to(dtype)
    lens = logit_lens(model, IDS)
    with torch.no_grad():
        assert_same(lens.logits[-1], model(torch.tensor([IDS]))[0])
    assert lens.logits.dtype == dtype
    assert lens.probabilities().dtype == torch.float32


def test_some_positions_are_the_part_of_the_whole() -> None:
    model = model_of("rotary, fused")
    whole, some = logit_lens(model, IDS), logit_lens(model, IDS, positions=[-1, 3])
    assert_same(some.logits, whole.logits[:, [12, 3]])
    assert (some.positions, some.tokens) == ([12, 3], [str(IDS[12]), str(IDS[3])])


def three() -> Decoder:
    """Width 2, three tokens, no block adds anything: the stream is (3, 4) at every stage."""
    config = DecoderConfig(
        vocab=3, layers=1, heads=1, width=2, context=4, tied=False, norm=c.RMSNorm(eps=1e-12), positions=c.NoPositions()
    )
    model = build(config, seed=0).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.norm.weight.fill_(1.0)
        model.embedding.weight.copy_(torch.tensor([[3.0, 4.0]] * 3))
        # The normed stream is √2/5 · (3, 4); these rows make it ln 1, ln 2, ln 5.
        unit = 5 / 2**0.5
        rows = [[0.0, 0.0], [log(2.0) * unit / 3, 0.0], [0.0, log(5.0) * unit / 4]]
        model.head.weight.copy_(torch.tensor(rows, dtype=torch.float64))
    return model


def test_rank_and_probability_by_hand() -> None:
    lens = logit_lens(three(), [0, 1])
    for token, probability, rank in ((0, 1 / 8, 3), (1, 2 / 8, 2), (2, 5 / 8, 1)):
        assert_within(lens.probability(token), torch.full((2, 2), probability).double(), 1e-10)
        assert_same(lens.rank(token), torch.full((2, 2), rank))
    for stage in lens.top(2):
        assert [guess.id for guess in stage] == [2, 1]
        assert [round(guess.probability, 5) for guess in stage] == [0.625, 0.25]
    assert len(lens.top(9)[0]) == 3


def test_equal_logits_share_a_rank() -> None:
    model = three()
    with torch.no_grad():
        model.head.weight[1] = model.head.weight[2]
    lens = logit_lens(model, [0])
    assert [int(lens.rank(token)[-1, -1]) for token in range(3)] == [3, 1, 1]


@pytest.fixture
def loaded() -> Loaded:
    return Loaded(model_of("learned"), CharacterTokenizer("abcdefgh小猫"), VARIANTS["learned"], Path("here"))


def test_tokens_are_shown_and_asked_as_text(loaded: Loaded) -> None:
    lens = logit_lens(loaded, "小猫ab")
    (id,) = loaded.tokenizer.encode("猫")
    assert lens.tokens == list("小猫ab")
    assert_same(lens.probability("猫"), lens.probability(id))
    assert_within(lens.probabilities().sum(-1), torch.ones(3, 4).double(), 1e-12)
    for guess in lens.top(3)[0]:
        assert guess.token == loaded.tokenizer.pieces([guess.id])[0]
    lines = repr(lens).splitlines()
    assert [line.split()[0] for line in lines] == lens.stages
    assert repr(lens.top()[1][0].token) in lines[1]


def test_a_lens_of_an_edited_run(loaded: Loaded) -> None:
    nothing = Editor(Edit("blocks.*.*.output", zero))
    lens = logit_lens(loaded, "abc", edits=nothing)
    for stage in lens.logits[1:]:
        assert_same(stage, lens.logits[0])
    assert not torch.equal(logit_lens(loaded, "abc").logits[1], lens.logits[1])


def test_what_a_lens_refuses(loaded: Loaded) -> None:
    with pytest.raises(UserError, match="EncoderDecoder"):
        logit_lens(build(EncoderDecoderConfig(vocab=11, width=8, heads=2), seed=0), IDS)
    with pytest.raises(UserError, match="eval"):
        logit_lens(model_of(replace(VARIANTS["learned"], dropout=0.1)).train(), IDS)
    with pytest.raises(IndexError, match="position 3"):
        logit_lens(loaded, "abc", positions=[3])
    with pytest.raises(UserError, match="tokenizer"):
        logit_lens(loaded.model, "abc")
    with pytest.raises(UserError, match="3 tokens"):
        logit_lens(loaded, "abc").rank("abc")


# --- sizes of branches


def check_sizes(variant: str) -> None:
    """What is added is the difference of the stream around a branch."""
    model, tensors = model_of(variant), recorded(model_of(variant))
    sizes, x, parallel = branch_sizes(model, IDS), tensors["input"], isinstance(VARIANTS[variant].block, c.Parallel)
    for i in range(VARIANTS[variant].layers):
        scope = f"blocks.{i}"
        z = tensors[f"{scope}.output"]
        if parallel:
            u, added = x, tensors[f"{scope}.attention.output"]
        else:
            u = tensors[f"{scope}.middle"]
            added = u - x
        assert_within(sizes.of(f"{scope}.attention"), added[0].norm(dim=-1), 1e-12)
        assert_within(sizes.of(f"{scope}.feedforward"), (z - x - added if parallel else z - u)[0].norm(dim=-1), 1e-12)
        for name, stream in (("attention", x), ("attention.heads.1", x), ("feedforward", u)):
            row = sizes.names.index(f"{scope}.{name}")
            assert_within(sizes.stream[row], stream[0].norm(dim=-1), 1e-12)
            assert_within(sizes.ratio[row], sizes.added[row] / stream[0].norm(dim=-1), 1e-12)
        x = z


SUMS = [name for name, config in VARIANTS.items() if not isinstance(config.block, c.PostNorm)]


@pytest.mark.parametrize("variant", SUMS)
def test_sizes_are_those_of_the_differences_of_the_stream(variant: str) -> None:
    check_sizes(variant)


def test_sizes_before_the_norm_after_a_branch_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lenses, "SequentialBlock", type("Other", (), {}))
    with pytest.raises(AssertionError):
        check_sizes("soft-cap")


def check_head_sizes(variant: str) -> None:
    """A head's share is what the output of attention is without the others, less the bias; held norms make it what is added."""
    model, sizes = model_of(variant), branch_sizes(model_of(variant), IDS)
    attention = model.blocks[0].attention
    around = isinstance(VARIANTS[variant].block, c.AroundNorm)
    plain = recorded(model)["blocks.0.attention.output"][0]
    for head in range(4):
        others = [h for h in range(4) if h != head]
        recorder = Recorder("blocks.0.attention.output")
        with torch.no_grad():
            edits = Editor(Edit("blocks.0.attention.mixed", zero, heads=others))
            model(torch.tensor([IDS]), tap=lenses.Chain(edits, recorder))
        share = recorder.tensors["blocks.0.attention.output"][0]
        share = share if attention.output.bias is None else share - attention.output.bias.detach()
        if around:  # an RMSNorm after the branch
            norm = model.blocks[0].attention_after
            gain = norm.weight.detach() + VARIANTS[variant].norm.offset
            share = gain * share / (plain.square().mean(-1, keepdim=True) + norm.eps).sqrt()
        assert_within(sizes.of(f"blocks.0.attention.heads.{head}"), share.norm(dim=-1), 1e-12)


@pytest.mark.parametrize(
    "variant", ["untied, biases", "sinusoidal, post-norm", "around, QK-norm", "soft-cap", "free head width"]
)
def test_the_size_of_a_head_is_that_of_its_share(variant: str) -> None:
    check_head_sizes(variant)


def test_exchanged_heads_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = lenses.head_shares
    monkeypatch.setattr(lenses, "head_shares", lambda attention, mixed: shares(attention, mixed).roll(1, dims=1))
    with pytest.raises(AssertionError):
        check_head_sizes("untied, biases")


@pytest.mark.parametrize("variant", ["sinusoidal, post-norm", "ALiBi, MQA"])
def test_post_norm_branches_have_sizes_too(variant: str) -> None:
    model, sizes = model_of(variant), branch_sizes(model_of(variant), IDS)
    tensors = recorded(model)
    for i, (x, name) in enumerate((("input", "blocks.0"), ("blocks.0.output", "blocks.1"))):
        assert_within(sizes.of(f"{name}.attention"), tensors[f"{name}.attention.output"][0].norm(dim=-1), 1e-12)
        row = sizes.names.index(f"{name}.attention")
        assert_within(sizes.stream[row], tensors[x][0].norm(dim=-1), 1e-12)
        row = sizes.names.index(f"blocks.{i}.feedforward")
        assert_within(sizes.stream[row], tensors[f"blocks.{i}.middle"][0].norm(dim=-1), 1e-12)


def test_sizes_by_hand_and_printed() -> None:
    model = three()
    with torch.no_grad():
        model.blocks[0].attention_norm.weight.fill_(1.0)
        model.blocks[0].attention.qkv.weight[4:] = torch.eye(2)  # v is the normed stream
        model.blocks[0].attention.output.weight.copy_(5 / 2**0.5 * torch.eye(2).double())
    sizes = branch_sizes(model, [0, 1])  # the stream (3, 4); attention adds (3, 4) again
    assert sizes.names == ["blocks.0.attention", "blocks.0.attention.heads.0", "blocks.0.feedforward"]
    assert_within(sizes.added, torch.tensor([[5.0, 5.0], [5.0, 5.0], [0.0, 0.0]]).double(), 1e-9)
    assert_within(sizes.stream, torch.tensor([[5.0, 5.0], [5.0, 5.0], [10.0, 10.0]]).double(), 1e-9)
    assert repr(sizes).splitlines()[1].split() == ["blocks.0.attention", "5", "5", "1"]


def test_an_unknown_block_has_no_sizes() -> None:
    model = model_of("learned")
    model.blocks[1] = Passing()
    with pytest.raises(UserError, match="Passing"):
        branch_sizes(model, IDS)


class Passing(nn.Module):
    def forward(self, x: Tensor, visible: object, *, tap: Recorder, **rest: object) -> Tensor:
        return tap("output", x)
