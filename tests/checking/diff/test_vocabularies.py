"""Ids that one side alone knows, a model that gives the last position alone, and windows beyond the usual inputs."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from clearhead.checking.diff.diff import diff


class Words(nn.Module):
    """A causal mean of embeddings and a head; each mistake an argument."""

    def __init__(self, vocab: int = 29, times: float = 1.0, *, last: bool = False, window: int = 0) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(vocab, 6), nn.Linear(6, vocab, bias=False)
        self.times, self.last, self.window = times, last, window

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) * self.times
        seen = torch.ones(ids.shape[1], ids.shape[1], dtype=x.dtype).tril()
        seen = seen.triu(1 - self.window) if self.window else seen
        y = self.head((seen / seen.sum(-1, keepdim=True)) @ x)
        return y[:, -1:] if self.last else y


@pytest.mark.parametrize(("vocab", "id"), [(24, "weights.cropped"), (33, "weights.padded")])
def test_the_ids_that_both_know_are_compared(vocab: int, id: str) -> None:
    found = diff(Words(), partial(Words, vocab))
    assert not found.ok
    assert [each.id for each in found.reasons] == [id]
    assert found.reasons[0].after < 1e-12
    assert {row.state for row in found.tensors} == {"related"}


def test_what_differs_in_these_is_seen() -> None:
    """A factor that is planted in them comes before the ids."""
    found = diff(Words(), partial(Words, 24, 1.5))
    assert [each.id for each in found.reasons] == ["embedding.scale", "weights.cropped"]


def test_the_last_position_alone_is_equal_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for language, words in (("en", "the last position alone"), ("zh", "最后一个位置")):
        monkeypatch.setenv("CLEARHEAD_LANG", language)
        found = diff(Words(), partial(Words, last=True))
        assert found.ok
        assert any(words in note for note in found.notes)


def test_a_window_is_shown_by_inputs_longer_than_it() -> None:
    """Inputs of 40 positions do not reach beyond a window of 50."""
    assert not diff(partial(Words, window=50), Words()).ok
    assert diff(Words(), partial(Words)).ok
