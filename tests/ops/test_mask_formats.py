"""The mask conventions of others: a converted mask, given to their own function, means what it means here."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.ops import EVERYTHING, Allowed, Mask, Padding, attend_visible, causal, merge_heads, split_heads
from clearhead.ops.mask_formats import (
    from_additive,
    from_multihead,
    from_sdpa,
    to_additive,
    to_key_padding,
    to_multihead,
    to_sdpa,
)
from clearhead.ops.masks import Prefix, Window
from tests.oracles.compare import assert_within

B, H, T, S, d = 2, 3, 4, 5, 6
REAL = torch.tensor([[True, True, True, True, False], [False, True, True, True, True]])
# Masks of which no query is left without a key, one for all rows, and one that differs.
SHARED: dict[str, Mask] = {
    "causal": causal(T, S),
    "window": causal(T, S) & Window(2, range(1, S), range(S)),
    "prefix": Prefix(3, range(1, S), range(S)),
    "everything": Allowed(torch.ones(T, S, dtype=torch.bool)),
}
MASKS = {**SHARED, "padding": causal(T, S) & Padding(REAL)}


def inputs() -> list[Tensor]:
    return [torch.randn(B, H, n, d, dtype=torch.float64) for n in (T, S, S)]


# scaled_dot_product_attention

Converter = Callable[[Mask], Tensor]


def additive(mask: Mask) -> Tensor:
    return to_additive(mask, torch.float64)


def check_sdpa(convert: Converter, mask: Mask) -> None:
    q, k, v = inputs()
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=convert(mask))
    assert_within(theirs, attend_visible(q, k, v, mask), 1e-12)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("convert", [to_sdpa, additive], ids=["bool", "additive"])
def test_sdpa_reads_our_masks(convert: Converter, mask: Mask) -> None:
    check_sdpa(convert, mask)


@pytest.mark.parametrize(
    "fault",
    [lambda mask: ~to_sdpa(mask), lambda mask: to_sdpa(mask).double(), lambda mask: -additive(mask).clamp(min=-1)],
    ids=["polarity", "ones and zeros added", "sign"],
)
def test_a_faulty_conversion_to_sdpa_is_caught(fault: Converter) -> None:
    with pytest.raises(AssertionError):
        check_sdpa(fault, SHARED["window"])


def check_from_sdpa(convert: Callable[[Tensor], Mask], attn_mask: Tensor) -> None:
    q, k, v = inputs()
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
    assert_within(attend_visible(q, k, v, convert(attn_mask)), theirs, 1e-12)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masks_of_sdpa_are_read(mask: Mask) -> None:
    check_from_sdpa(from_sdpa, mask.matrix())
    check_from_sdpa(from_sdpa, additive(mask))
    lowest = torch.zeros(mask.matrix().shape).double().masked_fill(~mask.matrix(), torch.finfo(torch.float64).min)
    check_from_sdpa(from_sdpa, lowest)
    with pytest.raises(AssertionError):
        check_from_sdpa(lambda m: Allowed(~m), causal(T, S).matrix())


# nn.MultiheadAttention


def theirs_and_ours() -> tuple[nn.MultiheadAttention, Tensor, Callable[[Mask], Tensor]]:
    """PyTorch's layer, an input of S positions that ask and are asked, and what our definition gives with its weights."""
    width = H * d
    layer = nn.MultiheadAttention(width, H, batch_first=True, dtype=torch.float64)
    nn.init.normal_(layer.in_proj_bias)
    x = torch.randn(B, S, width, dtype=torch.float64)

    def ours(mask: Mask) -> Tensor:
        q, k, v = (split_heads(y, H) for y in F.linear(x, layer.in_proj_weight, layer.in_proj_bias).chunk(3, -1))
        return layer.out_proj(merge_heads(attend_visible(q, k, v, mask)))

    return layer, x, ours


SQUARE: dict[str, Mask] = {
    "causal": causal(S),
    "window": causal(S) & Window(2, range(S), range(S)),
    "prefix": Prefix(3, range(S), range(S)),
}


