"""Faults of seeing, planted by hand: weights looked at again, edits, attribution."""

from __future__ import annotations

import pytest
from torch import Tensor

from clearhead.ops import recompute
from clearhead.tracing import edit, parts
from tests.equalities.registry import fault


@fault("heads.kv-tiled", "weights are computed again from keys repeated 0,1,0,1", "重算权重时按 0,1,0,1 重复键")
def keys_tiled(patch: pytest.MonkeyPatch) -> None:
    right = recompute.scores_of

    def scores_of(ran: recompute.Ran, heads: list[int], queries: list[int] | None = None) -> Tensor:
        kv = ran.k.shape[-3]
        tiled = ran.k[..., [head % kv for head in range(ran.q.shape[-3])], :, :]
        return right(ran._replace(k=tiled), heads, queries)

    for module in ("clearhead.tracing.record", "clearhead.tracing.edit"):
        patch.setattr(f"{module}.scores_of", scores_of)


@fault("mask.wrong-row", "weights are computed again without the mask", "重算权重时没有用 mask")
def mask_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = recompute.weights_of
    for module in ("clearhead.tracing.record", "clearhead.tracing.edit"):
        patch.setattr(
            f"{module}.weights_of", lambda ran, scores, *more: right(ran, scores, *more) * 0.5 + 0.5 / scores.shape[-1]
        )


@fault("norm.axis", "the final norm's scale is left out of an attribution", "归因时漏掉了最后归一化的尺度")
def scale_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parts.Held, "share", lambda self, part: part)


@fault("cache.stale", "an edit of one run stays for the next", "一次运行中的修改留到了下一次")
def edit_stays(patch: pytest.MonkeyPatch) -> None:
    def changed(self: edit.Editor, name: str, tensor: Tensor, index: object, change: edit.Change) -> Tensor:
        tensor[index] = change(name, tensor[index])  # type: ignore[index]
        return tensor

    patch.setattr(edit.Editor, "_changed", changed)
