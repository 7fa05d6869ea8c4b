"""The effect of a weight is what its removal does: nothing where nothing reads it, exactly its share where the way is straight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.layers.block import ParallelBlock
from clearhead.messages import UserError
from clearhead.models import choices as c
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.tap import NO_TAP, Ran, Tap
from clearhead.text import CharacterTokenizer
from clearhead.tracing import Edit, Effect, effect_of_weight, trace
from clearhead.tracing import effect as module
from clearhead.tracing.edit import Change
from tests.equalities.variants import VARIANTS, model_of
from tests.oracles.compare import assert_same
from tests.tracing.test_attribution_patching import straight
from tests.tracing.test_gradients import TARGET, pair
from tests.tracing.test_patching import one_way

IDS = [3, 1, 4, 1, 5, 9]
KERNELS = [c.Visible(), c.Fused(), c.Blockwise(block=4)]


class Without(Tap):
    """A tap of our own: a change of one tensor, and nothing else. It asks for a kernel that shows what it makes."""

    def __init__(self, name: str, change: Callable[[Tensor], None], prefix: str = "") -> None:
        self.name, self.change, self.prefix = name, change, prefix

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        if self.prefix + name == self.name:
            tensor = tensor.clone()
            self.change(tensor)
        return tensor

    def within(self, scope: str) -> Tap:
        return Without(self.name, self.change, f"{self.prefix}{scope}.")

    def attended(self, name: str, ran: Ran) -> Ran:
        raise AssertionError("the definition is what we compare with")


def shown(variant: str) -> Decoder:
    """The variant with the kernel that shows everything, and the same weights."""
    return model_of(replace(VARIANTS[variant], kernel=c.Visible()))


def by_definition(
    model: Decoder | EncoderDecoder, inputs: list[list[int]], name: str, change: Callable[[Tensor], None] | None
) -> Tensor:
    """The logits at the last position (V), with a change of one tensor."""
    tap = NO_TAP if change is None else Without(name, change)
    with torch.no_grad():
        logits: Tensor = model(*(torch.tensor([ids]) for ids in inputs), tap=tap)
    return logits[0, -1]


def at(*index: int) -> Callable[[Tensor], None]:
    def change(tensor: Tensor) -> None:
        tensor[(0, *index)] = 0.0

    return change


def check(found: Effect, model: Decoder | EncoderDecoder, inputs: list[list[int]], scope: str) -> None:
    """Every number of an effect, by the definition."""
    head, query, key = found.head, found.query, found.key
    answers = {
        found.ran: by_definition(model, inputs, "", None),
        found.without_weight: by_definition(model, inputs, f"{scope}.weights", at(head, query, key)),
        found.without_head: by_definition(model, inputs, f"{scope}.mixed", at(head, query)),
    }
    for answer, logits in answers.items():
        assert answer.logit == pytest.approx(float(logits[found.id]), rel=1e-9, abs=1e-9)
        assert answer.logprob == pytest.approx(float(logits.log_softmax(-1)[found.id]), rel=1e-9, abs=1e-9)
        assert answer.best == str(int(logits.argmax()))
    assert found.by_weight == found.without_weight.logprob - found.ran.logprob
    assert found.by_head == found.without_head.logprob - found.ran.logprob
    assert found.difference < 1e-12


def check_variant(variant: str, kernel: c.Kernel) -> None:
    model, definition = model_of(replace(VARIANTS[variant], kernel=kernel)), shown(variant)
    for query, key in ((-1, 2), (3, 0), (5, -1)):
        found = effect_of_weight(model, IDS, 0, 2, query, key, token=7)
        check(found, definition, [IDS], "blocks.0.attention")
        weights = trace(definition, IDS, names="blocks.0.attention.weights")["blocks.0.attention.weights"]
        assert found.weight == pytest.approx(float(weights[0, 2, query, key]), abs=1e-13)
        assert abs(found.by_weight) > 1e-5
        assert abs(found.by_head) > 1e-4


@pytest.mark.parametrize("kernel", KERNELS, ids=["visible", "fused", "blockwise"])
@pytest.mark.parametrize("variant", ["rotary, fused", "learned, fused, MQA", "sinusoidal, post-norm", "ALiBi"])
def test_every_number_is_that_of_the_definition(variant: str, kernel: c.Kernel) -> None:
    check_variant(variant, kernel)


@pytest.mark.parametrize(
    ("of", "scope"),
    [("attention", "decoder.blocks.1.attention"), ("cross_attention", "decoder.blocks.1.cross_attention")],
)
def test_an_encoder_decoder(of: module.Which, scope: str) -> None:
    source, visible = [3, 1, 12, 5, 0], pair(c.Visible())
    found = effect_of_weight(pair(), source, 1, 3, -1, 2, of=of, target=TARGET)
    check(found, visible, [source, TARGET], scope)
    assert found.name == f"{scope}.weights"
    assert found.reads == ("4", "12" if of == "cross_attention" else "7")
    reads = effect_of_weight(pair(), source, 0, 1, 4, 2, of="encoder", target=TARGET)
    check(reads, visible, [source, TARGET], "encoder.blocks.0.attention")
    assert reads.reads == ("0", "12")
    assert abs(reads.by_weight) > 1e-6


def test_where_the_way_is_straight_the_logit_loses_exactly_what_was_read() -> None:
    """Δ logit = -weight · (v W_O^h) · E[token], in a last block that runs beside its feed-forward and no norm behind it."""
    model, head, key, token = straight("parallel, biases"), 1, 2, 7
    block = model.blocks[1]
    assert isinstance(block, ParallelBlock)
    found = effect_of_weight(model, IDS, 1, head, -1, key, token=token)
    value = trace(model, IDS, names="blocks.1.attention.v")["blocks.1.attention.v"][0, head // 2, key]
    width = len(value)
    written = block.attention.output.weight[:, head * width : (head + 1) * width] @ value
    wanted = -found.weight * float((written @ model.head.weight[token]).detach())
    assert found.without_weight.logit - found.ran.logit == pytest.approx(wanted, rel=1e-9)
    assert abs(wanted) > 1e-3
    # A head is all that it reads.
    lost = [
        (each := effect_of_weight(model, IDS, 1, head, -1, key, token=token)).without_weight.logit - each.ran.logit
        for key in range(len(IDS))
    ]
    assert found.without_head.logit - found.ran.logit == pytest.approx(sum(lost), rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=["visible", "fused", "blockwise"])
def test_a_weight_that_nothing_reads_has_no_effect_however_large(kernel: c.Kernel) -> None:
    """Why a weight is not a cause: heads that write nothing have weights like any other."""
    model = one_way(kernel, only=2)
    dead = [effect_of_weight(model, IDS, 0, 1, -1, key) for key in range(6)]
    assert max(found.weight for found in dead) > 0.2
    assert all(found.by_weight == found.by_head == 0 for found in dead)
    alive = [effect_of_weight(model, IDS, 0, 2, -1, key) for key in range(6)]
    assert max(abs(found.by_weight) for found in alive) > 1e-2
    assert all(found.by_weight == 0 for found in (effect_of_weight(model, IDS, 0, 2, 3, key) for key in range(6)))


@pytest.mark.parametrize("kernel", KERNELS, ids=["visible", "fused", "blockwise"])
def test_a_key_that_cannot_be_seen_has_no_weight_and_no_effect(kernel: c.Kernel) -> None:
    found = effect_of_weight(model_of(replace(VARIANTS["rotary, fused"], kernel=kernel)), IDS, 0, 2, 1, 4)
    assert found.weight == 0
    assert found.by_weight == pytest.approx(0, abs=1e-13)


def test_the_token_is_the_best_one_and_the_position_the_last_by_default() -> None:
    model = model_of("rotary, fused")
    logits = by_definition(shown("rotary, fused"), [IDS], "", None)
    found = effect_of_weight(model, IDS, 1, 0, 4, 1)
    assert (found.id, found.position) == (int(logits.argmax()), 5)
    assert found.ran.best == found.token == str(found.id)
    assert found.by_weight == 0, "in the last block, a query behind which nothing is asked"
    there = effect_of_weight(model, IDS, 1, 0, 4, 1, position=-2)
    assert there.position == 4
    assert there.by_weight != 0
    assert there.ran.logit == pytest.approx(float(trace(model, IDS, names="logits")["logits"][0, 4].max()), rel=1e-12)


# --- what is said


def loaded() -> Loaded:
    return Loaded(model_of("rotary, fused"), CharacterTokenizer("abcdefg 小<"), VARIANTS["rotary, fused"], Path("here"))


def test_a_weight_is_shown_with_its_effect_and_the_warning() -> None:
    found = effect_of_weight(loaded(), "小< ab", 1, 3, -1, 2, token="小")
    text = repr(found)
    assert "blocks.1.attention.weights, head 3: query 4 (b) reads key 2 (␣)" in text
    assert f"{found.weight:.4f}" in text
    assert "token 小 at position 4" in text
    for answer in (found.ran, found.without_weight, found.without_head):
        assert f"{answer.logit:.4f}  " in text
    assert f"{found.by_weight:+.4f}" in text
    assert "no longer sum to 1" in text
    assert "a weight says where a head reads, not what the answer depends on" in text.splitlines()[-1]
    assert found.ran.logprob < log(1)
    assert effect_of_weight(loaded(), "小<", 1, 3, 1, 1)._repr_html_().count("&lt;") == 2


def test_the_warning_is_said_in_chinese_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    text = repr(effect_of_weight(loaded(), "小<ab", 1, 3, -1, 2))
    assert "不说明答案依赖什么" in text
    assert "其和不再为 1" in text


def test_what_has_no_effect_to_show() -> None:
    model = loaded()
    for wrong in ((4, 0, 0), (-1, 0, 0), (0, 3, 0), (0, 0, 3), (0, -4, 0)):
        with pytest.raises(UserError, match="4 heads, 3 queries and 3 keys"):
            effect_of_weight(model, "abc", 1, *wrong)
    with pytest.raises(UserError, match=r"blocks\.2\.attention"):
        effect_of_weight(model, "abc", 2, 0, 0, 0)
    with pytest.raises(UserError, match=r"cross_attention"):
        effect_of_weight(model, "abc", 1, 0, 0, 0, of="cross_attention")
    with pytest.raises(UserError, match="2 tokens"):
        effect_of_weight(model, "abc", 1, 0, 0, 0, token="ab")
    with pytest.raises(UserError, match="outside the vocabulary"):
        effect_of_weight(model, "abc", 1, 0, 0, 0, token=11)
    with pytest.raises(IndexError, match="position 3"):
        effect_of_weight(model, "abc", 1, 0, 0, 0, position=3)
    with pytest.raises(UserError, match="training mode"):
        effect_of_weight(model_of("learned", dropout=0.1).train(), IDS, 1, 0, 0, 0)


def test_nothing_stays_on_the_model() -> None:
    model = model_of("rotary, fused").train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first = effect_of_weight(model, IDS, 0, 2, -1, 2)
    assert effect_of_weight(model, IDS, 0, 2, -1, 2) == first
    assert model.training
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert not any(part._forward_hooks or part._backward_hooks for part in model.modules())
    for name, tensor in model.state_dict().items():
        assert_same(tensor, before[name])


# --- planted faults


def renormalised(key: int) -> Change:
    """The other weights take over what was read."""

    def change(name: str, weights: Tensor) -> Tensor:
        weights = weights.clone()
        weights[..., key] = 0.0
        return weights / weights.sum(-1, keepdim=True)

    return change


def of_the_next_key(key: int) -> Change:
    def change(name: str, weights: Tensor) -> Tensor:
        weights = weights.clone()
        weights[..., key - 1] = 0.0
        return weights

    return change


@pytest.mark.parametrize("fault", [renormalised, of_the_next_key])
@pytest.mark.parametrize("kernel", KERNELS[:2], ids=["visible", "fused"])
def test_another_removal_is_found(
    monkeypatch: pytest.MonkeyPatch, kernel: c.Kernel, fault: Callable[[int], Change]
) -> None:
    monkeypatch.setattr(module, "_without", fault)
    with pytest.raises(AssertionError):
        check_variant("rotary, fused", kernel)
    with pytest.raises(AssertionError):
        test_where_the_way_is_straight_the_logit_loses_exactly_what_was_read()


@pytest.mark.parametrize("field", ["heads", "positions"])
def test_a_removal_from_other_heads_or_queries_is_found(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    def wider(names: str, change: Change, *, heads: list[int], positions: list[int]) -> Edit:
        chosen = {"heads": heads, "positions": positions} | {field: None}
        return Edit(names, change, **chosen)

    monkeypatch.setattr(module, "Edit", wider)
    with pytest.raises(AssertionError):
        check_variant("rotary, fused", c.Fused())
