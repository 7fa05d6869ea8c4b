"""Encoder-decoders: the source is read whole and without its padding, once; the target is written without its future."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from clearhead.generation.stores import Cache, FixedStore, GrowingStore
from clearhead.layers import MultiHeadAttention
from clearhead.layers.memory import CrossStore
from clearhead.layers.store import NO_STORE
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.masks import EVERYTHING
from tests.equalities import faults as f
from tests.equalities import faults_encoders as n
from tests.equalities import faults_parts as g
from tests.equalities import faults_use as h
from tests.equalities.registry import claim, close, differ
from tests.equalities.test_compile import one_graph
from tests.equalities.variants import B, T, V
from tests.equalities.variants_encoders import (
    PAIRS,
    Leaves,
    M,
    padded,
    pair_of,
    reached,
    sides,
    source_of,
    target_of,
)

STORES: list[Callable[[Decoder], Cache]] = [GrowingStore, FixedStore]
SPLITS = [[first] + [1] * (T - first) for first in (1, 4, T - 1)] + [[2] * 6 + [1], [5, 4, 4], [1, 7, 1, 4]]
COMPILED = ["learned", "original", "T5", "rotary, fused", "ALiBi", "sinks", "soft-cap"]
SOURCE, TARGET = "encoder.input", "decoder.input"


def in_pieces(decoder: Decoder, target: Tensor, store: CrossStore, pieces: list[int]) -> Tensor:
    """The logits of all pieces, each written after those before it."""
    return torch.cat([decoder(piece, store=store) for piece in target.split(pieces, dim=1)], dim=1)


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """How often an encoder reads, and a memory is projected, inside."""
    counts = {"encoder": 0, "keys_values": 0}
    read, project = Encoder.forward, MultiHeadAttention.keys_values

    def forward(self: Encoder, *ids: Tensor, **more: object) -> Tensor:
        counts["encoder"] += 1
        return read(self, *ids, **more)

    def keys_values(self: MultiHeadAttention, *memory: Tensor, **more: object) -> tuple[Tensor, Tensor]:
        counts["keys_values"] += 1
        return project(self, *memory, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Encoder, "forward", forward)
        patch.setattr(MultiHeadAttention, "keys_values", keys_values)
        yield counts


@claim(
    "A source's padding never reaches the decoder: its content moves no bit of the logits, its amount nothing above 1e-12, on either side",
    "源序列的填充到不了解码器：其内容不改变 logits 的任何一位，其数量（左或右）的影响不超过 1e-12",
    over=PAIRS,
    faults={n.source_padding_seen: "learned", f.padding_ignored: "rotary, fused", g.counted_from_the_pad: "original"},
)
@torch.no_grad()
def test_source_padding_never_reaches_the_decoder(variant: str) -> None:
    model, source, target = pair_of(variant), source_of(variant), target_of()
    vocab = PAIRS[variant].encoder.vocab
    for real, _ in sides(M):
        logits = model(source, target, source_real=real)
        close(model(torch.where(real, source, (source + 1) % vocab), target, source_real=real), logits, 0.0)
    alone = model(source, target)
    for left, right in ((0, 1), (0, 4), (3, 0), (2, 5)):
        more, real = padded(source, left, right)
        close(model(more, target, source_real=real), alone)
    differ(model((source + 1) % vocab, target), alone)


@claim(
    "Every logit depends on every real token of the source, however early or late, and by its gradient on no padding",
    "每个 logit 都依赖源序列的每个真实词元（无论前后），对填充的梯度恰为 0",
    over=PAIRS,
    faults={n.cross_causal: "learned", n.source_padding_seen: "T5", n.own_keys: "ALiBi"},
)
def test_every_logit_reads_the_whole_source(variant: str) -> None:
    model, source, target = pair_of(variant), source_of(variant), target_of()
    for real, _ in sides(M):
        leaves = Leaves(SOURCE)
        logits = model(source, target, source_real=real, tap=leaves)
        for t in (0, 5, T - 1):
            assert reached(logits[:, t], leaves.tensors[SOURCE]).equal(real)


@claim(
    "No logit depends on a later token of the target (no bit moves; the gradient is exactly 0), and each on all up to its own",
    "没有 logit 依赖目标中更晚的词元（一位不变，梯度恰为 0），而每个都依赖自身及之前的全部词元",
    over=PAIRS,
    faults={f.no_mask: "rotary, post-norm", f.self_only: "learned", f.reversed_mask: "T5"},
)
def test_a_target_does_not_see_its_future(variant: str) -> None:
    model, source, target, leaves = pair_of(variant), source_of(variant), target_of(), Leaves(TARGET)
    logits = model(source, target, tap=leaves)
    for t in range(T):
        assert reached(logits[:, t], leaves.tensors[TARGET]).equal((torch.arange(T) <= t).expand(B, T))
    with torch.no_grad():
        whole = model(source, target)
        for t in (1, 2, 7, T - 1):
            changed = torch.where(torch.arange(T) >= t, (target + 1) % V, target)
            again = model(source, changed)
            close(again[:, :t], whole[:, :t], 0.0)
            differ(again[:, t:], whole[:, t:])


@claim(
    "Written with a cache beside the memory, at every split and in chunks = one forward, for every store",
    "在记忆旁用缓存逐段写出（任意切分与分块）= 一次前向（各种缓存）",
    over=PAIRS,
    faults={
        f.top_left: "learned", g.offset_in_decoding: "original", h.shared_cache: "rotary, fused",
        n.memory_changed: "ALiBi", n.first_memory: "T5",
    },
)  # fmt: skip
@torch.no_grad()
def test_a_cache_beside_the_memory(variant: str) -> None:
    model, source, target = pair_of(variant), source_of(variant), target_of()
    real, _ = next(sides(M))
    # A memory of the two blocks that is one and the same would agree with itself: the reference asks block by block.
    expected = model(source, target, source_real=real)
    memory = model.remember(source, real=real)
    assert not torch.equal(memory.memories[0].k, memory.memories[1].k)
    for make in STORES:
        for pieces in SPLITS:
            close(in_pieces(model.decoder, target, memory.beside(make(model.decoder)), pieces), expected)


@claim(
    "The source is read once and projected once a block, however many tokens are written",
    "无论写出多少词元，源序列只读一次，每块只投影一次",
    over=["learned", "T5", "original"],
    faults={n.source_read_again: "learned"},
)
@torch.no_grad()
def test_the_source_is_read_once(variant: str) -> None:
    model, source, target = pair_of(variant), source_of(variant), target_of()
    with counted() as counts:
        memory = model.remember(source)
        in_pieces(model.decoder, target, memory.beside(GrowingStore(model.decoder)), [1] * T)
    assert counts == {"encoder": 1, "keys_values": len(model.decoder.blocks)}


@claim(
    "Two texts that continue one memory do not disturb each other, and a second source knows nothing of the first",
    "延续同一记忆的两段文本互不干扰，第二个源序列不受第一个影响",
    over=PAIRS,
    faults={n.one_store_beside: "learned", n.stale_source: "rotary, fused"},
)
@torch.no_grad()
def test_continuations_are_apart(variant: str) -> None:
    model, source, one = pair_of(variant), source_of(variant), target_of(length=9)
    other, memory = (one + 3) % V, model.remember(source)
    stores = [memory.beside(GrowingStore(model.decoder)) for _ in range(2)]
    pieces: list[list[Tensor]] = [[], []]
    for first, second in zip(one.split(4, dim=1), other.split(4, dim=1), strict=True):
        pieces[0].append(model.decoder(first, store=stores[0]))
        pieces[1].append(model.decoder(second, store=stores[1]))
    fresh = [pair_of(variant)(source, ids) for ids in (one, other)]
    for made, expected in zip(pieces, fresh, strict=True):
        close(torch.cat(made, dim=1), expected)
    second = (source + 1) % PAIRS[variant].encoder.vocab
    close(model(second, one), pair_of(variant)(second, one), 0.0)
    differ(model(second, one), fresh[0])


@claim(
    "A pair alone = its row in a padded batch, and no row depends on another",
    "单独一对 = 它在带填充批次中的那一行，且各行互不依赖",
    over=PAIRS,
    faults={
        n.row_of_another: "learned",
        f.rows_mixed: "sinusoidal, around",
        n.source_padding_seen: "no positions, fused",
    },
)
def test_a_pair_alone_is_its_row(variant: str) -> None:
    model, source, target = pair_of(variant), source_of(variant), target_of()
    for real, places in sides(M):
        leaves = Leaves(SOURCE, TARGET)
        logits = model(source, target, source_real=real, tap=leaves)
        for row, (begin, end) in enumerate(places.tolist()):
            close(model(source[row : row + 1, begin:end], target[row : row + 1]), logits[row : row + 1])
            for leaf in leaves.tensors.values():
                assert reached(logits[row], leaf).any(-1).tolist() == [other == row for other in range(B)]


@claim(
    "An encoder-decoder = its equations written out, the three residuals and the norms of its block in their places",
    "编码器-解码器 = 逐式写出的方程：三个残差与各归一化各在其位",
    over=["learned", "T5", "original", "rotary, post-norm", "BART", "untied, free head width"],
    faults={
        n.missing: "learned", n.stale: "T5", n.third: "learned", n.from_norm: "untied, free head width",
        n.norm_before_the_sum: "original", n.swapped: "learned", n.query_rows: "BART", n.first_memory: "learned",
    },
)  # fmt: skip
@torch.no_grad()
def test_the_equations_written_out(variant: str) -> None:
    model, source, target = pair_of(variant), source_of(variant), target_of()
    real, _ = next(sides(M))
    recorded = Written(model, source, real)
    close(model(source, target, source_real=real), recorded.logits(target))


class Written:
    """The decoder's equations, one head and one row of weights at a time, from the encoder's features."""

    def __init__(self, model: EncoderDecoder, source: Tensor, real: Tensor) -> None:
        self.model, self.real = model, real
        self.memory = model.encoder(source, real=real)

    def logits(self, target: Tensor) -> Tensor:
        decoder = self.model.decoder
        x = decoder.embedding_norm(decoder.positions(decoder.embedding(target), range(target.shape[1])))
        look = decoder.looks[0]
        seen = look(NO_STORE.places(target.shape[1], None, target.device), EVERYTHING, x)
        for block in decoder.blocks:
            attend = [
                lambda y, block=block: block.attention(y, seen.visible, rotate=seen.rotate, bias=seen.bias),
                lambda y, block=block: self.cross(block.cross_attention, y),
                block.feedforward,
            ]
            norms = [block.attention_norm, block.cross_attention_norm, block.feedforward_norm]
            for branch, norm in zip(attend, norms, strict=True):
                x = norm(x + branch(x)) if type(block).__name__.startswith("PostNorm") else x + branch(norm(x))
        return decoder.head(decoder.norm(x))

    def cross(self, part: MultiHeadAttention, x: Tensor) -> Tensor:
        """softmax(q kᵀ · scale) v, head after head, over the real positions of the memory alone."""
        d = part.sizes[0] // part.heads
        rows, group = part.qkv.weight, part.heads // part.kv_heads
        bias = torch.zeros(len(rows), dtype=rows.dtype) if part.qkv.bias is None else part.qkv.bias
        mixed = []
        for head in range(part.heads):
            starts = (head * d, (part.heads + head // group) * d, (part.heads + part.kv_heads + head // group) * d)
            (q, k, v) = (
                y @ rows[start : start + d].T + bias[start : start + d]
                for y, start in zip((x, self.memory, self.memory), starts, strict=True)
            )
            scores = q @ k.mT * (d**-0.5 if part.scale is None else part.scale)
            scores = scores - 1e30 * ~self.real[:, None, :]
            mixed.append(scores.softmax(-1) @ v)
        return part.output(torch.cat(mixed, dim=-1))


@claim(
    "In evaluation nothing is dropped: two runs are equal to the bit; in training they differ",
    "评估时什么都不丢弃：两次运行逐位相等；训练时则不同",
    over=PAIRS,
    faults={h.active_in_eval: "learned"},
)
def test_evaluation_drops_nothing(variant: str) -> None:
    model, source, target = pair_of(variant, dropout=0.4), source_of(variant), target_of()
    close(model(source, target), model(source, target), 0.0)
    close(model(source, target), pair_of(variant)(source, target), 0.0)
    differ(model.train()(source, target), model.eval()(source, target))


@claim(
    "torch.compile takes the whole encoder-decoder with padding as one graph (fullgraph), with the same output",
    "torch.compile 把带填充的整个编码器-解码器编译成一张完整的图（fullgraph），输出相同",
    over=COMPILED,
    faults={h.graph_break: "learned"},
)
@torch.no_grad()
def test_encoder_decoders_compile(variant: str) -> None:
    model, source, target = pair_of(variant), source_of(variant), target_of()
    real, _ = next(sides(M))
    expected = model(source, target, source_real=real)
    with one_graph():
        close(torch.compile(model, fullgraph=True, backend="eager")(source, target, source_real=real), expected)
