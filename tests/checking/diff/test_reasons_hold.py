"""A reason that is called reproduced closes the stage that it names, and what is no difference is not taken for the first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clearhead.checking.diff import formulas
from clearhead.checking.diff.candidates import candidate_of
from clearhead.checking.diff.diff import diff
from clearhead.checking.diff.formulas import found_in
from clearhead.checking.diff.formulas_small import simple
from clearhead.checking.diff.reading import Scene, scene
from clearhead.checking.diff.searching import Search, Tried
from clearhead.checking.diff.variation import Variation
from clearhead.checking.diff.variations import variations
from tests.checking.diff.ours_made import CONFIGS, T, side
from tests.checking.diff.small_modules import gpt
from tests.checking.diff.test_variations import given
from tests.checking.diff.walks import right, walk_of

W, H, LONG = 12, 3, 4


class Mixing(nn.Module):
    """Attention of vectors around a mask of constants, and a norm; each mistake a word."""

    def __init__(self, *wrong: str) -> None:
        super().__init__()
        self.wrong = wrong
        self.weight, self.qkv, self.out = nn.Parameter(torch.ones(W)), nn.Linear(W, 3 * W), nn.Linear(W, W)

    def normed(self, x: Tensor) -> Tensor:
        y = x.float() if "island" in self.wrong else x
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + (1e-2 if "eps" in self.wrong else 1e-5))
        return y.to(x.dtype) * (1 + self.weight if "offset" in self.wrong else self.weight)

    def forward(self, x: Tensor) -> Tensor:
        length, z = x.shape[1], self.qkv(self.normed(x))
        if "heads" in self.wrong:
            q, k, v = z.view(*x.shape[:2], H, 3, LONG).transpose(2, 3).reshape(*x.shape[:2], 3, W).unbind(2)
        else:
            q, k, v = z.chunk(3, -1)
        shape = (*x.shape[:2], LONG, H) if "grouped" in self.wrong else (*x.shape[:2], H, LONG)
        q, k, v = (each.view(shape) for each in (q, k, v))
        q, k, v = ((each.mT if "grouped" in self.wrong else each).transpose(1, 2) for each in (q, k, v))
        hidden = torch.full((length, length), -torch.inf, dtype=x.dtype)
        mask = hidden.triu(2 if "leak" in self.wrong else 1)
        mixed = (q @ k.mT * LONG**-0.5 + mask).softmax(-1) @ v
        y = self.out(mixed.transpose(1, 2).flatten(2))
        y = F.silu(y) if "silu" in self.wrong else F.gelu(y)
        return 0.5 * x + y if "half" in self.wrong else x + y


def mixing(*wrong: str) -> Mixing:
    """One with weights that are all unlike."""
    torch.manual_seed(3)
    made = Mixing(*wrong)
    nn.init.normal_(made.weight, 1.0, 0.3)
    return made


@pytest.mark.parametrize(
    ("words", "both", "id", "first"),
    [
        ("silu", "", "activation.variant", "gelu"),
        ("leak", "", "causal.future-leak", "add"),
        ("eps", "island", "norm.eps-value", "add"),
        ("offset", "", "norm.offset", "mul"),
        ("heads", "", "qkv.layout", "chunk[0]"),
        ("grouped", "", "heads.grouping", "matmul"),
        ("half", "", "residual.scale", "add"),
    ],
)
def test_each_is_named_once_and_found_where_it_is(words: str, both: str, id: str, first: str) -> None:
    """Masks of one number, of which the same is on both sides, are not where the two part; another mask is."""
    found = diff(mixing(*both.split()), partial(Mixing, words, *both.split()), kind="block")
    assert [each.id for each in found.reasons] == [id]
    assert found.reasons[0].after < 1e-6
    assert found.first is not None
    assert found.first.a.startswith(first)
    assert found.first.largest > found.first.allowed


def searched(text: str) -> tuple[Search, Tried]:
    """Our model beside the same one changed."""
    read = given(1)
    other = next(each for each in variations(CONFIGS["llama"], T) if text in each.text_b)
    search = Search(side("llama").varied(other).run(read), read)
    return search, search.tried(side("llama"))


def test_a_change_that_only_makes_more_agree_is_no_reason() -> None:
    """With a window of one key a mixture is v, which both have: the weights, at which the two part, stay apart."""
    search, now = searched("soft-cap of the scores")
    changes = list(variations(CONFIGS["llama"], T))
    alone = Variation("attention.window", replace(CONFIGS["llama"], window=1, cycle=()), "", "")
    right_one = next(each for each in changes if "soft-cap of the scores" in each.text_b)
    closed = {}
    for name, each in (("alone", alone), ("right", right_one)):
        after = search.changed((candidate_of(side("llama"), each),))
        assert after is not None
        closed[name] = search.closes(now, after)
    assert closed == {"alone": False, "right": True}


def test_factors_are_such_as_people_write() -> None:
    for factor in (2.0, -1.0, 0.5, 24**0.5, 24**-0.5, 0.1, 0.707):
        assert simple(factor, 1e-7)
    for factor in (1.00001, -999.992, 0.41372915):
        assert not simple(factor, 1e-7)


def test_a_mistake_in_a_formula_is_not_taken_for_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A formula is ours: what it raises is passed on."""

    def broken(seen: Scene) -> None:
        raise KeyError(seen.length)

    seen = scene(right()[2], walk_of(gpt(activation="relu")))
    assert seen is not None
    assert next(found_in(seen)).id == "activation.variant"
    monkeypatch.setattr(formulas, "FAMILIES", (broken,))
    with pytest.raises(KeyError):
        next(found_in(seen))