def check_multihead(convert: Converter, pad: Callable[[Tensor], Tensor], mask: Mask) -> None:
    """With one mask for all rows, with padding, and with both; rows that see nothing are NaN there and left out."""
    layer, x, ours = theirs_and_ours()
    for attn_mask, key_padding, visible in (
        (convert(mask), None, mask),
        (None, pad(REAL), Padding(REAL)),
        (convert(mask), pad(REAL), mask & Padding(REAL)),
    ):
        theirs, _ = layer(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding, need_weights=False)
        seen = visible.matrix().expand(B, 1, S, S).any(-1).squeeze(1)
        assert_within(theirs[seen], ours(visible)[seen], 1e-12)
        assert_within(theirs[seen], ours(from_multihead(attn_mask, key_padding))[seen], 1e-12)


@pytest.mark.parametrize("mask", SQUARE.values(), ids=SQUARE)
def test_multi_head_attention_reads_our_masks_and_we_read_its(mask: Mask) -> None:
    check_multihead(to_multihead, to_key_padding, mask)


def test_additive_masks_of_multi_head_attention_are_read() -> None:
    check_multihead(additive, lambda real: additive(Padding(real))[:, 0, 0], SQUARE["window"])


@pytest.mark.parametrize(
    ("convert", "pad"),
    [
        (to_sdpa, to_key_padding),
        (to_multihead, lambda real: real),
        (lambda mask: to_multihead(mask).mT, to_key_padding),
    ],
    ids=["polarity of the mask", "polarity of the padding", "turned"],
)
def test_a_faulty_conversion_to_multi_head_attention_is_caught(
    convert: Converter, pad: Callable[[Tensor], Tensor]
) -> None:
    with pytest.raises(AssertionError):
        check_multihead(convert, pad, SQUARE["window"])


def test_masks_of_multi_head_attention_by_hand() -> None:
    """True = must NOT look: the opposite of ours."""
    assert to_multihead(causal(2)).tolist() == [[False, True], [False, False]]
    assert from_multihead(torch.tensor([[False, True], [False, False]])).matrix().equal(causal(2).matrix())
    assert to_key_padding(REAL).equal(~REAL)
    assert from_multihead(key_padding_mask=~REAL).matrix().equal(Padding(REAL).matrix())
    assert from_multihead() == EVERYTHING
    assert to_multihead(EVERYTHING, 2, 3).tolist() == [[False] * 3] * 2


def test_a_folded_mask_of_rows_and_heads_needs_the_number_of_heads() -> None:
    folded = torch.rand(2 * 4, 3, 5, generator=torch.Generator().manual_seed(0)) < 0.5
    unfolded = from_multihead(folded, heads=4).matrix()
    assert unfolded.shape == (2, 4, 3, 5)
    assert unfolded[1, 2].equal(~folded[1 * 4 + 2])
    with pytest.raises(ValueError, match="give heads"):
        from_multihead(folded)


def test_a_mask_that_differs_among_rows_is_refused_and_one_that_does_not_is_taken() -> None:
    with pytest.raises(ValueError, match=r"rows differ, shape \(2, 1, 4, 5\)"):
        to_multihead(MASKS["padding"])
    same = Allowed(causal(T, S).matrix()[None, None])
    assert to_multihead(same).shape == (T, S)


# Additive numbers


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_additive_there_and_back(mask: Mask, dtype: torch.dtype) -> None:
    numbers = to_additive(mask, dtype)
    assert numbers.dtype == dtype
    assert set(numbers.unique().tolist()) <= {0.0, -torch.inf}
    assert (numbers == 0).equal(mask.matrix())
    assert from_additive(numbers).matrix().equal(mask.matrix())
    lowest = numbers.clamp(min=torch.finfo(dtype).min)
    assert from_additive(lowest).matrix().equal(mask.matrix())


def test_float32_is_what_is_given_if_none_is_asked() -> None:
    assert to_additive(causal(2)).dtype == torch.float32
    assert to_additive(causal(2)).tolist() == [[0.0, -torch.inf], [0.0, 0.0]]


@pytest.mark.parametrize("wrong", [-1.0, 1.0, -1e9, torch.inf, torch.nan])
def test_numbers_that_are_a_bias_are_refused(wrong: float) -> None:
    numbers = torch.tensor([[0.0, -torch.inf], [wrong, 0.0]])
    for read in (from_additive, from_sdpa, from_multihead):
        with pytest.raises(ValueError, match="pass a bias as `bias`"):
            read(numbers)
