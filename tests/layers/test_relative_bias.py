"""T5's bias: which range a distance falls into, and one table of trained numbers for all blocks of a stack."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.generation.stores import FixedStore, GrowingStore
from clearhead.layers import NO_STORE, Places, RelativeBias
from clearhead.layers.store import ragged_positions
from clearhead.models.build import build
from clearhead.models.choices import Relative
from clearhead.models.config import DecoderConfig, Sight
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.ops import EVERYTHING, relative_buckets
from tests.oracles.compare import assert_same, assert_within

H, T, S = 3, 4, 6
Buckets = Callable[..., Tensor]
CPU = torch.device("cpu")

# Which distances fall into which range


def by_integers(distance: int, buckets: int, farthest: int, *, two_sided: bool) -> int:
    """The formula in whole numbers, nothing rounded.

    ⌊(n - e) ln(r/e) / ln(f/e)⌋ >= j exactly if (r/e)^(n-e) >= (f/e)^j, that is r^(n-e) e^j >= f^j e^(n-e).
    """
    n = buckets // 2 if two_sided else buckets
    e, behind = n // 2, n if two_sided and distance > 0 else 0
    r = abs(distance) if two_sided else max(-distance, 0)
    if r < e:
        return behind + r
    j = 0
    while j + 1 < n - e and r ** (n - e) * e ** (j + 1) >= farthest ** (j + 1) * e ** (n - e):
        j += 1
    return behind + e + j


def check_by_hand(found: Buckets) -> None:
    """One-sided 8 of 32: four exact ones, then from 4·8^(1/4) = 6.7, 4·8^(1/2) = 11.3 and 4·8^(3/4) = 19.02 on.

    Two-sided 8 of 16: four a side, two of them exact, then from 2 on one, from 2·8^(1/2) = 5.7 on the last.
    """
    past = [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 19, 20, 32, 33, 1000]
    expected = [0, 1, 2, 3, 4, 4, 4, 5, 5, 6, 6, 7, 7, 7, 7]
    assert found(-torch.tensor(past), 8, 32, two_sided=False).tolist() == expected
    assert found(torch.tensor([1, 2, 500]), 8, 32, two_sided=False).tolist() == [0, 0, 0]
    past = [0, 1, 2, 5, 6, 15, 16, 99]
    assert found(-torch.tensor(past), 8, 16, two_sided=True).tolist() == [0, 1, 2, 2, 3, 3, 3, 3]
    assert found(torch.tensor(past), 8, 16, two_sided=True).tolist() == [0, 5, 6, 6, 7, 7, 7, 7]


def check_by_integers(found: Buckets) -> None:
    distances = list(range(-150, 151))
    for two_sided in (False, True):
        for buckets in range(4, 41, 4):
            for farthest in (buckets // 2 + 1, buckets, 2 * buckets, 50, 81, 128):
                if farthest > buckets // 2:
                    expected = [by_integers(d, buckets, farthest, two_sided=two_sided) for d in distances]
                    assert found(torch.tensor(distances), buckets, farthest, two_sided=two_sided).tolist() == expected


def test_buckets_by_hand() -> None:
    check_by_hand(relative_buckets)


def test_buckets_in_whole_numbers() -> None:
    check_by_integers(relative_buckets)


def test_buckets_are_those_of_transformers() -> None:
    """For every farthest distance up to 128, and at T5's own setting for 10,000 distances.

    Theirs is the logarithm in float32, which at a border may fall on the wrong side. It does so at one distance of one
    setting here, 54 of 48 buckets up to 81; whole numbers say that ours is the right one: 54³ = 24 · 81² is the border.
    """
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5", reason="transformers is not installed")
    theirs = t5.T5Attention._relative_position_bucket
    wide, near = torch.arange(-10_000, 10_001), torch.arange(-300, 301)
    for two_sided in (False, True):
        assert relative_buckets(wide, 32, 128, two_sided=two_sided).equal(theirs(wide, two_sided, 32, 128))
    apart = {}
    for two_sided in (False, True):
        for buckets in range(4, 65, 4):
            for farthest in range(buckets // 2 + 1, 129):
                ours = relative_buckets(near, buckets, farthest, two_sided=two_sided)
                for d in near[ours != theirs(near, two_sided, buckets, farthest)].tolist():
                    exact = by_integers(d, buckets, farthest, two_sided=two_sided)
                    apart[two_sided, buckets, farthest, d] = int(ours[near == d]) == exact
    assert all(apart.values())
    assert len(apart) <= 1
    assert (
        by_integers(-54, 48, 81, two_sided=False) == relative_buckets(torch.tensor(-54), 48, 81, two_sided=False) == 40
    )


def later_keys_count(distances: Tensor, buckets: int, farthest: int, *, two_sided: bool) -> Tensor:
    """One-sided, a later key is as far as an earlier one."""
    return relative_buckets(-distances.abs(), buckets, farthest, two_sided=two_sided)


def sides_exchanged(distances: Tensor, buckets: int, farthest: int, *, two_sided: bool) -> Tensor:
    return relative_buckets(-distances, buckets, farthest, two_sided=two_sided)


def all_buckets_a_side(distances: Tensor, buckets: int, farthest: int, *, two_sided: bool) -> Tensor:
    return relative_buckets(distances, 2 * buckets, farthest, two_sided=two_sided)


def farthest_not_last(distances: Tensor, buckets: int, farthest: int, *, two_sided: bool) -> Tensor:
    """The ranges end one distance later."""
    return relative_buckets(distances, buckets, farthest + 1, two_sided=two_sided)


def borders_to_the_left(distances: Tensor, buckets: int, farthest: int, *, two_sided: bool) -> Tensor:
    """A distance at a border falls into the range before."""
    inward = distances - distances.sign() * (distances.abs() > buckets // (4 if two_sided else 2))
    return relative_buckets(inward, buckets, farthest, two_sided=two_sided)


@pytest.mark.parametrize("check", [check_by_hand, check_by_integers])
@pytest.mark.parametrize("fault", [later_keys_count, sides_exchanged, all_buckets_a_side, borders_to_the_left])
def test_wrong_buckets_are_caught(check: Callable[[Buckets], None], fault: Buckets) -> None:
    with pytest.raises(AssertionError):
        check(fault)


def test_a_border_one_too_far_is_caught() -> None:
    """At the borders that were worked out by hand both are the same; in whole numbers they are not."""
    with pytest.raises(AssertionError):
        check_by_integers(farthest_not_last)


# What is added to the scores


def bias_of(*, two_sided: bool) -> RelativeBias:
    """Eight ranges, each number its own: 10 · bucket + head."""
    bias = RelativeBias(H, 8, 32, two_sided=two_sided).double()
    with torch.no_grad():
        bias.table.copy_(10.0 * torch.arange(8)[:, None] + torch.arange(H))
    return bias


def check_values(bias: Callable[[Places, torch.dtype, torch.device], Tensor]) -> None:
    """Queries at 2..5 of six keys, one-sided: distance to the past, 0 for later keys; (H,T,S)."""
    added = bias(Places(range(2, 6), range(6), EVERYTHING), torch.float64, CPU)
    buckets = [[2, 1, 0, 0, 0, 0], [3, 2, 1, 0, 0, 0], [4, 3, 2, 1, 0, 0], [4, 4, 3, 2, 1, 0]]
    assert_same(added, torch.tensor([[[10.0 * b + h for b in row] for row in buckets] for h in range(H)]).double())


def test_the_bias_by_hand() -> None:
    check_values(bias_of(two_sided=False))
    both = bias_of(two_sided=True)(Places(range(3), range(3), EVERYTHING), torch.float64, CPU)
    assert both[1].tolist() == [[1, 51, 61], [11, 1, 51], [21, 11, 1]]


@pytest.mark.parametrize("fault", ["queries and keys exchanged", "head axis last", "distance of places"])
def test_a_wrong_bias_is_caught(fault: str) -> None:
    sound = bias_of(two_sided=False)

    def faulty(places: Places, dtype: torch.dtype, device: torch.device) -> Tensor:
        if fault == "queries and keys exchanged":
            return sound(Places(places.keys, places.queries, EVERYTHING), dtype, device).mT
        if fault == "head axis last":
            return sound(places, dtype, device).movedim(0, -1)
        return sound(Places(range(len(places.queries)), places.keys, EVERYTHING), dtype, device)

    with pytest.raises(AssertionError):
        check_values(faulty)


@pytest.mark.parametrize("two_sided", [False, True])
def test_positions_per_row_are_those_of_each_row(two_sided: bool) -> None:
    """(B,H,T,S): each row as a range of its own; as T queries and S keys, T and S not equal."""
    bias = bias_of(two_sided=two_sided)
    queries, keys = torch.tensor([[2, 3, 4, 5], [7, 8, 9, 10]]), torch.arange(S).expand(2, S)
    added = bias(Places(queries, keys, EVERYTHING), torch.float64, CPU)
    assert added.shape == (2, H, T, S)
    for row, start in enumerate((2, 7)):
        assert_same(added[row], bias(Places(range(start, start + T), range(S), EVERYTHING), torch.float64, CPU))


def test_padding_does_not_count_as_distance() -> None:
    real = torch.tensor([[False, True, True, False, True, True]])
    positions = ragged_positions(real)
    added = bias_of(two_sided=True)(Places(positions, positions, EVERYTHING), torch.float64, CPU)
    short = bias_of(two_sided=True)(Places(range(4), range(4), EVERYTHING), torch.float64, CPU)
    kept = real[0].nonzero().flatten()
    assert_same(added[0][:, kept][:, :, kept], short)


def test_the_type_is_that_of_the_scores_and_meta_stays_meta() -> None:
    bias = RelativeBias(H, 8, 32, two_sided=True)
    places = Places(range(T), range(S), EVERYTHING)
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        assert bias(places, dtype, CPU).dtype == dtype
    assert bias.to("meta")(places, torch.float32, torch.device("meta")).device.type == "meta"


def test_gradients_reach_the_ranges_that_occur_and_count_how_often() -> None:
    bias = RelativeBias(H, 8, 32, two_sided=False).double()
    bias(NO_STORE.places(3, None, CPU), torch.float64, CPU).sum().backward()
    # Distance 0 and later: 3 + 3 of 9 pairs; 1: two; 2: one.
    assert bias.table.grad is not None
    assert bias.table.grad.tolist() == [[6.0] * H, [2.0] * H, [1.0] * H, *[[0.0] * H] * 5]


# In a model

SIZES = {"vocab": 7, "layers": 3, "heads": H, "width": 12, "context": 9, "positions": Relative(buckets=8, farthest=32)}


def test_the_table_is_stored_once_and_shared_by_all_blocks() -> None:
    decoder, encoder = build(DecoderConfig(**SIZES)), build(EncoderConfig(**SIZES))
    for model in (decoder, encoder):
        assert [name for name in model.state_dict() if "table" in name] == ["biases.0.table"]
        assert {id(look.bias) for look in model.looks} == {id(model.biases[0])}
    assert (encoder.biases[0].two_sided, decoder.biases[0].two_sided) == (True, False)
    windowed = build(DecoderConfig(**SIZES, cycle=(Sight(window=2), Sight())))
    assert len(set(windowed.looks)) == 2
    assert [name for name in windowed.state_dict() if "table" in name] == ["biases.0.table"]
    both = build(EncoderDecoderConfig(**SIZES))
    tables = {name: tensor for name, tensor in both.state_dict().items() if name.endswith("biases.0.table")}
    assert list(tables) == ["encoder.biases.0.table", "decoder.biases.0.table"]
    assert len({table.data_ptr() for table in tables.values()}) == 2


def check_shared(moved: Callable[[torch.nn.Module], torch.nn.Module]) -> None:
    """After being copied, moved or loaded, what the looks refer to is still what the stack owns."""
    model = build(DecoderConfig(**SIZES), seed=0)
    other = moved(model)
    assert all(look.bias is other.biases[0] for look in other.looks)
    with torch.no_grad():
        # What was moved by way of "meta" holds whatever stood in memory.
        for parameter in other.parameters():
            parameter.normal_()
    ids = torch.randint(7, (2, 5))
    with torch.no_grad():
        before = other(ids)
        other.biases[0].table.mul_(3.0)
        assert not other(ids).equal(before)


def test_copied_and_moved_the_table_stays_shared() -> None:
    check_shared(lambda model: model)
    check_shared(copy.deepcopy)
    check_shared(lambda model: model.double())
    check_shared(lambda model: model.to("meta").to_empty(device="cpu"))
    model = build(DecoderConfig(**SIZES), seed=0)
    copied = copy.deepcopy(model)
    assert copied.biases[0].table.data_ptr() != model.biases[0].table.data_ptr()


def test_a_table_that_the_looks_do_not_share_is_caught() -> None:
    def torn(model: torch.nn.Module) -> torch.nn.Module:
        model.biases[0] = copy.deepcopy(model.biases[0])
        return model

    with pytest.raises(AssertionError):
        check_shared(torn)


def test_every_block_adds_to_the_gradient_of_the_one_table() -> None:
    model = build(DecoderConfig(**SIZES), seed=0).double()
    ids = torch.randint(7, (2, 9))
    model(ids).square().sum().backward()
    assert model.biases[0].table.grad is not None
    assert bool((model.biases[0].table.grad[:6] != 0).all())
    # 9 positions: the farthest distance is 8, of the range from 6.7 to 11.3.
    assert_same(model.biases[0].table.grad[6:], torch.zeros(2, H, dtype=torch.float64))


@pytest.mark.parametrize("store", [GrowingStore, FixedStore])
@pytest.mark.parametrize("padding", ["none", "left", "right of the first part"])
def test_a_cache_adds_the_bias_of_the_whole(store: type[GrowingStore] | type[FixedStore], padding: str) -> None:
    model = build(DecoderConfig(**SIZES), seed=0).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    ids, real = torch.randint(7, (2, 8)), torch.ones(2, 8, dtype=torch.bool)
    if padding == "left":
        real[1, :2] = False
    elif padding != "none":
        real[1, 3:4] = False
    with torch.no_grad():
        whole = model(ids, real=None if padding == "none" else real)
        for split in (4, 5, 7):
            kept = store(model)
            parts = [
                model(ids[:, a:b], real=None if padding == "none" else real[:, a:b], store=kept)
                for a, b in ((0, split), (split, 8))
            ]
            assert_within(torch.cat(parts, 1)[real], whole[real], 1e-12)
