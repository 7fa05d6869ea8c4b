"""Which stages stand for each other, and where two walks part."""

from __future__ import annotations

import pytest
import torch

from clearhead.checking.diff.align import aligned, matched, parting
from clearhead.checking.diff.numbers import alike, constant, gap, laid, mark, plain, rearranged
from clearhead.checking.diff.side import Stage, Walk
from clearhead.checking.diff.sources import parents_of
from clearhead.checking.diff.stages import CodeStage
from tests.checking.diff.small_modules import gpt, other
from tests.checking.diff.walks import found, right, walk_of


def test_the_same_model_by_another_hand_is_equal() -> None:
    """Fused projections, the fused kernel, scale before the product, other norms: what is computed otherwise is unpaired, never apart."""
    for start in (None, walk_of(gpt(norm="torch"))):
        pairs, first, reasons = found(other(), start)
        assert first is None
        assert reasons == ()
        assert {pair.held for pair in pairs} == {"equal", "unpaired"}
        assert sum(pair.held == "equal" for pair in pairs) > 45
        names = {pair.a: pair.b for pair in pairs}
        assert names["head"] == "lm_head"
        assert names["blocks.0.attention.q"].startswith("split[0]")
        softmax = next(pair for pair in pairs if pair.a.startswith("softmax"))
        assert softmax.b.startswith("scaled_dot_product_attention.weights")


def test_a_planted_difference_parts_there_and_not_before() -> None:
    """All before the parting is equal, the last pair is that of the results and differs."""
    pairs, first, _ = found(gpt(activation="relu"))
    assert first is not None
    assert first.a.startswith("gelu")
    before = pairs[: pairs.index(first)]
    assert {pair.held for pair in before} == {"equal"}
    assert (pairs[-1].a, pairs[-1].held) == ("head", "differs")


def test_positions_that_only_start_later_are_equal() -> None:
    """Both turned one position further: scores depend on distances alone, so nothing parts."""
    _, first, _ = found(gpt(start=1))
    assert first is None


def test_a_float32_island_is_no_difference() -> None:
    """What is rounded to float32 on the way is an island; the same size of difference in plain float64 is not."""
    _, _, walk = right()
    stages = list(walk.stages)
    for n in range(20, len(stages)):
        stages[n] = Stage(stages[n].name, stages[n].value * (1 + 1e-7), "", stages[n].inputs, stages[n].made_by)
    narrow = aligned(walk, Walk(tuple(stages), torch.float32))
    assert parting(narrow) is None
    assert narrow[-1].held == "island"
    assert parting(aligned(walk, Walk(tuple(stages)))) is not None


def test_a_narrow_type_elsewhere_excuses_nothing() -> None:
    """A stage in float64, made of what is equal, differs by 1e-7: no island, though float32 is used in another place."""
    x = torch.randn(3, 5, dtype=torch.float64)
    wide = (CodeStage("x", x), CodeStage("y", x.exp(), inputs=(x,), parents=(0,)))
    far = (CodeStage("x", x), CodeStage("y", x.exp() * (1 + 1e-7 * x), inputs=(x,), parents=(0,)))
    first = parting(aligned(Walk(wide, torch.float32), Walk(far, torch.float32)))
    assert first is not None
    assert first.a == "y"
    narrow = x.float().exp()
    near = (CodeStage("x", x), CodeStage("y", narrow, inputs=(x.float(),), parents=(0,)))
    near = (*near, CodeStage("z", 2 * narrow.double(), inputs=(narrow,), parents=(1,)))
    pairs = aligned(Walk((*wide, CodeStage("z", 2 * x.exp(), parents=(1,)))), Walk(near, torch.float32))
    assert [pair.held for pair in pairs] == ["equal", "island", "island"]


def test_by_names_of_ours() -> None:
    """Where nobody knows what a stage was made of, the names of the house say it."""
    torch.manual_seed(0)
    names = [
        "embedding",
        "blocks.0.attention.q",
        "blocks.0.attention.k",
        "blocks.0.attention.v",
        "blocks.0.attention.scores",
    ]
    names += [
        "blocks.0.attention.weights",
        "blocks.0.attention.mixed",
        "blocks.0.attention.output",
        "blocks.0.middle",
        "logits",
    ]
    values = [torch.randn(2, 3, 5, dtype=torch.float64) for _ in names]
    a = Walk(tuple(map(Stage, names, values)))
    wrong = [*values[:2], values[2] + 1, values[3], *(value * 1.1 for value in values[4:])]
    pairs = aligned(a, Walk(tuple(map(Stage, names, wrong))))
    first = parting(pairs)
    assert first is not None
    assert (first.a, first.b) == ("blocks.0.attention.k", "blocks.0.attention.k")
    assert parents_of(a)[4] == (1, 2)
    assert parents_of(a)[8] == (7, 0)
    # What is mended again before the result did no harm.
    mended = [*values[:2], values[2] + 1, *values[3:]]
    pairs = aligned(a, Walk(tuple(map(Stage, names, mended))))
    assert parting(pairs) is None
    assert pairs[2].held == "unpaired"


def test_constants_are_no_evidence() -> None:
    """A table of ones, and zeros, stand for nothing."""
    one = Walk((Stage("mask", torch.ones(3, 3)), Stage("out", torch.randn(3, 3))))
    assert matched(one, one).partner == {1: 1}


def test_shapes_that_differ_are_said() -> None:
    """Results of other sizes: an infinite difference."""
    one, two = Walk((Stage("x", torch.randn(2, 3)),)), Walk((Stage("y", torch.randn(2, 4)),))
    first = parting(aligned(one, two))
    assert first is not None
    assert first.largest == float("inf")


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 3, 1)])
def test_up_to_a_view(order: tuple[int, ...]) -> None:
    """Axes in any order, and merged; rows in another order are not a view, though the numbers are the same."""
    x = torch.randn(2, 3, 5, 7, dtype=torch.float64)
    y = x.permute(order)
    assert torch.equal(laid(y, x, 0.0), x)  # type: ignore[arg-type]
    merged = x.transpose(1, 2).reshape(2, 5, 21)
    assert torch.equal(laid(merged, x, 0.0), x)  # type: ignore[arg-type]
    assert torch.equal(laid(y, merged, 0.0), merged)  # type: ignore[arg-type]
    shuffled = x.flip(2)
    assert laid(shuffled, x, 1e-9) is None
    assert rearranged(shuffled, x, 0.0)
    assert alike(mark(shuffled), mark(x))
    assert not alike(mark(shuffled * 1.01), mark(x))


def test_what_is_hidden_is_hidden_however_large() -> None:
    """-1e9 and -inf are one; a hidden number hides no other difference."""
    x = torch.tensor([[1.0, float("-inf")], [2.0, 3.0]], dtype=torch.float64)
    y = torch.tensor([[1.0, -1e9], [2.0, 3.0]], dtype=torch.float64)
    assert gap(plain(x), plain(y)) == 0
    assert gap(plain(x), plain(y) + torch.tensor([[0.3, 0.0], [0.0, 0.0]])) == pytest.approx(0.1)
    assert gap(plain(x), torch.ones(2, 2, dtype=torch.float64)) == 1
    assert constant(torch.full((3, 3), 2.0))
