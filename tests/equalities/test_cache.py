"""With a cache or without, in one piece or in many: the same logits; and a cache holds what its formula says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from clearhead.generation.stores import Cache, DoublingStore, FixedStore, GrowingStore, WindowStore
from clearhead.models.cost import cache_elements
from clearhead.models.decoder import Decoder
from tests.equalities import faults as f
from tests.equalities import faults_parts as g
from tests.equalities import faults_use as h
from tests.equalities.registry import claim, close
from tests.equalities.variants import CONTEXT, VARIANTS, B, T, ids_of, model_of

Make = Callable[[Decoder], Cache]
SPARE = 4
KEEP_ALL: list[Make] = [GrowingStore, DoublingStore, FixedStore]
RINGS: list[Make] = [WindowStore, partial(WindowStore, spare=SPARE)]
SPLITS = [[first] + [1] * (T - first) for first in range(1, T + 1)]
CHUNKS = [[2] * 6 + [1], [5, 4, 4], [1, 7, 1, 4], [3, 1, 1, 1, 7]]
WINDOWED = [name for name, config in VARIANTS.items() if all(sight.window for sight in config.sights)]


def stores_for(variant: str) -> list[Make]:
    """The stores that can serve a variant: a ring only where every block has a window."""
    return KEEP_ALL + (RINGS if variant in WINDOWED else [])


def in_pieces(model: Decoder, ids: Tensor, store: Cache, pieces: Sequence[int], real: Tensor | None = None) -> Tensor:
    """The logits of all pieces, each read after those before it."""
    out, begin = [], 0
    for length in pieces:
        end = begin + length
        out.append(model(ids[:, begin:end], store=store, real=None if real is None else real[:, begin:end]))
        begin = end
    return torch.cat(out, dim=1)


@claim(
    "One forward = prefill and decoding at every split = chunks of 1, 2 and many, for every store",
    "一次前向 = 任意位置切分的预填加解码 = 长为 1、2 及更多的分块（各种缓存）",
    over=VARIANTS,
    faults={
        f.top_left: "learned",
        f.unmasked_with_cache: "rotary, MHA",
        g.offset_in_decoding: "sinusoidal, post-norm",
        h.shared_cache: "learned, fused, MQA",
        h.ring_off_by_one: "window",
        f.length_scale: "rotary interleaved",
    },
)
@torch.no_grad()
def test_pieces_are_the_whole(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    whole = model(ids)
    for make in stores_for(variant):
        for pieces in SPLITS + CHUNKS:
            close(in_pieces(model, ids, make(model), pieces), whole)


@claim(
    "Truncating a cache and going on = never having read what was cut, also with other tokens and more than once",
    "截断缓存后继续 = 从未读过被截掉的词元（换别的词元、多次截断也一样）",
    over=VARIANTS,
    faults={h.stale_cache: "rotary, fused", h.ring_off_by_one: "cycle of windows", h.shared_cache: "ALiBi"},
)
@torch.no_grad()
def test_truncated_and_done_again(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    whole, other = model(ids), (ids + 1) % 11
    for make in stores_for(variant):
        spare = getattr(make(model), "spare", T)
        for read, kept, then in ((9, 6, 4), (9, 8, 1), (T, 9, 9), (12, 11, 9), (5, 1, 0)):
            if read - min(kept, then) > spare:
                continue
            store = make(model)
            model(ids[:, :kept], store=store)
            model(other[:, kept:read], store=store)
            store.truncate(kept)
            store.truncate(then)
            close(in_pieces(model, ids[:, then:], store, [1, 1, T - then - 2]), whole[:, then:])


@claim(
    "Every logit of one forward = the last logit of its prefix alone",
    "一次前向中每个位置的 logits = 单独前向其前缀的最后一个 logits",
    over=VARIANTS,
    faults={
        f.no_mask: "learned",
        f.wrong_axis: "rotary, fused",
        f.length_scale: "no positions",
        f.after_softmax: "sinusoidal halves",
    },
)
@torch.no_grad()
def test_logits_are_those_of_the_prefix(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    whole = model(ids)
    for length in range(1, T + 1):
        close(model(ids[:, :length])[:, -1], whole[:, length - 1])


@claim(
    "Two continuations of caches with one beginning do not disturb each other, nor does a text read before",
    "开头相同的两个缓存各自继续，互不影响；之前读过的文本也不影响",
    over=["learned", "rotary, fused", "window"],
    faults={h.aliased: "learned"},
)
@torch.no_grad()
def test_caches_are_isolated(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    other = (ids + 3) % 11
    for make in stores_for(variant):
        one, two = make(model), make(model)
        found = [[], []]
        for t in range(T):
            found[0].append(model(ids[:, t : t + 1], store=one))
            found[1].append(model(other[:, t : t + 1], store=two))
        close(torch.cat(found[0], 1), model(ids))
        close(torch.cat(found[1], 1), model(other))
        if make in KEEP_ALL:
            one.truncate(0)
            close(model(other, store=one), model(other))


@claim(
    "Choosing rows of a cache (fewer, others, one more than once) = having read these rows alone",
    "从缓存中选行（更少、换序或重复）= 只读过这些行",
    over=VARIANTS,
    faults={h.rows_unordered: "learned"},
)
@torch.no_grad()
def test_chosen_rows_are_rows_read_alone(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    for make in stores_for(variant):
        for rows, first in itertools.product(([1], [1, 0], [0, 0, 1]), (0, 2)):
            real = torch.ones_like(ids, dtype=torch.bool)
            real[0, :first] = False
            chosen, store = torch.tensor(rows), make(model)
            model(ids[:, :8], store=store, real=real[:, :8])
            store.select(rows)
            rest = in_pieces(model, ids[chosen, 8:], store, [1, T - 9])
            close(rest, model(ids[chosen], real=real[chosen])[:, 8:])
            if rows == [1]:
                close(rest, model(ids[1:2])[:, 8:])


@claim(
    "A cache of S tokens takes 2·L·B·S·K·d numbers, for every store",
    "S 个词元的缓存恰好占 2·L·B·S·K·d 个数（各种缓存）",
    over=VARIANTS,
    faults={f.heads_stored: "learned", h.one_too_many: "window"},
)
@torch.no_grad()
def test_bytes_are_those_of_the_formula(variant: str) -> None:
    config, ids = VARIANTS[variant], ids_of()
    for dtype, each in ((torch.float64, 8), (torch.float32, 4), (torch.bfloat16, 2)):
        model = model_of(variant).to(dtype)
        widest = max(sight.window or 0 for sight in config.sights)
        expected = [
            (GrowingStore(model), T),
            (DoublingStore(model), min(CONTEXT, 64)),
            (FixedStore(model), CONTEXT),
            (FixedStore(model, T), T),
            *(
                [(WindowStore(model), widest), (WindowStore(model, SPARE), widest + SPARE)]
                if variant in WINDOWED
                else []
            ),
        ]
        for store, slots in expected:
            assert store.bytes_kept() == 0
            in_pieces(model, ids, store, [10, 1, 2])
            assert store.bytes_kept() == each * cache_elements(config, B, slots)


@claim(
    "A ring that has lost a token which would be seen again refuses to go back, in one step or in several",
    "环形缓存丢掉了还会被看到的词元时拒绝回退，一步或多步都一样",
    over=WINDOWED,
    faults={h.ring_goes_back: "window"},
)
@torch.no_grad()
def test_a_ring_goes_back_as_far_as_its_spare_tokens(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    whole = model(ids)
    for steps in itertools.product(range(1, SPARE + 2), repeat=2):
        store, length, refused = WindowStore(model, SPARE), T, False
        model(ids, store=store)
        for step in steps:
            try:
                store.truncate(length - step)
            except ValueError:
                refused = True
                break
            length -= step
        assert refused == (sum(steps) > SPARE)
        if length < T:
            close(model(ids[:, length:], store=store), whole[:, length:])
