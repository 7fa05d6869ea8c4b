"""Attention of q, k and v: each planted fault is named, right functions are left alone, and what cannot be seen is not passed."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from bench.checking.case import Case
from bench.checking.first import sdpa, sdpa_b
from clearhead.checking.check import check
from clearhead.checking.kinds.attention_references import MASKS, SCALES, TRIANGLES, Variant, attend, bases, matches
from clearhead.checking.kinds.sdpa_opening import drawn

EVERY = [(module, case) for module in (sdpa, sdpa_b) for case in module.CASES]
RIGHT = [pair for pair in EVERY if pair[1].fault is None]
FAULTY = [pair for pair in EVERY if pair[1].fault is not None]


def shown(pair: object) -> str:
    return pair[1].name if isinstance(pair, tuple) else str(pair)


@pytest.mark.parametrize("pair", FAULTY, ids=shown)
def test_a_planted_fault_is_named_first(pair: tuple[object, Case]) -> None:
    module, case = pair
    report = check(getattr(module, case.name), kind="sdpa")
    assert not report.ok
    assert report.faults[0].id in (case.fault, *case.also)
    assert report.faults[0].fix
    assert report.faults[0].evidence


@pytest.mark.parametrize("pair", RIGHT, ids=shown)
def test_a_right_one_is_left_alone(pair: tuple[object, Case]) -> None:
    module, case = pair
    report = check(getattr(module, case.name), kind="sdpa")
    assert report.ok, report.faults


def test_the_reference_is_the_formula() -> None:
    q, k, v = drawn(2, 3, 4, 5, d=8)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    assert torch.allclose(attend(q, k, v, Variant()), expected, rtol=0, atol=1e-12)
    keep = torch.ones(2, 1, 4, 5, dtype=torch.bool).tril(1)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=keep)
    assert torch.allclose(attend(q, k, v, Variant(triangle="right")), expected, rtol=0, atol=1e-12)
    assert torch.allclose(attend(q, k, v, Variant(), keep), expected, rtol=0, atol=1e-12)


def test_no_two_single_faults_give_the_same_output() -> None:
    q, k, v = drawn(3, 4, 6, 6, d=8)
    single = [variant for variant in bases(3) if len(variant.faults) <= 1 and not variant.after]
    outputs = [attend(q, k, v, variant) for variant in single]
    same = [
        (single[i], single[j])
        for i in range(len(single))
        for j in range(i)
        if matches(outputs[i], outputs[j], 1e-5) and matches(outputs[j], outputs[i], 1e-5)
    ]
    assert not same


def test_every_mask_differs_from_every_other() -> None:
    q, k, v = drawn(3, 4, 6, 6, d=8)
    keep = torch.rand(3, 1, 6, 6, generator=torch.Generator().manual_seed(1)) > 0.4
    keep[..., torch.arange(6), torch.arange(6)] = True
    keep[..., 0, 1:] = False
    outputs = {mask: attend(q, k, v, Variant(mask=mask), keep) for mask in MASKS}
    # "after" and "multiplied" differ; a query axis may give nothing to compare.
    for one in ("keep", "drop", "number", "ignored", "after", "multiplied", "rolled", "folded"):
        for other in ("keep", "drop", "number", "ignored", "after", "multiplied", "rolled", "folded"):
            assert one == other or not matches(outputs[one], outputs[other], 1e-5), (one, other)


def test_every_scale_and_triangle_is_known() -> None:
    assert len({f(8, 32, 6) for f in SCALES.values()}) == len(SCALES)
    q, k, v = drawn(1, 1, 4, 6, d=8)
    assert len({attend(q, k, v, Variant(triangle=name)).nansum().item() for name in TRIANGLES}) == len(TRIANGLES)


def test_what_is_not_taken_is_not_passed() -> None:
    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert q.shape[1] == k.shape[1]
        return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), -1) @ v

    verdicts = {each.id: each.verdict for each in check(plain, kind="sdpa").checks}
    assert verdicts["heads.kv-tiled"] == "skipped"
    assert verdicts["mask.ignored"] == "skipped"
    assert verdicts["causal.future-leak"] == "skipped"
    assert verdicts["reference"] == "pass"


def test_what_no_formula_gives_is_not_passed() -> None:
    def other(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.sigmoid(q @ k.transpose(-2, -1)) @ v / k.shape[-2]

    report = check(other, kind="sdpa")
    assert report.ok
    assert {each.id: each.verdict for each in report.checks}["reference"] == "skipped"


def test_keys_first_are_given_by_their_names() -> None:
    def attention(values: Tensor, keys: Tensor, query: Tensor) -> Tensor:
        return torch.softmax(query @ keys.transpose(-2, -1) / math.sqrt(query.shape[-1]), -1) @ values

    assert check(attention, kind="sdpa").ok


def test_a_mean_of_values_is_a_fault_only_where_empty_rows_are_spoken_of() -> None:
    assert check(sdpa_b.right_annotated, kind="sdpa").notes
    assert [each.id for each in check(sdpa_b.empty_rows_mean, kind="sdpa").faults] == ["mask.empty-row"]


def test_what_pytorch_makes_of_an_empty_row_is_a_note() -> None:
    report = check(sdpa_b.right_kernel_adds, kind="sdpa")
    assert report.ok
    verdict = {each.id: each.verdict for each in report.checks}["mask.empty-row"]
    assert verdict == ("skipped" if report.notes else "pass")


def test_groups_that_are_added_up_in_any_place() -> None:
    def outputs(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        groups = q.shape[1] // k.shape[1]
        each = torch.nn.functional.scaled_dot_product_attention(
            q, k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        )
        return each.reshape(q.shape[0], k.shape[1], groups, *q.shape[2:]).sum(2).repeat_interleave(groups, 1)

    assert [each.id for each in check(outputs, kind="sdpa").faults] == ["heads.grouped-summed"]
