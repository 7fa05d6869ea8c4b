"""A logit is the sum of what the parts add to it, in every model whose stream is a sum; each part is the part it is said to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from clearhead.text import CharacterTokenizer
from clearhead.tracing import Edit, Editor, Recorder, attribution, direct_logit_attribution, parts, zero
from clearhead.tracing.parts import Held, head_shares, hold
from tests.equalities.variants import VARIANTS, ids_of, model_of
from tests.oracles.compare import assert_within

SUMS = [name for name, config in VARIANTS.items() if not isinstance(config.block, c.PostNorm)]
POST_NORM = [name for name in VARIANTS if name not in SUMS]
IDS = ids_of(1)[0].tolist()
WITHIN = 1e-10


def check_sum(variant: str) -> None:
    model = model_of(variant)
    with torch.no_grad():
        logits = model(torch.tensor([IDS]))[0]
    for position, token, versus in ((-1, None, None), (4, 7, None), (0, 3, 9), (-2, None, 2)):
        found = direct_logit_attribution(model, IDS, position, token, versus)
        row = logits[position]
        wanted = row[found.token] - (0.0 if versus is None else row[versus])
        assert abs(found.logit - float(wanted)) == 0.0
        assert abs(found.difference) < WITHIN, f"{found.difference:.3g}"
        assert abs(found.total - float(wanted)) < WITHIN
        assert token is not None or found.token == int(row.argmax())


@pytest.mark.parametrize("variant", SUMS)
def test_what_the_parts_add_sums_to_the_logit(variant: str) -> None:
    check_sum(variant)


@pytest.mark.parametrize("variant", SUMS)
def test_every_part_there_is_has_its_line(variant: str) -> None:
    config, model = VARIANTS[variant], model_of(variant)
    names = direct_logit_attribution(model, IDS).names
    assert len(set(names)) == len(names)
    assert len([name for name in names if ".heads." in name]) == config.layers * config.heads
    assert names.count("positions") == isinstance(config.positions, c.Learned | c.Sinusoidal)
    # A bias has the name of its parameter; those of q, k, v and of the norms before a branch act through the parts.
    after = ("output.bias", "down.bias", "_after.bias", "embedding_norm.bias", "head.bias")
    biases = {name for name, _ in model.named_parameters() if name.endswith(after) or name == "norm.bias"}
    assert {name for name in names if name.endswith(".bias")} == biases


# --- planted faults: what the sum alone catches


def _unheld(self: Held, part: Tensor) -> Tensor:
    """The statistics of the part itself, not of what ran."""
    part = part - part.mean(-1, keepdim=True) if self.centred else part
    return part / (part.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def _uncentred(self: Held, part: Tensor) -> Tensor:
    return self.factor * part


def _without_gain(norm: nn.Module, x: Tensor) -> Held:
    held = hold(norm, x)
    return Held((x.square().mean(-1, keepdim=True)).rsqrt().expand_as(x), held.centred, held.shift)


def _no_norm_after(
    norm: nn.Module, name: str, whole: Tensor, parts: list[tuple[str, Tensor]]
) -> list[tuple[str, Tensor]]:
    return list(parts)


FAULTS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "scale not held": ("rotary, fused", lambda patch: patch.setattr(Held, "share", _unheld)),
    "mean not taken off": ("learned", lambda patch: patch.setattr(Held, "share", _uncentred)),
    "gain forgotten": ("ALiBi", lambda patch: patch.setattr(attribution, "hold", _without_gain)),
    "norm after a branch forgotten": ("around, QK-norm", lambda patch: patch.setattr(attribution, "_through", _no_norm_after)),
    "norm of the input forgotten": ("sinusoidal halves", lambda patch: patch.setattr(attribution, "_through", _no_norm_after)),
    "biases forgotten": ("parallel, biases", lambda patch: patch.setattr(attribution, "_bias", lambda name, layer: iter(()))),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_breaks_the_sum(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variant, plant = FAULTS[fault]
    check_sum(variant)
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check_sum(variant)


# --- each head's part is that head's: with the head at zero, the stream changes by it


def check_head(variant: str) -> None:
    model, last = model_of(variant), VARIANTS[variant].layers - 1
    for head in range(VARIANTS[variant].heads):
        streams = []
        for edits in ((), (Edit(f"blocks.{last}.attention.mixed", zero, heads=[head]),)):
            recorder, editor = Recorder(f"blocks.{last}.output"), Editor(*edits)
            with torch.no_grad():
                model(torch.tensor([IDS]), tap=attribution.Chain(editor, recorder))
            streams.append(recorder.tensors[f"blocks.{last}.output"][0, -1])
        plain, without = streams
        added, weight = plain - without, model.head.weight[5]
        if isinstance(VARIANTS[variant].norm, c.LayerNorm):
            added = (added - added.mean()) / (plain.var(correction=0) + model.norm.eps).sqrt()
        else:
            added = added / (plain.square().mean() + model.norm.eps).sqrt()
        found = direct_logit_attribution(model, IDS, token=5)
        wanted = float((weight * model.norm.weight * added).sum().detach())
        assert abs(found.of(f"blocks.{last}.attention.heads.{head}") - wanted) < WITHIN
        assert abs(found.heads()[last, head] - wanted) < WITHIN
        assert abs(wanted) > 1e-4


PARALLEL = ["parallel, biases", "rotary partial, parallel"]
"""There the last attention is read by nothing but the stream."""


@pytest.mark.parametrize("variant", PARALLEL)
def test_a_head_adds_what_its_absence_takes(variant: str) -> None:
    check_head(variant)


def _other_order(attention: nn.Module, mixed: Tensor) -> Tensor:
    """Heads and features exchanged: a sum that is right, of parts that are not."""
    return head_shares(attention, mixed).roll(1, dims=1)


def test_exchanged_heads_are_caught_though_their_sum_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "head_shares", _other_order)
    check_sum(PARALLEL[0])
    with pytest.raises(AssertionError):
        check_head(PARALLEL[0])


# --- by hand


def tiny() -> Decoder:
    """One block of one head of width 2, whose attention and feed-forward add nothing yet."""
    config = DecoderConfig(
        vocab=3, layers=1, heads=1, width=2, feedforward_width=2, context=4, tied=False, norm=c.RMSNorm(eps=1e-9),
        activation=c.ReLU(), positions=c.Learned(), head_bias=True, bias=True,
    )  # fmt: skip
    model = build(config, seed=0).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.fill_(1.0)
    return model


def test_a_logit_by_hand() -> None:
    model = tiny()
    (block,) = model.blocks
    with torch.no_grad():
        model.embedding.weight.copy_(torch.tensor([[3.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
        model.positions.table[0] = torch.tensor([0.0, 2.0])
        block.attention.output.bias.copy_(torch.tensor([0.0, 1.0]))
        block.feedforward.down.bias.copy_(torch.tensor([0.0, 1.0]))
        model.norm.weight.copy_(torch.tensor([1.0, 10.0]))
        model.head.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        model.head.bias.copy_(torch.tensor([0.5, 0.25, 0.0]))
    # The stream is (3, 0) + (0, 2) + (0, 1) + (0, 1) = (3, 4): root mean square 5/√2; γ makes it (3, 40)·√2/5.
    unit = 2**0.5 / 5
    found = direct_logit_attribution(model, [0], token=2)
    wanted = {
        "embedding": 3 * unit, "positions": 20 * unit, "blocks.0.attention.heads.0": 0.0,
        "blocks.0.attention.output.bias": 10 * unit, "blocks.0.feedforward": 0.0,
        "blocks.0.feedforward.down.bias": 10 * unit, "head.bias": 0.0,
    }  # fmt: skip
    assert found.names == list(wanted)
    assert_within(found.values, torch.tensor(list(wanted.values()), dtype=torch.float64), 1e-8)
    apart = direct_logit_attribution(model, [0], token=0, versus=1)
    assert abs(apart.of("embedding") - 3 * unit) < 1e-8
    assert abs(apart.of("positions") + 20 * unit) < 1e-8
    assert abs(apart.of("blocks.0.attention") + 10 * unit) < 1e-8
    assert apart.of("head.bias") == 0.25


def test_a_norm_is_held_by_hand() -> None:
    norm = parts.LayerNorm(2, eps=0.0)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0]))
        norm.bias.copy_(torch.tensor([5.0, 7.0]))
    held = hold(norm, torch.tensor([1.0, 5.0]))  # mean 3, deviation 2
    assert_within(held.share(torch.tensor([4.0, 0.0])), torch.tensor([1.0, -2.0]), 0.0)
    assert_within(held.share(torch.tensor([1.0, 5.0])) + held.shift, norm(torch.tensor([1.0, 5.0])), 0.0)
    assert_within(hold(nn.Identity(), torch.ones(2)).share(torch.tensor([4.0, 0.0])), torch.tensor([4.0, 0.0]), 0.0)
    with pytest.raises(UserError, match="BatchNorm1d"):
        hold(nn.BatchNorm1d(2), torch.ones(2))


# --- what it is asked, and refuses


@pytest.fixture
def loaded() -> Loaded:
    return Loaded(model_of("learned"), CharacterTokenizer("abcdefgh小猫"), VARIANTS["learned"], Path("here"))


def test_tokens_are_given_as_text_or_ids_and_shown(loaded: Loaded) -> None:
    by_text = direct_logit_attribution(loaded, "小猫ab", 1, "a", "猫")
    by_id = direct_logit_attribution(loaded, "小猫ab", 1, *loaded.tokenizer.encode("a猫"))
    assert torch.equal(by_text.values, by_id.values)
    assert (by_text.title, by_text.position) == ("'a' - '猫'", 1)
    lines = repr(by_text).splitlines()
    assert lines[0].startswith("adds to 'a' - '猫'")
    assert len(lines) == len(by_text.names) + 3
    largest = by_text.names[int(by_text.values.abs().argmax())]
    assert lines[1].startswith(largest)


def test_an_edit_is_what_is_added_up(loaded: Loaded) -> None:
    edit = Editor(Edit("blocks.0.attention.mixed", zero, heads=[2]))
    found = direct_logit_attribution(loaded, "abc", edits=edit)
    assert found.of("blocks.0.attention.heads.2") == 0.0
    assert abs(found.difference) < WITHIN
    broken = Editor(Edit("blocks.0.middle", zero))
    assert abs(direct_logit_attribution(loaded, "abc", edits=broken).difference) > 1e-3


def test_in_16_bits_the_sum_is_right_to_16_bits() -> None:
    model = model_of("learned").bfloat16()
    found = direct_logit_attribution(model, IDS)
    assert found.values.dtype == torch.float32
    assert abs(found.difference) < 0.05 * max(1.0, float(found.values.abs().max()))


@pytest.mark.parametrize("variant", POST_NORM)
def test_post_norm_is_refused_in_one_line(variant: str) -> None:
    with pytest.raises(UserError, match="post-norm") as refused:
        direct_logit_attribution(model_of(variant), IDS)
    assert "\n" not in str(refused.value)


def test_what_is_no_token_or_no_decoder_is_refused(loaded: Loaded) -> None:
    for token, words in (("ab", "2 tokens"), (11, "11"), (-1, "-1")):
        with pytest.raises(UserError, match=words):
            direct_logit_attribution(loaded, "abc", token=token)
    with pytest.raises(UserError, match="tokenizer"):
        direct_logit_attribution(loaded.model, IDS, token="a")
    with pytest.raises(IndexError, match="position 3"):
        direct_logit_attribution(loaded, "abc", position=3)
    with pytest.raises(UserError, match="EncoderDecoder"):
        direct_logit_attribution(build(EncoderDecoderConfig(vocab=11, width=8, heads=2), seed=0), IDS)
    dropping = model_of(replace(VARIANTS["learned"], dropout=0.1)).train()
    with pytest.raises(UserError, match="eval"):
        direct_logit_attribution(dropping, IDS)
    other = model_of("learned")
    other.blocks[1] = nn.Identity()
    with pytest.raises(UserError, match="Identity"):
        direct_logit_attribution(other, IDS)
