"""From one reason to the next: a reason closes the difference, several are given in order, and what is not explained is said so."""

from __future__ import annotations

from functools import cache, partial

import pytest
import torch
from torch import Tensor, nn

from clearhead.checking.diff.diff import diff
from clearhead.checking.diff.report import Difference
from clearhead.checking.diff.said import lines

W, H = 12, 3


class Small(nn.Module):
    """Attention and a feed-forward of vectors, each mistake a word."""

    def __init__(self, *wrong: str) -> None:
        super().__init__()
        self.wrong = wrong
        self.norm = nn.LayerNorm(W, 1e-2 if "eps" in wrong else 1e-5)
        self.q, self.k, self.v, self.out = (nn.Linear(W, W) for _ in range(4))
        self.up, self.down = nn.Linear(W, 3 * W), nn.Linear(3 * W, W)

    def attended(self, n: Tensor) -> Tensor:
        heads = 2 if "heads" in self.wrong else H
        q, k, v = (part(n).view(*n.shape[:2], heads, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = (k, q) if "roles" in self.wrong else (q, k)
        scores = q @ k.mT * q.shape[-1] ** (-1.0 if "scale" in self.wrong else -0.5)
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        if "after" in self.wrong:
            weights = scores.softmax(-1).masked_fill(hidden, 0.0)
        else:
            weights = scores.masked_fill(hidden, -1.0 if "finite" in self.wrong else -torch.inf).softmax(-1)
        mixed = weights @ v
        y = self.out((mixed if "merge" in self.wrong else mixed.transpose(1, 2)).reshape(n.shape))
        return y[..., torch.arange(W).roll(5)] if "features" in self.wrong else y

    def forward(self, x: Tensor) -> Tensor:
        n = self.norm(x)
        x = x + self.attended(n.flip(1) if "reversed" in self.wrong else n)
        y = self.up(x)
        y = y.sin() ** 3 * y.cos() if "strange" in self.wrong else torch.relu(y) if "relu" in self.wrong else y.tanh()
        y = nn.functional.dropout(y, 0.5) if "drop" in self.wrong else y
        return x + self.down(y)


@cache
def found(*wrong: str) -> Difference:
    """The right one beside one that is wrong, which is given its weights."""
    torch.manual_seed(4)
    return diff(Small(), partial(Small, *wrong), kind="block")


@pytest.mark.parametrize(
    ("word", "id", "said"),
    [
        ("features", "projection.order", "another order"),
        ("reversed", "position.order", "10, 9, 8"),
        ("after", "causal.after-softmax", "hidden afterwards"),
        ("roles", "qkv.layout", "q and k are exchanged"),
        ("merge", "heads.merge-without-transpose", "3 heads were merged"),
        ("finite", "causal.finite-mask", "-1 in place of -inf"),
        ("heads", "heads.number", "3 heads of 4, B to 2 heads of 6"),
    ],
)
def test_a_mistake_is_named_by_what_it_is(word: str, id: str, said: str) -> None:
    """Each planted alone; one reason that leaves nothing."""
    reasons = found(word).reasons
    assert [each.id for each in reasons] == [id]
    assert said in reasons[0].text
    assert reasons[0].after < 1e-8


def test_several_mistakes_are_several_reasons_in_their_order() -> None:
    made = found("eps", "scale", "relu")
    assert [each.id for each in made.reasons] == ["norm.eps-value", "scale.twice", "activation.variant"]
    assert not made.unreached


def test_what_is_not_explained_is_said_after_what_is() -> None:
    """A scale that has a name, then an activation that has none: the rest was not reached."""
    made = found("scale", "strange")
    assert [each.id for each in made.reasons] == ["scale.twice"]
    assert any("located, not explained" in note for note in made.notes)
    assert made.unreached
    assert made.unreached[-1] == made.pairs[-1].a


def test_no_reason_is_located_alone() -> None:
    made = found("strange")
    assert not made.reasons
    assert any("no known change" in note for note in made.notes)


def test_what_draws_is_said_first_and_the_rest_is_still_found() -> None:
    made = found("drop", "scale")
    assert [each.id for each in made.reasons][:2] == ["dropout.active-in-eval", "scale.twice"]
    assert "two runs of it differ" in made.reasons[0].text


class Own(nn.Module):
    """PyTorch's own attention, and the same by hand with a factor of the scores."""

    def __init__(self, factor: float | None = None) -> None:
        super().__init__()
        self.attention, self.factor = nn.MultiheadAttention(W, H, batch_first=True), factor

    def forward(self, x: Tensor) -> Tensor:
        own = self.attention
        if self.factor is None:
            return own(x, x, x, need_weights=False)[0]
        z = nn.functional.linear(x, own.in_proj_weight, own.in_proj_bias).chunk(3, -1)
        q, k, v = (y.unflatten(-1, (H, -1)).transpose(1, 2) for y in z)
        y = (q @ k.mT * self.factor).softmax(-1) @ v
        return own.out_proj(y.transpose(1, 2).flatten(-2))


def test_the_whole_of_pytorchs_attention_is_opened() -> None:
    """q, k, v, scores, weights and what they mix are stages; a factor that is planted is seen at the scores."""
    torch.manual_seed(2)
    right = diff(Own(), partial(Own, 0.5), kind="attention")
    names = {pair.a.partition(" ")[0].rpartition(".")[2] for pair in right.pairs if pair.held == "equal"}
    assert right.ok
    assert {"q", "k", "v", "scores", "weights", "mixed"} <= names
    wrong = diff(Own(), partial(Own, 0.7), kind="attention")
    assert [each.id for each in wrong.reasons] == ["scale.factor"]
    assert ".scores" in wrong.reasons[0].place


def test_axes_are_words_in_both_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_LANG", "zh")
    torch.manual_seed(4)
    text = "\n".join(lines(diff(Small(), partial(Small, "finite"), kind="block").to_dict()))
    assert "沿键轴" in text
    assert "keys" not in text
