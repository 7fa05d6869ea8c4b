"""Rows with padding, packed documents, batches of one, lengths of one: each the same as the text alone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead import UserError
from clearhead.ops import masks
from clearhead.ops.masks import Documents
from tests.equalities import faults as f
from tests.equalities import faults_parts as g
from tests.equalities import faults_use as h
from tests.equalities.registry import claim, close
from tests.equalities.test_cache import RINGS, in_pieces, stores_for
from tests.equalities.variants import VARIANTS, T, V, ids_of, model_of

# (first, last + 1) of the real tokens of four rows: full, padded left, padded right, padded on both sides.
REAL = [(0, T), (4, T), (0, 8), (3, 11)]


@claim(
    "Rows padded left, right or on both sides = each row alone, in one forward and with every store in pieces",
    "左填充、右填充、两侧填充的行 = 各行单独计算；一次前向如此，各种缓存分块亦然",
    over=VARIANTS,
    faults={
        g.counted_from_the_pad: "learned",
        f.padding_ignored: "rotary, fused",
        f.padding_on_queries: "ALiBi",
        f.reversed_mask: "learned",
        h.shared_cache: "rotary, MHA",
    },
)
@torch.no_grad()
def test_padded_rows_are_single_rows(variant: str) -> None:
    model, ids = model_of(variant), ids_of(len(REAL))
    real = torch.stack([(torch.arange(T) >= first) & (torch.arange(T) < end) for first, end in REAL])
    alone = [model(row[None, first:end])[0] for row, (first, end) in zip(ids, REAL, strict=True)]

    def compare(logits: Tensor) -> None:
        for row, (first, end) in enumerate(REAL):
            close(logits[row, first:end], alone[row])

    compare(model(ids, real=real))
    for make in stores_for(variant):
        for pieces in ([T], [6, 1, 1, 1, 4], [2] * 6 + [1]):
            compare(in_pieces(model, ids, make(model), pieces, real))


@claim(
    "Decoding goes on after a prompt padded on the left, on the right or between as after the prompt alone (a ring: on the left)",
    "左填充、右填充或中间有填充的提示之后继续解码 = 单独的提示之后继续解码（环形缓存：仅左填充）",
    over=VARIANTS,
    faults={g.counted_from_the_pad: "sinusoidal, post-norm", f.padding_ignored: "learned, fused, MQA"},
)
@torch.no_grad()
def test_decoding_goes_on_after_padding(variant: str) -> None:
    model, ids = model_of(variant), ids_of(4)
    real = torch.ones(4, T, dtype=torch.bool)
    real[1, :4] = False
    real[2, 3:8] = False
    real[3, 2:5] = real[3, 6:8] = False
    for make in stores_for(variant):
        # A ring refuses padding between real tokens; see test_a_ring_refuses_padding_between_real_tokens.
        rows = 2 if make in RINGS else 4
        logits = in_pieces(model, ids[:rows], make(model), [8, 1, 1, 1, 2], real[:rows])
        for row in range(rows):
            close(logits[row, real[row]], model(ids[row, real[row]][None])[0])


@pytest.mark.parametrize("variant", [name for name, config in VARIANTS.items() if all(s.window for s in config.sights)])
@torch.no_grad()
def test_a_ring_refuses_padding_between_real_tokens(variant: str) -> None:
    """Its slots would push out real tokens that the window should still show."""
    model, ids = model_of(variant), ids_of(2)
    real = torch.ones(2, T, dtype=torch.bool)
    real[1, 3:8] = False
    for make in RINGS:
        with pytest.raises(UserError, match="padding between real tokens"):
            in_pieces(model, ids, make(model), [8, 1, 1, 1, 2], real)


@claim(
    "Documents packed into one row = the documents one by one",
    "装进同一行的多篇文档 = 逐篇单独计算",
    over=VARIANTS,
    faults={g.positions_not_reset: "learned", f.documents_ignored: "rotary, fused", f.no_mask: "window"},
)
@torch.no_grad()
def test_packed_documents_are_separate_documents(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    documents = torch.tensor([[0] * 5 + [1] * 7 + [2], [4] * T, [1] * 2 + [0] * 2 + [3] * 9])
    packed = model(ids, visible=Documents(documents, documents), positions=masks.document_positions(documents))
    for row, numbers in enumerate(documents):
        for number in numbers.unique():
            own = numbers == number
            close(packed[row, own], model(ids[row, own][None])[0])


@claim(
    "A batch of one and a length of one keep their axes, and are the rows of a larger batch",
    "批次为一、长度为一时轴不丢失，且与大批次中的对应行相等",
    over=VARIANTS,
    faults={g.squeezed: "learned", f.rows_mixed: "rotary, MHA"},
)
@torch.no_grad()
def test_axes_of_one_are_kept(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    whole = model(ids)
    for rows, length in ((1, 1), (1, T), (3, 1), (1, 5)):
        part = model(ids[:rows, :length])
        assert part.shape == (rows, length, V)
        close(part, whole[:rows, :length])
    for make in stores_for(variant):
        close(in_pieces(model, ids[:1], make(model), [1] * T), whole[:1])


@claim(
    "Padding and packing together: padded positions are seen by nobody, whatever positions the caller gives",
    "填充与打包并用：无论调用者给出什么位置，填充处谁也看不见",
    over=VARIANTS,
    faults={f.padding_ignored: "learned"},
)
@torch.no_grad()
def test_given_positions_keep_the_padding_hidden(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    real = torch.arange(T) >= torch.tensor([[0], [2], [5]])
    given = model(ids, real=real, positions=(real.cumsum(-1) - 1).clamp(min=0))
    for row in range(len(ids)):
        close(given[row, real[row]], model(ids[row, real[row]][None])[0])
