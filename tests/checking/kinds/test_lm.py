"""Language models are checked: each planted fault is named, right models are left alone, and what cannot see says so."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from types import ModuleType

import pytest
import torch
from torch.nn import functional as F

from bench.checking.case import Case
from bench.checking.first import lm_course, lm_gpt, lm_llama, lm_made, lm_mended, lm_more, lm_right
from clearhead.checking.check import check
from clearhead.checking.kinds.cache_causes import agrees
from clearhead.checking.kinds.cache_joined import joined
from clearhead.checking.kinds.caches import caching, pieces_of, read_in, reading
from clearhead.checking.kinds.lm import opened
from clearhead.checking.kinds.lm_case import LmCase
from clearhead.checking.kinds.lm_causal import causality, influence
from clearhead.checking.kinds.lm_generate import generating
from clearhead.checking.kinds.lm_inside import inside, order_matters
from clearhead.checking.kinds.lm_loss import Reference, own_loss, references
from clearhead.checking.kinds.lm_made import tied
from clearhead.checking.kinds.lm_padding import padding
from clearhead.checking.kinds.lm_parts import attentions, blocks, norms
from clearhead.checking.kinds.lm_positions import flat
from clearhead.checking.settings import Settings
from clearhead.checking.target import target_of
from clearhead.models.build import build
from clearhead.models.config import DecoderConfig

FILES = (lm_gpt, lm_llama, lm_course, lm_more, lm_made, lm_mended, lm_right)
ALL = [(module, case) for module in FILES for case in module.CASES]
WHOLE = ("Gpt", "open_chunks", "Remembering")


def case_of(module: ModuleType, name: str) -> LmCase:
    return opened(target_of(getattr(module, name), name, Settings()), Settings())


def first_faults(module: ModuleType, case: Case) -> list[str]:
    report = check(getattr(module, case.name), kind=None if case.guess else case.kind, **case.options)
    return [fault.id for fault in report.faults]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "case"), ALL, ids=lambda value: getattr(value, "name", ""))
def test_every_model_of_the_first_set(module: ModuleType, case: Case) -> None:
    found = first_faults(module, case)
    if case.fault is None:
        assert found == []
    else:
        assert found[0] in (case.fault, *case.also)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_checks(name: str) -> None:
    module, case = next((m, c) for m, c in ALL if c.name == name)
    found = first_faults(module, case)
    assert found[:1] == ([] if case.fault is None else [case.fault])


QUESTIONS = {
    "causal": lambda case: causality(case, influence(case)),
    "inside": inside,
    "order": order_matters,
    "joined": joined,
    "padding": padding,
    "cache": lambda case: caching(case, Settings()),
    "loss": own_loss,
    "generate": generating,
    "tied": tied,
}
ASKED = [
    ("causal", lm_gpt, "one_ahead", "causal.future-leak"),
    ("causal", lm_gpt, "alone", "causal.past-lost"),
    ("inside", lm_course, "below", "causal.self-masked"),
    ("inside", lm_llama, "loud", "causal.finite-mask"),
    ("inside", lm_more, "one_more", "window.off-by-one"),
    ("inside", lm_more, "one_less", "window.off-by-one"),
    ("inside", lm_made, "EveryLayer", "position.every-block"),
    ("inside", lm_course, "Raw", "norm.final-missing"),
    ("order", lm_gpt, "same_place", "position.unused"),
    ("padding", lm_gpt, "MaskUnused", "mask.ignored"),
    ("padding", lm_made, "OnlyFirstBlock", "mask.ignored"),
    ("padding", lm_made, "Polar", "mask.polarity"),
    ("padding", lm_made, "CountsPads", "position.left-padding"),
    ("cache", lm_llama, "restarting", "position.offset"),
    ("cache", lm_gpt, "drift", "position.offset"),
    ("cache", lm_llama, "is_causal", "causal.top-left"),
    ("cache", lm_llama, "unmasked_past", "cache.prefill-unmasked"),
    ("cache", lm_llama, "one_slot", "cache.shared-between-blocks"),
    ("cache", lm_gpt, "scaled_past", "cache.mismatch"),
    ("cache", lm_more, "buffered", "cache.aliased"),
    ("cache", lm_llama, "ring", "cache.overflow"),
    ("cache", lm_more, "OneTooMany", "cache.overflow"),
    ("cache", lm_mended, "ClingingObject", "cache.aliased"),
    ("cache", lm_mended, "far_one", "cache.overflow"),
    ("joined", lm_mended, "AlwaysOne", "cache.shared-between-blocks"),
    ("inside", lm_mended, "PlainIdentity", "norm.final-missing"),
    ("order", lm_mended, "Forgotten", "position.unused"),
    ("loss", lm_gpt, "unshifted", "loss.unshifted"),
    ("loss", lm_course, "ShiftsAgain", "loss.shifted-twice"),
    ("loss", lm_course, "Twice", "loss.double-softmax"),
    ("loss", lm_gpt, "means", "loss.mean-of-means"),
    ("loss", lm_course, "PadsIn", "loss.pads-counted"),
    ("loss", lm_course, "EndIsPad", "loss.eos-masked"),
    ("generate", lm_course, "GoesOn", "generate.finished-rows"),
    ("generate", lm_course, "ReadsPads", "generate.pad-read"),
    ("generate", lm_course, "Forty", "sampling.hidden-default"),
    ("tied", lm_made, "InitAfter", "init.after-tying"),
]


@pytest.mark.parametrize(("question", "module", "name", "fault"), ASKED)
def test_each_question_names_its_fault(question: str, module: ModuleType, name: str, fault: str) -> None:
    found = QUESTIONS[question](case_of(module, name))
    assert [each.id for each in found.faults] == [fault]


RIGHT = (
    [(lm_right, name) for name in ("Nano", "Fast", "Odd", "Doubled")]
    + [(lm_mended, name) for name in ("Object", "CausalOnly")]
    + [(lm_llama, "Llama"), (lm_made, "Counted")]
)


@pytest.mark.parametrize(("module", "name"), RIGHT)
def test_no_question_blames_a_right_model(module: ModuleType, name: str) -> None:
    case = case_of(module, name)
    for question in QUESTIONS.values():
        found = question(case)
        assert found.faults == ()
        assert all(each.verdict in ("pass", "skipped") for each in found.checks)


def test_our_own_decoder_is_read_with_its_store_and_its_mask() -> None:
    model = build(DecoderConfig(vocab=61, width=32, layers=2, heads=4, context=24), seed=0)
    case = opened(target_of(model, "decoder", Settings()), Settings())
    assert case.cache is not None
    assert case.mask is not None
    found = caching(case, Settings()) + padding(case)
    assert found.faults == ()
    assert {each.id for each in found.checks if each.verdict == "pass"} >= {
        "cache.mismatch",
        "cache.stale",
        "mask.ignored",
    }


@pytest.mark.parametrize(
    ("module", "name", "how"),
    [
        (lm_gpt, "Gpt", "past_key_values=None"),
        (lm_llama, "Llama", "kept inside"),
        (lm_llama, "Owned", "new_cache()"),
        (lm_right, "Fast", "kept inside"),
        (lm_right, "Doubled", "layer_past=None"),
    ],
)
def test_caches_are_found_and_every_way_to_cut_a_text_is_read(module: ModuleType, name: str, how: str) -> None:
    case = case_of(module, name)
    assert case.cache is not None
    assert case.cache.described == how
    text = reading(case)
    for pieces in pieces_of(text.ids.shape[1]):
        assert sum(pieces) == text.ids.shape[1]
        found, wanted = read_in(case, text, pieces)
        assert (found - wanted).abs().max() <= text.allowed


def test_blocks_and_attentions_inside_are_asked_too() -> None:
    class Unscaled(lm_gpt.SelfAttention):
        def weigh(self, scores: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
            return super().weigh(scores * self.head_dim**0.5, seen)

    class Doubled(lm_gpt.Gpt):
        def blocks(self, width: int, heads: int, layers: int) -> torch.nn.ModuleList:
            return torch.nn.ModuleList(TwoX(width, heads, self.attention) for _ in range(layers))

    class TwoX(lm_gpt.Block):
        def forward(self, x: torch.Tensor, past: object = None, keep: object = None) -> tuple[torch.Tensor, object]:
            y, present = self.attn(self.ln_1(x), past, keep)
            x = x + x + y
            return x + self.mlp(self.ln_2(x)), present

    unscaled = opened(target_of(lm_gpt.gpt(Unscaled), "Unscaled", Settings()), Settings())
    assert {fault.id for fault in attentions(unscaled, Settings()).faults} == {"scale.missing"}
    doubled = opened(target_of(Doubled, "Doubled", Settings()), Settings())
    assert {fault.id for fault in blocks(doubled, Settings()).faults} == {"residual.doubled"}
    right = case_of(lm_gpt, "Gpt")
    assert (attentions(right, Settings()) + blocks(right, Settings())).faults == ()


def test_a_cause_is_believed_only_where_its_change_mends_all() -> None:
    case = case_of(lm_llama, "restarting")
    assert not agrees(case, reading(case), {(1,) * 10: 1.0}, case.case.ready)


def test_a_model_of_last_logits_alone_is_not_said_to_be_causal() -> None:
    case = replace(case_of(lm_right, "Nano"), last_only=True, with_targets=False)
    (future, past) = causality(case, influence(case)).checks
    assert (future.id, future.verdict) == ("causal.future-leak", "skipped")
    assert (past.id, past.verdict) == ("causal.past-lost", "pass")


def test_a_window_wider_than_the_text_is_skipped() -> None:
    case = replace(case_of(lm_more, "Windowed"), window=6)
    verdicts = {each.id: each.verdict for each in inside(case).checks}
    assert verdicts["window.off-by-one"] == "skipped"


def test_order_cannot_be_asked_where_all_weights_are_equal() -> None:
    class Zero(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 0 * super().forward(x)

    class Flat(lm_more.Lm):
        def setup(self) -> None:
            for layer in self.layers:
                layer.attn.q = Zero(24, 24)

    case = opened(target_of(Flat(), "Flat", Settings()), Settings())
    assert [each.verdict for each in order_matters(case).checks] == ["skipped"]


def test_the_references_of_a_loss_by_hand() -> None:
    logits = torch.zeros(2, 3, 5, dtype=torch.float64)
    logits[0, 0, 1] = math.log(4)
    targets = torch.tensor([[1, 1, 2], [0, 3, -100]])
    counts = targets != -100
    found = references(logits, targets, counts)
    # Over five tokens: the first position gives token 1 the chance 4/8, every other position 1/5.
    assert found[Reference(1, False, "sum")] == pytest.approx(math.log(2) + 2 * math.log(5))
    assert found[Reference(1, False, "real")] == pytest.approx((math.log(2) + 2 * math.log(5)) / 3)
    assert found[Reference(1, False, "rows")] == pytest.approx(((math.log(2) + math.log(5)) / 2 + math.log(5)) / 2)
    assert found[Reference(0, False, "real")] == pytest.approx((math.log(2) + 4 * math.log(5)) / 5)
    twice = F.cross_entropy(logits[0, 0].softmax(-1), torch.tensor(1))
    assert found[Reference(1, True, "sum")] == pytest.approx(twice.item() + 2 * math.log(5))


def test_a_table_of_places_is_made_flat_and_weights_are_not() -> None:
    angles = torch.arange(5.0)[:, None] * torch.tensor([1.0, 0.1, 0.01])
    assert (flat(angles.cos(), "a") == 1).all()
    assert (flat(angles.sin(), "sin_cached") == 0).all()
    waves = flat(torch.cat([angles.sin(), angles.cos()], 1), "table")
    assert (waves == waves[:1]).all()
    assert (flat(torch.polar(torch.ones_like(angles), angles), "b") == 1).all()
    plain = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(flat(plain, "running_mean"), plain)


def test_every_fault_of_the_set_is_planted_twice() -> None:
    planted = [case.fault for _, case in ALL if case.fault]
    once = {fault for fault in planted if planted.count(fault) == 1}
    assert once == set()
    assert len([case for _, case in ALL if case.fault is None]) >= 15
    assert all(importlib.import_module(module.__name__) is module for module in FILES)


def test_a_norm_of_the_users_own_is_known_by_the_name_of_its_instance() -> None:
    class Ln(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()

    class Right(Ln):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()

    def named(norm: type[torch.nn.Module]) -> list[str]:
        model = lm_gpt.Gpt()
        for block in model.h:
            block.ln_1 = norm()
        case = opened(target_of(model, "Gpt", Settings()), Settings())
        return [fault.id for fault in norms(case, Settings()).faults]

    assert named(Ln) == ["norm.unbiased-variance"]
    assert named(Right) == []
