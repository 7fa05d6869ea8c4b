"""Faults of writing, planted by hand: batches, drafts, beams."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from clearhead.generation import beams, drafts, loop, rows
from clearhead.generation.draws import Draw
from clearhead.layers.store import Store
from tests.equalities.registry import fault


@fault(
    "generate.pad-read",
    "the next token is read at the last column, where short rows have padding",
    "下一个词元从最后一列读取，而短的行在那里是填充",
)
def read_at_the_pad(patch: pytest.MonkeyPatch) -> None:
    def last(reader: rows.Reader, texts: Sequence[Sequence[int]], store: Store, *more: object) -> Tensor:
        ids, real = rows.padded(texts, reader.padding, reader.device)
        return reader.decoder(ids, real=real, store=store)[:, -1]

    patch.setattr(rows, "_last_logits", last)


@fault(
    "generate.finished-rows",
    "a row that has ended stays, and another takes its place",
    "已结束的行没有移出，别的行占了它的位置",
)
def ended_rows_stay(patch: pytest.MonkeyPatch) -> None:
    def keep(self: rows.Group[rows.Row], index: Sequence[int]) -> None:
        if list(index) != list(range(len(self.rows))):
            self._store.select(range(len(index)))
            self.rows, self._covered = [self.rows[i] for i in index], [self._covered[i] for i in index]

    patch.setattr(rows.Group, "keep", keep)


@fault(
    "speculative.rollback",
    "rejected proposals stay in the cache, in place of older tokens",
    "被拒绝的提议仍留在缓存中，占了更早词元的位置",
)
def rejected_stay(patch: pytest.MonkeyPatch) -> None:
    right = rows.DoublingStore.truncate

    @torch.inference_mode()
    def truncate(self: rows.DoublingStore, length: int) -> None:
        for layer in self.layers:
            for kept in layer.kept or ():
                kept[..., :length, :] = kept[..., self.length - length : self.length, :].clone()
        right(self, length)

    patch.setattr(rows.DoublingStore, "truncate", truncate)


@fault("speculative.biased", "every proposal is accepted", "所有提议一律接受")
def all_accepted(patch: pytest.MonkeyPatch) -> None:
    def accept(target: Tensor, proposal: drafts.Proposal, draw: Draw) -> int:
        return proposal.id

    patch.setattr(loop, "accepted_or_redrawn", accept)


@fault("cache.stale", "a beam goes on with the cache of another", "一个束接着用另一个束的缓存")
def beams_not_reordered(patch: pytest.MonkeyPatch) -> None:
    right = beams.Group.keep
    patch.setattr(beams.Group, "keep", lambda self, index: right(self, sorted(index)))
