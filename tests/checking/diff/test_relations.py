"""What relates two tensors: each rearrangement planted and named, and what is merely near left alone."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.checking.diff.relations import Shapes, relation

H, K, HEAD, D = 6, 2, 8, 20
"""Heads, key/value heads, their width, and how many columns."""

SHAPES = Shapes(heads=H, kv_heads=K, head_width=HEAD, width=D)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def regrouped(x: Tensor, groups: tuple[int, ...], axes: tuple[int, ...]) -> Tensor:
    """The rows seen as groups, with these in another order."""
    return x.view(*groups, x.shape[1]).permute(*axes, len(groups)).reshape(x.shape)


def by_group(x: Tensor) -> Tensor:
    q, k, v = torch.split(x, [H * HEAD, K * HEAD, K * HEAD])
    groups = [q.view(K, -1, D), k.view(K, -1, D), v.view(K, -1, D)]
    return torch.cat(groups, 1).reshape(x.shape)


def pairs(x: Tensor, heads: int, turned: int) -> Tensor:
    """Halves of the first features of each head, side by side."""
    each = x.view(heads, -1, x.shape[1]).clone()
    each[:, :turned] = each[:, :turned].reshape(heads, 2, turned // 2, -1).transpose(1, 2).reshape(heads, turned, -1)
    return each.reshape(x.shape)


def parts(x: Tensor, order: str) -> Tensor:
    named = dict(zip("qkv", x.chunk(3), strict=True))
    return torch.cat([named[each] for each in order])


def turned_parts(x: Tensor) -> Tensor:
    q, k, v = x.chunk(3)
    return torch.cat([pairs(q, H, HEAD), pairs(k, H, HEAD), v])


def quantised(x: Tensor, bits: int, group: int) -> Tensor:
    groups = x.reshape(-1, group)
    scale = groups.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
    rounded: Tensor = torch.round(groups / scale) * scale
    return rounded.reshape(x.shape)


FUSED, QUERY, SQUARE = drawn(3 * H * HEAD, D), drawn(H * HEAD, D), drawn(D, D)
GROUPED = drawn((H + 2 * K) * HEAD, D)
WIDE = drawn(H * 16, D)

PLANTED: dict[str, tuple[Tensor, Callable[[Tensor], Tensor], str, str]] = {
    "transposed": (QUERY, Tensor.t, "weights.transposed", "transposed"),
    "transposed square": (SQUARE, Tensor.t, "weights.transposed", "transposed"),
    "k before q": (FUSED, lambda x: parts(x, "kqv"), "qkv.layout", "k, q, v"),
    "v first": (FUSED, lambda x: parts(x, "vqk"), "qkv.layout", "v, q, k"),
    "by head": (FUSED, lambda x: regrouped(x, (3, H, HEAD), (1, 0, 2)), "qkv.layout", "6 heads of 8"),
    "by part": (FUSED, lambda x: regrouped(x, (H, 3, HEAD), (1, 0, 2)), "qkv.layout", "A has the q, k and v of head 0"),
    "by group": (GROUPED, by_group, "qkv.layout", "2 groups"),
    "features first": (
        QUERY,
        lambda x: regrouped(x, (H, HEAD), (1, 0)),
        "heads.grouping",
        "B (feature, head); 6 heads",
    ),
    "heads first": (QUERY, lambda x: regrouped(x, (HEAD, H), (1, 0)), "heads.grouping", "B (head, feature); 6 heads"),
    "features first in each part": (
        FUSED,
        lambda x: regrouped(x, (3, H, HEAD), (0, 2, 1)),
        "heads.grouping",
        "6 heads of 8",
    ),
    "heads in another order": (
        QUERY,
        lambda x: x.view(H, HEAD, D)[[3, 1, 0, 5, 4, 2]].reshape(x.shape),
        "heads.order",
        "3, 1, 0, 5, 4, 2",
    ),
    "pairs": (QUERY, lambda x: pairs(x, H, HEAD), "rotary.pairing", "B its neighbours (heads of 8"),
    "halves": (pairs(QUERY, H, HEAD), lambda _: QUERY, "rotary.pairing", "A turns neighbouring"),
    "a half of a head turned": (WIDE, lambda x: pairs(x, H, 8), "rotary.pairing", "heads of 16, 8 of them"),
    "pairs in q and k alone": (FUSED, turned_parts, "rotary.pairing", "B its neighbours (heads of 8"),
    "one more": (drawn(D), lambda x: x + 1, "weights.shifted", "+1 "),
    "times sqrt(D)": (QUERY, lambda x: x * D**0.5, "weights.scaled", "sqrt(20), 20 the width of the model"),
    "over d": (QUERY, lambda x: x / 8, "weights.scaled", "1/8, 8 the width of a head"),
    "over sqrt(7)": (QUERY, lambda x: x / 7**0.5, "weights.scaled", "1/sqrt(7)"),
    "times 1.3": (QUERY, lambda x: x * 1.3, "weights.scaled", "1.3"),
    "negated": (QUERY, torch.neg, "weights.negated", "other sign"),
    "flipped": (QUERY, lambda x: x.flip(0), "weights.flipped", "the last is the first"),
    "rolled": (QUERY, lambda x: x.roll(1, 0), "weights.rolled", "1 further on"),
    "rolled back": (QUERY, lambda x: x.roll(-2, 0), "weights.rolled", "-2 further on"),
    "two rows exchanged": (
        QUERY,
        lambda x: x[[0, 7, 2, 3, 4, 5, 6, 1, *range(8, 48)]],
        "weights.permuted",
        "2 of 48 are elsewhere; B's 1 is A's 7",
    ),
    "columns of an output by feature": (
        QUERY.t().contiguous(),
        lambda x: regrouped(x.t(), (H, HEAD), (1, 0)).t(),
        "heads.grouping",
        "columns",
    ),
    "bfloat16": (QUERY, lambda x: x.bfloat16().double(), "weights.rounded", "bfloat16"),
    "float16": (QUERY, lambda x: x.half().double(), "weights.rounded", "float16"),
    "float32": (QUERY, lambda x: x.float().double(), "weights.rounded", "float32"),
    "float8": (QUERY, lambda x: x.to(torch.float8_e4m3fn).double(), "weights.rounded", "float8_e4m3fn"),
    "zero": (QUERY, torch.zeros_like, "weights.zero", "all 0"),
    "ones": (drawn(D), torch.ones_like, "weights.constant", "all 1"),
    "cropped": (QUERY, lambda x: x[2:-3], "weights.cropped", "rows 2 to 44"),
    "padded": (QUERY, lambda x: torch.cat([x, x.new_zeros(5, D)]), "weights.padded", "5 more, all zeros"),
    "three axes": (
        drawn(H, D, HEAD),
        lambda x: x.permute(0, 2, 1).reshape(H * HEAD, D),
        "weights.axes",
        "(0, 2, 1)",
    ),
    "into three axes": (QUERY, lambda x: x.view(H, HEAD, D).permute(0, 2, 1), "weights.axes", "axes"),
    "transposed and scaled": (QUERY, lambda x: x.t() * 2, "weights.scaled", "transposed"),
    "transposed and by head": (
        FUSED,
        lambda x: regrouped(x, (3, H, HEAD), (1, 0, 2)).t(),
        "qkv.layout",
        "transposed",
    ),
    "by head, doubled": (FUSED, lambda x: 2 * regrouped(x, (3, H, HEAD), (1, 0, 2)), "weights.scaled", "of head 0"),
    "transposed, rounded": (SQUARE, lambda x: x.t().half().double(), "weights.transposed", "rounded to float16"),
}


# How many heads share a key cannot be guessed.
@pytest.mark.parametrize(
    ("name", "known"), [(name, known) for name in PLANTED for known in (True, False) if known or name != "by group"]
)
def test_each_relation_is_named_and_makes_bs_numbers(name: str, known: bool) -> None:
    a, plant, id, words = PLANTED[name]
    found = relation(a, plant(a), SHAPES if known else None)
    assert found is not None
    assert found.exact
    torch.testing.assert_close(found.turn(a), plant(a), rtol=1e-12, atol=1e-12)
    if known:
        assert found.id == id
        assert words in found.text


@pytest.mark.parametrize("name", ["by head", "pairs", "k before q", "transposed square", "times sqrt(D)"])
def test_a_relation_with_one_number_changed_is_none(name: str) -> None:
    a, plant, _, _ = PLANTED[name]
    b = plant(a).clone()
    b[3, 2] += 0.01
    assert relation(a, b, SHAPES) is None


@pytest.mark.parametrize("plant", [Tensor.t, lambda x: 3 * x, lambda x: x + 1, lambda x: x.flip(0)])
def test_one_number_that_no_sample_sees_is_seen(plant: Callable[[Tensor], Tensor]) -> None:
    a = drawn(131, 127)
    assert relation(a, plant(a)) is not None
    b = plant(a).clone()
    # Places are sampled from the first on, a few apart.
    b[0, 1] += 1e-3
    assert relation(a, b) is None


@pytest.mark.parametrize("shape", [(H * HEAD, D), (D, D), (D,), (3 * H * HEAD, D), (4,), (H, D, HEAD)])
def test_other_numbers_are_not_related(shape: tuple[int, ...]) -> None:
    for seed in range(1, 6):
        assert relation(drawn(*shape), drawn(*shape, seed=seed), SHAPES) is None


def test_the_same_numbers_are_no_relation() -> None:
    assert relation(QUERY, QUERY.clone(), SHAPES) is None
    assert relation(QUERY.float(), QUERY.float().double(), SHAPES) is None


def test_numbers_trained_a_little_are_not_related() -> None:
    assert relation(QUERY, QUERY + 0.01 * drawn(*QUERY.shape, seed=3), SHAPES) is None


@pytest.mark.parametrize(("bits", "group"), [(8, D), (8, 32), (4, 32)])
def test_quantised_numbers(bits: int, group: int) -> None:
    a = QUERY if group == D else drawn(H * HEAD, 64)
    found = relation(a, quantised(a, bits, group))
    assert found is not None
    assert (found.id, found.exact) == ("weights.quantised", False)
    assert f"{bits} bits, {group} numbers" in found.text


def test_a_that_is_rounded_is_said() -> None:
    found = relation(QUERY.bfloat16().double(), QUERY)
    assert found is not None
    assert (found.id, found.exact) == ("weights.rounded", False)
    assert "A has B's numbers rounded to bfloat16" in found.text


@pytest.mark.slow
def test_a_large_table_takes_a_second_or_so() -> None:
    a = torch.randn(50257, 768)
    for plant in (Tensor.t, lambda x: x.roll(1, 0), lambda x: x * 768**0.5, lambda _: torch.randn(50257, 768)):
        b = plant(a)
        begun = time.perf_counter()
        relation(a, b)
        assert time.perf_counter() - begun < 6.0
