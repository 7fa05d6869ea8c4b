"""Which checks are asked for, and what is refused before anything is run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from clearhead.checking.check import check
from clearhead.checking.kinds.stress import NAME
from clearhead.messages import UserError


class Attention(nn.Module):
    """Causal, with scores that are not scaled."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-2, -1)
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        out: Tensor = self.out(scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v)
        return out


def softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ v


def test_one_id_and_its_family() -> None:
    assert [fault.id for fault in check(Attention, kind="attention", only="scale.missing").faults] == ["scale.missing"]
    assert not check(Attention, kind="attention", only=["scale.twice"]).ok
    only = check(Attention, kind="attention", only={"causal.future-leak"})
    assert {each.id for each in only.checks} == {"causal.future-leak"}
    assert only.ok


def test_an_id_that_nobody_asks_is_no_pass() -> None:
    with pytest.raises(UserError, match="nonsense"):
        check(Attention, kind="attention", only="nonsense")


def test_values_for_a_function_are_refused() -> None:
    with pytest.raises(UserError, match="foo"):
        check(softmax, kind="sdpa", values={"foo": 1})
    assert check(softmax, kind="sdpa").ok


class Hidden(nn.Module):
    """Its mask is a number that large scores beat, and no score of PyTorch's own layer can be seen."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.full((x.shape[1], x.shape[1]), -1e4, dtype=x.dtype).triu(1)
        x = self.norm(x)
        out: Tensor = self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return out


ALIKE = """
import torch
from torch import nn

class Attn(nn.Module):
    {words}
    def __init__(self, dim=16):
        super().__init__()
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out((q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ v)
"""


def test_files_of_one_name_are_two_files(tmp_path: Path) -> None:
    """`token` is a module of Python's own, too, and long there."""
    for folder, words in (("one", '"""Causal self-attention."""'), ("two", '"""Attention both ways."""')):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "token.py").write_text(ALIKE.format(words=words), encoding="utf-8")
    assert "causal.future-leak" in [fault.id for fault in check(f"{tmp_path}/one/token.py:Attn").faults]
    assert check(f"{tmp_path}/two/token.py:Attn").ok


def test_scores_that_were_not_seen_prove_nothing() -> None:
    (asked,) = [each for each in check(Hidden, kind="attention", causal=True).checks if each.id == NAME]
    assert asked.verdict != "pass"
